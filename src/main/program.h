/*
 * program: what a program around a daemon does, whatever its clock.
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

#endif
