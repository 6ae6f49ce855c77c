#include "support/redis_server.h"

#include <check.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MS = 10000, STEP_MS = 2 };

static void
socket_path(const struct redis_server *s, char *out, size_t size)
{
    snprintf(out, size, "%s/socket", s->folder);
}

static void __attribute__((noreturn)) be_server(const struct redis_server *s)
{
    const char *other = getenv("REDIS_SERVER");
    const char *program = other != NULL && *other != '\0' ? other : "redis-server";
    char path[sizeof(s->folder) + 16];

    socket_path(s, path, sizeof(path));
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)execlp(program, program, "--port", "0", "--unixsocket", path, "--dir",
                 s->folder, "--save", "", "--appendonly", "no", "--loglevel", "warning",
                 "--logfile", "log", (char *)NULL);
    _exit(127);
}

/* A connection; -1: not yet. */
static int
dial(const struct redis_server *s)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    socket_path(s, address.sun_path, sizeof(address.sun_path));
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

void
redis_server_say(const struct redis_server *s, const char *command, const char *expected)
{
    char response[64] = "";
    int fd = dial(s);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(send(fd, command, strlen(command), MSG_NOSIGNAL),
                     (ssize_t)strlen(command));
    ck_assert_int_gt(recv(fd, response, sizeof(response) - 1, 0), 0);
    ck_assert_str_eq(response, expected);
    (void)close(fd);
}

void
redis_server_start(struct redis_server *s)
{
    int fd = -1;

    snprintf(s->folder, sizeof(s->folder), "/tmp/claimd-redis-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(s->folder));
    snprintf(s->url, sizeof(s->url), "redis+unix://%s/socket", s->folder);
    s->pid = fork();
    ck_assert_int_ge(s->pid, 0);
    if (s->pid == 0)
        be_server(s);
    for (int waited = 0; fd < 0 && waited < PATIENCE_MS; waited += STEP_MS) {
        ck_assert_msg(waitpid(s->pid, NULL, WNOHANG) == 0, "no redis-server here");
        fd = dial(s);
        if (fd < 0)
            (void)poll(NULL, 0, STEP_MS);
    }
    ck_assert_msg(fd >= 0, "redis-server does not respond");
    (void)close(fd);
}

void
redis_server_flush(const struct redis_server *s)
{
    redis_server_say(s, "FLUSHALL\r\n", "+OK\r\n");
}

void
redis_server_stop(struct redis_server *s)
{
    static const char *const files[] = {"socket", "log"};
    char path[sizeof(s->folder) + 16];

    (void)kill(s->pid, SIGKILL);
    (void)waitpid(s->pid, NULL, 0);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", s->folder, files[i]);
        (void)unlink(path);
    }
    (void)rmdir(s->folder);
}
