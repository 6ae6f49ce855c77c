#include "client/work_process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { METADATA_FD = 3, ERRORS_MOST = 1 << 20 };

bool
process_reserve_descriptors(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd <= METADATA_FD);
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

/* Becomes the command, in a child that shares the memory of its parent. Returns errno if it cannot. */
static int
exec_command(const struct process_start *start, pid_t parent, const int from[3])
{
    static const int to[3] = {STDIN_FILENO, STDERR_FILENO, METADATA_FD};

    if (setpgid(0, 0) != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
        return errno;
    if (getppid() != parent)
        return ECHILD;
    for (int i = 0; i < 3; i++)
        if (dup2(from[i], to[i]) < 0)
            return errno;
    /* Libraries open files without O_CLOEXEC, and a job would keep their connections open. */
    if (close_range(METADATA_FD + 1, UINT_MAX, CLOSE_RANGE_CLOEXEC) != 0 &&
        errno != ENOSYS && errno != EINVAL)
        return errno;
    (void)sigprocmask(SIG_SETMASK, start->signals, NULL);
    (void)execvpe(start->command[0], start->command, start->environment);
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

/* Forks. Not inlined, because the child of vfork() must not change variables of its caller. */
static int __attribute__((noinline))
spawn(const struct process_start *start, const int from[3], pid_t *pid)
{
    const pid_t parent = getpid();
    int report[2], error;
    pid_t child;

    if (pipe2(report, O_CLOEXEC) != 0)
        return errno;
    child = vfork();
    if (child == 0) {
        const int failed = exec_command(start, parent, from);

        (void)!write(report[1], &failed, sizeof(failed));
        _exit(EXIT_NOT_FOUND);
    }
    error = child < 0 ? errno : 0;
    (void)close(report[1]);
    if (child > 0)
        error = read_error(report[0]);
    (void)close(report[0]);
    if (child > 0 && error != 0)
        (void)waitpid(child, NULL, 0);
    *pid = child;
    return error;
}

int
process_start(struct work_process *p, const struct process_start *start)
{
    int pipe_ends[2] = {-1, -1}, from[3] = {-1, -1, -1}, error = 0;

    p->pid = 0;
    p->errors = -1;
    p->tail_len = 0;
    from[0] = memory_file("body", start->input);
    if (from[0] >= 0)
        from[2] = memory_file("metadata", start->metadata);
    if (from[2] < 0 || pipe2(pipe_ends, O_CLOEXEC) != 0 ||
        fcntl(pipe_ends[0], F_SETFL, O_NONBLOCK) != 0)
        error = errno;
    from[1] = pipe_ends[1];
    if (error == 0)
        error = spawn(start, from, &p->pid);
    for (int i = 0; i < 3; i++)
        if (from[i] >= 0)
            (void)close(from[i]);
    if (error == 0) {
        p->errors = pipe_ends[0];
    } else {
        p->pid = 0;
        if (pipe_ends[0] >= 0)
            (void)close(pipe_ends[0]);
    }
    return error;
}

void
process_signal(const struct work_process *p, int number)
{
    if (p->pid > 0)
        (void)kill(-p->pid, number);
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
        (void)close(p->errors);
        p->errors = -1;
        return;
    }
    tail_add(p, bytes_of(chunk, (size_t)n));
    p->most_left -= p->most_left < (size_t)n ? p->most_left : (size_t)n;
    if (write(STDERR_FILENO, chunk, (size_t)n) < 0)
        return; /* nothing reads it, or its disk is full: the command must not wait for that */
}

void
process_reap(struct work_process *p)
{
    /* The command is a zombie, so no other group has its number. */
    process_signal(p, SIGKILL);
    while (waitpid(p->pid, &p->status, 0) < 0 && errno == EINTR)
        ;
    p->pid = 0;
    p->most_left = ERRORS_MOST;
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
    if (p->pid > 0)
        process_reap(p);
    if (p->errors >= 0)
        (void)close(p->errors);
    p->errors = -1;
}
