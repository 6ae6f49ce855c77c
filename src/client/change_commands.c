/*
 * claimd release, purge, pause, resume and redrive: commands that change what is in a
 * queue. Purge and redrive ask before (ask.h), and show their progress.
 *
 * Each command has its function and its table, which command.h declares. Read
 * command.c first.
 */
#include "client/ask.h"
#include "client/command.h"
#include "client/table.h"
#include "client/text.h"

#include "claimd/base/plural.h"
#include "claimd/base/utf8.h"
#include "claimd/json/string.h"
#include "claimd/json/tree.h"

#include <stdio.h>

/* ------------------------------------------------------------------ release */

enum { RELEASE_DELAY, RELEASE_REASON };

/* Adds a message to a request for finish. id: NULL: none. */
static void
add_release(struct buf *out, const struct command_args *args, int64_t delay_s,
            const char *id)
{
    if (id == NULL)
        return;
    json_write_comma(out);
    buf_byte(out, '{');
    json_write_text(out, "id", bytes_str(id));
    if (delay_s >= 0)
        json_write_i64(out, "delay", delay_s);
    json_write_text(out, "reason", bytes_str(args->values[RELEASE_REASON]));
    buf_byte(out, '}');
}

/* Releases the named messages, or all of the claim, by finish. Returns an exit status. */
static int
release_some(struct client *c, const struct command_args *args, int64_t delay_s)
{
    const struct client_request claim = {.path = "/v2/queues/%s/claims/%s",
                                         .parts = {args->words[0], args->words[1]},
                                         .member = "messages"};
    struct client_request finish = {.method = "POST",
                                    .path = "/claimd/queues/%s/claims/%s/finish",
                                    .parts = {args->words[0], args->words[1]},
                                    .member = "results"};
    struct buf *body = client_body(c);
    const json_t *held = NULL;
    int status = COMMAND_GOOD;

    if (args->count == 2) {
        status = client_call(c, &claim);
        held = json_object_get(c->response.document, "messages");
    }
    if (status != COMMAND_GOOD)
        return status;
    buf_str(body, "{\"release\":[");
    for (size_t i = 2; i < args->count; i++)
        add_release(body, args, delay_s, args->words[i]);
    for (size_t i = 0; i < json_array_size(held); i++)
        add_release(body, args, delay_s, member_text(json_array_get(held, i), "id"));
    buf_str(body, "]}");
    finish.body = buf_view(body);
    status = client_call(c, &finish);
    return status == COMMAND_GOOD && c->json ? print_json(&c->response.body) : status;
}

static int
run_release(const struct command_args *args)
{
    struct client *c = args->context;
    const struct client_request request = {.method = "DELETE",
                                           .path = "/v2/queues/%s/claims/%s",
                                           .parts = {args->words[0], args->words[1]}};
    int64_t delay_s = -1;
    int status;

    if (!args_duration(args, RELEASE_DELAY, 0, INT32_MAX, &delay_s))
        return COMMAND_USAGE;
    if (args->count > 2 || args->values[RELEASE_REASON] != NULL || delay_s >= 0)
        return release_some(c, args, delay_s);
    status = client_call(c, &request);
    return status == COMMAND_GOOD ? client_check_queue(c, args->words[0]) : status;
}

const struct command client_release = {
    .about = "Releases messages of a claim: those named, or all that it holds. They "
             "become ready at their old positions, at once or after a delay. The message "
             "keeps the reason, also in a dead-letter queue. `claimd peek --details` and "
             "`claimd why` show it.\n\n"
             "If the claim does not hold all of the named messages, the server changes "
             "nothing.",
    .options = {{"--delay", "TIME",
                 "Time before a worker can claim the messages. Default: 0"},
                {"--reason", "TEXT", "Why the job failed, up to 1024 bytes."}},
    .example = "claimd release jobs c5d0e3a94b7f1a2c3d4e5f60 --delay 30s --reason busy",
    .least = 2,
    .most = SIZE_MAX,
    .needs = "a queue and the id of a claim",
    .run = run_release};

/* ------------------------------------------------------------------ purge */

enum { PURGE_DRY_RUN, PURGE_YES };

static int
run_purge(const struct command_args *args)
{
    struct client *c = args->context;
    static const char body[] = "{\"resource_types\": [\"messages\"]}";
    const bool dry = args->values[PURGE_DRY_RUN] != NULL;
    const char *queue = args->words[0];
    const struct client_request stats = {
        .path = "/v2/queues/%s/stats", .parts = {queue}, .member = "messages"};
    const struct client_request purge = {
        .path = "/v2/queues/%s/purge", .parts = {queue}, .body = bytes_str(body)};
    int status = client_call(c, &stats);
    const int64_t total =
        member_number(json_object_get(c->response.document, "messages"), "total");

    if (status == COMMAND_GOOD && total == 0)
        status = client_check_queue(c, queue);
    if (status == COMMAND_GOOD && !dry)
        status = ask(
            args, args->values[PURGE_YES] != NULL,
            total == 1 ? "Delete %lld message of %s, also if a worker holds it?"
                       : "Delete all %lld messages of %s, also those that workers hold?",
            (long long)total, queue);
    if (status == COMMAND_GOOD && !dry) {
        progress_show(0, total);
        status = client_call(c, &purge);
        progress_end();
    }
    if (status != COMMAND_GOOD)
        return status;
    if (c->json)
        (void)printf("{\"%s\":%lld}\n", dry ? "would_delete" : "deleted",
                     (long long)total);
    else
        (void)printf("%lld message%s of %s %s\n", (long long)total,
                     plural_s((uint64_t)total), queue,
                     dry ? "would be deleted" : "deleted");
    return COMMAND_GOOD;
}

const struct command client_purge = {
    .about =
        "Deletes all messages of a queue, in any state, and with them the claims. The "
        "queue, its metadata and its subscriptions stay. The command asks before, on a "
        "terminal, and prints the number of messages that the queue had.",
    .options = {{"--dry-run", NULL, "Only print how many messages there are."},
                {"--yes", NULL, "Do not ask. Needed without a terminal."}},
    .example = "claimd purge jobs --dry-run --project demo",
    .least = 1,
    .most = 1,
    .needs = "a queue",
    .run = run_purge};

/* ------------------------------------------------------------------ pause, resume */

enum { PAUSE_CLAIMS, PAUSE_POSTS, PAUSE_SHOW };

/*
 * Sends a change of the pause (NULL: none), and prints the state of the queue. Returns an
 * exit status.
 */
static int
change_pause(struct client *c, const char *queue, const char *body)
{
    const struct client_request request = {.path = "/claimd/queues/%s/pause",
                                           .parts = {queue},
                                           .body = body == NULL ? BYTES_NONE
                                                                : bytes_str(body),
                                           .member = "claims"};
    const int status = client_call(c, &request);
    const json_t *state, *last;
    struct buf text, line;
    size_t before;

    if (status != COMMAND_GOOD)
        return status;
    if (c->json)
        return print_json(&c->response.body);
    state = c->response.document;
    last = json_object_get(state, "last_pause");
    buf_init(&text, c->mem);
    buf_init(&line, c->mem);
    buf_printf(&text, "%s: claims %s, posts %s", queue,
               json_is_true(json_object_get(state, "claims")) ? "paused" : "open",
               json_is_true(json_object_get(state, "posts")) ? "paused" : "open");
    if (json_is_object(last)) {
        buf_printf(&text, ", last pause %s by ",
                   json_string_value(json_object_get(last, "at")));
        before = text.len;
        worker_write(&text, last, "");
        if (text.len == before)
            buf_str(&text, "a client");
    }
    utf8_escape(&line, buf_view(&text));
    buf_byte(&line, '\n');
    line.failed |= text.failed;
    buf_fini(&text);
    return print_text(&line);
}

static int
run_pause(const struct command_args *args)
{
    struct client *c = args->context;
    const bool posts = args->values[PAUSE_POSTS] != NULL;
    const bool claims = args->values[PAUSE_CLAIMS] != NULL || !posts;
    const char *body = args->values[PAUSE_SHOW] != NULL ? NULL
                       : claims && posts ? "{\"claims\":true,\"posts\":true}"
                       : claims          ? "{\"claims\":true}"
                                         : "{\"posts\":true}";

    return change_pause(c, args->words[0], body);
}

static int
run_resume(const struct command_args *args)
{
    struct client *c = args->context;
    return change_pause(c, args->words[0], "{\"claims\":false,\"posts\":false}");
}

const struct command client_pause = {
    .about =
        "Pauses a queue until `claimd resume`, also over a restart of the server. While "
        "claims are paused, workers get no new messages, and long-polling requests keep "
        "waiting. Workers can renew, release and finish the claims that they hold. While "
        "posts are paused, the server refuses them with status 503, and producers retry.",
    .options =
        {{"--claims", NULL,
          "Pause claims and pops. This is the default without --posts."},
         {"--posts", NULL, "Pause posts."},
         {"--show", NULL,
          "Change nothing. Show what is paused, and the client and time of the last "
          "pause."}},
    .example = "claimd pause jobs --project demo",
    .least = 1,
    .most = 1,
    .needs = "a queue",
    .run = run_pause};

const struct command client_resume = {
    .about = "Resumes claims and posts of a queue. Waiting long-polling requests receive "
             "messages at once.",
    .example = "claimd resume jobs --project demo",
    .least = 1,
    .most = 1,
    .needs = "a queue",
    .run = run_resume};

/* ------------------------------------------------------------------ redrive */

enum {
    REDRIVE_TO,
    REDRIVE_LIMIT,
    REDRIVE_IDS,
    REDRIVE_KEEP,
    REDRIVE_DRY_RUN,
    REDRIVE_YES
};
enum { SLICE = 1000 };

struct redrive_progress {
    struct client *client;
    const char *queue, *to; /* to: NULL: the origin */
    const char *ids;        /* with commas; NULL: all */
    bool keep;              /* the delivery counts */
    json_t *by_target;      /* owned: {queue: messages} */
    int64_t moved, remaining, without_origin, key_held;
};

static void
write_redrive(const struct redrive_progress *r, int64_t limit, bool dry, struct buf *body)
{
    buf_byte(body, '{');
    if (r->to != NULL) {
        json_write_name(body, "to");
        buf_str(body, "{\"queue\":");
        json_string_write(body, bytes_str(r->to));
        buf_byte(body, '}');
    }
    json_write_i64(body, "limit", limit);
    if (dry)
        json_write_flag(body, "dry_run", true);
    if (r->keep)
        json_write_flag(body, "reset", false);
    if (r->ids != NULL)
        json_write_list(body, "ids", bytes_str(r->ids), ',');
    buf_byte(body, '}');
}

/* Adds the numbers of by_target. False without memory. */
static bool
add_targets(struct redrive_progress *r, json_t *targets)
{
    const char *name;
    json_t *count;

    json_object_foreach(targets, name, count)
    {
        const int64_t sum = json_integer_value(count) + member_number(r->by_target, name);

        if (json_object_set_new(r->by_target, name, json_integer(sum)) != 0)
            return false;
    }
    return true;
}

/* Moves up to `limit` messages. *moved is their number. Returns an exit status. */
static int
redrive_slice(struct redrive_progress *r, int64_t limit, bool dry, int64_t *moved)
{
    struct client_request request = {
        .path = "/claimd/queues/%s/redrive", .parts = {r->queue}, .member = "moved"};
    struct buf *body = client_body(r->client);
    const json_t *document;
    int status;

    write_redrive(r, limit, dry, body);
    request.body = buf_view(body);
    status = client_call(r->client, &request);
    if (status != COMMAND_GOOD)
        return status;
    document = r->client->response.document;
    *moved = member_number(document, "moved");
    r->moved += *moved;
    r->remaining = member_number(document, "remaining");
    r->without_origin = member_number(document, "without_origin");
    r->key_held = member_number(document, "key_held");
    return add_targets(r, json_object_get(document, "by_target")) ? COMMAND_GOOD
                                                                  : command_no_memory();
}

/* Prints the result for people: a table of targets, and what is left. */
static int
print_redriven(const struct redrive_progress *r, bool dry)
{
    static const struct table_column columns[] = {
        {"target", false, true, false, TABLE_MEMBER, NULL},
        {"messages", true, false, false, TABLE_MEMBER, NULL}};
    struct table table;
    const char *name;
    json_t *count;
    int status = COMMAND_GOOD;

    table_init(&table, r->client->mem, columns, 2);
    json_object_foreach(r->by_target, name, count)
    {
        table_text(&table, bytes_str(name));
        table_number(&table, json_integer_value(count));
    }
    if (table.cell_count > 0) {
        status = table_print(&table);
        (void)putchar('\n');
    }
    (void)printf("%lld message%s %s, %lld remain%s", (long long)r->moved,
                 plural_s((uint64_t)r->moved), dry ? "would move" : "moved",
                 (long long)r->remaining, r->remaining == 1 ? "s" : "");
    if (r->without_origin > 0)
        (void)printf(", %lld of them without an origin: name a target with --to",
                     (long long)r->without_origin);
    if (r->key_held > 0)
        (void)printf(", %lld of them because the target has a message with %s key",
                     (long long)r->key_held, r->key_held == 1 ? "its" : "their");
    (void)putchar('\n');
    return status;
}

static int
print_redriven_json(const struct redrive_progress *r, bool dry)
{
    struct buf out;

    buf_init(&out, r->client->mem);
    buf_byte(&out, '{');
    json_write_i64(&out, dry ? "would_move" : "moved", r->moved);
    json_write_i64(&out, "remaining", r->remaining);
    json_write_i64(&out, "without_origin", r->without_origin);
    json_write_i64(&out, "key_held", r->key_held);
    json_write_name(&out, "by_target");
    json_tree_write(&out, r->by_target);
    buf_byte(&out, '}');
    return print_json(&out);
}

/* Moves messages slice by slice, up to `limit`. Returns an exit status. */
static int
redrive_all(struct redrive_progress *r, int64_t limit, int64_t total)
{
    int status = COMMAND_GOOD;
    int64_t moved = 1;

    while (status == COMMAND_GOOD && moved > 0 && r->moved < limit) {
        progress_show(r->moved, total);
        status = redrive_slice(r, limit - r->moved < SLICE ? limit - r->moved : SLICE,
                               false, &moved);
        if (status == COMMAND_GOOD && (r->ids != NULL || r->remaining == 0))
            break;
    }
    progress_end();
    return status;
}

/* Counts, asks and moves. Returns an exit status. */
static int
redrive_run(struct redrive_progress *r, const struct command_args *args, int64_t limit)
{
    const bool dry = args->values[REDRIVE_DRY_RUN] != NULL;
    int64_t moved = 0, total;
    int status = redrive_slice(r, limit < SLICE ? limit : SLICE, true, &moved);

    if (status != COMMAND_GOOD)
        return status;
    /* The server counts a slice. The rest may have no origin, or be claimed. */
    total = r->moved + (r->moved == SLICE ? r->remaining : 0);
    total = total < limit ? total : limit;
    if (!dry) {
        if (total > 0)
            status = ask(args, args->values[REDRIVE_YES] != NULL,
                         "Move %s%lld message%s of %s to %s?",
                         r->moved < total ? "up to " : "", (long long)total,
                         plural_s((uint64_t)total), r->queue,
                         r->to == NULL ? "the queues that they came from" : r->to);
        if (status != COMMAND_GOOD)
            return status;
        r->moved = 0;
        (void)json_object_clear(r->by_target);
        status = redrive_all(r, limit, total);
    }
    if (status != COMMAND_GOOD && r->moved == 0)
        return status;
    moved = r->client->json ? print_redriven_json(r, dry) : print_redriven(r, dry);
    return status != COMMAND_GOOD ? status : (int)moved;
}

static int
run_redrive(const struct command_args *args)
{
    struct client *c = args->context;
    struct redrive_progress r = {.client = c,
                                 .queue = args->words[0],
                                 .to = args->values[REDRIVE_TO],
                                 .ids = args->values[REDRIVE_IDS],
                                 .keep = args->values[REDRIVE_KEEP] != NULL,
                                 .by_target = json_object()};
    int64_t limit = INT64_MAX;
    int status = COMMAND_USAGE;

    if (r.by_target == NULL)
        return command_no_memory();
    if (args_number(args, REDRIVE_LIMIT, 1, INT64_MAX, &limit))
        status = redrive_run(&r, args, limit);
    json_decref(r.by_target);
    return status;
}

const struct command client_redrive = {
    .about =
        "Moves the ready dead letters of a queue back to the queues that they came from, "
        "the oldest first. They go to the end of the target, with new delivery counts. "
        "The command asks before, on a terminal, and moves 1000 messages with each "
        "request. If it is interrupted, each message is in one queue: run it again.",
    .options =
        {{"--to", "QUEUE",
          "Target of all messages. Default: the queue of origin of each"},
         {"--limit", "N", "Number of messages at most. Default: all"},
         {"--ids", "ID,ID...", "Move only these messages."},
         {"--keep-counts", NULL, "Keep the delivery counts."},
         {"--dry-run", NULL,
          "Only print the targets of the first 1000 messages, and how many remain."},
         {"--yes", NULL, "Do not ask. Needed without a terminal."}},
    .example = "claimd redrive jobs-dead --dry-run --project demo",
    .least = 1,
    .most = 1,
    .needs = "a queue",
    .run = run_redrive};
