#include "client/work_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The largest number of a process in Linux. */
enum { PID_MOST = 4 * 1024 * 1024 };

/* Bytes of texts of /proc that are read; levels of a tree that one call kills. */
enum { STAT_TEXT = 256, LIST_TEXT = 1024, DEPTH_MOST = 64 };

struct tree {
    tree_keep_fn *keep;
    const void *ctx;
    bool any; /* a child was found */
    bool busy, foreign;
};

/* Reads the beginning of a file of /proc as text. False: there is none. */
static bool
proc_read(pid_t pid, const char *format, char *text, size_t cap)
{
    char path[64];
    ssize_t n = 0;
    int fd;

    (void)snprintf(path, sizeof(path), format, (int)pid, (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    n = read(fd, text, cap - 1);
    (void)close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

static pid_t
parent_of(pid_t pid)
{
    char text[STAT_TEXT];
    const char *end;

    if (!proc_read(pid, "/proc/%d/stat", text, sizeof(text)))
        return 0;
    end = strrchr(text, ')'); /* behind the name: state and parent */
    return end != NULL && strlen(end) > 4 ? (pid_t)strtol(end + 4, NULL, 10) : 0;
}

/*
 * Kills a process that was a child of `parent`, and all that the main threads below it
 * have started. The others follow when their parents have ended. A descriptor makes sure
 * that the number does not change its process.
 */
static void
descendant_kill(pid_t pid, pid_t parent, int depth)
{
    const int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    const pid_t now = fd >= 0 ? parent_of(pid) : 0;
    char text[LIST_TEXT] = "", *at = text;

    if (fd >= 0 && (now == parent || now == getpid())) {
        (void)proc_read(pid, "/proc/%d/task/%d/children", text, sizeof(text));
        (void)syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
    }
    if (fd >= 0)
        (void)close(fd);
    for (long child; depth < DEPTH_MOST && (child = strtol(at, &at, 10)) > 0;)
        if (*at == ' ') /* it is whole */
            descendant_kill((pid_t)child, pid, depth + 1);
}

static void
child_kill(struct tree *t, pid_t pid)
{
    siginfo_t info = {.si_pid = 0};
    char text[LIST_TEXT] = "", *at = text;

    if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0)
        return; /* it is no child */
    t->any = true;
    if (t->keep != NULL && t->keep(t->ctx, pid))
        return;
    if (info.si_pid == 0)
        (void)proc_read(pid, "/proc/%d/task/%d/children", text, sizeof(text));
    if (info.si_pid != 0 || kill(pid, SIGKILL) == 0)
        t->busy = true;
    else
        t->foreign = true;
    for (long child; (child = strtol(at, &at, 10)) > 0;)
        if (*at == ' ')
            descendant_kill((pid_t)child, pid, 1);
}

/* Kills the children that /proc lists: decimal numbers, each with a space behind it. */
static void
listed_kill(struct tree *t)
{
    const int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    char text[4096];
    ssize_t n;
    pid_t pid = 0;

    if (fd < 0)
        return;
    while ((n = read(fd, text, sizeof(text))) > 0)
        for (ssize_t i = 0; i < n; i++) {
            if (text[i] >= '0' && text[i] <= '9') {
                pid = pid * 10 + (text[i] - '0');
            } else if (pid > 0) {
                child_kill(t, pid);
                pid = 0;
            }
        }
    (void)close(fd);
}

/* The largest number that a process can have here. */
static pid_t
pid_most(void)
{
    const int fd = open("/proc/sys/kernel/pid_max", O_RDONLY | O_CLOEXEC);
    char text[16] = "";
    long most = PID_MOST;

    if (fd < 0)
        return PID_MOST;
    if (read(fd, text, sizeof(text) - 1) > 0)
        most = strtol(text, NULL, 10);
    (void)close(fd);
    return most > 0 && most < PID_MOST ? (pid_t)most : PID_MOST;
}

static enum tree_state
tree_state(const struct tree *t)
{
    return t->busy ? TREE_BUSY : t->foreign ? TREE_FOREIGN : TREE_EMPTY;
}

enum tree_state
tree_kill_by_number(tree_keep_fn *keep, const void *ctx)
{
    struct tree t = {.keep = keep, .ctx = ctx};
    const pid_t most = pid_most();

    for (pid_t pid = 1; pid <= most; pid++)
        child_kill(&t, pid);
    return tree_state(&t);
}

enum tree_state
tree_kill(tree_keep_fn *keep, const void *ctx)
{
    struct tree t = {.keep = keep, .ctx = ctx};
    siginfo_t info;

    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0)
        return TREE_EMPTY; /* there are no children */
    listed_kill(&t);
    return t.any ? tree_state(&t) : tree_kill_by_number(keep, ctx);
}
