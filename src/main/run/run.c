#include "main/run/run.h"

#include "claimd/base/clock.h"
#include "claimd/base/entropy.h"
#include "main/command.h"
#include "main/exit_status.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { READY_FD = 3, CANNOT = 127 };

static void __attribute__((noreturn))
exec_server(char *const *words, pid_t parent, int ready, int log)
{
    static const char *const of_supervisor[] = {"NOTIFY_SOCKET", "WATCHDOG_USEC",
                                                "WATCHDOG_PID",  "LISTEN_PID",
                                                "LISTEN_FDS",    "LISTEN_FDNAMES"};
    sigset_t none;
    int null;

    (void)sigemptyset(&none);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        _exit(CANNOT);
    (void)setsid();
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGHUP, SIG_DFL); /* nohup is only for CMD */
    for (size_t i = 0; i < sizeof(of_supervisor) / sizeof(of_supervisor[0]); i++)
        (void)unsetenv(of_supervisor[i]); /* variables for `claimd run` only */
    null = open("/dev/null", O_RDWR | O_CLOEXEC);
    /* Close all other descriptors, because processes may wait for their ends. */
    if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(null, STDOUT_FILENO) >= 0 &&
        (log < 0 || dup2(log, STDERR_FILENO) >= 0) &&
        (ready == READY_FD ? fcntl(ready, F_SETFD, 0) : dup2(ready, READY_FD)) >= 0 &&
        (close_range(READY_FD + 1, UINT_MAX, 0) == 0 || errno == ENOSYS)) {
        char path[PATH_MAX];
        ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);

        /* By its path, if that still exists, otherwise by the link. */
        path[len < 0 ? 0 : len] = '\0';
        (void)execv(path, words);
        (void)execv("/proc/self/exe", words);
    }
    (void)dprintf(STDERR_FILENO, "claimd: a server cannot be run: %s\n", strerror(errno));
    _exit(CANNOT);
}

/* Starts a server. False and errno on failure. */
static bool
start_server(struct test_run *r, struct run_server *s)
{
    const pid_t parent = getpid();
    int ends[2], error;

    *s = (struct run_server){.ready = -1};
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    s->pid = fork();
    if (s->pid == 0)
        exec_server(r->words.server, parent, ends[1], r->log);
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

/* Unsets all variables whose names begin with the prefix. */
static void
unset_variables(const char *prefix)
{
    const size_t len = strlen(prefix);
    size_t at = 0;

    while (environ != NULL && environ[at] != NULL) {
        const char *end = strchr(environ[at], '=');
        char name[256];

        if (strncmp(environ[at], prefix, len) != 0 || end == NULL ||
            (size_t)(end - environ[at]) >= sizeof(name)) {
            at++;
            continue;
        }
        (void)snprintf(name, sizeof(name), "%.*s", (int)(end - environ[at]), environ[at]);
        (void)unsetenv(name);
    }
}

/*
 * Sets the variables of python-zaqarclient, openstacksdk and gophercloud. gophercloud
 * needs OS_DOMAIN_ID; the others need the two variables before it.
 */
static bool
set_openstack(const struct run_server *server, const char *region)
{
    char auth_url[96], client[37];
    const char *const variables[][2] = {
        {"OS_AUTH_URL", auth_url},           {"OS_IDENTITY_API_VERSION", "3"},
        {"OS_USERNAME", "claimd"},           {"OS_PASSWORD", "claimd"},
        {"OS_PROJECT_NAME", "claimd"},       {"OS_USER_DOMAIN_ID", "default"},
        {"OS_PROJECT_DOMAIN_ID", "default"}, {"OS_DOMAIN_ID", "default"},
        {"OS_REGION_NAME", region},          {"OS_MESSAGE_CLIENT_ID", client}};

    (void)snprintf(auth_url, sizeof(auth_url), "http://%s/identity", server->address);
    uid_text(client);
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
        if (setenv(variables[i][0], variables[i][1], 1) != 0)
            return false;
    return true;
}

/* Appends 127.0.0.1 to the list of hosts in one of two variables. Owned; NULL without
 * memory. */
static char *
with_loopback(const char *name, const char *other)
{
    const char *hosts = getenv(name);
    char *grown;

    if (hosts == NULL)
        hosts = getenv(other);
    if (hosts == NULL)
        hosts = "";
    return asprintf(&grown, "%s%s127.0.0.1", hosts, hosts[0] == '\0' ? "" : ",") < 0
               ? NULL
               : grown;
}

/*
 * Sets the environment of CMD: the URLs of the servers, and the variables of OpenStack
 * clients. Unsets variables of other clouds. False without memory.
 */
static bool
prepare_environment(const struct test_run *r)
{
    /* No proxy for the servers. Programs differ in the spelling that they prefer. */
    char *lower = with_loopback("no_proxy", "NO_PROXY");
    char *upper = with_loopback("NO_PROXY", "no_proxy");
    bool good = lower != NULL && upper != NULL && setenv("no_proxy", lower, 1) == 0 &&
                setenv("NO_PROXY", upper, 1) == 0;
    char name[32], url[96];

    free(lower);
    free(upper);
    unset_variables("OS_");
    unset_variables("CLAIMD_URL");
    for (size_t i = r->words.instances; i > 0; i--) {
        (void)snprintf(url, sizeof(url), "http://%s", r->servers[i - 1].address);
        (void)snprintf(name, sizeof(name), "CLAIMD_URL_%zu", i);
        good = good && (!r->words.numbered || setenv(name, url, 1) == 0);
    }
    return good && setenv("CLAIMD_URL", url, 1) == 0 && /* of the first */
           set_openstack(&r->servers[0], r->region);
}

static void __attribute__((noreturn))
exec_command(char *const *words, pid_t parent, const sigset_t *blocked, int result)
{
    int error;

    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        _exit(RUN_CANNOT);
    (void)sigprocmask(SIG_SETMASK, blocked, NULL);
    (void)execvp(words[0], words);
    error = errno;
    (void)!write(result, &error, sizeof(error)); /* if it fails, the status tells */
    _exit(error == ENOENT ? RUN_NO_SUCH : RUN_CANNOT);
}

int
run_command_start(struct test_run *r)
{
    const pid_t parent = getpid();
    char *const *words = r->words.command;
    int ends[2], error = 0;
    ssize_t n;

    if (!prepare_environment(r))
        return command_fails(RUN_BROKEN, "out of memory");
    if (pipe2(ends, O_CLOEXEC) != 0)
        return command_fails(RUN_CANNOT, "%s cannot be run: %s", words[0],
                             strerror(errno));
    r->command = fork();
    if (r->command == 0)
        exec_command(words, parent, &r->before, ends[1]);
    if (r->command < 0)
        error = errno;
    (void)close(ends[1]);
    do /* read an errno, or the end of the pipe when CMD runs */
        n = error == 0 ? read(ends[0], &error, sizeof(error)) : 0;
    while (n < 0 && errno == EINTR);
    (void)close(ends[0]);
    if (error == 0)
        return 0;
    if (r->command > 0)
        (void)waitpid(r->command, NULL, 0);
    r->command = 0;
    return command_fails(error == ENOENT ? RUN_NO_SUCH : RUN_CANNOT,
                         "%s cannot be run: %s", words[0], strerror(error));
}

/* Time limits: of CMD after the end of the parent; of servers; of servers if
 * `hurried`. */
enum { ORPHANED_S = 2, STOPPING_S = 10, HURRIED_S = 2 };

static void
report_server_end(const struct run_server *s)
{
    if (WIFSIGNALED(s->status))
        (void)command_fails(0, "the server at %s was killed by signal %d", s->address,
                            WTERMSIG(s->status));
    else
        (void)command_fails(0, "the server at %s has ended with status %d", s->address,
                            WEXITSTATUS(s->status));
}

static void
child_ended(struct test_run *r, pid_t pid, int status)
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
        report_server_end(s);
    }
}

/* Waits for ended children, also those that were inherited as PID 1. */
static void
reap_children(struct test_run *r)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
        const int number = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;

        if (!WIFSTOPPED(status))
            child_ended(r, pid, status);
        else if (pid == r->command &&
                 (number == SIGTSTP || number == SIGTTIN || number == SIGTTOU))
            (void)raise(SIGSTOP); /* the terminal stopped CMD, so stop with it */
    }
}

static const int forwarded_signals[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGUSR1,
                                        SIGUSR2, SIGTSTP, SIGCONT, SIGWINCH};

/* The kernel sends it when the thread of the parent that started this process ends. */
#define PARENT_SIGNAL SIGRTMIN

bool
run_read_signals(struct test_run *r)
{
    sigset_t set;

    /* The parent may have set SIGCHLD to be ignored. */
    (void)signal(SIGCHLD, SIG_DFL);
    (void)sigemptyset(&set);
    for (size_t i = 0; i < sizeof(forwarded_signals) / sizeof(forwarded_signals[0]); i++)
        (void)sigaddset(&set, forwarded_signals[i]);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigaddset(&set, PARENT_SIGNAL);
    r->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    (void)sigaddset(&set, SIGPIPE); /* standard error may have no reader */
    if (r->signals < 0 || sigprocmask(SIG_BLOCK, &set, &r->before) != 0)
        return false;
    /*
     * The signal shows the end of a thread, the descriptor the end of the process. There
     * is no descriptor for a parent in another PID namespace, or with an old kernel.
     */
    r->parent = getppid();
    (void)prctl(PR_SET_PDEATHSIG, PARENT_SIGNAL);
    if (r->parent > 0)
        r->parent_end = (int)syscall(SYS_pidfd_open, r->parent, 0);
    if (r->parent_end >= 0)
        (void)fcntl(r->parent_end, F_SETFD, FD_CLOEXEC);
    return true;
}

/* Ends CMD after the end of the parent: by SIGTERM now, and by SIGKILL at kill_at_ns. */
static void
become_orphan(struct test_run *r)
{
    if (r->orphaned)
        return;
    r->orphaned = true;
    r->stopped_by = SIGTERM;
    if (r->command > 0) {
        (void)kill(r->command, SIGTERM);
        (void)kill(r->command, SIGCONT);
    }
    r->kill_at_ns = clock_stopwatch_ns() + ORPHANED_S * RUN_SECOND_NS;
}

/* Forwards a signal to CMD, unless the terminal sent it, because CMD got it then, too. */
static void
forward_signal(struct test_run *r, const struct signalfd_siginfo *info)
{
    const int number = (int)info->ssi_signo;

    if (number == SIGCHLD)
        return;
    if (number == PARENT_SIGNAL) {
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

/* Milliseconds until a time, 0 if it has come. */
static int
left_ms(int64_t until_ns)
{
    int64_t left_ns = until_ns - clock_stopwatch_ns();

    return left_ns <= 0 ? 0 : (int)(left_ns / 1000000) + 1;
}

/*
 * Sleeps until an event of the signals, the parent or one of the descriptors, behind
 * which `fds` has space for two more. Ends at until_ns (clock_stopwatch_ns()); 0: no
 * limit.
 */
static void
wait_for_events(struct test_run *r, struct pollfd *fds, size_t count, int64_t until_ns)
{
    struct signalfd_siginfo info;

    fds[count] = (struct pollfd){.fd = r->signals, .events = POLLIN};
    fds[count + 1] =
        (struct pollfd){.fd = r->orphaned ? -1 : r->parent_end, .events = POLLIN};
    if (poll(fds, (nfds_t)count + 2, until_ns == 0 ? -1 : left_ms(until_ns)) < 0)
        return; /* interrupted */
    if (fds[count + 1].revents != 0)
        become_orphan(r);
    while (read(r->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
        forward_signal(r, &info);
    reap_children(r);
}

void
run_wait_for_command(struct test_run *r)
{
    struct pollfd fds[2];

    while (r->command > 0) {
        wait_for_events(r, fds, 0, r->kill_at_ns);
        if (r->command == 0 || r->kill_at_ns == 0 || left_ms(r->kill_at_ns) > 0)
            continue;
        (void)kill(r->command, SIGKILL);
        r->kill_at_ns = 0;
    }
}

/* Reads "claimd listening on http://127.0.0.1:40123", which the server writes at once. */
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

/* Waits for the addresses of all servers. Returns an exit status. */
static int
wait_for_addresses(struct test_run *r)
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
        wait_for_events(r, fds, r->words.instances, 0);
        if (r->stopped_by != 0)
            return RUN_SIGNALLED + r->stopped_by;
        for (size_t i = 0; i < r->words.instances; i++) {
            struct run_server *s = &r->servers[i];

            if (fds[i].revents == 0 || read_address(s))
                continue;
            /* The server ended instead of starting. Its log has the reason. */
            if (s->pid > 0 && waitpid(s->pid, &s->status, 0) == s->pid)
                s->pid = 0;
            if (WIFEXITED(s->status) && WEXITSTATUS(s->status) == EXIT_USAGE)
                return COMMAND_USAGE;
            return command_fails(RUN_BROKEN, "a server did not start%s%s",
                                 r->words.log == NULL ? "" : ". See ",
                                 r->words.log == NULL ? "" : r->words.log);
        }
    }
}

int
run_servers_start(struct test_run *r)
{
    int status;

    for (size_t i = 0; i < r->words.instances; i++)
        if (!start_server(r, &r->servers[i]))
            return command_fails(RUN_BROKEN, "a server cannot be run: %s",
                                 strerror(errno));
    status = wait_for_addresses(r);
    if (status != COMMAND_GOOD)
        return status;
    r->serving = true;
    for (size_t i = 0; i < r->words.instances; i++)
        if (r->servers[i].pid == 0) {
            report_server_end(&r->servers[i]);
            return RUN_BROKEN;
        }
    return COMMAND_GOOD;
}

/* Signals all servers that run, and returns their number. */
static size_t
signal_servers(const struct test_run *r, int number)
{
    size_t count = 0;

    for (size_t i = 0; i < r->words.instances; i++)
        count += r->servers[i].pid > 0 && kill(r->servers[i].pid, number) == 0;
    return count;
}

void
run_servers_stop(struct test_run *r, bool hurried)
{
    const int64_t until_ns =
        clock_stopwatch_ns() + (hurried ? HURRIED_S : STOPPING_S) * RUN_SECOND_NS;
    struct pollfd fds[2];

    r->serving = false;
    (void)signal_servers(r, SIGTERM);
    reap_children(r);
    while (signal_servers(r, 0) > 0 && r->stopped_by == 0 && left_ms(until_ns) > 0)
        wait_for_events(r, fds, 0, until_ns);
    (void)signal_servers(r, SIGKILL);
    for (size_t i = 0; i < r->words.instances; i++) {
        struct run_server *s = &r->servers[i];

        if (s->pid > 0)
            (void)waitpid(s->pid, NULL, 0);
        if (s->ready >= 0)
            (void)close(s->ready);
    }
}
