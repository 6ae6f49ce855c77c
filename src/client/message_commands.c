/*
 * claimd post, claim and delete: messages by hand. Post sends its messages in batches,
 * and those of standard input as they come. Claim may wait for messages.
 *
 * Each command has its function and its table, which command.h declares. Read
 * command.c first.
 */
#include "client/command.h"
#include "client/table.h"
#include "client/text.h"

#include "claimd/base/clock.h"
#include "claimd/json/scan.h"
#include "claimd/json/string.h"
#include "claimd/json/tree.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* ------------------------------------------------------------------ post */

enum { POST_TTL, POST_DELAY, POST_KEY, POST_UNIQUE, POST_UNTIL_CLAIMED, POST_STRING };

/*
 * A request has at most this many messages and, unless one message is larger, bytes. The
 * default limit of a server is 256 KiB.
 */
enum { BATCH_MESSAGES = 100, BATCH_BYTES = 200 * 1024, INPUT_PIECE = 64 * 1024 };

/* Largest line of the input: no server accepts a larger post. */
enum { LINE_MOST = 64 << 20 };

/* Length of the key of a unique message. */
enum { UNIQUE_LEAST = 8, UNIQUE_MOST = 128 };

static const char until_claimed[] = "; until=claimed";

static const char batch_begin[] = "{\"messages\":[";

struct posting {
    struct client *client;
    const char *queue, *key;
    const char *unique; /* the header Claimd-Unique; NULL: none */
    bool as_string;
    int64_t ttl_s, delay_s; /* -1: the default of the queue */
    struct buf *batch;      /* the body of the next request, without its end */
    size_t batched;
    int64_t batches, posted, read; /* requests; messages */
};

/* Prints the response to the post of a unique message as JSON. Returns an exit status. */
static int
print_unique_json(const struct posting *p)
{
    const struct client_response *response = &p->client->response;
    struct buf out;

    buf_init(&out, p->client->mem);
    buf_byte(&out, '{');
    json_write_name(&out, "resources");
    json_tree_write(&out, json_object_get(response->document, "resources"));
    json_write_flag(&out, "existing", response->existing);
    buf_byte(&out, '}');
    return print_json(&out);
}

/*
 * Prints the ids of the messages at once, because the input may pause. Returns an exit
 * status.
 */
static int
print_posted(const struct posting *p)
{
    struct client_response *response = &p->client->response;
    const json_t *paths = json_object_get(response->document, "resources");
    int status = COMMAND_GOOD;

    if (p->client->json)
        status = p->unique != NULL ? print_unique_json(p) : print_json(&response->body);
    else if (response->existing)
        (void)fprintf(stderr, "claimd: a message with this key exists. Nothing was "
                              "posted\n");
    for (size_t i = 0; i < json_array_size(paths) && !p->client->json; i++) {
        const char *path = json_string_value(json_array_get(paths, i));
        const char *id = path == NULL ? NULL : strrchr(path, '/');

        if (id != NULL)
            (void)printf("%s\n", id + 1);
    }
    return fflush(stdout) == 0 ? status : COMMAND_FAILED; /* command_run() says why */
}

/* Sends the batch. Returns an exit status. */
static int
post_batch(struct posting *p)
{
    struct client_request request = {.path = "/v2/queues/%s/messages",
                                     .parts = {p->queue},
                                     .key = p->key,
                                     .unique = p->unique,
                                     .member = "resources"};
    char key[160];
    int status;

    if (p->batched == 0)
        return COMMAND_GOOD;
    if (p->key != NULL && p->batches > 0) {
        (void)snprintf(key, sizeof(key), "%s-%lld", p->key, (long long)p->batches + 1);
        request.key = key;
    }
    buf_str(p->batch, "]}");
    request.body = buf_view(p->batch);
    status = client_send(p->client, &request);
    if (status != COMMAND_GOOD)
        status =
            p->posted == 0
                ? command_fails(status, "%s", p->client->response.error)
                : command_fails(status,
                                p->posted == 1 ? "%s. %lld message before it is posted"
                                               : "%s. %lld messages before it are posted",
                                p->client->response.error, (long long)p->posted);
    else
        status = print_posted(p);
    p->posted += (int64_t)p->batched;
    p->batches++;
    p->batched = 0;
    return status;
}

/* Adds a message to the batch, and sends full ones. Returns an exit status. */
static int
post_one(struct posting *p, struct bytes body)
{
    int status = COMMAND_GOOD;

    p->read++;
    if (!word_is_utf8(body))
        return command_fails(COMMAND_USAGE,
                             "body %lld is not UTF-8. Encode it, for example with base64",
                             (long long)p->read);
    if (p->batched >= BATCH_MESSAGES ||
        (p->batched > 0 && p->batch->len - strlen(batch_begin) + body.len > BATCH_BYTES))
        status = post_batch(p);
    if (status != COMMAND_GOOD)
        return status;
    if (p->batched++ == 0)
        buf_str(client_body(p->client), batch_begin);
    json_write_comma(p->batch);
    buf_str(p->batch, "{\"body\":");
    if (p->as_string)
        json_string_write(p->batch, body);
    else
        word_write_json(p->batch, body);
    if (p->ttl_s >= 0)
        buf_printf(p->batch, ",\"ttl\":%lld", (long long)p->ttl_s);
    if (p->delay_s >= 0)
        buf_printf(p->batch, ",\"delay\":%lld", (long long)p->delay_s);
    buf_byte(p->batch, '}');
    return p->batch->failed ? command_no_memory() : COMMAND_GOOD;
}

/* Posts the whole lines of the input, and removes them. `last`: also the rest. */
static int
post_lines(struct posting *p, struct buf *input, bool last)
{
    struct bytes rest = buf_view(input);
    int status = COMMAND_GOOD;

    while (status == COMMAND_GOOD && rest.len > 0 &&
           (last || memchr(rest.data, '\n', rest.len) != NULL)) {
        struct bytes line = bytes_cut(&rest, '\n');

        if (line.len > 0 && line.data[line.len - 1] == '\r')
            line.len--;
        if (line.len > 0)
            status = post_one(p, line);
    }
    if (rest.len > 0)
        memmove(input->data, rest.data, rest.len);
    input->len = rest.len;
    return status;
}

/*
 * Posts a message for each line of standard input. If no line comes for now, it sends the
 * batch, unless a key makes the division into batches matter.
 */
static int
post_input(struct posting *p)
{
    struct pollfd more = {.fd = STDIN_FILENO, .events = POLLIN};
    int status = COMMAND_GOOD;
    bool ends_line;
    struct buf input;
    ssize_t n = 1;

    buf_init(&input, p->client->mem);
    while (status == COMMAND_GOOD && n > 0) {
        if (p->key == NULL && p->batched > 0 && poll(&more, 1, 0) == 0)
            status = post_batch(p);
        if (!buf_reserve(&input, INPUT_PIECE))
            status = command_no_memory();
        if (status != COMMAND_GOOD)
            break;
        do
            n = read(STDIN_FILENO, input.data + input.len, INPUT_PIECE);
        while (n < 0 && errno == EINTR);
        if (n < 0)
            status = command_fails(COMMAND_FAILED, "standard input cannot be read: %s",
                                   strerror(errno));
        if (status != COMMAND_GOOD)
            break;
        /* The input from before has no end of a line. */
        ends_line = memchr(input.data + input.len, '\n', (size_t)n) != NULL;
        input.len += (size_t)n;
        if (ends_line || n == 0)
            status = post_lines(p, &input, n == 0);
        if (status == COMMAND_GOOD && input.len > LINE_MOST)
            status = command_fails(COMMAND_USAGE, "body %lld is larger than 64 MiB",
                                   (long long)p->read + 1);
    }
    buf_fini(&input);
    return status;
}

/*
 * Writes the header Claimd-Unique for the options. `out` is "" without --unique. Returns
 * an exit status, after an error message.
 */
static int
read_unique(const struct command_args *args, bool from_input,
            char out[UNIQUE_MOST + sizeof(until_claimed)])
{
    const char *key = args->values[POST_UNIQUE];
    const bool claimed = args->values[POST_UNTIL_CLAIMED] != NULL;
    const size_t len = key == NULL ? 0 : strlen(key);

    out[0] = '\0';
    if (key == NULL)
        return claimed ? command_misused(args->name, "--until-claimed needs --unique")
                       : COMMAND_GOOD;
    if (len < UNIQUE_LEAST || len > UNIQUE_MOST)
        return command_misused(args->name,
                               "--unique has %zu characters. It must have %d to %d", len,
                               UNIQUE_LEAST, UNIQUE_MOST);
    for (size_t i = 0; i < len; i++)
        if (key[i] <= ' ' || key[i] > '~' || key[i] == ';')
            return command_misused(args->name, "--unique has other characters than "
                                               "visible ASCII, or a semicolon");
    if (args->values[POST_KEY] != NULL)
        return command_misused(args->name, "--unique and --key exclude each other");
    if (from_input || args->count != 2)
        return command_misused(args->name, "--unique needs exactly one BODY");
    (void)snprintf(out, UNIQUE_MOST + sizeof(until_claimed), "%s%s", key,
                   claimed ? until_claimed : "");
    return COMMAND_GOOD;
}

static int
run_post(const struct command_args *args)
{
    struct client *c = args->context;
    char unique[UNIQUE_MOST + sizeof(until_claimed)];
    struct posting p = {.client = c,
                        .queue = args->words[0],
                        .key = args->values[POST_KEY],
                        .as_string = args->values[POST_STRING] != NULL,
                        .ttl_s = -1,
                        .delay_s = -1,
                        .batch = client_body(c)};
    const bool from_input =
        args->count == 1 || (args->count == 2 && args->before_dashes == 2 &&
                             strcmp(args->words[1], "-") == 0);
    int status = read_unique(args, from_input, unique);

    if (status != COMMAND_GOOD)
        return status;
    p.unique = unique[0] == '\0' ? NULL : unique;
    if (!args_duration(args, POST_TTL, 0, INT32_MAX, &p.ttl_s) ||
        !args_duration(args, POST_DELAY, 0, INT32_MAX, &p.delay_s))
        return COMMAND_USAGE;
    if (p.key != NULL && strlen(p.key) > 128)
        return command_misused(args->name, "--key is longer than 128 characters");
    if (from_input)
        status = post_input(&p);
    for (size_t i = 1; i < args->count && !from_input && status == COMMAND_GOOD; i++)
        status = post_one(&p, bytes_str(args->words[i]));
    if (status == COMMAND_GOOD)
        status = post_batch(&p);
    return status;
}

const struct command client_post = {
    .about = "Posts one message for each BODY, or without one for each line of standard "
             "input that is not empty. A body that is a JSON value is posted as that "
             "value. Any other text becomes a JSON string. The command prints the ids of "
             "the messages.\n\n"
             "If standard input pauses, the command posts the lines that it has. Each "
             "request posts up to 100 messages, all or none.",
    .options =
        {{"--ttl", "TIME",
          "Lifetime of the messages, such as 300 or 2h. Default: that of the queue"},
         {"--delay", "TIME",
          "Time before a worker can claim them. It must be shorter than the lifetime, "
          "and "
          "counts towards it. Default: that of the queue"},
         {"--key", "KEY",
          "Idempotency-Key, 8 to 128 characters: if the same command runs again with the "
          "same key, the server posts nothing twice. A second request of the command has "
          "the key KEY-2, and so on. Set CLAIMD_CLIENT_ID as well, because a key belongs "
          "to a client."},
         {"--unique", "KEY",
          "Post the one BODY only if no message of the queue has this key, 8 to 128 "
          "visible ASCII characters. If one has it, the command prints the id of that "
          "message, and says so on standard error. The key is free when the message is "
          "deleted, expires or is dead-lettered."},
         {"--until-claimed", NULL, "With --unique: the first claim frees the key."},
         {"--string", NULL, "Post each body as a JSON string, also if it is JSON."}},
    .example = "claimd post jobs '{\"job\": 1}' --project demo",
    .least = 1,
    .most = SIZE_MAX,
    .needs = "a queue",
    .run = run_post};

/* ------------------------------------------------------------------ claim */

enum { CLAIM_LIMIT, CLAIM_TTL, CLAIM_GRACE, CLAIM_WAIT };

/* Longest wait of one request; pause before the next one if the server does not wait. */
enum { WAIT_ONE_S = 45, WAIT_MOST_S = 86400 };

/*
 * Claims, and waits until until_ms for messages. Status 204: there was none. Returns an
 * exit status.
 */
static int
claim_waiting(struct client *c, struct client_request *q, int64_t wait_s)
{
    const struct timespec pause = {.tv_sec = 1};
    const int64_t until_ns = clock_stopwatch_ns() + wait_s * 1000000000;

    for (;;) {
        int64_t left_s = (until_ns - clock_stopwatch_ns() + 999999999) / 1000000000;
        int status;

        q->wait_s = left_s < WAIT_ONE_S ? left_s : WAIT_ONE_S;
        status = client_call(c, q);
        if (status != COMMAND_GOOD || c->response.status != 204 ||
            clock_stopwatch_ns() >= until_ns)
            return status;
        if (!c->response.waited)
            (void)nanosleep(&pause, NULL);
    }
}

/* Prints a claim as JSON, with the bodies as they are. */
static int
print_claim_json(struct client *c, const char *id)
{
    const struct json_scan_value messages =
        json_member(buf_view(&c->response.body), "messages");
    struct buf out;

    buf_init(&out, c->mem);
    buf_byte(&out, '{');
    json_write_text(&out, "claim", bytes_str(id));
    if (c->response.claim_number[0] != '\0')
        json_write_raw(&out, "number", bytes_str(c->response.claim_number));
    json_write_raw(&out, "messages",
                   messages.kind == SCAN_ARRAY ? messages.text : bytes_str("[]"));
    buf_byte(&out, '}');
    return print_json(&out);
}

/* Prints messages of a claim for people. */
static int
print_claim(struct client *c, const char *id)
{
    static const struct table_column columns[] = {
        {"message", false, false, false, TABLE_MEMBER, "id"},
        {"age", true, false, false, TABLE_TIME, "age"},
        {"body", false, true, false, TABLE_JSON, "body"}};
    struct table table;

    (void)printf("claim %s", id);
    if (c->response.claim_number[0] != '\0')
        (void)printf(" number %s", c->response.claim_number);
    (void)printf("\n\n");
    table_init(&table, c->mem, columns, COUNT_OF(columns));
    table_rows(&table, json_object_get(c->response.document, "messages"));
    return table_print(&table);
}

static int
run_claim(const struct command_args *args)
{
    struct client *c = args->context;
    char text[24];
    struct client_request request = {.path = "/v2/queues/%s/claims",
                                     .parts = {args->words[0]},
                                     .query = {{"limit", text}},
                                     .member = "messages",
                                     .may_be_empty = true};
    int64_t limit = 1, ttl_s = -1, grace_s = -1, wait_s = 0;
    struct buf *body = client_body(c);
    const char *id;
    int status;

    if (!args_number(args, CLAIM_LIMIT, 1, INT32_MAX, &limit) ||
        !args_duration(args, CLAIM_TTL, 1, INT32_MAX, &ttl_s) ||
        !args_duration(args, CLAIM_GRACE, 0, INT32_MAX, &grace_s) ||
        !args_duration(args, CLAIM_WAIT, 0, WAIT_MOST_S, &wait_s))
        return COMMAND_USAGE;
    (void)snprintf(text, sizeof(text), "%lld", (long long)limit);
    buf_byte(body, '{');
    if (ttl_s >= 0)
        json_write_i64(body, "ttl", ttl_s);
    if (grace_s >= 0)
        json_write_i64(body, "grace", grace_s);
    buf_byte(body, '}');
    request.body = buf_view(body);
    status = claim_waiting(c, &request, wait_s);
    if (status != COMMAND_GOOD)
        return status;
    if (c->response.status == 204 && c->response.paused)
        return command_fails(COMMAND_FAILED, "claims of %s are paused", args->words[0]);
    if (c->response.status == 204)
        return command_fails(COMMAND_FAILED, "no message of %s is ready%s",
                             args->words[0], client_queue_hint(c, args->words[0]).text);
    id = strrchr(c->response.location, '/');
    id = id == NULL ? "" : id + 1;
    return c->json ? print_claim_json(c, id) : print_claim(c, id);
}

const struct command client_claim = {
    .about = "Claims the oldest ready messages of a queue, and prints the id of the "
             "claim, its fencing token and the messages. The claim holds them until "
             "`claimd delete` deletes them, `claimd release` releases them, or the lease "
             "ends. To run a command for each message, use `claimd work`.",
    .options =
        {{"--limit", "N", "Number of messages at most. Default: 1"},
         {"--ttl", "TIME",
          "Lease of the claim. Default: that of the queue, else of the server, 300"},
         {"--grace", "TIME",
          "Least time that a message outlives the claim. Default: that of the queue, "
          "else of the server, 60"},
         {"--wait", "TIME", "Wait this long for a message if none is ready. Default: 0"}},
    .example = "claimd claim jobs --wait 1m --project demo",
    .least = 1,
    .most = 1,
    .needs = "a queue",
    .statuses = {[COMMAND_FAILED] = "No message is ready, the server refused the "
                                    "request, or the output could not be written."},
    .run = run_claim};

/* ------------------------------------------------------------------ delete */

enum { DELETE_CLAIM };

/* The server takes this many ids in a request. */
enum { IDS_MOST = 20 };

/*
 * Deletes some messages, which the claim holds (NULL: one message that no claim holds).
 * Returns an exit status.
 */
static int
delete_some(struct client *c, const char *queue, char *const *ids, size_t count,
            const char *claim)
{
    struct client_request request = {.method = "DELETE",
                                     .parts = {queue},
                                     .query = {{"ids", NULL}, {"claim_ids", claim}}};
    struct buf list;
    int status;

    buf_init(&list, c->mem);
    for (size_t i = 0; i < count; i++)
        buf_printf(&list, "%s%s", i == 0 ? "" : ",", ids[i]);
    buf_byte(&list, '\0');
    if (claim == NULL) {
        request.path = "/v2/queues/%s/messages/%s";
        request.parts[1] = list.data;
    } else {
        request.path = "/v2/queues/%s/messages";
        request.query[0].value = list.data;
    }
    status = list.failed ? command_no_memory() : client_call(c, &request);
    buf_fini(&list);
    return status;
}

static int
run_delete(const struct command_args *args)
{
    struct client *c = args->context;
    const char *claim = args->values[DELETE_CLAIM];
    const size_t most = claim == NULL ? 1 : IDS_MOST;
    int status = COMMAND_GOOD;

    for (size_t i = 1; i < args->count; i++)
        if (args->words[i][0] == '\0')
            return command_misused(args->name, "an ID is empty");
    for (size_t i = 1; i < args->count && status == COMMAND_GOOD; i += most) {
        size_t count = args->count - i;

        status = delete_some(c, args->words[0], args->words + i,
                             count < most ? count : most, claim);
    }
    return status == COMMAND_GOOD ? client_check_queue(c, args->words[0]) : status;
}

const struct command client_delete = {
    .about = "Deletes messages by their ids. A worker names the claim that holds them: "
             "if the claim has ended or another one holds a message, the server refuses "
             "the request and deletes nothing. Without `--claim` the command deletes "
             "only messages that no claim holds. A message that does not exist counts as "
             "deleted, but the queue must exist.\n\n"
             "With more than 20 ids the command sends several requests, one after the "
             "other, and ends at the first refusal.",
    .options = {{"--claim", "ID", "Claim that holds the messages."}},
    .example =
        "claimd delete jobs b1c20f3400000000000000a7 --claim c5d0e3a94b7f1a2c3d4e5f60",
    .least = 2,
    .most = SIZE_MAX,
    .needs = "a queue and the ids of messages",
    .run = run_delete};
