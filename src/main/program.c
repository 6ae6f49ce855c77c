#include "main/program.h"

#include "claimd/auth/token_line.h"
#include "claimd/json/tree.h"
#include "main/daemon_private.h"
#include "main/help.h"
#include "main/option.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

bool
program_begin(const struct program *program, struct config *config, int *status)
{
    struct config_errors errors = {.to = stderr};
    enum config_action action;
    enum status st = config_load(program->argc, program->argv, program->envp, config,
                                 &action, &errors);

    /* daemon_open() makes these checks, too. */
    if (st != ST_OK || action == ACTION_CHECK_CONFIG)
        (void)daemon_check(config, &errors);
    if (errors.count > 0) {
        *status = EXIT_USAGE;
        return false;
    }
    switch (action) {
    case ACTION_SERVE:
        return true;
    case ACTION_HELP:
        if (!help_print(config->help_topic, stdout)) {
            (void)fprintf(stderr,
                          "claimd: the group \"%s\" does not exist. Use all or one of "
                          "these groups.\n",
                          config->help_topic);
            help_print_groups(stderr);
            *status = EXIT_USAGE;
            return false;
        }
        break;
    case ACTION_VERSION:
        /* The first line is for programs. The versions are those of the loaded
         * libraries. */
        (void)printf("claimd " CLAIMD_VERSION "\n"
                     "commit %s\n"
                     "libmicrohttpd %s\n"
                     "jansson %s\n"
                     "gnutls %s\n",
                     program->commit, server_library_version(),
                     json_tree_library_version(), token_library_version());
        break;
    case ACTION_PRINT_CONFIG:
        config_print(config, stdout);
        break;
    case ACTION_CHECK_CONFIG:
        (void)puts("claimd: the configuration is good");
        break;
    }
    *status = fflush(stdout) == 0 && !ferror(stdout) ? EXIT_SUCCESS : EXIT_CANNOT_START;
    return false;
}

static void
reload_and_log(struct daemon *d, struct config_errors *errors)
{
    struct access *access = d->resources.access;
    struct engine_limits stored;
    struct reload r;
    enum status st = reload_read(&r, &d->config, errors);

    if (st == ST_OK)
        st = resources_reload(&d->resources, &r.next, errors);
    process_metrics_count_reload(&d->process, st == ST_OK);
    if (st != ST_OK) {
        log_event(&d->log, LOG_ERROR, "reload_failed",
                  LOG_S("error", errors->count > 0 ? errors->first : status_text(st)),
                  LOG_I("further_errors", errors->count > 1 ? errors->count - 1 : 0));
        return;
    }
    reload_apply(&r, &d->config);
    stored = daemon_stored_limits(&d->config);
    atomic_store_explicit(&d->log.level, (enum log_level)d->config.log_level,
                          memory_order_relaxed);
    server_log_requests(d->server, daemon_logged_requests(&d->config));
    if (d->store_setup.redis == NULL)
        engine_limit(d->store, &stored);
    api_limit(d->api, &d->config.project_limits);
    atomic_store(&d->drain_ms, d->config.drain_seconds * 1000);
    for (size_t i = 0; i < r.kept_count; i++)
        log_event(&d->log, LOG_WARN, "restart_needed", LOG_S("option", r.kept[i]->name));
    log_event(&d->log, LOG_INFO, "reloaded",
              LOG_I("tokens", access == NULL ? 0 : access_count(access)),
              LOG_I("options_changed", r.changed), LOG_I("options_kept", r.kept_count));
    resources_log(&d->resources, &d->log, clock_wall_ms(d->clock));
}

/*
 * Reads the options and their files again, and puts all or none of them in force. Logs
 * the result. Options that need a restart do not change.
 */
static void
reload_options(struct daemon *d)
{
    struct config_errors errors = {.to = NULL};
    bool notify = !atomic_load(&d->condition.draining); /* STOPPING=1 is final */
    char assignments[64];

    if (notify) {
        (void)snprintf(assignments, sizeof(assignments),
                       "RELOADING=1\nMONOTONIC_USEC=%" PRId64, clock_monotonic_us());
        (void)supervisor_notify(&d->supervisor, assignments, "reloading");
    }
    reload_and_log(d, &errors);
    if (notify && errors.count > 0)
        (void)supervisor_notify(&d->supervisor, "READY=1", "not reloaded: %s",
                                errors.first);
    else if (notify)
        (void)daemon_notify_state(d, "READY=1");
}

struct signals {
    pthread_t thread;
    int signal_fd, end_fd;         /* owned */
    struct daemon *daemon;         /* borrowed */
    struct signal_history history; /* of the thread, as is check_ms */
    int64_t check_ms;              /* next watchdog check, by the stopwatch; -1: never */
};

static const struct {
    int number;
    const char *name;
} handled_signals[] = {
    {SIGTERM, "SIGTERM"},
    {SIGINT, "SIGINT"},
    {SIGHUP, "SIGHUP"},
    {SIGUSR1, "SIGUSR1"},
};

#define HANDLED_SIGNALS (sizeof(handled_signals) / sizeof(handled_signals[0]))

enum signal_action
signal_decide(struct signal_history *history, int number, int64_t now_ms)
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

static void
handle_signal(struct signals *s, int number, int64_t now_ms)
{
    struct daemon *d = s->daemon;
    bool closed;
    size_t i = 0;

    switch (signal_decide(&s->history, number, now_ms)) {
    case SIGNAL_STOP:
        daemon_stop(d);
        break;
    case SIGNAL_END:
        _exit(128 + number);
    case SIGNAL_RELOAD:
        reload_options(d);
        break;
    case SIGNAL_PAUSE:
        closed = !atomic_load(&d->condition.closed); /* only this thread changes it */
        atomic_store(&d->condition.closed, closed);
        log_event(&d->log, LOG_INFO, "maintenance",
                  LOG_S("posts", closed ? "refused" : "taken"));
        (void)daemon_notify_state(d, NULL);
        break;
    case SIGNAL_IGNORE:
        while (i < HANDLED_SIGNALS - 1 && handled_signals[i].number != number)
            i++;
        log_event(&d->log, LOG_WARN, "signal_ignored",
                  LOG_S("signal", handled_signals[i].name));
        break;
    }
}

/* Checks the workers if it is time. Returns the milliseconds until the next check; -1:
 * never. */
static int
watchdog_check_if_due(struct signals *s)
{
    const int64_t now_ms = clock_stopwatch_ns() / 1000000;

    if (s->check_ms >= 0 && s->check_ms <= now_ms) {
        struct daemon *d = s->daemon;
        bool ask;
        int64_t wait_ms = watchdog_check(&d->watchdog, &d->supervisor,
                                         server_went_round(d->server), &ask);

        if (ask)
            server_ask_round(d->server);
        s->check_ms = wait_ms < 0 ? -1 : now_ms + wait_ms;
    }
    if (s->check_ms < 0)
        return -1;
    return s->check_ms - now_ms > INT_MAX ? INT_MAX : (int)(s->check_ms - now_ms);
}

static void *
signals_main(void *arg)
{
    struct signals *s = arg;
    struct pollfd fds[] = {{.fd = s->signal_fd, .events = POLLIN},
                           {.fd = s->end_fd, .events = POLLIN}};

    for (;;) {
        struct signalfd_siginfo infos[HANDLED_SIGNALS];
        ssize_t size;

        if (poll(fds, 2, watchdog_check_if_due(s)) < 0 && errno != EINTR)
            return NULL;
        if (fds[1].revents != 0)
            return NULL;
        size = read(s->signal_fd, infos, sizeof(infos));
        for (ssize_t i = 0; i < size / (ssize_t)sizeof(infos[0]); i++)
            handle_signal(s, (int)infos[i].ssi_signo, clock_stopwatch_ns() / 1000000);
    }
}

int
program_serve(const struct config *config, const struct clock *clock,
              program_hook *started, program_hook *ended, void *ctx)
{
    struct config_errors errors = {.to = stderr};
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigset_t set;
    struct daemon *d = NULL;
    struct signals signals;
    enum status st;

    (void)sigemptyset(&set);
    for (size_t i = 0; i < HANDLED_SIGNALS; i++)
        (void)sigaddset(&set, handled_signals[i].number);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL); /* cannot fail */
    (void)sigaction(SIGPIPE, &ignore, NULL);
    st = daemon_open(config, clock, &d, &errors);
    if (st != ST_OK)
        return st == ST_CONFLICT    ? EXIT_JOURNAL_REFUSED
               : st == ST_BAD_VALUE ? EXIT_USAGE
                                    : EXIT_CANNOT_START;
    signals =
        (struct signals){.daemon = d,
                         .signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK),
                         .end_fd = eventfd(0, EFD_CLOEXEC)};
    if (signals.signal_fd < 0 || signals.end_fd < 0 ||
        pthread_create(&signals.thread, NULL, signals_main, &signals) != 0) {
        if (signals.signal_fd >= 0)
            (void)close(signals.signal_fd);
        if (signals.end_fd >= 0)
            (void)close(signals.end_fd);
        config_error(&errors, "cannot start a thread for signals");
        daemon_close(d);
        return EXIT_CANNOT_START;
    }
    if (started != NULL)
        started(ctx, d);
    daemon_announce(d);
    (void)daemon_serve(d);
    if (ended != NULL)
        ended(ctx, d);
    (void)eventfd_write(signals.end_fd, 1); /* cannot fail: the counter was 0 */
    (void)pthread_join(signals.thread, NULL);
    (void)close(signals.signal_fd);
    (void)close(signals.end_fd);
    daemon_close(d);
    return EXIT_SUCCESS;
}
