/*
 * program: runs a daemon as a program, from its command line to its exit status, and
 * handles signals in a thread.
 *
 *     SIGTERM, SIGINT    the first calls daemon_stop(). A second one, SIGNALS_APART_MS or
 *                        more after it, ends the process at once with 128 plus its
 *                        number. An earlier second one is logged and ignored, because
 *                        tools such as timeout(1) signal the process and then its group
 *                        for one stop
 *     SIGHUP             reloads the options
 *     SIGUSR1            turns maintenance on or off
 *
 * The signals are blocked and read from a descriptor. So they also reach a process with
 * PID 1, for which the kernel drops signals without a handler. The same thread notifies
 * the watchdog of a supervisor.
 */
#ifndef MAIN_PROGRAM_H
#define MAIN_PROGRAM_H

#include "claimd/base/clock.h"
#include "main/config.h"
#include "main/daemon.h"
#include "main/exit_status.h"

/* The arguments of a process. */
struct program {
    const char *commit;
    int argc;
    char *const *argv, *const *envp;
};

/*
 * Loads the configuration, and executes actions such as --help. True if the program must
 * serve. Otherwise *status is its exit status.
 */
bool program_begin(const struct program *program, struct config *config, int *status);

/*
 * Serves until a signal stops it, and returns the exit status. Calls `started` when the
 * daemon is ready, and `ended` before it closes the daemon; NULL: no call.
 */
typedef void program_hook(void *ctx, struct daemon *d);
int program_serve(const struct config *config, const struct clock *clock,
                  program_hook *started, program_hook *ended, void *ctx);

enum { SIGNALS_APART_MS = 1000 };

/* The reaction to a signal. */
enum signal_action {
    SIGNAL_STOP,
    SIGNAL_END,
    SIGNAL_RELOAD,
    SIGNAL_PAUSE,
    SIGNAL_IGNORE
};

/* State between signals. */
struct signal_history {
    bool stopped;       /* a signal has called daemon_stop() */
    int64_t stopped_ms; /* time of that signal */
};

/* Decides about a signal at now_ms, a monotonic time. */
enum signal_action
signal_decide(struct signal_history *history, int number, int64_t now_ms);

#endif
