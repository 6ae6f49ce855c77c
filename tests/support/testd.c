/*
 * testd: claimd with a clock that stands still until a line of input moves it.
 *
 * Takes the options of claimd and prints the same line when ready. Then each line on
 * standard input is a command:
 *
 *     advance 60000      moves the clock on by so many milliseconds
 *     now                does nothing
 *
 * and the response to each is "ok <now_ms>" on standard output once everything that
 * fell due has happened, or by "error <why>". The end of the input ends nothing.
 *
 * The environment variable TESTD_NOW_MS is the time at the start, in milliseconds since
 * 1970.
 */
#include "main/program.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

extern char **environ;

enum { COMMAND_CAP = 256 };

struct commander {
    struct clock *clock;
    struct daemon *daemon;
    pthread_t thread;
    int end_fd;
    char line[COMMAND_CAP];
    size_t len;
};

static void
obey(struct commander *c, struct bytes command)
{
    static const char advance[] = "advance ";
    struct bytes amount = command;
    int64_t by_ms;

    if (bytes_equal_str(command, "now")) {
        by_ms = 0;
    } else if (command.len >= sizeof(advance) &&
               memcmp(command.data, advance, sizeof(advance) - 1) == 0) {
        amount.data += sizeof(advance) - 1;
        amount.len -= sizeof(advance) - 1;
        if (!bytes_to_i64(amount, &by_ms) || by_ms < 0) {
            (void)puts("error milliseconds are a number, and time runs forwards");
            return;
        }
    } else {
        (void)puts("error there is no such command");
        return;
    }
    clock_advance(c->clock, by_ms);
    daemon_clock_moved(c->daemon);
    (void)printf("ok %lld\n", (long long)clock_now_ms(c->clock));
}

/* Obeys the whole lines in the buffer and keeps the rest. */
static void
obey_lines(struct commander *c)
{
    struct bytes rest = bytes_of(c->line, c->len);
    const char *end;

    while ((end = memchr(rest.data, '\n', rest.len)) != NULL) {
        obey(c, bytes_trim(bytes_of(rest.data, (size_t)(end - rest.data))));
        (void)fflush(stdout);
        rest = bytes_of(end + 1, rest.len - (size_t)(end + 1 - rest.data));
    }
    if (rest.len == sizeof(c->line))
        rest.len = 0; /* no command is that long */
    memmove(c->line, rest.data, rest.len);
    c->len = rest.len;
}

static void *
command_thread(void *arg)
{
    struct commander *c = arg;
    struct pollfd fds[] = {{.fd = c->end_fd, .events = POLLIN},
                           {.fd = STDIN_FILENO, .events = POLLIN}};

    for (;;) {
        ssize_t n;

        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            return NULL;
        if (fds[0].revents != 0)
            return NULL;
        if (fds[1].revents == 0)
            continue;
        n = read(STDIN_FILENO, c->line + c->len, sizeof(c->line) - c->len);
        if (n <= 0)
            fds[1].fd = -1; /* the end of the input: from now on only the end counts */
        else
            c->len += (size_t)n;
        obey_lines(c);
    }
}

static void
begin_commands(void *ctx, struct daemon *d)
{
    struct commander *c = ctx;

    c->daemon = d;
    c->end_fd = eventfd(0, EFD_CLOEXEC);
    if (c->end_fd < 0 || pthread_create(&c->thread, NULL, command_thread, c) != 0)
        abort(); /* a test cannot go on without it */
}

static void
end_commands(void *ctx, struct daemon *d)
{
    struct commander *c = ctx;

    (void)d;
    (void)eventfd_write(c->end_fd, 1);
    (void)pthread_join(c->thread, NULL);
    (void)close(c->end_fd);
}

int
main(int argc, char **argv)
{
    struct commander commander = {.len = 0};
    struct clock system, manual;
    const struct program program = {"of a test", argc, argv, environ};
    struct config config;
    const char *given = getenv("TESTD_NOW_MS");
    int64_t now_ms;
    int status;

    clock_init_system(&system);
    if (given == NULL || !bytes_to_i64(bytes_str(given), &now_ms))
        now_ms = clock_now_ms(&system);
    clock_init_manual(&manual, now_ms);
    commander.clock = &manual;
    if (!program_begin(&program, &config, &status))
        return status;
    return program_serve(&config, &manual, begin_commands, end_commands, &commander);
}
