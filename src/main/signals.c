#include "main/signals.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

static sigset_t
taken(void)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    return set;
}

void
signals_block(void)
{
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigset_t set = taken();

    (void)pthread_sigmask(SIG_BLOCK, &set, NULL); /* fails only when misused */
    (void)sigaction(SIGPIPE, &ignore, NULL);
}

static void *
take_signals(void *arg)
{
    struct signals *s = arg;
    struct pollfd fds[] = {{.fd = s->signal_fd, .events = POLLIN},
                           {.fd = s->end_fd, .events = POLLIN}};
    struct signalfd_siginfo info;

    for (int count = 0;;) {
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            return NULL;
        if (fds[1].revents != 0)
            return NULL;
        if (read(s->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
            continue;
        if (++count > 1)
            _exit(128 + (int)info.ssi_signo);
        s->stop(s->ctx);
    }
}

enum status
signals_start(struct signals *s, signal_stop_fn *stop, void *ctx)
{
    sigset_t set = taken();

    *s = (struct signals){.stop = stop, .ctx = ctx};
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
