#include "main/run/run_server.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { READY_FD = 3, CANNOT = 127 };

/* What a supervisor has told `claimd run` is not for its servers. */
static void
forget_supervisor(void)
{
    static const char *const names[] = {"NOTIFY_SOCKET", "WATCHDOG_USEC",
                                        "WATCHDOG_PID",  "LISTEN_PID",
                                        "LISTEN_FDS",    "LISTEN_FDNAMES"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        (void)unsetenv(names[i]);
}

/* Standard descriptors, READY_FD, and no other: others may wait for the end of theirs. */
static bool
arrange(int ready, int log)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
        (log >= 0 && dup2(log, STDERR_FILENO) < 0))
        return false;
    if (ready == READY_FD ? fcntl(ready, F_SETFD, 0) < 0 : dup2(ready, READY_FD) < 0)
        return false;
    return close_range(READY_FD + 1, UINT_MAX, 0) == 0 || errno == ENOSYS;
}

/* The program that runs; by its name, where that still leads to it. */
static void
become(char *const *words)
{
    char path[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);

    if (len > 0) {
        path[len] = '\0';
        (void)execv(path, words);
    }
    (void)execv("/proc/self/exe", words);
}

static void __attribute__((noreturn))
be_server(char *const *words, pid_t parent, int ready, int log)
{
    sigset_t none;

    (void)sigemptyset(&none);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        _exit(CANNOT);
    (void)setsid();
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGHUP, SIG_DFL); /* nohup is not for it */
    forget_supervisor();
    if (arrange(ready, log))
        become(words);
    (void)dprintf(STDERR_FILENO, "claimd: a server cannot be run: %s\n", strerror(errno));
    _exit(CANNOT);
}

bool
run_server_start(struct run_server *s, char *const *words, int log)
{
    const pid_t parent = getpid();
    int ends[2], error;

    *s = (struct run_server){.ready = -1};
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    s->pid = fork();
    if (s->pid == 0)
        be_server(words, parent, ends[1], log);
    error = errno;
    (void)close(ends[1]);
    if (s->pid > 0) {
        s->ready = ends[0];
        return true;
    }
    s->pid = 0;
    (void)close(ends[0]);
    errno = error;
    return false;
}

/* "claimd listening on http://127.0.0.1:40123" comes in one write, and is short. */
bool
run_server_read_address(struct run_server *s)
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

void
run_server_signal(const struct run_server *s, int number)
{
    if (s->pid > 0)
        (void)kill(s->pid, number);
}
