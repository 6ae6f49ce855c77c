/*
 * claimd work: its options and their checks. work_runner.h has the run.
 *
 * To follow a message, read work_claiming.c (claims, renews, finishes), work_attempt.c
 * (the attempt at a job), work_process.h and work_guard.h (the command), and
 * work_outcome.h and work_finish.h (the result).
 */
#include "client/command.h"
#include "client/work_runner.h"

enum {
    WORK_PARALLEL,
    WORK_LEASE,
    WORK_TIMEOUT,
    WORK_BACKOFF,
    WORK_GRACE,
    WORK_GIVE_UP,
    WORK_MAX_JOBS,
    WORK_EXIT_WHEN_EMPTY,
    WORK_HTTP,
    WORK_HEALTH,
    WORK_RAW,
    WORK_KEEP,
    WORK_BATCH
};

enum { LEASE_S = 60, WAIT_S = 20, GRACE_S = 25, TIME_MOST_S = 30 * 86400 };

/* Limits of the API. */
enum { QUEUE_NAME_MOST = 64 };

static bool
is_queue_name(const char *name)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.";
    const size_t len = strspn(name, allowed);

    return len > 0 && len <= QUEUE_NAME_MOST && name[len] == '\0';
}

/* Reads --keep and --batch. Returns an exit status. */
static int
read_keep(const struct command_args *args, struct work_options *o)
{
    int64_t batch = 1;

    if (!args_number(args, WORK_BATCH, 1, SLOT_JOBS_MOST, &batch))
        return COMMAND_USAGE;
    if (args->values[WORK_KEEP] == NULL)
        return args->values[WORK_BATCH] == NULL
                   ? COMMAND_GOOD
                   : command_misused(args->name, "--batch is for --keep");
    if (args->values[WORK_HTTP] != NULL)
        return command_misused(
            args->name, "--keep is for a command, and a service of --http stays anyway");
    if (o->raw)
        return command_misused(args->name,
                               "--raw has no effect with --keep, because the command "
                               "reads lines of JSON");
    o->batch = batch;
    return COMMAND_GOOD;
}

/* Reads the options. Returns an exit status. */
static int
read_options(const struct client *c, const struct command_args *args,
             struct work_options *o)
{
    const char *backoff = args->values[WORK_BACKOFF], *url = args->values[WORK_HTTP];

    if (!args_number(args, WORK_PARALLEL, 1, WORK_PARALLEL_MOST, &o->parallel) ||
        !args_duration(args, WORK_LEASE, WORK_LEASE_LEAST_S, WORK_LEASE_MOST_S,
                       &o->lease_s) ||
        !args_duration(args, WORK_TIMEOUT, 1, TIME_MOST_S, &o->timeout_s) ||
        !args_duration(args, WORK_GRACE, 0, TIME_MOST_S, &o->grace_s) ||
        !args_duration(args, WORK_GIVE_UP, 1, TIME_MOST_S, &o->give_up_s) ||
        !args_number(args, WORK_MAX_JOBS, 1, INT64_MAX, &o->max_jobs))
        return COMMAND_USAGE;
    if (c->json)
        return command_misused(
            args->name,
            "--json has no effect on work, which prints only what its commands print");
    if (backoff != NULL && !backoff_parse(&o->backoff, backoff))
        return command_misused(
            args->name,
            "--backoff is %.64s. It must be BASE or BASE,MOST, in seconds from 0 to %d",
            backoff, BACKOFF_MOST_S);
    if (url != NULL && strncasecmp(url, "http://", 7) != 0 &&
        strncasecmp(url, "https://", 8) != 0)
        return command_misused(
            args->name,
            "--http is %.200s. It must be a URL that begins with http:// or https://",
            url);
    if (args->values[WORK_HEALTH] != NULL && url == NULL)
        return command_misused(args->name, "--health is for the service of --http");
    return read_keep(args, o);
}

/*
 * Checks the URLs of the service, before a message is claimed. health: space for the URL
 * of --health. Returns an exit status.
 */
static int
check_service(const struct command_args *args, struct work_options *o,
              char health[CLIENT_URL_MOST])
{
    const char *path = args->values[WORK_HEALTH], *why = url_check(o->service);
    const char *user_end = strrchr(o->service, '@'); /* do not print a password */
    char name[SERVICE_NAME_MOST + 1];

    if (why != NULL)
        return command_fails(COMMAND_UNAVAILABLE, "--http: %.200s cannot work: %s",
                             user_end != NULL ? user_end + 1 : o->service, why);
    if (path != NULL && !url_of_path(health, CLIENT_URL_MOST, o->service, path))
        return command_misused(
            args->name,
            "--health is %.200s. It must be a path that begins with one slash", path);
    if (path != NULL)
        o->health = health;
    url_describe(name, o->service);
    if (url_host_is_unknown(o->service))
        return command_fails(COMMAND_UNAVAILABLE,
                             "--http: %s cannot work: there is no host of this name",
                             name);
    return COMMAND_GOOD;
}

static int
run_work(const struct command_args *args)
{
    struct client *c = args->context;
    struct work_options o = {.queues = (const char *const *)args->words,
                             .queue_count = args->before_dashes,
                             .parallel = 1,
                             .lease_s = LEASE_S,
                             .wait_s = WAIT_S,
                             .grace_s = GRACE_S,
                             .backoff = {1, 900},
                             .service = args->values[WORK_HTTP],
                             .raw = args->values[WORK_RAW] != NULL,
                             .exit_when_empty =
                                 args->values[WORK_EXIT_WHEN_EMPTY] != NULL};
    char health[CLIENT_URL_MOST];
    int status = read_options(c, args, &o);

    if (status != COMMAND_GOOD)
        return status;
    if (args->count > args->before_dashes)
        o.command = args->words + args->before_dashes;
    if ((o.command == NULL) == (o.service == NULL))
        return command_misused(
            args->name, o.command == NULL ? "work needs a command behind --, or --http"
                                          : "work takes either a command or --http");
    if (o.queue_count == 0 || o.queue_count > WORK_QUEUES_MOST)
        return command_misused(args->name, "work needs 1 to %d queues", WORK_QUEUES_MOST);
    for (size_t i = 0; i < o.queue_count; i++)
        if (!is_queue_name(o.queues[i]))
            return command_misused(args->name,
                                   "%.80s is no name of a queue. A name has 1 to %d "
                                   "characters from A-Z a-z 0-9 _ - .",
                                   o.queues[i], QUEUE_NAME_MOST);
    if (o.service != NULL)
        status = check_service(args, &o, health);
    return status == COMMAND_GOOD ? work_run(&o, c) : status;
}

static const struct command_text work_other_statuses[] = {
    {"69", "The command cannot run, or the URL of `--http` cannot work. The server is no "
           "claimd. The server or the service was away for `--give-up`. The server did "
           "not confirm the last results."},
    {NULL, NULL}};

const struct command client_work = {
    .about =
        "Runs a command for each message of the queues. The command gets the body "
        "on standard input, and metadata as JSON on descriptor 3 and in the "
        "environment (CLAIMD_MESSAGE_ID and others, see docs/work.md). With several "
        "queues, a message of the first one goes first.\n\n"
        "Exit status 0 of the command deletes the message. 65 moves it to the "
        "dead-letter queue. 126 and 127 mean that the command is broken: `claimd "
        "work` releases the message and ends. After any other status, or a signal, "
        "the message is released for another attempt after a pause. The end of "
        "standard error is kept with the message as the reason.\n\n"
        "When the command ends, all processes that it has started end, too. `claimd "
        "work` renews the lease while the command runs. If the lease is lost, it "
        "ends the command, because another worker may get the message.\n\n"
        "SIGTERM claims no more, lets running commands finish within `--grace`, and "
        "then ends them and releases their messages. A second SIGTERM releases them "
        "at once. SIGUSR1 claims no more and keeps running.\n\n"
        "With `--keep` the command is started once. It reads a line of JSON for each "
        "message from standard input, and writes a line with `id` and `result` "
        "(`delete`, `release` or `dead_letter`) for it. docs/work.md describes the "
        "lines.",
    .options =
        {[WORK_PARALLEL] =
             {"--parallel", "N",
              "Number of commands that run at the same time, up to 500. Default: 1"},
         [WORK_LEASE] =
             {"--lease", "TIME",
              "Lease of each claim, renewed after each third. If this process dies, its "
              "messages are delivered again after this time. Default: 60s"},
         [WORK_TIMEOUT] = {"--timeout", "TIME",
                           "Time limit of a command. Beyond it, the command is ended, "
                           "which counts as a failure. Default: none"},
         [WORK_BACKOFF] =
             {"--backoff", "BASE[,MOST]",
              "Pause before the next attempt at a failed job: BASE * 2^attempt seconds, "
              "at most MOST. Up to a half of it is random. MOST also limits Retry-After "
              "of a service. Default: 1,900"},
         [WORK_GRACE] = {"--grace", "TIME",
                         "Time that running commands have after SIGTERM. Default: 25s"},
         [WORK_GIVE_UP] = {"--give-up", "TIME",
                           "End with exit status 69 if the server, or the service of "
                           "--http, is away for this time. Default: retry for ever"},
         [WORK_MAX_JOBS] = {"--max-jobs", "N",
                            "End after this number of jobs. Default: no limit"},
         [WORK_EXIT_WHEN_EMPTY] = {"--exit-when-empty", NULL,
                                   "End when no message is ready and no command runs. "
                                   "Delayed messages remain."},
         [WORK_HTTP] =
             {"--http", "URL",
              "Send each body to this URL with POST instead of running a command. 2xx "
              "deletes the message, and 422 moves it to the dead-letter queue. 429, 503 "
              "and an unreachable service release it, which does not count as an "
              "attempt, and no message is claimed until the service is back. Anything "
              "else is a failure. docs/work.md has all cases"},
         [WORK_HEALTH] = {"--health", "PATH",
                          "Ask the service of --http for this path with GET before the "
                          "first claim, and again after a failure. Messages are claimed "
                          "after a response with 2xx. Default: none"},
         [WORK_RAW] =
             {"--raw", NULL,
              "Pass a body that is a JSON string without its quotes and escapes."},
         [WORK_KEEP] =
             {"--keep", NULL,
              "Start the command once and keep it for many messages. It reads and writes "
              "a line of JSON for each."},
         [WORK_BATCH] = {"--batch", "N",
                         "With --keep, send up to N messages, at most 100, before the "
                         "command must respond. It may respond in any order. Default: "
                         "1"}},
    .example = "claimd work mail --parallel 4 --project demo -- ./send-mail",
    .least = 1,
    .most = SIZE_MAX,
    .needs = "a queue",
    .statuses = {"`claimd work` ended by SIGTERM, `--max-jobs` or `--exit-when-empty`. "
                 "Jobs may have failed.",
                 "The server refused a request, or there is no memory."},
    .other_statuses = work_other_statuses,
    .run = run_work};
