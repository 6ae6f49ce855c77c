#include "claimd/base/clock.h"
#include "main/command.h"
#include "main/program.h"
#include "main/run/run.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    STOPPING_S = 10, /* for the ends of all servers, unless a signal comes */
    HURRIED_S = 2    /* likewise */
};

/* The end of one that should have begun; its own words say why, where it writes them. */
static int
tell_failure(const struct run *r, struct run_server *s)
{
    if (s->pid > 0 && waitpid(s->pid, &s->status, 0) == s->pid)
        s->pid = 0;
    if (WIFEXITED(s->status) && WEXITSTATUS(s->status) == EXIT_USAGE)
        return COMMAND_USAGE;
    return command_fails(RUN_BROKEN, "a server did not start%s%s",
                         r->words.log == NULL ? "" : ". See ",
                         r->words.log == NULL ? "" : r->words.log);
}

int
run_servers_start(struct run *r)
{
    for (size_t i = 0; i < r->words.instances; i++)
        if (!run_server_start(&r->servers[i], r->words.server, r->log))
            return command_fails(RUN_BROKEN, "a server cannot be run: %s",
                                 strerror(errno));
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

int
run_servers_await(struct run *r)
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
        run_rest(r, fds, r->words.instances, 0);
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

int
run_servers_begin(struct run *r)
{
    r->serving = true;
    for (size_t i = 0; i < r->words.instances; i++)
        if (r->servers[i].pid == 0) {
            run_tell_end(&r->servers[i]);
            return RUN_BROKEN;
        }
    return COMMAND_GOOD;
}

void
run_servers_stop(struct run *r, bool hurried)
{
    const int64_t until_ns =
        clock_stopwatch_ns() + (hurried ? HURRIED_S : STOPPING_S) * RUN_SECOND_NS;
    struct pollfd fds[2];

    r->serving = false;
    signal_servers(r, SIGTERM);
    run_reap(r);
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
