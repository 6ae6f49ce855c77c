#include "load/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum kind { KIND_TEXT, KIND_WHOLE, KIND_REAL, KIND_FLAG, KIND_PID };

struct option_row {
    const char *name;
    enum kind kind;
    size_t offset;
    int64_t least, most; /* WHOLE and REAL */
    const char *value;   /* name of the value in the help */
    const char *initial; /* default; NULL: none, or the help names it */
    const char *help;
};

#define AT(field) offsetof(struct options, field)

static const struct option_row rows[] = {
    {"endpoint", KIND_TEXT, AT(endpoint), 0, 0, "URL", "http://127.0.0.1:8888",
     "Server to measure, as http://HOST:PORT, HOST:PORT or unix:PATH."},
    {"protocol", KIND_TEXT, AT(protocol_name), 0, 0, "NAME", "zaqar",
     "Protocol: zaqar, beanstalk or redis."},
    {"scenario", KIND_TEXT, AT(scenario_name), 0, 0, "NAME", "cycle",
     "Scenario, see below."},
    {"batch", KIND_WHOLE, AT(batch), 1, BATCH_MAX, "N", "1", "Messages per request."},
    {"delete", KIND_TEXT, AT(deleting_name), 0, 0, "HOW", NULL,
     "How to delete: one request per message (one) or per batch (bulk). Default: one for "
     "batch 1, otherwise bulk."},
    {"connections", KIND_WHOLE, AT(connections), 1, 65536, "N", "16",
     "Number of keep-alive connections of all threads."},
    {"threads", KIND_WHOLE, AT(threads), 1, 64, "N", "1",
     "Number of threads of the generator."},
    {"rate", KIND_REAL, AT(rate), 0, 100000000, "N", "0",
     "Requests per second of an open loop. 0 means a closed loop."},
    {"duration", KIND_REAL, AT(duration), 0, 86400, "S", "5",
     "Duration of the measurement, in seconds."},
    {"warmup", KIND_REAL, AT(warmup), 0, 3600, "S", "1",
     "Load before the measurement, in seconds."},
    {"spin", KIND_FLAG, AT(spin), 0, 0, NULL, NULL,
     "Never sleep, so that the server does not spend time on waking the generator."},
    {"queues", KIND_WHOLE, AT(queues), 1, 10000000, "N", "1",
     "Number of queues, distributed over the connections."},
    {"queue", KIND_TEXT, AT(queue), 0, 0, "NAME", "bench",
     "Prefix of the queue names: NAME-0, NAME-1 and so on."},
    {"backlog", KIND_WHOLE, AT(backlog), 0, 1000000000, "N", "0",
     "Messages to post before the measurement."},
    {"held", KIND_WHOLE, AT(held), 0, 1000000000, "N", "0",
     "Messages of the backlog to claim before the measurement."},
    {"body-bytes", KIND_WHOLE, AT(body_bytes), 32, 1000000, "N", "100",
     "Size of a message body, in bytes."},
    {"message-ttl", KIND_WHOLE, AT(message_ttl), 1, 1209600, "S", "3600",
     "TTL of messages, in seconds."},
    {"claim-ttl", KIND_WHOLE, AT(claim_ttl), 1, 1209600, "S", "300",
     "TTL of claims, in seconds."},
    {"claim-grace", KIND_WHOLE, AT(claim_grace), 1, 1209600, "S", "60",
     "Grace of claims, in seconds."},
    {"wait", KIND_WHOLE, AT(wait), 0, 3600, "S", "0",
     "Long polling of claims (Prefer: wait=S), in seconds. 0 means none."},
    {"producers", KIND_WHOLE, AT(producers), 1, 65535, "N", "1",
     "Scenario delivery: connections of producers. The others are workers."},
    {"poll", KIND_WHOLE, AT(poll), 1, 5000, "MS", "10",
     "Scenario delivery: pause of a worker after an empty claim without long polling, in "
     "milliseconds."},
    {"storm", KIND_TEXT, AT(storm_name), 0, 0, "WHAT", NULL,
     "Let many claims or messages (WHAT) expire within one second during the scenario. "
     "The server must allow a TTL of 1 second."},
    {"storm-count", KIND_WHOLE, AT(storm_count), 1, 100000000, "N", "1000000",
     "Number of claims or messages that expire."},
    {"storm-lead", KIND_WHOLE, AT(storm_lead), 5, 43200, "S", "60",
     "Time from the first of them to the storm, in seconds."},
    {"storm-queues", KIND_WHOLE, AT(storm_queues), 1, 100000, "N", "16",
     "Number of separate queues for the storm."},
    {"server-pid", KIND_PID, AT(server), 0, 0, "PID", NULL,
     "Process to measure CPU and memory of. You can repeat this option."},
    {"project", KIND_TEXT, AT(project), 0, 0, "ID", "bench", "Value of X-Project-ID."},
    {"client-id", KIND_TEXT, AT(client_id), 0, 0, "UUID", NULL, "Client-ID"},
    {"token-file", KIND_TEXT, AT(token_file), 0, 0, "FILE", NULL,
     "File with a token for X-Auth-Token in its first line."},
    {"keep", KIND_FLAG, AT(keep), 0, 0, NULL, NULL,
     "Keep the existing queues and their messages."},
    {"label", KIND_TEXT, AT(label), 0, 0, "TEXT", NULL,
     "Name of this run in reports and charts."},
    {"json", KIND_TEXT, AT(json), 0, 0, "FILE", NULL, "Write all results as JSON."},
    {"csv", KIND_TEXT, AT(csv), 0, 0, "FILE", NULL,
     "Write one row per operation as CSV."},
    {"quiet", KIND_FLAG, AT(quiet), 0, 0, NULL, NULL, "Print no progress and no report."},
    {"help", KIND_FLAG, AT(help), 0, 0, NULL, NULL, "Print this help."},
    {"version", KIND_FLAG, AT(version), 0, 0, NULL, NULL,
     "Print the version and the commit."},
};

#define ROWS (sizeof rows / sizeof rows[0])

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
    fprintf(stderr, "claimd-bench: %s: %s\n", what, why);
    return false;
}

/* Reads "--name value" or "--name=value", and moves *i to the last argument used. */
static bool
option_parse(struct options *o, int argc, char **argv, int *i)
{
    struct bytes rest = bytes_str(argv[*i]);
    const struct option_row *row = NULL;
    const char *shown = argv[*i];
    const char *value = NULL;
    struct bytes name;

    if (rest.len < 3 || memcmp(rest.data, "--", 2) != 0)
        return bench_error("unexpected argument", shown);
    rest = bytes_of(rest.data + 2, rest.len - 2);
    name = bytes_cut(&rest, '=');
    for (size_t k = 0; k < ROWS; k++)
        if (bytes_equal_str(name, rows[k].name))
            row = &rows[k];
    if (row == NULL)
        return bench_error("unknown option", shown);
    if (bytes_present(rest))
        value = rest.data;
    else if (row->kind != KIND_FLAG && *i + 1 < argc)
        value = argv[++*i];
    if ((row->kind == KIND_FLAG) != (value == NULL))
        return bench_error(
            value == NULL ? "option needs a value" : "option takes no value", shown);
    if (!option_set(o, row, value))
        return bench_error("bad value for", shown);
    return true;
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
options_parse(struct options *o, int argc, char **argv)
{
    *o = (struct options){.client_id = "c1a1b0de-0000-4000-8000-00000000beac"};
    for (size_t i = 0; i < ROWS; i++)
        if (rows[i].initial != NULL)
            (void)option_set(o, &rows[i], rows[i].initial);
    for (int i = 1; i < argc; i++) {
        if (!option_parse(o, argc, argv, &i))
            return false;
    }
    return options_complete(o);
}

void
options_help(const char *program)
{
    printf("usage: %s [options]\n\nDrives a queue server and measures it.\n\n", program);
    for (size_t i = 0; i < ROWS; i++) {
        char left[40];

        snprintf(left, sizeof left, "--%s %s", rows[i].name,
                 rows[i].value == NULL ? "" : rows[i].value);
        printf("  %-20s %s", left, rows[i].help);
        if (rows[i].initial != NULL)
            printf(" Default: %s.", rows[i].initial);
        putchar('\n');
    }
    printf("\nScenarios:\n\n");
    for (int s = 0; s < SCENARIO_PREPARE; s++)
        printf("  %-20s %s\n", scenarios[s].name, scenarios[s].help);
}
