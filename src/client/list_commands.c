/*
 * claimd queues, claims, peek and why: commands that show what a server has and change
 * nothing.
 *
 * All but `why` read a list page by page (list.h). Each command has its function and its
 * table, which command.h declares.
 */
#include "client/command.h"
#include "client/list.h"
#include "client/text.h"

#include <stdio.h>
#include <time.h>

/* ------------------------------------------------------------------ queues */

enum { QUEUES_SORT, QUEUES_LIMIT, QUEUES_Q, QUEUES_WATCH };
enum { PAGE_MOST = 1000, WATCH_LIMIT = 100, WATCH_S = 2 };

/* The first column is left out if one project was named. */
static const struct table_column queue_columns[] = {
    {"project", false, true, false, TABLE_MEMBER, "project"},
    {"queue", false, true, false, TABLE_QUEUE, "name"},
    {"ready", true, false, false, TABLE_MEMBER, "ready"},
    {"delayed", true, false, true, TABLE_MEMBER, "delayed"},
    {"claimed", true, false, false, TABLE_MEMBER, "claimed"},
    {"oldest", true, false, false, TABLE_TIME, "oldest_ready_age"},
    {"claim", true, false, true, TABLE_TIME, "oldest_claim_age"},
    {"waiting", true, false, true, TABLE_MEMBER, "waiters"},
    {"dead", true, false, true, TABLE_MEMBER, "dead_letters"},
    {"in/s", true, false, true, TABLE_RATE, "rates.posted"},
    {"out/s", true, false, true, TABLE_RATE, "rates.deleted"},
    {"again/s", true, false, true, TABLE_RATE, "rates.requeued"}};

static int
print_queues(struct client *c, const struct client_request *request, int64_t limit)
{
    const size_t skipped = c->project == NULL ? 0 : 1;
    struct list_output l = {.client = c,
                            .name = "queues",
                            .columns = queue_columns + skipped,
                            .column_count = COUNT_OF(queue_columns) - skipped,
                            .left = limit};

    return list_print(&l, request);
}

/*
 * Prints the queues again and again, until a signal or a failure ends it. A server that
 * is away is no failure after the first time.
 */
static int
watch_queues(struct client *c, const struct client_request *request, int64_t limit)
{
    const struct timespec pause = {.tv_sec = WATCH_S};
    const bool clears = terminal_width(stdout) > 0 && !c->json;
    int status = COMMAND_GOOD;

    for (bool first = true; !ferror(stdout); first = false) {
        if (clears)
            (void)fputs("\033[H\033[J", stdout);
        else if (!first && !c->json)
            (void)putchar('\n');
        status = print_queues(c, request, limit);
        if (fflush(stdout) != 0 ||
            (status != COMMAND_GOOD && (first || status != COMMAND_UNAVAILABLE)))
            break;
        (void)nanosleep(&pause, NULL);
    }
    return status;
}

static int
run_queues(const struct command_args *args)
{
    struct client *c = args->context;
    const bool watch = args->values[QUEUES_WATCH] != NULL;
    int64_t limit = watch ? WATCH_LIMIT : INT32_MAX;
    char page[24];
    const struct client_request request = {.path = "/claimd/queues",
                                           .query = {{"limit", page},
                                                     {"sort", args->values[QUEUES_SORT]},
                                                     {"q", args->values[QUEUES_Q]}}};

    if (!args_number(args, QUEUES_LIMIT, 1, INT32_MAX, &limit))
        return COMMAND_USAGE;
    (void)snprintf(page, sizeof(page), "%lld",
                   (long long)(limit < PAGE_MOST ? limit : PAGE_MOST));
    return watch ? watch_queues(c, &request, limit) : print_queues(c, &request, limit);
}

const struct command client_queues = {
    .about = "Prints a table of queues, the most urgent one first: that with the oldest "
             "ready message. Without a project it shows the queues of all projects, for "
             "callers that may read all of them.\n\n"
             "`oldest` is the age of the oldest ready message and `claim` that of the "
             "oldest claim. `waiting` counts long-polling requests and `dead` the dead "
             "letters in the queue. The rates are messages per second over the last "
             "minute: posted (in), deleted (out) and requeued (again). On a narrow "
             "terminal the last columns are left out. A paused queue has `(paused)`, "
             "`(posts paused)` or `(all paused)` behind its name.",
    .options = {{"--sort", "ORDER",
                 "oldest_ready, ready, claimed or name. Default: oldest_ready"},
                {"--limit", "N",
                 "Number of queues at most. Default: all, with --watch 100"},
                {"--q", "TEXT", "Only queues with this text in their names."},
                {"--watch", NULL,
                 "Print the table every two seconds, until you press Ctrl-C."}},
    .example = "claimd queues --watch --sort ready",
    .most = 0,
    .run = run_queues};

/* ------------------------------------------------------------------ claims */

static int
run_claims(const struct command_args *args)
{
    static const struct table_column columns[] = {
        {"claim", false, false, false, TABLE_MEMBER, "id"},
        {"worker", false, true, false, TABLE_WORKER, ""},
        {"number", true, false, true, TABLE_MEMBER, "number"},
        {"messages", true, false, false, TABLE_MEMBER, "messages"},
        {"age", true, false, false, TABLE_TIME, "age"},
        {"ends in", true, false, false, TABLE_TIME, "ttl_left"}};
    const struct client_request request = {.path = "/claimd/queues/%s/claims?limit=1000",
                                           .parts = {args->words[0]}};
    struct list_output l = {.client = args->context,
                            .name = "claims",
                            .columns = columns,
                            .column_count = COUNT_OF(columns),
                            .left = INT64_MAX};

    return list_print(&l, &request);
}

const struct command client_claims = {
    .about = "Prints the claims of a queue, the oldest first: the client that holds each "
             "of them, its fencing token, the number of messages that it still holds, "
             "its age, and the time until it ends unless the client renews it.",
    .example = "claimd claims jobs --project demo",
    .least = 1,
    .most = 1,
    .needs = "a queue",
    .run = run_claims};

/* ------------------------------------------------------------------ peek */

enum { PEEK_STATE, PEEK_LIMIT, PEEK_DETAILS };
enum { PEEK_USUAL = 20, MESSAGES_PAGE = 20, COLUMNS_USUAL = 5 };

/* Those behind the body are for --details. */
static const struct table_column message_columns[] = {
    {"message", false, false, false, TABLE_MEMBER, "id"},
    {"state", false, false, false, TABLE_MEMBER, "details.state"},
    {"age", true, false, false, TABLE_TIME, "age"},
    {"deliveries", true, false, true, TABLE_MEMBER, "details.delivery_count"},
    {"body", false, true, false, TABLE_JSON, "body"},
    {"last reason", false, true, false, TABLE_MEMBER, "details.last_reason"},
    {"last worker", false, true, true, TABLE_WORKER, "details.last_"},
    {"origin", false, true, true, TABLE_MEMBER, "details.origin_queue"},
    {"cause", false, true, true, TABLE_MEMBER, "details.cause"},
    {"attempts", true, false, true, TABLE_MEMBER, "details.attempts"},
    {"key", false, true, true, TABLE_MEMBER, "details.unique"},
    {"expires", false, false, true, TABLE_MEMBER, "details.expires_at"}};

static int
run_peek(const struct command_args *args)
{
    const char *state = args->values[PEEK_STATE];
    const bool details = args->values[PEEK_DETAILS] != NULL;
    const bool all = state == NULL || strcmp(state, "all") == 0;
    const bool claimed = all || strcmp(state, "claimed") == 0;
    const bool delayed = all || strcmp(state, "delayed") == 0;
    char limit[24];
    const struct client_request request = {
        .path = "/v2/queues/%s/messages",
        .parts = {args->words[0]},
        .query = {{"echo", "true"},
                  {"include_claimed", claimed ? "true" : NULL},
                  {"include_delayed", delayed ? "true" : NULL},
                  {"limit", limit}},
        .details = true};
    struct list_output l = {.client = args->context,
                            .name = "messages",
                            .columns = message_columns,
                            .column_count =
                                details ? COUNT_OF(message_columns) : COLUMNS_USUAL,
                            .state = all ? NULL : state,
                            .left = PEEK_USUAL,
                            .may_be_gone = true};

    if (!args_number(args, PEEK_LIMIT, 1, INT32_MAX, &l.left))
        return COMMAND_USAGE;
    if (!claimed && !delayed && strcmp(state, "ready") != 0)
        return command_misused(
            args->name, "--state is %.64s. It must be ready, delayed, claimed or all",
            state);
    (void)snprintf(limit, sizeof(limit), "%lld",
                   (long long)(l.left < MESSAGES_PAGE ? l.left : MESSAGES_PAGE));
    return list_print(&l, &request);
}

const struct command client_peek = {
    .about = "Prints messages of a queue, the oldest first, and changes nothing: no "
             "message is claimed or counted as delivered.",
    .options = {{"--state", "STATE", "ready, delayed, claimed or all. Default: all"},
                {"--limit", "N", "Number of messages at most. Default: 20"},
                {"--details", NULL,
                 "Print the last reason of a failure and its client, the queue from "
                 "which a dead letter came, the key of a unique message, and the time at "
                 "which the message expires."}},
    .example = "claimd peek jobs-dead --details --project demo",
    .least = 1,
    .most = 1,
    .needs = "a queue",
    .run = run_peek};

/* ------------------------------------------------------------------ why */

/* A line with what is known of a worker; with `unknown` if nothing is (NULL: no line). */
static void
add_worker_line(struct buf *out, const char *label, const json_t *object,
                const char *prefix, const char *unknown)
{
    struct buf text;

    buf_init(&text, out->mem);
    worker_write(&text, object, prefix);
    if (text.len > 0)
        buf_byte(&text, '\0');
    fact_write(out, label, text.len > 0 && !text.failed ? text.data : unknown);
    buf_fini(&text);
}

static void
add_claim_lines(struct buf *out, const json_t *claim)
{
    const char *id = member_text(claim, "id");
    const json_t *number = json_object_get(claim, "number");

    if (!json_is_object(claim))
        return;
    fact_write(out, "claim", id == NULL ? "" : id);
    add_worker_line(out, "worker", claim, "", "unknown since a restart");
    if (json_is_integer(number))
        buf_printf(out, "%-13s %lld\n", "number", (long long)json_integer_value(number));
    fact_write(out, "lease ends", member_text(claim, "ends_at"));
}

void
why_write(struct buf *out, const json_t *m)
{
    static const char *const members[][2] = {{"posted", "created_at"},
                                             {"expires", "expires_at"},
                                             {"delayed until", "delayed_until"},
                                             {"last reason", "last_reason"},
                                             {"released", "last_released_at"},
                                             {"origin", "origin_queue"},
                                             {"dead since", "dead_lettered_at"},
                                             {"cause", "cause"},
                                             {"key", "unique"},
                                             {"key until", "unique_until"}};
    const int64_t most = member_number(m, "max_claim_count");
    const int64_t attempts = member_number(m, "attempts");
    const json_t *next = json_object_get(m, "next");

    if (m == NULL)
        return;
    fact_write(out, "state", member_text(m, "state"));
    add_claim_lines(out, json_object_get(m, "claim"));
    buf_printf(out, "%-13s %lld", "deliveries",
               (long long)member_number(m, "delivery_count"));
    if (most > 0)
        buf_printf(out, " of %lld", (long long)most);
    buf_byte(out, '\n');
    for (size_t i = 0; i < COUNT_OF(members); i++)
        fact_write(out, members[i][0], member_text(m, members[i][1]));
    if (attempts > 0)
        buf_printf(out, "%-13s %lld\n", "attempts", (long long)attempts);
    add_worker_line(out, "last worker", m, "last_", NULL);
    fact_write(out, "next", member_text(next, "text"));
    fact_write(out, "at", member_text(next, "at"));
}

static int
run_why(const struct command_args *args)
{
    struct client *c = args->context;
    const struct client_request request = {.path = "/claimd/queues/%s/messages/%s",
                                           .parts = {args->words[0], args->words[1]},
                                           .member = "id"};
    const int status = client_send(c, &request);
    char error[CLIENT_ERROR_CAP];
    struct buf out;

    if (status == COMMAND_GOOD && c->json)
        return print_json(&c->response.body);
    if (status == COMMAND_GOOD) {
        buf_init(&out, c->mem);
        why_write(&out, c->response.document);
        return print_text(&out);
    }
    memcpy(error, c->response.error, sizeof(error));
    if (c->response.status == 404 &&
        client_check_queue(c, args->words[0]) != COMMAND_GOOD)
        return status;
    return command_fails(status, "%s", error);
}

const struct command client_why = {
    .about = "Explains a message: its state and the client that holds it, how often it "
             "was delivered, why its last attempt failed, where it came from, and what "
             "happens next and when.",
    .example = "claimd why jobs b1c20f3400000000000000a7 --project demo",
    .least = 2,
    .most = 2,
    .needs = "a queue and the id of a message",
    .run = run_why};
