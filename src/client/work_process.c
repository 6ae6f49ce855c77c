#include "client/work_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* ERRORS: bytes of standard error that are read after the end. */
enum { RESERVED_FD = 3, ERRORS_MOST = 1 << 20 };

bool
process_reserve_descriptors(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd <= RESERVED_FD);
    return fd >= 0 && close(fd) == 0;
}

/* A file in memory with this content, at its beginning. -1 with errno. */
static int
memory_file(const char *name, struct bytes content)
{
    int fd = memfd_create(name, MFD_CLOEXEC), error;
    ssize_t n = 1;

    for (size_t at = 0; fd >= 0 && n > 0 && at < content.len; at += (size_t)n) {
        n = pwrite(fd, content.data + at, content.len - at, (off_t)at);
        if (n < 0 && errno == EINTR)
            n = 0;
    }
    if (fd < 0 || n >= 0)
        return fd;
    error = errno;
    (void)close(fd);
    errno = error;
    return -1;
}

/* ------------------------------------------------------------------ guards */

bool
guards_init(struct work_guards *g, const struct guard_setup *setup)
{
    int is_subreaper;

    *g = (struct work_guards){.setup = *setup, .control = -1};
    if (prctl(PR_GET_CHILD_SUBREAPER, &is_subreaper) != 0 ||
        prctl(PR_SET_CHILD_SUBREAPER, is_subreaper) != 0) {
        errno = ENOSYS;
        return false;
    }
    g->all = calloc(setup->most, sizeof(g->all[0]));
    if (g->all == NULL)
        return false;
    g->spawner = spawner_start(&g->setup, &g->control);
    return g->spawner > 0;
}

/* Waits for the end of the spawner, also if it is stopped now or later. */
static void
spawner_wait(pid_t spawner)
{
    int status;
    pid_t pid;

    do {
        (void)kill(spawner, SIGCONT);
        pid = waitpid(spawner, &status, WUNTRACED);
    } while ((pid < 0 && errno == EINTR) || (pid > 0 && WIFSTOPPED(status)));
}

void
guards_fini(struct work_guards *g)
{
    for (size_t i = 0; i < g->count; i++)
        (void)close(g->all[i].control);
    g->count = 0;
    if (g->spawner > 0) {
        (void)close(g->control);
        spawner_wait(g->spawner);
    }
    g->spawner = 0;
    free(g->all);
    g->all = NULL;
}

size_t
guards_limit(const struct work_guards *g)
{
    struct pollfd fd = {.fd = g->control, .events = POLLOUT};
    size_t idle = 0;

    for (size_t i = 0; i < g->count; i++)
        idle += g->all[i].process == NULL;
    /* A socket that is less than a quarter full polls as writable. */
    return g->spawner <= 0 || poll(&fd, 1, 0) != 0 ? idle + g->setup.most - g->count
                                                   : idle;
}

static void
spawner_forget(struct work_guards *g)
{
    (void)close(g->control);
    g->spawner = 0;
}

void
guards_child_changed(struct work_guards *g, pid_t pid, int status)
{
    if (pid != g->spawner || g->spawner <= 0)
        return;
    if (WIFSTOPPED(status))
        (void)kill(pid, SIGCONT);
    else
        spawner_forget(g);
}

/*
 * Sends the socket of a new guard to the spawner, and starts that if there is none. False
 * with errno. EBUSY: the spawner has not read earlier ones.
 */
static bool
spawner_order(struct work_guards *g, int guard)
{
    for (;;) {
        if (g->spawner <= 0 && (g->spawner = spawner_start(&g->setup, &g->control)) < 0)
            return false;
        if (message_send(g->control, "", 1, &guard, 1))
            return true;
        if (errno == EAGAIN)
            errno = EBUSY;
        if (errno != EPIPE && errno != ECONNRESET)
            return false;
        (void)waitpid(g->spawner, NULL, 0); /* it was killed */
        spawner_forget(g);
    }
}

/* Makes a guard. NULL with errno. */
static struct guard_link *
guard_open(struct work_guards *g)
{
    struct guard_link *link = &g->all[g->count];
    int ends[2], error = 0;

    if (g->count == g->setup.most) {
        errno = EAGAIN;
        return NULL;
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return NULL;
    if (!spawner_order(g, ends[1]))
        error = errno;
    (void)close(ends[1]);
    if (error != 0) {
        (void)close(ends[0]);
        errno = error;
        return NULL;
    }
    *link = (struct guard_link){.control = ends[0]};
    g->count++;
    return link;
}

static struct guard_link *
guard_idle(struct work_guards *g)
{
    for (size_t i = 0; i < g->count; i++)
        if (g->all[i].process == NULL)
            return &g->all[i];
    return guard_open(g);
}

static void
guard_forget(struct work_guards *g, struct guard_link *link)
{
    (void)close(link->control);
    *link = g->all[--g->count];
    if (link->process != NULL)
        link->process->guard = link;
}

void
guards_read(struct work_guards *g, size_t i)
{
    struct guard_link *link = &g->all[i];
    struct work_process *p = link->process;
    struct guard_report report;
    ssize_t n = recv(link->control, &report, sizeof(report), MSG_DONTWAIT);
    const bool unread =
        n < 0 && errno == ECONNRESET; /* it was killed with orders in its socket */

    if (unread)
        n = recv(link->control, &report, sizeof(report), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n != (ssize_t)sizeof(report)) { /* it was killed, and all that it ran */
        report = (struct guard_report){.status = SIGKILL};
        if (p != NULL)
            p->untaken = unread && !p->ordered;
    }
    if (p != NULL) {
        p->report = report;
        p->guard = NULL;
        p->most_left = ERRORS_MOST;
    }
    link->process = NULL;
    if (n != (ssize_t)sizeof(report))
        guard_forget(g, link);
}

/* ------------------------------------------------------------------ the command */

/* Sends the order with its files to an idle guard. Returns errno. */
static int
order_start(struct work_process *p, struct work_guards *g,
            const struct process_start *start, const int files[GUARD_FILES])
{
    struct guard_link *link;
    struct guard_order order = {.kind = GUARD_START,
                                .term_ms = start->term_ms,
                                .kill_ms = start->kill_ms,
                                .len = start->variables.len};

    if (start->variables.len > sizeof(order.variables))
        return E2BIG;
    if (order.len > 0)
        memcpy(order.variables, start->variables.data, order.len);
    while ((link = guard_idle(g)) != NULL &&
           !message_send(link->control, &order, GUARD_ORDER_LEAST + order.len, files,
                         GUARD_FILES)) {
        if (errno != EPIPE && errno != ECONNRESET)
            return errno;
        guard_forget(g, link); /* it was killed */
    }
    if (link == NULL)
        return errno;
    link->process = p;
    p->guard = link;
    return 0;
}

/* The files of a command for one job. False with errno. */
static bool
files_open(const struct process_start *start, int from[GUARD_FILES])
{
    from[0] = memory_file("body", start->input);
    if (from[0] >= 0)
        from[2] = memory_file("metadata", start->metadata);
    return from[2] >= 0;
}

/*
 * Makes a pipe. *own: its end of this process, which does not block: the reading one (0)
 * or the writing one (1). False with errno.
 */
static bool
pipe_open(int *own, int *other, int end)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    *own = ends[end];
    *other = ends[1 - end];
    return fcntl(*own, F_SETFL, O_NONBLOCK) == 0;
}

/* The files of a kept command. False with errno. */
static bool
pipes_open(struct work_process *p, int from[GUARD_FILES])
{
    return pipe_open(&p->input, &from[0], 1) && pipe_open(&p->output, &from[2], 0);
}

static void
file_close(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

int
process_start(struct work_process *p, struct work_guards *g,
              const struct process_start *start)
{
    int from[GUARD_FILES] = {-1, -1, -1}, error = 0;

    *p = PROCESS_NONE;
    if (!(g->setup.keep ? pipes_open(p, from) : files_open(start, from)) ||
        !pipe_open(&p->errors, &from[1], 0))
        error = errno;
    if (error == 0)
        error = order_start(p, g, start, from);
    for (int i = 0; i < GUARD_FILES; i++)
        file_close(&from[i]);
    if (error != 0)
        process_end(p);
    return error;
}

/* Sends a later order to the guard. */
static bool
order_send(struct work_process *p, const struct guard_order *order)
{
    p->ordered = true;
    return message_send(p->guard->control, order, GUARD_ORDER_LEAST, NULL, 0);
}

bool
process_renew(struct work_process *p, int64_t term_ms, int64_t kill_ms)
{
    const struct guard_order order = {
        .kind = GUARD_LEASE, .term_ms = term_ms, .kill_ms = kill_ms};

    /*
     * If the guard does not read, it ends the command with the last lease that it knows.
     */
    return p->guard != NULL && order_send(p, &order);
}

void
process_stop(struct work_process *p, int64_t kill_ms)
{
    const struct guard_order order = {.kind = GUARD_STOP, .kill_ms = kill_ms};

    if (p->guard == NULL || kill_ms >= p->stop_ms)
        return;
    if (order_send(p, &order))
        p->stop_ms = kill_ms;
}

bool
stderr_is_writable(void)
{
    struct pollfd fd = {.fd = STDERR_FILENO, .events = POLLOUT};

    return poll(&fd, 1, 0) != 0; /* also if its reader is gone: then the write fails */
}

static void
tail_add(struct work_process *p, struct bytes text)
{
    if (text.len >= PROCESS_TAIL) {
        memcpy(p->tail, text.data + text.len - PROCESS_TAIL, PROCESS_TAIL);
        p->tail_len = PROCESS_TAIL;
        return;
    }
    if (p->tail_len + text.len > PROCESS_TAIL) {
        const size_t kept = PROCESS_TAIL - text.len;

        memmove(p->tail, p->tail + p->tail_len - kept, kept);
        p->tail_len = kept;
    }
    memcpy(p->tail + p->tail_len, text.data, text.len);
    p->tail_len += text.len;
}

void
process_read_errors(struct work_process *p)
{
    char chunk[PROCESS_CHUNK];
    ssize_t n;

    if (p->errors < 0)
        return;
    n = read(p->errors, chunk, sizeof(chunk));
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        file_close(&p->errors);
        return;
    }
    tail_add(p, bytes_of(chunk, (size_t)n));
    p->most_left -= p->most_left < (size_t)n ? p->most_left : (size_t)n;
    /* If nothing reads it, or its disk is full, the command must not wait for that. */
    (void)!write(STDERR_FILENO, chunk, (size_t)n);
}

bool
process_is_read(const struct work_process *p)
{
    int left = 0;

    return p->errors < 0 || p->most_left == 0 || ioctl(p->errors, FIONREAD, &left) != 0 ||
           left == 0;
}

void
process_end(struct work_process *p)
{
    if (p->guard != NULL)
        p->guard->process = NULL; /* it is busy, and no later command is started */
    p->guard = NULL;
    file_close(&p->errors);
    file_close(&p->input);
    file_close(&p->output);
}

void
process_end_input(struct work_process *p)
{
    file_close(&p->input);
}

size_t
process_unread(const struct work_process *p)
{
    int left = 0;

    return p->input >= 0 && ioctl(p->input, FIONREAD, &left) == 0 ? (size_t)left : 0;
}
