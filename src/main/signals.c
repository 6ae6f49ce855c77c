#include "main/signals.h"

#include "claimd/base/clock.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

static const struct {
    int number;
    const char *name;
} taken[] = {
    {SIGTERM, "SIGTERM"},
    {SIGINT, "SIGINT"},
    {SIGHUP, "SIGHUP"},
    {SIGUSR1, "SIGUSR1"},
};

#define TAKEN (sizeof(taken) / sizeof(taken[0]))

static sigset_t
taken_set(void)
{
    sigset_t set;

    (void)sigemptyset(&set);
    for (size_t i = 0; i < TAKEN; i++)
        (void)sigaddset(&set, taken[i].number);
    return set;
}

enum signal_verdict
signal_judge(struct signal_history *history, int number, int64_t now_ms)
{
    if (number == SIGHUP)
        return SIGNAL_RELOAD;
    if (number == SIGUSR1)
        return SIGNAL_PAUSE;
    if (history->stopped)
        return now_ms - history->stopped_ms >= SIGNALS_APART_MS ? SIGNAL_END
                                                                : SIGNAL_IGNORE;
    history->stopped = true;
    history->stopped_ms = now_ms;
    return SIGNAL_STOP;
}

void
signals_block(void)
{
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigset_t set = taken_set();

    (void)pthread_sigmask(SIG_BLOCK, &set, NULL); /* fails only when misused */
    (void)sigaction(SIGPIPE, &ignore, NULL);
}

static void
handle_signal(struct signals *s, int number, int64_t now_ms)
{
    size_t i = 0;

    switch (signal_judge(&s->history, number, now_ms)) {
    case SIGNAL_STOP:
        daemon_stop(s->daemon);
        break;
    case SIGNAL_END:
        _exit(128 + number);
    case SIGNAL_RELOAD:
        daemon_reload(s->daemon);
        break;
    case SIGNAL_PAUSE:
        daemon_pause(s->daemon);
        break;
    case SIGNAL_IGNORE:
        while (i < TAKEN - 1 && taken[i].number != number)
            i++;
        daemon_signal_ignored(s->daemon, taken[i].name);
        break;
    }
}

static int64_t
stopwatch_ms(void)
{
    return clock_stopwatch_ns() / 1000000;
}

/* Looks, if it is time for it. Returns for how long there is nothing to do; -1: for ever. */
static int
look_if_due(struct signals *s)
{
    const int64_t now_ms = stopwatch_ms();

    if (s->look_ms >= 0 && s->look_ms <= now_ms) {
        int64_t wait_ms = daemon_look(s->daemon);

        s->look_ms = wait_ms < 0 ? -1 : now_ms + wait_ms;
    }
    if (s->look_ms < 0)
        return -1;
    return s->look_ms - now_ms > INT_MAX ? INT_MAX : (int)(s->look_ms - now_ms);
}

static void *
take_signals(void *arg)
{
    struct signals *s = arg;
    struct pollfd fds[] = {{.fd = s->signal_fd, .events = POLLIN},
                           {.fd = s->end_fd, .events = POLLIN}};

    for (;;) {
        struct signalfd_siginfo infos[TAKEN];
        ssize_t size;

        if (poll(fds, 2, look_if_due(s)) < 0 && errno != EINTR)
            return NULL;
        if (fds[1].revents != 0)
            return NULL;
        size = read(s->signal_fd, infos, sizeof(infos));
        for (ssize_t i = 0; i < size / (ssize_t)sizeof(infos[0]); i++)
            handle_signal(s, (int)infos[i].ssi_signo, stopwatch_ms());
    }
}

enum status
signals_start(struct signals *s, struct daemon *daemon)
{
    sigset_t set = taken_set();

    *s = (struct signals){.daemon = daemon};
    s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    s->end_fd = eventfd(0, EFD_CLOEXEC);
    if (s->signal_fd >= 0 && s->end_fd >= 0 &&
        pthread_create(&s->thread, NULL, take_signals, s) == 0)
        return ST_OK;
    if (s->signal_fd >= 0)
        (void)close(s->signal_fd);
    if (s->end_fd >= 0)
        (void)close(s->end_fd);
    return ST_UNAVAILABLE;
}

void
signals_end(struct signals *s)
{
    (void)eventfd_write(s->end_fd, 1); /* the counter was 0 */
    (void)pthread_join(s->thread, NULL);
    (void)close(s->signal_fd);
    (void)close(s->end_fd);
}
