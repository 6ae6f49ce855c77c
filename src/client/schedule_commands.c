/*
 * claimd schedule: the schedules of queues, by which claimd posts messages at their due
 * times.
 *
 * The first argument is an action. run_schedule() finds it in a table, and checks that
 * the other arguments and the options belong to it.
 */
#include "client/command.h"
#include "client/list.h"
#include "client/text.h"

#include "claimd/base/utf8.h"
#include "claimd/json/scan.h"
#include "claimd/json/string.h"

#include <stdio.h>

enum {
    CRON,
    TIMEZONE,
    EVERY,
    TTL,
    DELAY,
    MISSED,
    OVERLAP,
    PAUSED,
    STRING,
    COUNT,
    OPTIONS
};

enum { NEXT_USUAL = 10, NEXT_MOST = 100 };

static const char path_of_one[] = "/claimd/queues/%s/schedules/%s";

/* Appends a time in the largest unit of which it has a whole number: "90s", "2m". */
static void
write_interval(struct buf *out, int64_t seconds)
{
    static const struct {
        int64_t seconds;
        char name;
    } units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
    size_t i = 0;

    while (seconds % units[i].seconds != 0 || (seconds == 0 && units[i].name != 's'))
        i++;
    buf_printf(out, "%lld%c", (long long)(seconds / units[i].seconds), units[i].name);
}

/* The first one of the next due times; NULL: there is none. */
static const char *
next_of(const json_t *schedule)
{
    return json_string_value(json_array_get(json_object_get(schedule, "next"), 0));
}

/* Requests one schedule with `count` due times (NULL: one). Returns an exit status. */
static int
call_show(const struct command_args *args, const char *count)
{
    const struct client_request request = {.path = path_of_one,
                                           .parts = {args->words[1], args->words[2]},
                                           .query = {{"next", count}},
                                           .member = "name"};

    return client_call(args->context, &request);
}

/* Prints the document of the server, or "QUEUE/NAME: next at TIME". */
static int
print_changed(const struct command_args *args)
{
    struct client *c = args->context;
    const json_t *schedule = c->response.document;
    const char *next = next_of(schedule);
    struct buf text, line;

    if (c->json)
        return print_json(&c->response.body);
    buf_init(&text, c->mem);
    buf_init(&line, c->mem);
    buf_printf(&text, "%s/%s: ", args->words[1], args->words[2]);
    if (json_is_true(json_object_get(schedule, "paused")))
        buf_str(&text, "paused");
    else if (next == NULL)
        buf_str(&text, "never due");
    else
        buf_printf(&text, "next at %s", next);
    utf8_escape(&line, buf_view(&text));
    buf_byte(&line, '\n');
    line.failed |= text.failed;
    buf_fini(&text);
    return print_text(&line);
}

/* ------------------------------------------------------------------ set */

/* Appends an option as a member, if it is given. */
static void
write_option(struct buf *body, const struct command_args *args, size_t option,
             const char *member)
{
    if (args->values[option] != NULL)
        json_write_text(body, member, bytes_str(args->values[option]));
}

static void
write_message(struct buf *body, const struct command_args *args, int64_t ttl_s,
              int64_t delay_s)
{
    const struct bytes word = bytes_str(args->words[3]);

    json_write_name(body, "message");
    buf_str(body, "{\"body\":");
    if (args->values[STRING] != NULL)
        json_string_write(body, word);
    else
        word_write_json(body, word);
    if (ttl_s >= 0)
        json_write_i64(body, "ttl", ttl_s);
    if (delay_s >= 0)
        json_write_i64(body, "delay", delay_s);
    buf_byte(body, '}');
}

/* JSON takes no other texts. */
static bool
texts_are_utf8(const struct command_args *args)
{
    bool good = word_is_utf8(bytes_str(args->words[3]));

    for (size_t i = 0; i < OPTIONS; i++)
        good &= args->values[i] == NULL || word_is_utf8(bytes_str(args->values[i]));
    return good;
}

static int
run_set(const struct command_args *args)
{
    struct client *c = args->context;
    struct client_request request = {.method = "PUT",
                                     .path = path_of_one,
                                     .parts = {args->words[1], args->words[2]},
                                     .member = "name"};
    struct buf *body = client_body(c);
    int64_t every_s = 0, ttl_s = -1, delay_s = -1;
    int status;

    if ((args->values[CRON] == NULL) == (args->values[EVERY] == NULL))
        return command_misused(args->name,
                               "schedule set needs one of --cron and --every");
    if (!args_duration(args, EVERY, 1, INT32_MAX, &every_s) ||
        !args_duration(args, TTL, 0, INT32_MAX, &ttl_s) ||
        !args_duration(args, DELAY, 0, INT32_MAX, &delay_s))
        return COMMAND_USAGE;
    if (!texts_are_utf8(args))
        return command_misused(args->name, "an argument is not UTF-8");
    buf_byte(body, '{');
    write_option(body, args, CRON, "cron");
    write_option(body, args, TIMEZONE, "timezone");
    if (every_s > 0)
        json_write_i64(body, "every", every_s);
    write_message(body, args, ttl_s, delay_s);
    write_option(body, args, MISSED, "missed");
    write_option(body, args, OVERLAP, "overlap");
    if (args->values[PAUSED] != NULL)
        json_write_flag(body, "paused", true);
    buf_byte(body, '}');
    request.body = buf_view(body);
    status = client_call(c, &request);
    return status == COMMAND_GOOD ? print_changed(args) : status;
}

/* ------------------------------------------------------------------ list */

/* Appends the expression and its time zone, or the interval. */
static void
write_when(struct buf *out, const json_t *schedule)
{
    const char *cron = member_text(schedule, "cron");
    const char *zone = member_text(schedule, "timezone");

    if (cron == NULL) {
        buf_str(out, "every ");
        write_interval(out, member_number(schedule, "every"));
    } else {
        buf_printf(out, "%s %s", cron, zone == NULL ? "" : zone);
    }
}

static void
add_text(struct table *t, const char *text)
{
    table_text(t, text == NULL ? BYTES_NONE : bytes_str(text));
}

static void
add_schedule(struct table *t, const json_t *schedule)
{
    static const char *const counts[] = {"posted", "missed_count", "skipped_count",
                                         "refused_count"};
    const json_t *last = json_object_get(schedule, "last");
    const bool paused = json_is_true(json_object_get(schedule, "paused"));
    struct buf when;

    buf_init(&when, t->text.mem);
    write_when(&when, schedule);
    add_text(t, member_text(schedule, "queue"));
    add_text(t, member_text(schedule, "name"));
    table_text(t, buf_view(&when));
    add_text(t, paused ? "paused" : next_of(schedule));
    add_text(t, member_text(schedule, "error"));
    add_text(t, member_text(last, "due"));
    add_text(t, member_text(last, "message_state"));
    for (size_t i = 0; i < COUNT_OF(counts); i++)
        table_number(t, member_number(schedule, counts[i]));
    t->text.failed |= when.failed;
    buf_fini(&when);
}

static int
run_list(const struct command_args *args)
{
    static const struct table_column columns[] = {
        {"queue", .elastic = true},         {"schedule", .elastic = true},
        {"when", .elastic = true},          {"next", .elastic = false},
        {"error", .elastic = true},         {"last", .optional = true},
        {"message", .optional = true},      {"posted", true, .optional = true},
        {"missed", true, .optional = true}, {"skipped", true, .optional = true},
        {"refused", true, .optional = true}};
    const char *queue = args->words[1];
    const struct client_request request = {
        .path = queue == NULL ? "/claimd/schedules" : "/claimd/queues/%s/schedules",
        .parts = {queue}};
    struct list_output l = {.client = args->context,
                            .name = "schedules",
                            .columns = columns,
                            .column_count = COUNT_OF(columns),
                            .add_row = add_schedule,
                            .left = INT64_MAX,
                            .may_be_gone = queue != NULL};

    return list_print(&l, &request);
}

/* ------------------------------------------------------------------ show */

static void
write_interval_fact(struct buf *out, const char *label, const json_t *seconds)
{
    if (!json_is_integer(seconds))
        return;
    buf_printf(out, "%-13s ", label);
    write_interval(out, json_integer_value(seconds));
    buf_byte(out, '\n');
}

static void
write_message_facts(struct buf *out, const struct client *c)
{
    const json_t *message = json_object_get(c->response.document, "message");
    const struct bytes whole = json_member(buf_view(&c->response.body), "message").text;

    buf_printf(out, "%-13s ", "body");
    utf8_escape_json(out, json_member(whole, "body").text);
    buf_byte(out, '\n');
    write_interval_fact(out, "ttl", json_object_get(message, "ttl"));
    write_interval_fact(out, "delay", json_object_get(message, "delay"));
}

static void
write_last_facts(struct buf *out, const json_t *last)
{
    const char *id = member_text(last, "message_id");
    const char *state = member_text(last, "message_state");

    fact_write(out, "last due", member_text(last, "due"));
    fact_write(out, "posted at", member_text(last, "posted_at"));
    fact_write(out, "message", id);
    fact_write(out, "state", state);
}

static int
run_show(const struct command_args *args)
{
    struct client *c = args->context;
    const json_t *s;
    struct buf out;
    int status = call_show(args, NULL);

    if (status != COMMAND_GOOD)
        return status;
    if (c->json)
        return print_json(&c->response.body);
    s = c->response.document;
    buf_init(&out, c->mem);
    fact_write(&out, "queue", member_text(s, "queue"));
    fact_write(&out, "schedule", member_text(s, "name"));
    fact_write(&out, "cron", member_text(s, "cron"));
    fact_write(&out, "time zone", member_text(s, "timezone"));
    write_interval_fact(&out, "every", json_object_get(s, "every"));
    write_message_facts(&out, c);
    fact_write(&out, "if missed", member_text(s, "missed"));
    fact_write(&out, "if overlap", member_text(s, "overlap"));
    fact_write(&out, "next",
               json_is_true(json_object_get(s, "paused")) ? "paused" : next_of(s));
    write_last_facts(&out, json_object_get(s, "last"));
    buf_printf(&out, "%-13s %lld posted, %lld missed, %lld skipped, %lld refused\n",
               "counts", (long long)member_number(s, "posted"),
               (long long)member_number(s, "missed_count"),
               (long long)member_number(s, "skipped_count"),
               (long long)member_number(s, "refused_count"));
    fact_write(&out, "error", member_text(s, "error"));
    return print_text(&out);
}

/* ------------------------------------------------------------------ next */

static int
run_next(const struct command_args *args)
{
    struct client *c = args->context;
    int64_t count = NEXT_USUAL;
    const json_t *times;
    struct buf out;
    char text[24];
    int status;

    if (!args_number(args, COUNT, 1, NEXT_MOST, &count))
        return COMMAND_USAGE;
    (void)snprintf(text, sizeof(text), "%lld", (long long)count);
    status = call_show(args, text);
    if (status != COMMAND_GOOD)
        return status;
    times = json_object_get(c->response.document, "next");
    if (json_array_size(times) == 0)
        return command_fails(COMMAND_FAILED, "%s/%s %s", args->words[1], args->words[2],
                             json_is_true(json_object_get(c->response.document, "paused"))
                                 ? "is paused"
                                 : "has no due time");
    buf_init(&out, c->mem);
    if (c->json) {
        buf_byte(&out, '{');
        json_write_raw(&out, "next",
                       json_member(buf_view(&c->response.body), "next").text);
        buf_byte(&out, '}');
        return print_json(&out);
    }
    for (size_t i = 0; i < json_array_size(times); i++) {
        const char *at = json_string_value(json_array_get(times, i));

        utf8_escape(&out, at == NULL ? BYTES_NONE : bytes_str(at));
        buf_byte(&out, '\n');
    }
    return print_text(&out);
}

/* ------------------------------------------------------------------ others */

static int
change_pause(const struct command_args *args, const char *body)
{
    const struct client_request request = {.method = "PATCH",
                                           .path = path_of_one,
                                           .parts = {args->words[1], args->words[2]},
                                           .body = bytes_str(body),
                                           .member = "name"};
    const int status = client_call(args->context, &request);

    return status == COMMAND_GOOD ? print_changed(args) : status;
}

static int
run_pause(const struct command_args *args)
{
    return change_pause(args, "{\"paused\":true}");
}

static int
run_resume(const struct command_args *args)
{
    return change_pause(args, "{\"paused\":false}");
}

/* The server also succeeds without the schedule, so the command looks for it first. */
static int
run_delete(const struct command_args *args)
{
    const struct client_request request = {.method = "DELETE",
                                           .path = path_of_one,
                                           .parts = {args->words[1], args->words[2]}};
    const int status = call_show(args, NULL);

    return status == COMMAND_GOOD ? client_call(args->context, &request) : status;
}

/* ------------------------------------------------------------------ actions */

#define BIT(option) (1u << (option))

static const struct schedule_action {
    const char *name, *needs; /* the arguments behind it, in words */
    size_t least, most;       /* number of these arguments */
    unsigned options;         /* that it takes, as bits */
    int (*run)(const struct command_args *args);
} actions[] = {
    {"set", "a queue, a name and a body", 3, 3, BIT(COUNT) - 1, run_set},
    {"list", "no more than a queue", 0, 1, 0, run_list},
    {"show", "a queue and a name", 2, 2, 0, run_show},
    {"next", "a queue and a name", 2, 2, BIT(COUNT), run_next},
    {"pause", "a queue and a name", 2, 2, 0, run_pause},
    {"resume", "a queue and a name", 2, 2, 0, run_resume},
    {"delete", "a queue and a name", 2, 2, 0, run_delete},
};

static int
run_schedule(const struct command_args *args)
{
    const struct schedule_action *action = actions;

    while (action < actions + COUNT_OF(actions) &&
           strcmp(action->name, args->words[0]) != 0)
        action++;
    if (action == actions + COUNT_OF(actions))
        return command_misused(args->name,
                               "schedule has no action \"%.64s\". Use set, list, show, "
                               "next, pause, resume or delete",
                               args->words[0]);
    if (args->count - 1 < action->least || args->count - 1 > action->most)
        return command_misused(args->name, "schedule %s needs %s", action->name,
                               action->needs);
    for (size_t i = 0; i < OPTIONS; i++)
        if (args->values[i] != NULL && (action->options & BIT(i)) == 0)
            return command_misused(args->name, "schedule %s takes no %s", action->name,
                                   args->command->options[i].name);
    return action->run(args);
}

const struct command client_schedule = {
    .usages = {"schedule set QUEUE NAME (--cron EXPRESSION [--timezone ZONE] | "
               "--every TIME) [OPTION]... BODY",
               "schedule list [QUEUE]", "schedule show QUEUE NAME",
               "schedule next QUEUE NAME [--count N]", "schedule pause|resume QUEUE NAME",
               "schedule delete QUEUE NAME"},
    .about =
        "Posts a message to a queue at the due times of a cron expression, or at an "
        "interval. A schedule stays until you delete it.\n\n"
        "`set` creates a schedule and its queue, or replaces a schedule as a whole. "
        "`list` "
        "prints a table of all schedules of the project, or of a queue. `show` prints "
        "one schedule and `next` its next due times. While a schedule is paused, claimd "
        "posts nothing for it, and its due times pass. All times are in UTC.\n\n"
        "An expression has five fields: minute, hour, day of the month, month and day of "
        "the week. `@hourly`, `@daily`, `@weekly`, `@monthly` and `@yearly` are short "
        "forms. A body that is a JSON value is posted as that value. Any other text "
        "becomes a JSON string.",
    .options =
        {[CRON] = {"--cron", "EXPRESSION", "Cron expression, such as '30 2 * * 1-5'."},
         [TIMEZONE] =
             {"--timezone", "ZONE",
              "Time zone of the expression, such as Europe/Berlin. Default: UTC"},
         [EVERY] = {"--every", "TIME", "Interval, such as 300, 5m or 1d."},
         [TTL] = {"--ttl", "TIME",
                  "Lifetime of the messages. Default: that of the queue"},
         [DELAY] =
             {"--delay", "TIME",
              "Time before a worker can claim a message. Default: that of the queue"},
         [MISSED] = {"--missed", "last|all|none",
                     "Due times that passed while the server was down or could not post: "
                     "post for the last one, for all, or for none. Default: last"},
         [OVERLAP] = {"--overlap", "post|skip",
                      "If a message of the schedule is still in the queue at a due time: "
                      "post another one, or skip the due time. Default: post"},
         [PAUSED] =
             {"--paused", NULL,
              "Pause the schedule until `claimd schedule resume`. Without this option, "
              "`set` also resumes a paused schedule."},
         [STRING] = {"--string", NULL,
                     "Post the body as a JSON string, also if it is JSON."},
         [COUNT] = {"--count", "N", "Number of due times, up to 100. Default: 10"}},
    .example = "claimd schedule set jobs nightly --cron '30 2 * * 1-5' go --project demo",
    .least = 1,
    .most = 4,
    .needs = "set, list, show, next, pause, resume or delete",
    .actions = "set list show next pause resume delete",
    .run = run_schedule};
