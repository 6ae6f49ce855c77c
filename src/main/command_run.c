/*
 * claimd run: servers for tests, as long as a command runs.
 *
 *     claimd run ---- server 1 .. n     killed when claimd run dies, whatever it dies of
 *          |
 *          +--------- CMD               likewise; its input and output are its own
 *          |
 *        parent                         when it dies, CMD gets SIGTERM, and then SIGKILL
 *
 * One thread, which sleeps until there is a signal, the parent dies, or a server is ready.
 */
#include "claimd/base/clock.h"
#include "main/ask.h"
#include "main/command.h"
#include "main/daemon.h"
#include "main/leak_report.h"
#include "main/program.h"
#include "main/run_command.h"
#include "main/run_server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum {
    BROKEN = 70,       /* exit status: it is a server that has failed */
    GRACE_S = 2,       /* that CMD has when our parent has died */
    ASKING_S = 10,     /* for all leaks of a server */
    STOPPING_S = 10,   /* for the ends of all servers */
    NOTHING_TO_DO = -1 /* poll() waits for ever */
};

static const int64_t SECOND_NS = 1000000000;

struct run {
    struct run_words words;
    struct run_server *servers; /* owned */
    char region[CONFIG_TEXT_CAP];
    int log;              /* -1: none */
    sigset_t before;      /* what was blocked before we came */
    int signals;          /* signalfd; -1 */
    pid_t parent;         /* 0: it is none that we can see */
    int parent_end;       /* readable when it has died; -1: not known */
    pid_t command;        /* 0: it does not run */
    int command_status;   /* of waitpid() */
    int stopped_by;       /* a signal, while there is no CMD that it could go to */
    int64_t kill_at_ns;   /* CMD; 0: never */
    bool serving;         /* no server should end now */
    bool orphaned;        /* our parent has died */
    bool broken, unasked; /* a server has ended; did not tell its leaks */
};

/* ------------------------------------------------------------------ the end of others */

static void
tell_end(const struct run_server *s)
{
    if (WIFSIGNALED(s->status))
        (void)command_fails(0, "the server at %s was killed by signal %d", s->address,
                            WTERMSIG(s->status));
    else
        (void)command_fails(0, "the server at %s has ended with status %d", s->address,
                            WEXITSTATUS(s->status));
}

static void
note_end(struct run *r, pid_t pid, int status)
{
    if (pid == r->command) {
        r->command = 0;
        r->command_status = status;
    }
    for (size_t i = 0; i < r->words.instances; i++) {
        struct run_server *s = &r->servers[i];

        if (s->pid != pid)
            continue;
        s->pid = 0;
        s->status = status;
        if (!r->serving)
            continue;
        r->broken = true;
        tell_end(s);
    }
}

/* CMD was stopped from the terminal: whoever waits for us is to see that. */
static void
stop_too(const struct run *r, pid_t pid, int number)
{
    if (pid == r->command &&
        (number == SIGTSTP || number == SIGTTIN || number == SIGTTOU))
        (void)raise(SIGSTOP);
}

/* Also children of others, which come to us where there is no init. */
static void
reap(struct run *r)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0)
        if (WIFSTOPPED(status))
            stop_too(r, pid, WSTOPSIG(status));
        else
            note_end(r, pid, status);
}

/* ------------------------------------------------------------------ signals */

static const int taken[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGUSR1,
                            SIGUSR2, SIGTSTP, SIGCONT, SIGWINCH};

/* Comes when the thread of our parent that has started us ends. */
static int
parent_signal(void)
{
    return SIGRTMIN;
}

static bool
take_signals(struct run *r)
{
    sigset_t set;

    (void)sigemptyset(&set);
    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
        (void)sigaddset(&set, taken[i]);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigaddset(&set, parent_signal());
    r->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    (void)sigaddset(&set, SIGPIPE); /* our standard error may have nobody who reads it */
    return r->signals >= 0 && sigprocmask(SIG_BLOCK, &set, &r->before) == 0;
}

/* A process that was started in a way that ignores the ends of its children has none. */
static void
want_children(void)
{
    (void)signal(SIGCHLD, SIG_DFL);
}

/*
 * The signal is for the death of a thread, the descriptor for that of the process; but there is
 * none for a parent in another namespace, or from an old kernel.
 */
static void
watch_parent(struct run *r)
{
    r->parent = getppid();
    (void)prctl(PR_SET_PDEATHSIG, parent_signal());
    if (r->parent > 0)
        r->parent_end = (int)syscall(SYS_pidfd_open, r->parent, 0);
    if (r->parent_end >= 0)
        (void)fcntl(r->parent_end, F_SETFD, FD_CLOEXEC);
}

static void
become_orphan(struct run *r)
{
    if (r->orphaned)
        return;
    r->orphaned = true;
    r->stopped_by = SIGTERM;
    if (r->command > 0) {
        (void)kill(r->command, SIGTERM);
        (void)kill(r->command, SIGCONT);
    }
    r->kill_at_ns = clock_stopwatch_ns() + GRACE_S * SECOND_NS;
}

static bool
is_end(int number)
{
    return number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
}

/* What the terminal sends goes to CMD by itself. */
static void
pass_on(struct run *r, const struct signalfd_siginfo *info)
{
    const int number = (int)info->ssi_signo;

    if (number == SIGCHLD)
        return;
    if (number == parent_signal()) {
        if (r->parent == 0 || getppid() != r->parent)
            become_orphan(r);
        return;
    }
    if (r->command > 0 && info->ssi_code != SI_KERNEL)
        (void)kill(r->command, number);
    else if (r->command == 0 && is_end(number))
        r->stopped_by = number;
}

static void
take_in(struct run *r)
{
    struct signalfd_siginfo info;

    while (read(r->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
        pass_on(r, &info);
    reap(r);
}

/* ------------------------------------------------------------------ waiting */

static int
left_ms(int64_t until_ns)
{
    int64_t left_ns = until_ns - clock_stopwatch_ns();

    return left_ns <= 0 ? 0 : (int)(left_ns / 1000000) + 1;
}

/* Sleeps until something happens, also with these descriptors; until_ns 0: or for ever. */
static void
rest(struct run *r, struct pollfd *fds, size_t count, int64_t until_ns)
{
    fds[count] = (struct pollfd){.fd = r->signals, .events = POLLIN};
    fds[count + 1] =
        (struct pollfd){.fd = r->orphaned ? -1 : r->parent_end, .events = POLLIN};
    if (poll(fds, (nfds_t)count + 2, until_ns == 0 ? NOTHING_TO_DO : left_ms(until_ns)) <
        0)
        return; /* interrupted */
    if (fds[count + 1].revents != 0)
        become_orphan(r);
    take_in(r);
}

/* ------------------------------------------------------------------ servers */

/* The end of one that should have begun; its own words say why, where it writes them. */
static int
tell_failure(const struct run *r, struct run_server *s)
{
    if (s->pid > 0 && waitpid(s->pid, &s->status, 0) == s->pid)
        s->pid = 0;
    if (WIFEXITED(s->status) && WEXITSTATUS(s->status) == EXIT_USAGE)
        return COMMAND_USAGE;
    return command_fails(BROKEN, "a server did not start%s%s",
                         r->words.log == NULL ? "" : "; see ",
                         r->words.log == NULL ? "" : r->words.log);
}

static int
start_servers(struct run *r)
{
    for (size_t i = 0; i < r->words.instances; i++)
        if (!run_server_start(&r->servers[i], r->words.server, r->log))
            return command_fails(BROKEN, "a server cannot be run: %s", strerror(errno));
    return COMMAND_GOOD;
}

/* Reads from those that have something to tell. */
static int
hear(struct run *r, const struct pollfd *fds)
{
    for (size_t i = 0; i < r->words.instances; i++)
        if (fds[i].revents != 0 && !run_server_read_address(&r->servers[i]))
            return tell_failure(r, &r->servers[i]);
    return COMMAND_GOOD;
}

static int
await_servers(struct run *r)
{
    struct pollfd fds[RUN_INSTANCES_MOST + 2];
    int status = COMMAND_GOOD;

    while (status == COMMAND_GOOD) {
        size_t waiting = 0;

        for (size_t i = 0; i < r->words.instances; i++) {
            fds[i] = (struct pollfd){.fd = r->servers[i].ready, .events = POLLIN};
            waiting += r->servers[i].ready >= 0;
        }
        if (waiting == 0)
            break;
        rest(r, fds, r->words.instances, 0);
        status = r->stopped_by != 0 ? RUN_SIGNALLED + r->stopped_by : hear(r, fds);
    }
    return status;
}

static bool
any_runs(const struct run *r)
{
    for (size_t i = 0; i < r->words.instances; i++)
        if (r->servers[i].pid > 0)
            return true;
    return false;
}

static void
signal_servers(const struct run *r, int number)
{
    for (size_t i = 0; i < r->words.instances; i++)
        run_server_signal(&r->servers[i], number);
}

/* From now on none should end; one that has ended already is told. */
static int
begin_serving(struct run *r)
{
    r->serving = true;
    for (size_t i = 0; i < r->words.instances; i++)
        if (r->servers[i].pid == 0) {
            tell_end(&r->servers[i]);
            return BROKEN;
        }
    return COMMAND_GOOD;
}

static void
stop_servers(struct run *r)
{
    const int64_t until_ns = clock_stopwatch_ns() + STOPPING_S * SECOND_NS;
    struct pollfd fds[2];

    r->serving = false;
    signal_servers(r, SIGTERM);
    reap(r);
    while (any_runs(r) && left_ms(until_ns) > 0)
        rest(r, fds, 0, until_ns);
    signal_servers(r, SIGKILL);
    for (size_t i = 0; i < r->words.instances; i++) {
        struct run_server *s = &r->servers[i];

        if (s->pid > 0)
            (void)waitpid(s->pid, NULL, 0);
        if (s->ready >= 0)
            (void)close(s->ready);
    }
}

/* ------------------------------------------------------------------ leaks */

static bool
ask_page(const struct run_server *s, const char *target, int64_t until_ns,
         struct buf *page)
{
    int fd = ask_dial(s->address, until_ns), status;

    if (fd < 0)
        return false;
    status = ask_get(fd, target, until_ns, page);
    (void)close(fd);
    return status == 200 && !page->failed;
}

static bool
report_leaks_of(const struct run_server *s, struct leak_report *report, struct buf *page)
{
    const int64_t until_ns = clock_stopwatch_ns() + ASKING_S * SECOND_NS;
    char next[LEAK_REPORT_NEXT_CAP] = "/claimd/leaks?limit=1000";

    while (next[0] != '\0')
        if (!ask_page(s, next, until_ns, page) ||
            !leak_report_page(report, buf_view(page), next))
            return false;
    return true;
}

static void
report_leaks(struct run *r, struct leak_report *report)
{
    struct mem *mem = mem_new(0);
    char of[48] = "";
    struct buf page;

    r->unasked = mem == NULL;
    if (mem == NULL)
        return;
    buf_init(&page, mem);
    report->of = of;
    for (size_t i = 0; i < r->words.instances; i++) {
        if (r->words.numbered)
            (void)snprintf(of, sizeof(of), " (instance %zu)", i + 1);
        if (r->servers[i].pid == 0 || report_leaks_of(&r->servers[i], report, &page))
            continue;
        r->unasked = true;
        (void)command_fails(0, "the server at %s did not tell what has leaked",
                            r->servers[i].address);
    }
    buf_fini(&page);
    mem_destroy(mem);
    leak_report_sum_up(report);
}

/* ------------------------------------------------------------------ the command */

static void
await_command(struct run *r)
{
    struct pollfd fds[2];

    while (r->command > 0) {
        rest(r, fds, 0, r->kill_at_ns);
        if (r->command == 0 || r->kill_at_ns == 0 || left_ms(r->kill_at_ns) > 0)
            continue;
        (void)kill(r->command, SIGKILL);
        r->kill_at_ns = 0;
    }
}

/* What to end with, once CMD has. */
static int
judge(const struct run *r, const struct leak_report *report)
{
    const int status = run_command_exit(r->command_status);

    if (r->broken || (r->unasked && r->words.fail_on_leak))
        return BROKEN;
    return status == 0 && r->words.fail_on_leak && leak_report_count(report) > 0
               ? COMMAND_FAILED
               : status;
}

static int
run_with_servers(struct run *r)
{
    struct leak_report report = {.to = stderr};
    int status = await_servers(r);

    if (status == COMMAND_GOOD)
        status = begin_serving(r);
    if (status != COMMAND_GOOD)
        return status;
    if (!run_command_prepare(&r->words, r->servers, r->region))
        return command_fails(BROKEN, "out of memory");
    status = run_command_start(&r->words, &r->before, &r->command);
    if (status != 0)
        return status;
    await_command(r);
    if (r->orphaned)
        return RUN_SIGNALLED + SIGTERM;
    report_leaks(r, &report);
    return judge(r, &report);
}

/* ------------------------------------------------------------------ the whole */

/* What the servers would complain about, and what is not theirs to choose. */
static int
check_options(struct run *r)
{
    struct complaints complaints = {.to = stderr};
    enum config_action action;
    struct config config;
    const char *const ready = RUN_SERVER_READY;
    enum status st = config_load((int)r->words.server_count, r->words.server, environ,
                                 &config, &action, &complaints);

    if (st == ST_OK)
        st = daemon_check(&config, &complaints);
    if (st != ST_OK)
        return COMMAND_USAGE;
    if (action != ACTION_SERVE)
        return command_fails(COMMAND_USAGE, "run only serves");
    if (strcmp(config.listen, RUN_SERVER_LISTEN) != 0 || config.ready_fd != atoi(ready) ||
        !config.ci)
        return command_fails(COMMAND_USAGE,
                             "run decides about --listen, --ready-fd and --ci itself");
    if (r->words.instances > 1 && strcmp(config.journal, "none") != 0)
        return command_fails(COMMAND_USAGE, "one --journal is not for several instances");
    memcpy(r->region, config.identity_region, sizeof(r->region));
    return COMMAND_GOOD;
}

static int
open_log(struct run *r)
{
    if (r->words.log == NULL)
        return COMMAND_GOOD;
    r->log = open(r->words.log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    return r->log >= 0 ? COMMAND_GOOD
                       : command_fails(COMMAND_USAGE, "%s cannot be opened: %s",
                                       r->words.log, strerror(errno));
}

/* Descriptors of ours must not take the places of standard input, output and error. */
static void
fill_standard_places(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        (void)close(fd);
}

static int
run_all(struct run *r)
{
    int status = check_options(r);

    if (status == COMMAND_GOOD)
        status = open_log(r);
    if (status != COMMAND_GOOD)
        return status;
    want_children();
    if (!take_signals(r))
        return command_fails(BROKEN, "cannot take signals: %s", strerror(errno));
    watch_parent(r);
    status = start_servers(r);
    if (status == COMMAND_GOOD)
        status = run_with_servers(r);
    stop_servers(r);
    return status;
}

static int
start(char *const *argv)
{
    struct run r = {.log = -1, .signals = -1, .parent_end = -1};
    int status;

    fill_standard_places();
    status = run_words_read(argv, &r.words);
    if (status != COMMAND_GOOD)
        return status;
    r.servers = calloc(r.words.instances, sizeof(*r.servers));
    status = r.servers == NULL ? command_fails(BROKEN, "out of memory") : run_all(&r);
    free(r.servers);
    run_words_free(&r.words);
    return status;
}

static const struct fact other_ends[] = {
    {"70",
     "a server did not start, or ended while `CMD` ran; with --fail-on-leak also: it "
     "did not tell what has leaked"},
    {"126, 127", "`CMD` cannot be run, is not there"},
    {"128+N", "`CMD` was killed by the signal with the number N, or `claimd run` by one "
              "while there was no `CMD`"},
    {"others", "that of `CMD`"},
    {NULL, NULL},
};

const struct command command_run_tests = {
    .name = "run",
    .call = "run [OPTION]... -- CMD",
    .summary = "servers for tests, while CMD runs",
    .usages = {"run [OPTION]... -- CMD [ARGUMENT]..."},
    .about =
        "Starts a server with `ci` and `identity_stub` on a free port of 127.0.0.1, and "
        "with any other options of the server, then CMD, which finds it in `CLAIMD_URL`, "
        "and for clients of OpenStack in `OS_AUTH_URL`, `OS_USERNAME`, `OS_PASSWORD`, "
        "`OS_PROJECT_NAME`, `OS_REGION_NAME` and their like; what else begins with `OS_` "
        "is taken out of its environment. Signals are passed on to CMD. When it has "
        "ended, "
        "what it has left behind is told on standard error: claims neither finished nor "
        "released, messages never read, dead letters that nobody has looked at.\n\n"
        "The servers end with CMD, and whatever kills `claimd run`, so do CMD and the "
        "servers. It also ends when its parent does. What CMD has started in the "
        "background is not waited for.",
    .options = {{"--instances", "N",
                 "so many servers, for suites that run in parallel: "
                 "`CLAIMD_URL_1` and so on"},
                {"--fail-on-leak", NULL,
                 "end with 1 if CMD succeeded but something has leaked"},
                {"--log", "FILE",
                 "append what the servers log to it; without it only "
                 "their warnings go to standard error"}},
    .ends = {"CMD succeeded", "with --fail-on-leak: CMD succeeded, something has leaked",
             "wrong arguments or options"},
    .other_ends = other_ends,
    .start = start};
