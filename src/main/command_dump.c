/*
 * claimd dump writes the contents of a server, or of a journal that no process uses, as
 * lines of JSON. claimd load sends such lines to a server.
 */
#include "claimd/api/dump.h"
#include "claimd/base/server_url.h"
#include "claimd/base/streams.h"
#include "claimd/engine/engine.h"
#include "claimd/json/scan.h"
#include "main/command.h"
#include "main/text_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Indexes of the options of both commands. */
enum { URL, JOURNAL, PROJECT, DUMP_TOKEN_FILE, LOAD_TOKEN_FILE = 1, EXISTING };

/* ------------------------------------------------------------------ requests */

/* Larger than any response to these commands. */
enum { RESPONSE_MOST = 64 << 20 };

/* A connection, with the headers of each request. */
struct dump_client {
    struct command_client base;
    struct curl_slist *headers; /* owned */
};

static void
dump_client_close(struct dump_client *c)
{
    c->base.curl.slist_free_all(c->headers);
    command_client_close(&c->base);
}

/* Checks the URL of a command (NULL: the default). Returns an exit status. */
static int
check_url(const char *command, const char *url)
{
    char why[SERVER_URL_WHY_CAP];

    return url == NULL || server_url_check(url, why)
               ? COMMAND_GOOD
               : command_misused(command, "--url: %s", why);
}

/*
 * Adds the headers, with the token of a file (NULL: none). False after an error message.
 */
static bool
add_headers(struct dump_client *c, const char *token_file, struct mem *mem)
{
    const struct text_file file = {.path = token_file,
                                   .option = "token-file",
                                   .most = 4096,
                                   .secret = true,
                                   .once = true};
    struct config_errors errors = {.to = stderr};
    char *token = NULL, line[512];
    enum status st = text_file_word(&file, mem, &token, &errors);

    (void)snprintf(line, sizeof(line), "X-Auth-Token: %s", token == NULL ? "" : token);
    if (st == ST_OK &&
        (!curl_add_line(&c->base.curl, &c->headers, "Content-Type: application/jsonl") ||
         !curl_add_line(&c->base.curl, &c->headers, "Expect:") ||
         (token != NULL && !curl_add_line(&c->base.curl, &c->headers, line))))
        st = ST_NO_MEMORY;
    text_file_drop_word(mem, token);
    if (st == ST_NO_MEMORY)
        (void)command_no_memory();
    return st == ST_OK;
}

/*
 * Opens a client for a URL (NULL: of a server with default options) and a file with a
 * token (NULL: none). False after an error message. Call dump_client_close() only after
 * success.
 */
static bool
dump_client_open(struct dump_client *c, const char *url, const char *token_file,
                 struct mem *mem)
{
    c->headers = NULL;
    if (!command_client_open(&c->base, url == NULL ? "http://127.0.0.1:8888" : url, mem))
        return false;
    if (add_headers(c, token_file, mem))
        return true;
    dump_client_close(c);
    return false;
}

/*
 * Sends a POST with the body or, if that is absent, a GET to the target. Returns an exit
 * status, after an error message if there is no response.
 */
static int
dump_client_request(struct dump_client *c, const char *target, struct bytes body,
                    struct web_response *response)
{
    const struct web_request request = {.path = target,
                                        .body = body,
                                        .headers = c->headers,
                                        .response_most = RESPONSE_MOST};

    return web_client_send(&c->base.web, &request, response)
               ? COMMAND_GOOD
               : command_fails(COMMAND_FAILED, "%s", response->error);
}

/* A part of a response that explains its status. */
static struct bytes
excerpt(const struct web_response *response, size_t most)
{
    const struct bytes body = buf_view(&response->body);

    return body.len == 0 ? bytes_str("")
                         : bytes_of(body.data, body.len < most ? body.len : most);
}

/* ------------------------------------------------------------------ dump */

/* Size of a page of lines from a journal. */
enum { PAGE = 256 * 1024 };

/*
 * Prints and counts lines or, if they are absent, the last line, which proves that the
 * dump is complete.
 */
static int
print_lines(struct bytes lines, uint64_t *count)
{
    struct bytes rest = lines;
    bool good;

    for (; rest.len > 0; (void)bytes_cut(&rest, '\n'))
        ++*count;
    good = bytes_present(lines)
               ? fwrite(lines.data, 1, lines.len, stdout) == lines.len
               : printf("{\"end\":%" PRIu64 "}\n", *count) >= 0 && fflush(stdout) == 0;
    return good ? COMMAND_GOOD : COMMAND_FAILED; /* command_run() says why */
}

static void
write_parameter(struct buf *out, const char *name, struct bytes value)
{
    buf_printf(out, "%s=", name);
    buf_uri(out, value);
}

/*
 * Cuts the last line off a page, {"next":"MARKER"} or {"end":...}. False if it is another
 * line.
 */
static bool
cut_last_line(struct bytes *page, struct bytes *marker)
{
    size_t at = page->len > 0 ? page->len - 1 : 0;
    struct json_scan_value next;
    struct bytes line;

    while (at > 0 && page->data[at - 1] != '\n')
        at--;
    line = bytes_of(page->data + at, page->len - at);
    page->len = at;
    next = json_member(line, "next");
    *marker = next.kind == SCAN_STRING ? json_scan_inside(&next) : BYTES_NONE;
    return bytes_present(*marker) || json_member(line, "end").kind != SCAN_NONE;
}

/* Prints a page, and sets the target of the next one; empty: there is none. */
static int
print_page(const char *project, struct bytes lines, struct buf *target, uint64_t *count)
{
    struct bytes marker;
    int status;

    if (!cut_last_line(&lines, &marker))
        return command_fails(COMMAND_FAILED, "the response is not a dump. Check the URL");
    status = print_lines(lines, count);
    buf_reset(target, SIZE_MAX);
    if (status != COMMAND_GOOD || !bytes_present(marker))
        return status;
    buf_str(target, "/claimd/dump?");
    write_parameter(target, "marker", marker);
    if (project != NULL) {
        buf_byte(target, '&');
        write_parameter(target, "project", bytes_str(project));
    }
    return COMMAND_GOOD;
}

/*
 * Requests a page and prints it. target: empty: it was the last one. Returns an exit
 * status.
 */
static int
dump_page(struct dump_client *c, const char *project, struct buf *target, uint64_t *count)
{
    struct web_response response;
    int status;

    buf_byte(target, '\0');
    if (target->failed)
        return command_no_memory();
    status = dump_client_request(c, target->data, BYTES_NONE, &response);
    if (status == COMMAND_GOOD && response.status != 200) {
        const struct bytes why = excerpt(&response, 300);

        status = command_fails(COMMAND_FAILED, "%s responded with status %ld. %.*s",
                               c->base.web.url, response.status, (int)why.len, why.data);
    }
    if (status == COMMAND_GOOD)
        status = print_page(project, buf_view(&response.body), target, count);
    web_response_fini(&response);
    return status;
}

static int
dump_server(const struct command_args *args)
{
    const char *project = args->values[PROJECT];
    int status = COMMAND_GOOD;
    struct dump_client c;
    struct buf target;
    uint64_t count = 0;

    if (!dump_client_open(&c, args->values[URL], args->values[DUMP_TOKEN_FILE],
                          args->mem))
        return COMMAND_FAILED;
    buf_init(&target, args->mem);
    buf_str(&target, "/claimd/dump");
    if (project != NULL)
        write_parameter(&target, "?project", bytes_str(project));
    while (status == COMMAND_GOOD && target.len > 0)
        status = dump_page(&c, project, &target, &count);
    if (status == COMMAND_GOOD)
        status = print_lines(BYTES_NONE, &count);
    buf_fini(&target);
    dump_client_close(&c);
    return status;
}

static int
print_store(const struct command_replay *r, const char *project, struct buf *out)
{
    struct store_op op = {.now_ms = r->found.now_ms};
    char error[JOURNAL_ERROR_CAP];
    struct dump dump = {.begun = false};
    uint64_t count = 0;

    while (!dump.done) {
        enum status st =
            dump_lines(r->store, &op, project == NULL ? BYTES_NONE : bytes_str(project),
                       PAGE, &dump, out);

        if (st != ST_OK && st != ST_AGAIN)
            return command_fails(COMMAND_FAILED, "%s", status_text(st));
        if (journal_bodies_load(r->bodies, error) != ST_OK)
            return command_fails(COMMAND_FAILED, "%s", error);
        if (out->len > 0 && print_lines(buf_view(out), &count) != COMMAND_GOOD)
            return COMMAND_FAILED;
        buf_reset(out, SIZE_MAX);
    }
    return print_lines(BYTES_NONE, &count);
}

/* Dumps a journal whose clock is ahead of ours (ci) at the time of the journal. */
static int
dump_replayed(struct disk *d, const char *path, const char *project)
{
    const struct journal_callbacks callbacks = {.damage = NULL};
    struct command_replay r;
    struct buf out;
    int status = command_replay_open(&r, d, path, &callbacks);

    buf_init(&out, r.mem);
    if (status == COMMAND_GOOD && r.found.damages > 0)
        status = command_fails(
            COMMAND_DAMAGED,
            "%s is damaged. Run claimd verify DIR --salvage OUT, then dump OUT", path);
    else if (status == COMMAND_GOOD && (!r.found.replayed || r.found.segments == 0))
        status = command_fails(COMMAND_FAILED, "%s has no journal", path);
    else if (status == COMMAND_GOOD)
        status = print_store(&r, project, &out);
    buf_fini(&out);
    command_replay_close(&r);
    return status;
}

static int
run_dump(const struct command_args *args)
{
    const char *journal = args->values[JOURNAL];
    struct command_journal j;
    int status = COMMAND_FAILED;

    if (streams_output_is_closed())
        return command_fails(COMMAND_FAILED, "standard output is closed");
    if (journal != NULL &&
        (args->values[URL] != NULL || args->values[DUMP_TOKEN_FILE] != NULL))
        return command_misused("dump",
                               "--journal cannot be used with --url or --token-file");
    if (journal == NULL) {
        status = check_url("dump", args->values[URL]);
        return status == COMMAND_GOOD ? dump_server(args) : status;
    }
    if (command_journal_open(
            &j, journal,
            "Dump from that process with --url, or dump a copy made by claimd backup"))
        status = dump_replayed(j.disk, journal, args->values[PROJECT]);
    command_journal_close(&j);
    return status;
}

const struct command command_dump = {
    .usages = {"dump [--url URL] [--token-file FILE] [--project P]",
               "dump --journal DIR [--project P]"},
    .about = "Writes all queues and topics with their messages, claims and subscriptions "
             "to standard output, one line of JSON each. `claimd load` reads them. The "
             "server continues to work, so each piece shows the moment at which it was "
             "written. If you dump a journal, no process may use it. The command does "
             "not change the journal.",
    .options = {{"--url", "URL",
                 "URL of the server: http://HOST:PORT, https://HOST:PORT or unix:PATH. "
                 "Default: http://127.0.0.1:8888"},
                {"--journal", "DIR", "Read this journal instead of a server."},
                {"--project", "P", "Write only the data of this project."},
                {"--token-file", "FILE",
                 "File with a token of an operator or admin for all projects."}},
    .example = "claimd dump --url http://127.0.0.1:8888 > claimd.dump",
    .statuses =
        {"The dump is complete. Its last line contains the number of lines before it.",
         "The dump could not be read or written completely.",
         [COMMAND_DAMAGED] = "The journal is damaged."},
    .run = run_dump};

/* ------------------------------------------------------------------ load */

/* A batch has lines of one queue. The server loads it completely or not at all. */
enum { BATCH_BYTES = 256 * 1024, BATCH_LINES = 2000, TRIES = 60 };

struct loading {
    struct dump_client *client;
    const char *target;
    struct buf batch;
    struct buf address; /* common begin of the lines of the batch */
    uint64_t lines;     /* read so far */
    uint64_t first,
        batch_lines; /* of the batch: number of its first line, and its lines */
    uint64_t queues, messages, subscriptions;
    struct dump_check check;
};

/* Length of the begin of a line that names its queue. 0: the line is of another kind. */
static size_t
address_length(const char *line)
{
    static const char *const members[] = {
        ",\"metadata\":", ",\"message\":", ",\"subscription\":"};
    size_t least = 0;

    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        const char *found = strstr(line, members[i]);

        if (found != NULL && (least == 0 || (size_t)(found - line) < least))
            least = (size_t)(found - line);
    }
    return least;
}

/* Adds the numbers of a response to the batch. */
static void
count_loaded(struct loading *l, struct buf *response)
{
    uint64_t queues, messages, subscriptions;

    buf_byte(response, '\0');
    if (!response->failed && sscanf(response->data,
                                    "{\"queues\":%" SCNu64 ",\"messages\":%" SCNu64
                                    ",\"subscriptions\":%" SCNu64,
                                    &queues, &messages, &subscriptions) == 3) {
        l->queues += queues;
        l->messages += messages;
        l->subscriptions += subscriptions;
    }
}

/* Sends the batch. Retries for a minute while the server responds with 503. */
static int
send_batch(struct loading *l)
{
    const struct timespec second = {.tv_sec = 1};
    struct web_response response;
    int status;

    if (l->batch_lines == 0)
        return COMMAND_GOOD;
    status = dump_client_request(l->client, l->target, buf_view(&l->batch), &response);
    for (int i = 1; status == COMMAND_GOOD && response.status == 503 && i < TRIES; i++) {
        web_response_fini(&response);
        (void)nanosleep(&second, NULL);
        status =
            dump_client_request(l->client, l->target, buf_view(&l->batch), &response);
    }
    if (status == COMMAND_GOOD && response.status != 200) {
        const struct bytes why = excerpt(&response, 600);

        status = command_fails(COMMAND_FAILED,
                               "the server refused lines %" PRIu64 " to %" PRIu64
                               " with status %ld. %.*s",
                               l->first, l->first + l->batch_lines - 1, response.status,
                               (int)why.len, why.data);
    }
    if (status == COMMAND_GOOD)
        count_loaded(l, &response.body);
    web_response_fini(&response);
    l->batch_lines = 0;
    buf_reset(&l->batch, SIZE_MAX);
    return status;
}

static int
load_line(struct loading *l, const char *line, size_t len)
{
    static const char head[] = "{\"claimd\":";
    size_t address = address_length(line);
    enum dump_record record = DUMP_CONTENT;
    int status = COMMAND_GOOD;
    uint64_t announced = 0;
    struct reason why;

    l->lines++;
    if (bytes_trim(bytes_of(line, len)).len == 0)
        return COMMAND_GOOD;
    if (address == 0 && sscanf(line, "{\"end\":%" SCNu64 "}", &announced) == 1)
        record = DUMP_END;
    if (dump_check_record(&l->check, record, announced, &why) != ST_OK)
        return command_fails(COMMAND_FAILED, "line %" PRIu64 ": %s", l->lines, why.text);
    if (l->batch_lines == BATCH_LINES || l->batch.len >= BATCH_BYTES || address == 0 ||
        !bytes_equal(bytes_of(line, address), buf_view(&l->address)))
        status = send_batch(l); /* the line cannot join the batch */
    if (status != COMMAND_GOOD || record == DUMP_END)
        return status;
    if (l->batch_lines == 0)
        l->first = l->lines;
    l->batch_lines++;
    buf_add(&l->batch, line, len);
    if (strncmp(line, head, sizeof(head) - 1) == 0)
        buf_str(&l->batch, "\n{\"end\":1}\n"); /* the server checks the version */
    buf_reset(&l->address, SIZE_MAX);
    buf_add(&l->address, line, address);
    return l->batch.failed || l->address.failed
               ? command_fails(COMMAND_FAILED, "%s", status_text(ST_NO_MEMORY))
               : COMMAND_GOOD;
}

static int
load_lines(struct loading *l)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t len;
    int status = COMMAND_GOOD;
    struct reason why;

    l->check.needs_end = true;
    while (status == COMMAND_GOOD && (len = getline(&line, &cap, stdin)) > 0)
        status = load_line(l, line, (size_t)len);
    free(line);
    if (status == COMMAND_GOOD)
        status = send_batch(l);
    if (status != COMMAND_GOOD)
        return status;
    (void)printf("loaded: queues and topics %" PRIu64 ", messages %" PRIu64
                 ", subscriptions %" PRIu64 "\n",
                 l->queues, l->messages, l->subscriptions);
    if (dump_check_complete(&l->check, &why) != ST_OK)
        return command_fails(COMMAND_FAILED, "%s", why.text);
    return COMMAND_GOOD;
}

static int
run_load(const struct command_args *args)
{
    const char *existing = args->values[EXISTING];
    bool replace = existing != NULL && strcmp(existing, "replace") == 0;
    struct dump_client c;
    struct loading l = {.client = &c,
                        .target = replace ? "/claimd/load?replace=true" : "/claimd/load"};
    int status;

    if (existing != NULL && !replace && strcmp(existing, "refuse") != 0)
        return command_misused(
            "load", "--existing is \"%s\". It must be refuse or replace", existing);
    status = check_url("load", args->values[URL]);
    if (status != COMMAND_GOOD)
        return status;
    if (!dump_client_open(&c, args->values[URL], args->values[LOAD_TOKEN_FILE],
                          args->mem))
        return COMMAND_FAILED;
    buf_init(&l.batch, args->mem);
    buf_init(&l.address, args->mem);
    status = load_lines(&l);
    buf_fini(&l.batch);
    buf_fini(&l.address);
    dump_client_close(&c);
    return status;
}

const struct command command_load = {
    .usages = {"load [--url URL] [--token-file FILE] [--existing refuse|replace]"},
    .about = "Reads the lines of `claimd dump` from standard input and loads them into a "
             "server, queue by queue. Ages, remaining TTLs and leases continue from "
             "their values at the time of the dump. The command stops at the first line "
             "that the server refuses. The lines before it are loaded.",
    .options = {{"--url", "URL",
                 "URL of the server: http://HOST:PORT, https://HOST:PORT or unix:PATH. "
                 "Default: http://127.0.0.1:8888"},
                {"--token-file", "FILE",
                 "File with a token of an operator or admin for all projects."},
                {"--existing", "refuse|replace",
                 "How to treat a queue that already exists. Default: refuse"}},
    .example = "claimd load --url http://127.0.0.1:8888 < claimd.dump",
    .statuses = {"Everything is loaded.",
                 "The server refused a line, or the dump is incomplete."},
    .run = run_load};
