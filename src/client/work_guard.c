#include "client/work_guard.h"

#include "client/work_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A guard that waits for the end of killed processes looks again after this time. */
enum { AGAIN_MS = 20 };

/* Begins the words of a guard in ps(1), where the runner has "claimd". */
#define GUARD_WORD "guard"

/* Variables of a job; descriptor of its metadata. */
enum { VARIABLES_MOST = 16, METADATA_FD = 3 };

int64_t
now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ------------------------------------------------------------------ messages */

union file_space {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(GUARD_FILES * sizeof(int))];
};

bool
message_send(int control, const void *data, size_t len, const int *files,
             size_t file_count)
{
    struct iovec part = {.iov_base = (void *)(uintptr_t)data, .iov_len = len};
    union file_space space = {.bytes = {0}};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    ssize_t n;

    if (file_count > 0) {
        m.msg_control = space.bytes;
        m.msg_controllen = CMSG_SPACE(file_count * sizeof(int));
        space.header = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
                                        .cmsg_type = SCM_RIGHTS,
                                        .cmsg_len = CMSG_LEN(file_count * sizeof(int))};
        memcpy(CMSG_DATA(&space.header), files, file_count * sizeof(int));
    }
    do
        n = sendmsg(control, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    return n >= 0;
}

/*
 * Receives a message without blocking. Returns its length, 0 at the end, -1 if there is
 * none. files: those that are not sent become -1.
 */
static ssize_t
message_receive(int control, void *data, size_t cap, int *files, size_t file_count)
{
    struct iovec part = {.iov_base = data, .iov_len = cap};
    union file_space space = {.bytes = {0}};
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = space.bytes,
                       .msg_controllen = sizeof(space.bytes)};
    const ssize_t n = recvmsg(control, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

    for (size_t i = 0; i < file_count; i++)
        files[i] = -1;
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? -1 : 0;
    if (n > 0 && m.msg_controllen >= CMSG_LEN(file_count * sizeof(int)) &&
        space.header.cmsg_type == SCM_RIGHTS)
        memcpy(files, CMSG_DATA(&space.header), file_count * sizeof(int));
    return n;
}

/* ------------------------------------------------------------------ both processes */

/*
 * Keeps descriptors 0 to METADATA_FD and one more. The others are connections and guards
 * of the parent.
 */
static void
descriptors_close(int kept)
{
    if (kept > METADATA_FD + 1)
        (void)close_range(METADATA_FD + 1, (unsigned)kept - 1, 0);
    if (close_range((unsigned)kept + 1, UINT_MAX, 0) == 0)
        return;
    for (int fd = METADATA_FD + 1; fd < 1024; fd++) /* before Linux 5.9 */
        if (fd != kept)
            (void)close(fd);
}

/*
 * Names this process. Its words in /proc begin with those of the runner, and a signal to
 * all processes that look like the runner must not reach the guards.
 */
static void
process_name(void)
{
    const size_t len = strlen(program_invocation_name); /* the first word */

    (void)prctl(PR_SET_NAME, GUARD_NAME);
    if (len < strlen(GUARD_WORD))
        return;
    memset(program_invocation_name, ' ', len);
    memcpy(program_invocation_name, GUARD_WORD, strlen(GUARD_WORD));
}

/* Begins a process. Returns a descriptor that is readable when a child ends, or -1. */
static int
process_begin(int control)
{
    sigset_t all;

    descriptors_close(control);
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    (void)setpgid(0, 0);
    process_name();
    (void)sigemptyset(&all);
    (void)sigaddset(&all, SIGCHLD);
    return prctl(PR_SET_CHILD_SUBREAPER, 1) == 0
               ? signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK)
               : -1;
}

static void
signals_drain(int fd)
{
    struct signalfd_siginfo info;

    while (read(fd, &info, sizeof(info)) > 0) {
    }
}

/* Returns a child that has ended and is not reaped, or 0. */
static pid_t
ended_child(void)
{
    siginfo_t info = {.si_pid = 0};

    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 ? info.si_pid : 0;
}

/* ------------------------------------------------------------------ the command */

struct work_guard {
    const struct guard_setup *setup;
    int control, children, clock; /* descriptors; clock: a timer */
    char **environment;           /* of setup, with space for the variables of a job */
    size_t environment_len;
    struct guard_order order; /* the last one */
    bool gone;                /* the runner has ended */
    bool busy;                /* from START until the report */
    bool stopped;             /* the group got SIGTERM */
    bool ending;              /* kills all that is left */
    pid_t command;            /* 0: has ended */
    int64_t term_ms, kill_ms; /* of the lease */
    int64_t stop_ms;          /* SIGKILL after STOP */
    struct guard_report report;
};

/*
 * Becomes the command, in a child that shares the memory of its parent. Returns errno if
 * it cannot.
 */
static int
exec_command(const struct work_guard *g, pid_t parent, const int from[GUARD_FILES])
{
    const int to[GUARD_FILES] = {STDIN_FILENO, STDERR_FILENO,
                                 g->setup->keep ? STDOUT_FILENO : METADATA_FD};

    if (setpgid(0, 0) != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
        return errno;
    if (getppid() != parent)
        return ECHILD;
    for (int i = 0; i < GUARD_FILES; i++)
        if (dup2(from[i], to[i]) < 0)
            return errno;
    (void)sigprocmask(SIG_SETMASK, g->setup->signals, NULL);
    (void)execvpe(g->setup->command[0], g->setup->command, g->environment);
    return errno;
}

/* Reads the error of the child. 0: it has become the command, which closes the pipe. */
static int
read_error(int fd)
{
    int error = 0;

    while (read(fd, &error, sizeof(error)) < 0 && errno == EINTR) {
    }
    return error;
}

/*
 * Forks. Not inlined, because the child of vfork() must not change variables of its
 * caller.
 */
static int __attribute__((noinline))
spawn(const struct work_guard *g, const int from[GUARD_FILES], pid_t *pid)
{
    const pid_t parent = getpid();
    int report[2], error;
    pid_t child;

    if (pipe2(report, O_CLOEXEC) != 0)
        return errno;
    child = vfork();
    if (child == 0) {
        const int failed = exec_command(g, parent, from);

        (void)!write(report[1], &failed, sizeof(failed));
        _exit(127);
    }
    error = child < 0 ? errno : 0;
    (void)close(report[1]);
    if (child > 0)
        error = read_error(report[0]);
    (void)close(report[0]);
    if (child > 0 && error != 0)
        (void)waitpid(child, NULL, 0);
    *pid = child > 0 && error == 0 ? child : 0;
    return error;
}

/* ------------------------------------------------------------------ the guard */

static bool
guard_init(struct work_guard *g, const struct guard_setup *setup, int control)
{
    *g = (struct work_guard){.setup = setup, .control = control};
    while (setup->environment[g->environment_len] != NULL)
        g->environment_len++;
    g->environment =
        calloc(g->environment_len + VARIABLES_MOST + 1, sizeof(g->environment[0]));
    if (g->environment == NULL) {
        g->report.error = ENOMEM;
        return false;
    }
    memcpy(g->environment, setup->environment,
           g->environment_len * sizeof(g->environment[0]));
    g->children = process_begin(control);
    g->clock = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (g->children < 0 || g->clock < 0)
        g->report.error = errno;
    return g->report.error == 0;
}

/* Adds the variables of the job to the environment. False: there are too many. */
static bool
guard_take_variables(struct work_guard *g)
{
    char *at = g->order.variables, *end = at + g->order.len;
    size_t count = g->environment_len;

    while (at < end && count < g->environment_len + VARIABLES_MOST) {
        g->environment[count++] = at;
        at += strlen(at) + 1;
    }
    g->environment[count] = NULL;
    return at >= end;
}

static void
guard_arm(const struct work_guard *g)
{
    int64_t due_ms = g->kill_ms < g->stop_ms ? g->kill_ms : g->stop_ms, left_ms;
    struct itimerspec when = {.it_value.tv_nsec = 1};

    if (!g->stopped && g->term_ms < due_ms)
        due_ms = g->term_ms;
    left_ms = due_ms - now_ms();
    if (due_ms == INT64_MAX)
        when.it_value.tv_nsec = 0; /* a kept command without jobs */
    else if (left_ms > 0)
        when.it_value = (struct timespec){.tv_sec = left_ms / 1000,
                                          .tv_nsec = left_ms % 1000 * 1000000};
    (void)timerfd_settime(g->clock, 0, &when, NULL);
}

static void
guard_report(struct work_guard *g)
{
    (void)message_send(g->control, &g->report, sizeof(g->report), NULL, 0);
    g->busy = false;
}

static void
guard_start(struct work_guard *g, const int files[GUARD_FILES])
{
    g->busy = true;
    g->stopped = g->ending = false;
    g->report = (struct guard_report){.error = 0};
    g->stop_ms = INT64_MAX;
    g->report.lease_ended = now_ms() >= g->term_ms;
    if (!g->report.lease_ended)
        g->report.error = guard_take_variables(g) ? spawn(g, files, &g->command) : E2BIG;
    if (g->report.lease_ended || g->report.error != 0)
        guard_report(g);
    for (int i = 0; i < GUARD_FILES; i++)
        if (files[i] >= 0)
            (void)close(files[i]);
}

/* Sends SIGTERM to the group of the command. */
static void
guard_term(struct work_guard *g)
{
    g->stopped = true;
    if (g->command == 0)
        return;
    (void)kill(-g->command, SIGTERM);
    (void)kill(-g->command, SIGCONT); /* a stopped command could not end */
}

/* Takes an order. False: there is none. */
static bool
guard_read(struct work_guard *g)
{
    struct guard_order *o = &g->order;
    int files[GUARD_FILES];
    const ssize_t n = message_receive(g->control, o, sizeof(*o), files, GUARD_FILES);

    if (n < 0)
        return false;
    if (n < (ssize_t)GUARD_ORDER_LEAST) {
        g->gone = g->ending = true;
        return false;
    }
    if (o->kind == GUARD_STOP) {
        g->stop_ms = o->kill_ms < g->stop_ms ? o->kill_ms : g->stop_ms;
        if (!g->stopped)
            guard_term(g);
    } else {
        g->term_ms = o->term_ms;
        g->kill_ms = o->kill_ms;
    }
    if (o->kind == GUARD_START)
        guard_start(g, files);
    if (g->busy)
        guard_arm(g);
    return true;
}

/* Does what is due at this time for a command that may still run. */
static void
guard_tick(struct work_guard *g)
{
    const int64_t now = now_ms();
    uint64_t count;

    if (read(g->clock, &count, sizeof(count)) < 0 || !g->busy)
        return;
    if (now >= g->kill_ms || now >= g->stop_ms) {
        g->report.lease_ended |= now >= g->kill_ms;
        g->ending = true;
        return;
    }
    if (now >= g->term_ms && !g->stopped) {
        g->report.lease_ended = true;
        guard_term(g);
    }
    guard_arm(g);
}

/* Takes the ends of the command and of its descendants. */
static void
guard_reap(struct work_guard *g)
{
    pid_t pid;

    while ((pid = ended_child()) > 0) {
        if (pid != g->command) {
            (void)waitpid(pid, NULL, 0);
            continue;
        }
        /* The command is a zombie, so no other group has its number. */
        (void)kill(-pid, SIGKILL);
        (void)waitpid(pid, &g->report.status, 0);
        g->command = 0;
        g->ending = true;
    }
}

/* Kills all that is left, and reports the end. False: call it again. */
static bool
guard_end(struct work_guard *g)
{
    enum tree_state state;

    if (g->command != 0)
        (void)kill(-g->command, SIGKILL);
    state = tree_kill(NULL, NULL);
    if (state == TREE_BUSY || (g->command != 0 && !g->gone))
        return false;
    g->report.foreign = state == TREE_FOREIGN;
    guard_report(g);
    return true;
}

static void
guard_run(struct work_guard *g)
{
    while (!g->gone || g->busy) {
        struct pollfd fds[] = {{.fd = g->gone ? -1 : g->control, .events = POLLIN},
                               {.fd = g->children, .events = POLLIN},
                               {.fd = g->clock, .events = POLLIN}};

        (void)poll(fds, 3, g->busy && g->ending ? AGAIN_MS : -1);
        if (fds[1].revents != 0)
            signals_drain(g->children);
        guard_reap(g);
        if (fds[2].revents != 0)
            guard_tick(g);
        if (g->busy && g->ending)
            (void)guard_end(g);
        if (fds[0].revents != 0)
            while (guard_read(g)) {
            }
    }
}

/* ------------------------------------------------------------------ the spawner */

struct spawned {
    pid_t pid;   /* 0: it has ended */
    int control; /* the end of the guard. -1: free */
};

struct spawner {
    const struct guard_setup *setup;
    int control, children;
    struct spawned *guards;
    size_t count; /* of the array that were used */
    bool gone;    /* the runner has ended */
    bool orphans; /* a guard has ended, and may have left processes */
};

static bool
spawner_keeps(const void *ctx, pid_t pid)
{
    const struct spawner *s = ctx;

    for (size_t i = 0; i < s->count; i++)
        if (s->guards[i].pid == pid)
            return true;
    return false;
}

static struct spawned *
spawner_free_place(struct spawner *s)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->guards[i].control < 0)
            return &s->guards[i];
    return s->count < s->setup->most ? &s->guards[s->count++] : NULL;
}

static void
spawner_fork(struct spawner *s, int control)
{
    struct spawned *place = spawner_free_place(s);
    struct guard_report report = {.error = EAGAIN};
    const pid_t pid = place != NULL ? fork() : -1;
    struct work_guard g;

    if (pid == 0) {
        if (guard_init(&g, s->setup, control))
            guard_run(&g);
        else
            guard_report(&g);
        _exit(0);
    }
    if (pid > 0) {
        *place = (struct spawned){.pid = pid, .control = control};
        return;
    }
    if (place != NULL) {
        report.error = errno;
        *place = (struct spawned){.pid = 0, .control = -1};
    }
    (void)message_send(control, &report, sizeof(report), NULL, 0);
    (void)close(control);
}

static void
spawner_read(struct spawner *s)
{
    char byte;
    int control;
    ssize_t n;

    while ((n = message_receive(s->control, &byte, 1, &control, 1)) > 0)
        if (control >= 0)
            spawner_fork(s, control);
    s->gone = n == 0;
}

/*
 * A guard must run, because it ends its job before the lease ends. So SIGSTOP has no
 * effect on it for long.
 */
static void
spawner_continue(void)
{
    siginfo_t info = {.si_pid = 0};

    while (waitid(P_ALL, 0, &info, WSTOPPED | WNOHANG) == 0 && info.si_pid != 0) {
        (void)kill(info.si_pid, SIGCONT);
        info.si_pid = 0;
    }
}

static void
spawner_reap(struct spawner *s)
{
    pid_t pid;

    while ((pid = ended_child()) > 0) {
        (void)waitpid(pid, NULL, 0);
        for (size_t i = 0; i < s->count; i++)
            if (s->guards[i].pid == pid) {
                s->guards[i].pid = 0;
                s->orphans = true;
            }
    }
    spawner_continue();
}

/*
 * Kills what ended guards have left. Then their sockets are closed, which tells the
 * runner that the jobs have ended.
 */
static void
spawner_end_orphans(struct spawner *s)
{
    if (!s->orphans || tree_kill(spawner_keeps, s) == TREE_BUSY)
        return;
    s->orphans = false;
    for (size_t i = 0; i < s->count; i++)
        if (s->guards[i].pid == 0 && s->guards[i].control >= 0) {
            (void)close(s->guards[i].control);
            s->guards[i].control = -1;
        }
}

static bool
spawner_has_guards(const struct spawner *s)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->guards[i].control >= 0)
            return true;
    return false;
}

static void
spawner_run(struct spawner *s)
{
    while (!s->gone || spawner_has_guards(s)) {
        struct pollfd fds[] = {{.fd = s->gone ? -1 : s->control, .events = POLLIN},
                               {.fd = s->children, .events = POLLIN}};

        (void)poll(fds, 2, s->orphans ? AGAIN_MS : -1);
        if (fds[1].revents != 0)
            signals_drain(s->children);
        spawner_reap(s);
        spawner_end_orphans(s);
        if (fds[0].revents != 0)
            spawner_read(s);
    }
}

pid_t
spawner_start(const struct guard_setup *setup, int *control)
{
    struct spawner s = {.setup = setup};
    int ends[2];
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return -1;
    pid = fork();
    if (pid == 0) {
        s.control = ends[1];
        s.children = process_begin(ends[1]);
        s.guards = calloc(setup->most, sizeof(s.guards[0]));
        if (s.children >= 0 && s.guards != NULL)
            spawner_run(&s);
        _exit(0);
    }
    (void)close(ends[1]);
    if (pid < 0) {
        const int error = errno;

        (void)close(ends[0]);
        errno = error;
    }
    *control = ends[0];
    return pid;
}
