#include "load/run.h"

#include <stdlib.h>

enum kind { KIND_TEXT, KIND_WHOLE, KIND_REAL, KIND_FLAG, KIND_PID };

#define SCENARIO_HELP(id, name, text) " " name ": " text "."

/*
 * X(kind, field, name, placeholder, least, most, default, text)
 * Y(kind, field, name, placeholder, text): no default, or the text has it
 */
#define OPTION_LIST(X, Y)                                                                \
    X(TEXT, endpoint, "--endpoint", "URL", 0, 0, "http://127.0.0.1:8888",                \
      "Server to measure, as http://HOST:PORT, HOST:PORT or unix:PATH.")                 \
    X(TEXT, protocol_name, "--protocol", "NAME", 0, 0, "zaqar",                          \
      "Protocol: zaqar, beanstalk or redis.")                                            \
    X(TEXT, scenario_name, "--scenario", "NAME", 0, 0, "cycle",                          \
      "Scenario of the measurement." SCENARIO_LIST(SCENARIO_HELP))                       \
    X(WHOLE, batch, "--batch", "N", 1, BATCH_MAX, "1", "Messages per request.")          \
    Y(TEXT, deleting_name, "--delete", "HOW",                                            \
      "How to delete: one request per message (one) or per batch (bulk). Default: one "  \
      "for batch 1, otherwise bulk.")                                                    \
    X(WHOLE, connections, "--connections", "N", 1, 65536, "16",                          \
      "Number of keep-alive connections of all threads.")                                \
    X(WHOLE, threads, "--threads", "N", 1, 64, "1",                                      \
      "Number of threads of the generator.")                                             \
    X(REAL, rate, "--rate", "N", 0, 100000000, "0",                                      \
      "Requests per second of an open loop. 0 means a closed loop.")                     \
    X(REAL, duration, "--duration", "S", 0, 86400, "5",                                  \
      "Duration of the measurement, in seconds.")                                        \
    X(REAL, warmup, "--warmup", "S", 0, 3600, "1",                                       \
      "Load before the measurement, in seconds.")                                        \
    Y(FLAG, spin, "--spin", NULL,                                                        \
      "Never sleep, so that the server does not spend time on waking the generator.")    \
    X(WHOLE, queues, "--queues", "N", 1, 10000000, "1",                                  \
      "Number of queues, distributed over the connections.")                             \
    X(TEXT, queue, "--queue", "NAME", 0, 0, "bench",                                     \
      "Prefix of the queue names: NAME-0, NAME-1 and so on.")                            \
    X(WHOLE, backlog, "--backlog", "N", 0, 1000000000, "0",                              \
      "Messages to post before the measurement.")                                        \
    X(WHOLE, held, "--held", "N", 0, 1000000000, "0",                                    \
      "Messages of the backlog to claim before the measurement.")                        \
    X(WHOLE, body_bytes, "--body-bytes", "N", 32, 1000000, "100",                        \
      "Size of a message body, in bytes.")                                               \
    X(WHOLE, message_ttl, "--message-ttl", "S", 1, 1209600, "3600",                      \
      "TTL of messages, in seconds.")                                                    \
    X(WHOLE, claim_ttl, "--claim-ttl", "S", 1, 1209600, "300",                           \
      "TTL of claims, in seconds.")                                                      \
    X(WHOLE, claim_grace, "--claim-grace", "S", 1, 1209600, "60",                        \
      "Grace of claims, in seconds.")                                                    \
    X(WHOLE, wait, "--wait", "S", 0, 3600, "0",                                          \
      "Long polling of claims (Prefer: wait=S), in seconds. 0 means none.")              \
    X(WHOLE, producers, "--producers", "N", 1, 65535, "1",                               \
      "Scenario delivery: connections of producers. The others are workers.")            \
    X(WHOLE, poll, "--poll", "MS", 1, 5000, "10",                                        \
      "Scenario delivery: pause of a worker after an empty claim without long polling, " \
      "in milliseconds.")                                                                \
    Y(TEXT, storm_name, "--storm", "WHAT",                                               \
      "Let many claims or messages (WHAT) expire within one second during the "          \
      "scenario. The server must allow a TTL of 1 second.")                              \
    X(WHOLE, storm_count, "--storm-count", "N", 1, 100000000, "1000000",                 \
      "Number of claims or messages that expire.")                                       \
    X(WHOLE, storm_lead, "--storm-lead", "S", 5, 43200, "60",                            \
      "Time from the first of them to the storm, in seconds.")                           \
    X(WHOLE, storm_queues, "--storm-queues", "N", 1, 100000, "16",                       \
      "Number of separate queues for the storm.")                                        \
    Y(PID, server, "--server-pid", "PID",                                                \
      "Process to measure CPU and memory of. You can repeat this option.")               \
    X(TEXT, project, "--project", "ID", 0, 0, "bench", "Value of X-Project-ID.")         \
    X(TEXT, client_id, "--client-id", "UUID", 0, 0,                                      \
      "c1a1b0de-0000-4000-8000-00000000beac", "Value of Client-ID.")                     \
    Y(TEXT, token_file, "--token-file", "FILE",                                          \
      "File with a token for X-Auth-Token in its first line.")                           \
    Y(FLAG, keep, "--keep", NULL, "Keep the existing queues and their messages.")        \
    Y(TEXT, label, "--label", "TEXT", "Name of this run in reports and charts.")         \
    Y(TEXT, json, "--json", "FILE", "Write all results as JSON.")                        \
    Y(TEXT, csv, "--csv", "FILE", "Write one row per operation as CSV.")                 \
    Y(FLAG, quiet, "--quiet", NULL, "Print no progress and no report.")

/* By the index of the option. */
static const struct option_row {
    enum kind kind;
    size_t offset;
    int64_t least, most; /* WHOLE and REAL */
    const char *initial; /* NULL: none */
} rows[] = {
#define ROW_X(kind, field, name, value, least, most, initial, text)                      \
    {KIND_##kind, offsetof(struct options, field), least, most, initial},
#define ROW_Y(kind, field, name, value, text)                                            \
    ROW_X(kind, field, name, value, 0, 0, NULL, text)
    OPTION_LIST(ROW_X, ROW_Y)};

#define ROWS (sizeof rows / sizeof rows[0])

const struct command command_bench = {
    .about =
        "Drives a queue server, and measures the requests per second and the latency of "
        "each operation. It supports the API of Zaqar, and the protocols of beanstalkd "
        "and of Redis (lists), so that you can compare servers. It empties the queues "
        "that it uses, unless you give `--keep`.\n\n"
        "This is the program `claimd-bench`. claimd looks for it in its own directory "
        "and then in PATH. `claimd-bench --version` prints the version and the commit.",
    .options =
        {
#define HELP_X(kind, field, name, value, least, most, initial, text)                     \
    {name, value, text " Default: " initial "."},
#define HELP_Y(kind, field, name, value, text) {name, value, text},
            OPTION_LIST(HELP_X, HELP_Y)},
    .example = "claimd bench --endpoint 127.0.0.1:9999 --batch 10",
    .statuses = {"The measurement is complete.",
                 "The run failed, or the server refused requests.",
                 "The arguments are wrong, or `claimd-bench` is missing."},
    .repeats = true,
    .run = run_bench};

static bool
option_set(struct options *o, const struct option_row *row, const char *text)
{
    char *field = (char *)o + row->offset, *end;
    int64_t whole;
    double real;

    switch (row->kind) {
    case KIND_TEXT:
        memcpy(field, &text, sizeof text);
        return text[0] != '\0';
    case KIND_WHOLE:
        if (!bytes_to_i64(bytes_str(text), &whole) || whole < row->least ||
            whole > row->most)
            return false;
        memcpy(field, &whole, sizeof whole);
        return true;
    case KIND_REAL:
        real = strtod(text, &end);
        if (end == text || *end != '\0' || !(real >= (double)row->least) ||
            !(real <= (double)row->most))
            return false;
        memcpy(field, &real, sizeof real);
        return true;
    case KIND_PID:
        if (o->server.count == PROCESS_MAX || !bytes_to_i64(bytes_str(text), &whole) ||
            whole < 1 || whole > INT32_MAX)
            return false;
        o->server.pids[o->server.count++] = (int32_t)whole;
        return true;
    case KIND_FLAG:
        *(bool *)field = true;
        return true;
    }
    return false;
}

bool
bench_error(const char *what, const char *why)
{
    (void)command_fails(COMMAND_FAILED, "%s: %s", what, why);
    return false;
}

static bool
storm_and_deleting_set(struct options *o)
{
    const char *storm = o->storm_name, *deleting = o->deleting_name;

    if (storm != NULL && strcmp(storm, "claims") == 0)
        o->storm = STORM_CLAIMS;
    else if (storm != NULL && strcmp(storm, "messages") == 0)
        o->storm = STORM_MESSAGES;
    else if (storm != NULL)
        return bench_error("unknown storm (allowed: claims, messages)", storm);
    o->deleting = o->batch == 1 ? DELETE_ONE_BY_ONE : DELETE_IN_BULK;
    if (deleting != NULL && strcmp(deleting, "one") == 0)
        o->deleting = DELETE_ONE_BY_ONE;
    else if (deleting != NULL && strcmp(deleting, "bulk") == 0)
        o->deleting = DELETE_IN_BULK;
    else if (deleting != NULL)
        return bench_error("unknown value of --delete (allowed: one, bulk)", deleting);
    return true;
}

static bool
delivery_check(const struct options *o)
{
    if (o->wait > 0 && o->protocol != &protocol_zaqar)
        return bench_error("--wait needs the protocol", "zaqar");
    if (o->scenario != SCENARIO_DELIVERY)
        return true;
    if (o->protocol != &protocol_zaqar)
        return bench_error("scenario delivery needs the protocol", "zaqar");
    if (o->rate <= 0)
        return bench_error("scenario delivery needs an open loop", "--rate");
    if (o->producers >= o->connections)
        return bench_error(
            "no connection is left for workers, raise --connections or lower",
            "--producers");
    if (o->queues > o->connections - o->producers)
        return bench_error(
            "there are more queues than workers, raise --connections or lower",
            "--queues");
    return true;
}

static bool
token_read(struct options *o)
{
    FILE *file;
    bool good;

    if (o->token_file == NULL)
        return true;
    file = fopen(o->token_file, "r");
    if (file == NULL)
        return bench_error("cannot read", o->token_file);
    good = fgets(o->token, sizeof o->token, file) != NULL;
    (void)fclose(file); /* read only: nothing can be lost */
    o->token[strcspn(o->token, "\n")] = '\0';
    return (good && o->token[0] != '\0') ||
           bench_error("the first line of the file has no token", o->token_file);
}

/* Derives the fields behind the names, and checks what the table cannot. */
static bool
options_complete(struct options *o)
{
    if (!token_read(o) || !storm_and_deleting_set(o))
        return false;
    o->protocol = protocol_find(o->protocol_name);
    if (o->protocol == NULL)
        return bench_error("unknown protocol (allowed: zaqar, beanstalk, redis)",
                           o->protocol_name);
    o->scenario = scenario_find(o->scenario_name);
    if (o->scenario == SCENARIO_COUNT)
        return bench_error("unknown scenario (see --help)", o->scenario_name);
    if (strlen(o->queue) > 40)
        return bench_error("the queue name is longer than 40 characters", o->queue);
    if (o->storm != STORM_NONE && o->protocol != &protocol_zaqar)
        return bench_error("a storm needs the protocol", "zaqar");
    if (o->threads > o->connections)
        o->threads = o->connections;
    if (o->held > o->backlog)
        return bench_error("value is larger than --backlog", "--held");
    return delivery_check(o);
}

bool
options_parse(struct options *o, const struct command_args *args)
{
    *o = (struct options){.endpoint = NULL};
    for (size_t i = 0; i < ROWS; i++)
        if (rows[i].initial != NULL)
            (void)option_set(o, &rows[i], rows[i].initial);
    for (size_t i = 0; i < args->given_count; i++) {
        const struct command_given *given = &args->given[i];

        if (!option_set(o, &rows[given->option], given->value))
            return bench_error("bad value for",
                               args->command->options[given->option].name);
    }
    return options_complete(o);
}
