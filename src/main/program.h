/*
 * program: what a program around a daemon does, whatever its clock, and the signals that it takes, in a
 * thread of their own.
 *
 *     SIGTERM, SIGINT    the first calls daemon_stop(). Another one ends the process at once, with
 *                        128 and its number, but only SIGNALS_APART_MS or more after the first: a
 *                        supervisor that means one stop may send two signals, as timeout(1) does, to
 *                        the process and then to its group. An earlier one is logged and ignored
 *     SIGHUP             reloads the options
 *     SIGUSR1            turns maintenance on or off
 *
 * Blocked signals reach a process even as PID 1, where the kernel drops those without a handler. The
 * same thread tells the supervisor that all workers are alive, if it waits for that.
 */
#ifndef MAIN_PROGRAM_H
#define MAIN_PROGRAM_H

#include "claimd/base/clock.h"
#include "main/config.h"
#include "main/daemon.h"
#include "main/supervisor.h"

/*
 * The commit that the program was built from, or "unknown", from a tree without its history: a source
 * that scripts/commit.cmake writes. It is not part of the library, so that another commit is no reason
 * to link every test again.
 */
extern const char version_commit[];

/* How it was called. */
struct program {
    const char *commit; /* that it was built from */
    int argc;
    char *const *argv, *const *envp;
};

/*
 * Loads the configuration and does what is asked for other than serving. Returns true if
 * serving is left to do, otherwise *status is what to exit with.
 */
bool program_begin(const struct program *program, struct config *config, int *status);

/*
 * Serves until a signal comes and returns the exit status. `started` is called, if not
 * NULL, once the daemon is ready to serve; `ended` before it is taken apart.
 */
typedef void program_hook(void *ctx, struct daemon *d);
int program_serve(const struct config *config, const struct clock *clock,
                  program_hook *started, program_hook *ended, void *ctx);

enum { SIGNALS_APART_MS = 1000 };

/* What is to be done about a signal. */
enum signal_verdict {
    SIGNAL_STOP,
    SIGNAL_END,
    SIGNAL_RELOAD,
    SIGNAL_PAUSE,
    SIGNAL_IGNORE
};

/* What there is to remember between signals. */
struct signal_history {
    bool stopped;       /* one that stops has come */
    int64_t stopped_ms; /* when; defined if one has */
};

/* Judges a signal that came at now_ms, by a clock that is never set. */
enum signal_verdict
signal_judge(struct signal_history *history, int number, int64_t now_ms);

#endif
