#include "main/run/run.h"

#include "claimd/base/entropy.h"
#include "main/command.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { READY_FD = 3, CANNOT = 127 };

/* ------------------------------------------------------------------ servers */

/* Standard descriptors, READY_FD, and no other: others may wait for the end of theirs. */
static bool
arrange_descriptors(int ready, int log)
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
exec_self(char *const *words)
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
    static const char *const of_supervisor[] = {"NOTIFY_SOCKET", "WATCHDOG_USEC",
                                                "WATCHDOG_PID",  "LISTEN_PID",
                                                "LISTEN_FDS",    "LISTEN_FDNAMES"};
    sigset_t none;

    (void)sigemptyset(&none);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        _exit(CANNOT);
    (void)setsid();
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGHUP, SIG_DFL); /* nohup is not for it */
    for (size_t i = 0; i < sizeof(of_supervisor) / sizeof(of_supervisor[0]); i++)
        (void)unsetenv(of_supervisor[i]); /* what it says is for `claimd run` */
    if (arrange_descriptors(ready, log))
        exec_self(words);
    (void)dprintf(STDERR_FILENO, "claimd: a server cannot be run: %s\n", strerror(errno));
    _exit(CANNOT);
}

bool
run_server_start(struct run *r, struct run_server *s)
{
    const pid_t parent = getpid();
    int ends[2], error;

    *s = (struct run_server){.ready = -1};
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    s->pid = fork();
    if (s->pid == 0)
        be_server(r->words.server, parent, ends[1], r->log);
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

/* ------------------------------------------------------------------ environment */

/* Takes out every variable whose name begins so. */
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

static bool
set_urls(const struct run_words *words, const struct run_server *servers)
{
    char name[32], url[96];
    bool good = true;

    for (size_t i = words->instances; i > 0; i--) {
        (void)snprintf(url, sizeof(url), "http://%s", servers[i - 1].address);
        (void)snprintf(name, sizeof(name), "CLAIMD_URL_%zu", i);
        good = good && (!words->numbered || setenv(name, url, 1) == 0);
    }
    return good && setenv("CLAIMD_URL", url, 1) == 0; /* of the first */
}

/*
 * For python-zaqarclient, openstacksdk and gophercloud. The last wants OS_DOMAIN_ID, which the
 * others take for the two in front of it.
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

/* What is in a list of hosts, or else in the other, and ours; NULL: no memory. */
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
 * The servers are on this machine: no proxy is asked for them. Some programs look for the one
 * name first, some for the other.
 */
static bool
set_no_proxy(void)
{
    char *lower = with_loopback("no_proxy", "NO_PROXY");
    char *upper = with_loopback("NO_PROXY", "no_proxy");
    bool good = lower != NULL && upper != NULL && setenv("no_proxy", lower, 1) == 0 &&
                setenv("NO_PROXY", upper, 1) == 0;

    free(lower);
    free(upper);
    return good;
}

bool
run_command_prepare(const struct run *r)
{
    unset_variables("OS_");
    unset_variables("CLAIMD_URL");
    return set_urls(&r->words, r->servers) && set_openstack(&r->servers[0], r->region) &&
           set_no_proxy();
}

/* ------------------------------------------------------------------ command */

static void __attribute__((noreturn))
be_command(char *const *words, pid_t parent, const sigset_t *blocked, int told)
{
    int error;

    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        _exit(RUN_CANNOT);
    (void)sigprocmask(SIG_SETMASK, blocked, NULL);
    (void)execvp(words[0], words);
    error = errno;
    (void)!write(told, &error, sizeof(error)); /* else it looks as if it had ended so */
    _exit(error == ENOENT ? RUN_NO_SUCH : RUN_CANNOT);
}

int
run_command_start(struct run *r)
{
    const pid_t parent = getpid();
    char *const *words = r->words.command;
    int ends[2], error = 0;
    ssize_t n;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return command_fails(RUN_CANNOT, "%s cannot be run: %s", words[0],
                             strerror(errno));
    r->command = fork();
    if (r->command == 0)
        be_command(words, parent, &r->before, ends[1]);
    if (r->command < 0)
        error = errno;
    (void)close(ends[1]);
    do /* it tells why it could not be run; the pipe closes when it runs */
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
