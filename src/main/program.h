/*
 * program: what a program around a daemon does, whatever its clock.
 */
#ifndef MAIN_PROGRAM_H
#define MAIN_PROGRAM_H

#include "claimd/base/clock.h"
#include "main/config.h"
#include "main/daemon.h"

/* Exit statuses besides 0. */
enum {
    EXIT_CANNOT_START = 1,
    EXIT_USAGE = 2,
    EXIT_JOURNAL_REFUSED = 3, /* it is damaged, of somebody else, or the clock is wrong */
    EXIT_JOURNAL_FAILED = 4   /* a write or sync failed while serving */
};

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

#endif
