/* claimd run: starts servers for tests, and a command that uses them. */
#include "claimd/base/clock.h"
#include "claimd/base/plural.h"
#include "claimd/json/tree.h"
#include "main/command.h"
#include "main/daemon.h"
#include "main/help.h"
#include "main/run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Time limit for all leaks of a server, and for the size of a page. */
enum { LEAKS_TIMEOUT_S = 10, LEAKS_MOST = 16 << 20 };

/* The first words of each server's command line. Later options override them. */
static const char *const first_words[] = {"claimd",
                                          "--ci",
                                          "--identity-stub",
                                          "--listen",
                                          RUN_SERVER_LISTEN,
                                          "--drain-seconds",
                                          "1",
                                          "--ready-fd",
                                          RUN_SERVER_READY,
                                          "--log-level",
                                          "warn"};

/* With --log, the last two are left out. */
enum {
    FIRST_WORDS = sizeof(first_words) / sizeof(first_words[0]),
    FIRST_WORDS_LOGGED = FIRST_WORDS - 2
};

/*
 * If the word at *at is this option (*is), returns its value, which is behind "=" or in
 * the next word. Moves *at to the last word that it used. NULL if there is no value.
 */
static const char *
read_own_option(char *const **at, const char *option, bool *is)
{
    const size_t len = strlen(option);
    const char *word = **at;

    *is = strncmp(word, option, len) == 0 && (word[len] == '\0' || word[len] == '=');
    if (!*is)
        return NULL;
    if (word[len] == '=')
        return word + len + 1;
    if ((*at)[1] == NULL || strcmp((*at)[1], "--") == 0)
        return NULL;
    return *++*at;
}

/* Reads one word, or an option with its value, before "--". */
static int
read_word(char *const **at, struct run_words *out)
{
    bool is_instances, is_log;
    const char *instances = read_own_option(at, "--instances", &is_instances);
    const char *log = read_own_option(at, "--log", &is_log);
    int64_t count;

    if (is_instances && instances != NULL) {
        if (!bytes_to_i64(bytes_str(instances), &count) || count < 1 ||
            count > RUN_INSTANCES_MOST)
            return command_misused(
                "run", "--instances is \"%s\". It must be an integer between 1 and %d",
                instances, RUN_INSTANCES_MOST);
        out->instances = (size_t)count;
        out->numbered = true;
    } else if (is_log && log != NULL) {
        out->log = log;
    } else if (is_instances || is_log) {
        return command_misused("run", "%s needs a value",
                               is_log ? "--log" : "--instances");
    } else if (strcmp(**at, "--fail-on-leak") == 0) {
        out->fail_on_leak = true;
    } else {
        out->server[out->server_count++] = **at;
    }
    return COMMAND_GOOD;
}

int
run_words_read(char *const *argv, struct run_words *out)
{
    size_t count = 0, first;
    int status = COMMAND_GOOD;

    while (argv[count] != NULL)
        count++;
    *out = (struct run_words){.instances = 1, .server_count = FIRST_WORDS};
    out->server = calloc(FIRST_WORDS + count + 1, sizeof(*out->server));
    if (out->server == NULL)
        return command_fails(COMMAND_FAILED, "out of memory");
    for (; *argv != NULL && strcmp(*argv, "--") != 0 && status == COMMAND_GOOD; argv++)
        status = read_word(&argv, out);
    if (status == COMMAND_GOOD && (*argv == NULL || argv[1] == NULL))
        status = command_misused("run", "run needs a command behind --");
    if (status != COMMAND_GOOD) {
        run_words_free(out);
        return status;
    }
    out->command = argv + 1;
    first = out->log == NULL ? FIRST_WORDS : FIRST_WORDS_LOGGED;
    out->server_count -= FIRST_WORDS - first;
    memmove(out->server + first, out->server + FIRST_WORDS,
            (out->server_count - first) * sizeof(*out->server));
    for (size_t i = 0; i < first; i++)
        out->server[i] = (char *)first_words[i]; /* execv() does not change it */
    return COMMAND_GOOD;
}

void
run_words_free(struct run_words *words)
{
    free(words->server);
    words->server = NULL;
}

/* ------------------------------------------------------------------ leaks */

/* A member of a leak, NULL if it is missing. */
static const char *
leak_text(const json_t *leak, const char *name)
{
    return json_string_value(json_object_get(leak, name));
}

enum { LEAK_END_CAP = 64 };

/* Writes ", expired at TIME" or the like. Empty: the server still has the leak. */
static void
write_end(struct leak_report *r, const json_t *leak, char out[LEAK_END_CAP])
{
    const char *by = leak_text(leak, "ended_by"), *at = leak_text(leak, "ended_at");
    const bool reset = by != NULL && strcmp(by, "reset") == 0;

    out[0] = '\0';
    if (by == NULL || at == NULL)
        return;
    (void)snprintf(out, LEAK_END_CAP, ", %s at %.24s",
                   reset ? "deleted by a reset" : "expired", at);
    r->expired += !reset;
}

static bool
write_leak(struct leak_report *r, const json_t *leak)
{
    struct config_errors to = {.to = r->to};
    const char *kind = leak_text(leak, "kind"), *queue = leak_text(leak, "queue");
    const char *project = leak_text(leak, "project"), *at = leak_text(leak, "at");
    const char *id = leak_text(leak, "id"), *claim = leak_text(leak, "claim");
    const char *from = leak_text(leak, "from"), *client = leak_text(leak, "client");
    json_int_t messages = json_integer_value(json_object_get(leak, "messages"));
    char where[512], end[LEAK_END_CAP];

    if (kind == NULL || queue == NULL || project == NULL || at == NULL)
        return false;
    if (client == NULL || client[0] == '\0')
        client = "an unknown client";
    (void)snprintf(where, sizeof(where), "queue %s (project %s)", queue, project);
    write_end(r, leak, end);
    if (strcmp(kind, "claim") == 0 && claim != NULL) {
        if (r->claims++ < LEAK_REPORT_LINES)
            config_error(&to,
                         "leaked: claim %s of %lld message%s in %s, neither finished nor "
                         "released, claimed by %s at %s%s%s",
                         claim, (long long)messages, plural_s((uint64_t)messages), where,
                         client, at, end, r->of);
    } else if (strcmp(kind, "unread") == 0 && id != NULL) {
        if (r->unread++ < LEAK_REPORT_LINES)
            config_error(&to,
                         "leaked: message %s in %s, never read, posted by %s at %s%s%s",
                         id, where, client, at, end, r->of);
    } else if (strcmp(kind, "dead_letter") == 0 && id != NULL && from != NULL) {
        if (r->dead_letters++ < LEAK_REPORT_LINES)
            config_error(&to,
                         "leaked: dead letter %s in %s, from queue %s, last claimed by "
                         "%s, moved at %s%s%s",
                         id, where, from, client, at, end, r->of);
    } else {
        return false;
    }
    return true;
}

static bool
write_page(struct leak_report *r, const json_t *page, char next[LEAK_REPORT_NEXT_CAP])
{
    const json_t *leaks = json_object_get(page, "leaks"), *leak;
    const json_t *link = json_array_get(json_object_get(page, "links"), 0);
    const char *href = leak_text(link, "href");
    size_t i;

    if (!json_is_array(leaks))
        return false;
    json_array_foreach(leaks, i, leak)
    {
        if (!write_leak(r, leak))
            return false;
    }
    r->left_out += (size_t)json_integer_value(json_object_get(page, "left_out"));
    next[0] = '\0';
    if (link == NULL)
        return true;
    if (href == NULL || strlen(href) >= LEAK_REPORT_NEXT_CAP)
        return false;
    memcpy(next, href, strlen(href) + 1);
    return true;
}

bool
leak_report_page(struct leak_report *r, struct bytes page,
                 char next[LEAK_REPORT_NEXT_CAP])
{
    json_t *tree;
    bool good;

    if (json_tree_read(page, &tree) != ST_OK)
        return false;
    good = write_page(r, tree, next);
    json_decref(tree);
    return good;
}

size_t
leak_report_count(const struct leak_report *r)
{
    return r->claims + r->unread + r->dead_letters + r->left_out;
}

void
leak_report_write_sum(const struct leak_report *r)
{
    struct config_errors to = {.to = r->to};
    const size_t all = leak_report_count(r);

    char left_out[48] = "";

    if (r->left_out > 0)
        (void)snprintf(left_out, sizeof(left_out), ", %zu not listed", r->left_out);
    if (all > 0)
        config_error(
            &to, "%zu leak%s: %zu claim%s, %zu message%s never read, %zu dead letter%s%s",
            all, plural_s(all), r->claims, plural_s(r->claims), r->unread,
            plural_s(r->unread), r->dead_letters, plural_s(r->dead_letters), left_out);
    if (r->expired > 0)
        config_error(&to, "If a test lets leases or messages expire on purpose, it moves "
                          "the clock with \"may_expire\": true, and names its project "
                          "in X-Project-ID");
}

/* Requests all leaks of the server of `c`, page by page. False: it did not report
 * them. */
static bool
report_leaks_of(struct command_client *c, struct leak_report *report)
{
    const int64_t until_ns = clock_stopwatch_ns() + LEAKS_TIMEOUT_S * RUN_SECOND_NS;
    char next[LEAK_REPORT_NEXT_CAP] = "/claimd/leaks?limit=1000";
    struct web_request request = {.path = next, .response_most = LEAKS_MOST};
    bool good = true;

    while (good && next[0] != '\0') {
        struct web_response response;

        request.timeout_ms = (until_ns - clock_stopwatch_ns()) / 1000000;
        if (request.timeout_ms <= 0)
            return false;
        good = web_client_send(&c->web, &request, &response) && response.status == 200 &&
               leak_report_page(report, buf_view(&response.body), next);
        web_response_fini(&response);
    }
    return good;
}

static void
report_leaks(struct test_run *r, struct leak_report *report)
{
    struct mem *mem = mem_new(0);
    struct command_client c;
    char of[48] = "", url[80] = "";

    if (mem == NULL || !command_client_open(&c, url, mem)) {
        r->leaks_unknown = true;
        mem_destroy(mem);
        return;
    }
    report->of = of;
    for (size_t i = 0; i < r->words.instances; i++) {
        if (r->words.numbered)
            (void)snprintf(of, sizeof(of), " (instance %zu)", i + 1);
        (void)snprintf(url, sizeof(url), "http://%s", r->servers[i].address);
        if (r->servers[i].pid <= 0 || report_leaks_of(&c, report))
            continue;
        r->leaks_unknown = true;
        (void)command_fails(0, "the server at %s did not report its leaks",
                            r->servers[i].address);
    }
    command_client_close(&c);
    mem_destroy(mem);
    leak_report_write_sum(report);
}

/* The exit status for a status of waitpid(). */
static int
exit_status_of(int status)
{
    return WIFSIGNALED(status) ? RUN_SIGNALLED + WTERMSIG(status) : WEXITSTATUS(status);
}

static void __attribute__((noreturn)) report_main(struct test_run *r, pid_t parent)
{
    struct leak_report report = {.to = stderr};

    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        _exit(RUN_BROKEN);
    (void)signal(SIGPIPE, SIG_IGN); /* count leaks even if nothing reads them */
    (void)sigprocmask(SIG_SETMASK, &r->before, NULL);
    report_leaks(r, &report);
    (void)fflush(stderr);
    _exit(r->leaks_unknown                 ? RUN_BROKEN
          : leak_report_count(&report) > 0 ? COMMAND_FAILED
                                           : COMMAND_GOOD);
}

/*
 * Reports leaks in a child process, which gets signals as CMD does, because servers may
 * be slow. Returns its exit status: COMMAND_FAILED if there are leaks, RUN_BROKEN if a
 * server did not report.
 */
static int
report_in_child(struct test_run *r)
{
    const pid_t parent = getpid();
    pid_t pid = fork();

    if (pid == 0)
        report_main(r, parent);
    if (pid < 0) {
        (void)command_fails(0, "cannot ask for leaks: %s", strerror(errno));
        return RUN_BROKEN;
    }
    r->command = pid;
    run_wait_for_command(r);
    return exit_status_of(r->command_status);
}

static int
run_with_servers(struct test_run *r)
{
    int status = run_servers_start(r), reported;

    if (status != COMMAND_GOOD)
        return status;
    status = run_command_start(r);
    if (status != 0)
        return status;
    run_wait_for_command(r);
    if (r->orphaned)
        return RUN_SIGNALLED + SIGTERM;
    status = exit_status_of(r->command_status);
    reported = report_in_child(r);
    if (r->orphaned)
        return RUN_SIGNALLED + SIGTERM;
    if (reported > RUN_SIGNALLED)
        return reported;
    if (r->broken || (reported == RUN_BROKEN && r->words.fail_on_leak))
        return RUN_BROKEN;
    return status == 0 && r->words.fail_on_leak && reported == COMMAND_FAILED
               ? COMMAND_FAILED
               : status;
}

/* Checks the options of the servers. Returns an exit status. */
static int
check_options(struct test_run *r)
{
    struct config_errors errors = {.to = stderr};
    enum config_action action;
    struct config config;
    const char *const ready = RUN_SERVER_READY;
    enum status st = config_load((int)r->words.server_count, r->words.server, environ,
                                 &config, &action, &errors);

    if (st == ST_OK)
        st = daemon_check(&config, &errors);
    if (st != ST_OK)
        return COMMAND_USAGE;
    if (action != ACTION_SERVE)
        return command_misused("run", "run takes only options that configure a server");
    if (strcmp(config.listen, RUN_SERVER_LISTEN) != 0 || config.ready_fd != atoi(ready) ||
        !config.ci)
        return command_misused(
            "run", "run sets --listen, --ready-fd and --ci itself. Leave them out");
    if (r->words.instances > 1 && config_has(config.journal))
        return command_misused(
            "run", "several instances cannot use one --journal. Leave it out");
    memcpy(r->region, config.identity_region, sizeof(r->region));
    return COMMAND_GOOD;
}

static int
run_all(struct test_run *r)
{
    int status = check_options(r);

    if (status != COMMAND_GOOD)
        return status;
    if (r->words.log != NULL)
        r->log = open(r->words.log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (r->words.log != NULL && r->log < 0)
        return command_misused("run", "%s cannot be opened: %s", r->words.log,
                               strerror(errno));
    if (!run_read_signals(r))
        return command_fails(RUN_BROKEN, "cannot take signals: %s", strerror(errno));
    status = run_with_servers(r);
    r->stopped_by = 0;
    run_servers_stop(r, r->orphaned || status > RUN_SIGNALLED);
    return r->stopped_by != 0 ? RUN_SIGNALLED + r->stopped_by : status;
}

static int
run_start(char *const *argv)
{
    struct test_run r = {.log = -1, .signals = -1, .parent_end = -1};
    int status, fd;

    do /* open standard input, output and error if they are closed */
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        (void)close(fd);
    status = run_words_read(argv, &r.words);
    if (status != COMMAND_GOOD)
        return status;
    r.servers = calloc(r.words.instances, sizeof(*r.servers));
    status = r.servers == NULL ? command_fails(RUN_BROKEN, "out of memory") : run_all(&r);
    free(r.servers);
    run_words_free(&r.words);
    return status;
}

static const struct command_text other_statuses[] = {
    {"70", "A server did not start, or it ended while `CMD` ran. With --fail-on-leak "
           "also: the server did not report the leaks."},
    {"126, 127", "`CMD` cannot be run, or does not exist."},
    {"128+N",
     "The signal with the number N killed `CMD`, or `claimd run` before `CMD` started."},
    {"others", "The exit status of `CMD`."},
    {NULL, NULL},
};

const struct command command_run_tests = {
    .usages = {"run [OPTION]... -- CMD [ARGUMENT]..."},
    .about =
        "Starts a server with `ci` and `identity_stub` on a free port of 127.0.0.1, and "
        "then CMD. You can add any option of the server. CMD gets the URL in "
        "`CLAIMD_URL`. Clients of OpenStack find it in `OS_AUTH_URL`, `OS_USERNAME`, "
        "`OS_PASSWORD`, `OS_PROJECT_NAME`, `OS_REGION_NAME` and related variables. Other "
        "variables that begin with `OS_` are removed, and `no_proxy` contains 127.0.0.1. "
        "Signals go to CMD. When CMD ends, claimd reports leaks on standard error: "
        "claims that were neither finished nor released, messages that no worker read, "
        "and dead letters that no client looked at.\n\n"
        "The servers end with CMD. If claimd run is killed, CMD and the servers end too. "
        "It also ends when its parent ends. It does not wait for processes that CMD "
        "started in the background.",
    .options = {{"--instances", "N",
                 "Number of servers, for suites that run in parallel. Their URLs are in "
                 "`CLAIMD_URL_1` and so on."},
                {"--fail-on-leak", NULL,
                 "Exit with status 1 if CMD succeeded and something leaked."},
                {"--log", "FILE",
                 "Append the logs of the servers to this file. Without it, only their "
                 "warnings go to standard error."}},
    .example = "claimd run --fail-on-leak -- pytest tests/",
    .statuses = {"CMD succeeded.",
                 "CMD succeeded and something leaked, with --fail-on-leak.",
                 "The arguments or options are wrong."},
    .other_statuses = other_statuses,
    .start = run_start};
