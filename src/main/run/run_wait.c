#include "main/run/run.h"

#include "claimd/base/clock.h"
#include "main/command.h"
#include "main/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    GRACE_S = 2,     /* that CMD has when our parent has died */
    STOPPING_S = 10, /* for the ends of all servers, unless a signal comes */
    HURRIED_S = 2    /* likewise */
};

/* ------------------------------------------------------------------ the end of others */

static void
report_end(const struct run_server *s)
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
        report_end(s);
    }
}

/* Also children of others, which come to us where there is no init. */
static void
reap(struct run *r)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
        const int number = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;

        if (!WIFSTOPPED(status))
            note_end(r, pid, status);
        else if (pid == r->command &&
                 (number == SIGTSTP || number == SIGTTIN || number == SIGTTOU))
            (void)raise(SIGSTOP); /* the terminal stopped CMD, and so it stops us */
    }
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

bool
run_take_signals(struct run *r)
{
    sigset_t set;

    /* A parent may have set that ends of children are ignored. */
    (void)signal(SIGCHLD, SIG_DFL);
    (void)sigemptyset(&set);
    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
        (void)sigaddset(&set, taken[i]);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigaddset(&set, parent_signal());
    r->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    (void)sigaddset(&set, SIGPIPE); /* our standard error may have no reader */
    return r->signals >= 0 && sigprocmask(SIG_BLOCK, &set, &r->before) == 0;
}

/*
 * The signal is for the death of a thread, the descriptor for that of the process; but there is
 * none for a parent in another namespace, or from an old kernel.
 */
void
run_watch_parent(struct run *r)
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
    r->kill_at_ns = clock_stopwatch_ns() + GRACE_S * RUN_SECOND_NS;
}

/* What the terminal sends goes to CMD by itself. */
static void
pass_signal_on(struct run *r, const struct signalfd_siginfo *info)
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
    else if (r->command == 0 && (number == SIGINT || number == SIGTERM ||
                                 number == SIGHUP || number == SIGQUIT))
        r->stopped_by = number;
}

/* ------------------------------------------------------------------ waiting */

int
run_left_ms(int64_t until_ns)
{
    int64_t left_ns = until_ns - clock_stopwatch_ns();

    return left_ns <= 0 ? 0 : (int)(left_ns / 1000000) + 1;
}

void
run_rest(struct run *r, struct pollfd *fds, size_t count, int64_t until_ns)
{
    struct signalfd_siginfo info;

    fds[count] = (struct pollfd){.fd = r->signals, .events = POLLIN};
    fds[count + 1] =
        (struct pollfd){.fd = r->orphaned ? -1 : r->parent_end, .events = POLLIN};
    if (poll(fds, (nfds_t)count + 2, until_ns == 0 ? -1 : run_left_ms(until_ns)) < 0)
        return; /* interrupted */
    if (fds[count + 1].revents != 0)
        become_orphan(r);
    while (read(r->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
        pass_signal_on(r, &info);
    reap(r);
}

/* ------------------------------------------------------------------ servers */

/* A server that ended instead of starting. Its log says why. */
static int
report_failure(const struct run *r, struct run_server *s)
{
    if (s->pid > 0 && waitpid(s->pid, &s->status, 0) == s->pid)
        s->pid = 0;
    if (WIFEXITED(s->status) && WEXITSTATUS(s->status) == EXIT_USAGE)
        return COMMAND_USAGE;
    return command_fails(RUN_BROKEN, "a server did not start%s%s",
                         r->words.log == NULL ? "" : ". See ",
                         r->words.log == NULL ? "" : r->words.log);
}

/* "claimd listening on http://127.0.0.1:40123" comes in one write, and is short. */
static bool
read_address(struct run_server *s)
{
    static const char mark[] = "http://";
    char line[256];
    ssize_t n = read(s->ready, line, sizeof(line) - 1);
    const char *at;
    size_t len;

    (void)close(s->ready);
    s->ready = -1;
    if (n <= 0)
        return false;
    line[n] = '\0';
    at = strstr(line, mark);
    if (at == NULL)
        return false;
    at += sizeof(mark) - 1;
    len = strcspn(at, "\n");
    if (len >= sizeof(s->address))
        return false;
    memcpy(s->address, at, len);
    s->address[len] = '\0';
    return true;
}

/* Waits until all servers have told where they listen. */
static int
await_addresses(struct run *r)
{
    struct pollfd fds[RUN_INSTANCES_MOST + 2];

    for (;;) {
        size_t waiting = 0;

        for (size_t i = 0; i < r->words.instances; i++) {
            fds[i] = (struct pollfd){.fd = r->servers[i].ready, .events = POLLIN};
            waiting += r->servers[i].ready >= 0;
        }
        if (waiting == 0)
            return COMMAND_GOOD;
        run_rest(r, fds, r->words.instances, 0);
        if (r->stopped_by != 0)
            return RUN_SIGNALLED + r->stopped_by;
        for (size_t i = 0; i < r->words.instances; i++)
            if (fds[i].revents != 0 && !read_address(&r->servers[i]))
                return report_failure(r, &r->servers[i]);
    }
}

int
run_servers_start(struct run *r)
{
    int status;

    for (size_t i = 0; i < r->words.instances; i++)
        if (!run_server_start(r, &r->servers[i]))
            return command_fails(RUN_BROKEN, "a server cannot be run: %s",
                                 strerror(errno));
    status = await_addresses(r);
    if (status != COMMAND_GOOD)
        return status;
    r->serving = true;
    for (size_t i = 0; i < r->words.instances; i++)
        if (r->servers[i].pid == 0) {
            report_end(&r->servers[i]);
            return RUN_BROKEN;
        }
    return COMMAND_GOOD;
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
        if (r->servers[i].pid > 0)
            (void)kill(r->servers[i].pid, number);
}

void
run_servers_stop(struct run *r, bool hurried)
{
    const int64_t until_ns =
        clock_stopwatch_ns() + (hurried ? HURRIED_S : STOPPING_S) * RUN_SECOND_NS;
    struct pollfd fds[2];

    r->serving = false;
    signal_servers(r, SIGTERM);
    reap(r);
    while (any_runs(r) && r->stopped_by == 0 && run_left_ms(until_ns) > 0)
        run_rest(r, fds, 0, until_ns);
    signal_servers(r, SIGKILL);
    for (size_t i = 0; i < r->words.instances; i++) {
        struct run_server *s = &r->servers[i];

        if (s->pid > 0)
            (void)waitpid(s->pid, NULL, 0);
        if (s->ready >= 0)
            (void)close(s->ready);
    }
}
