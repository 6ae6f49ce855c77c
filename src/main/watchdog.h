/*
 * watchdog: a supervisor that ends us when it hears nothing from us for a while
 * (sd_watchdog_enabled(3)) is told at twice that pace that we are alive, but only if every
 * worker is.
 *
 *     look:  all went round since they were asked?  yes: WATCHDOG=1, ask again, half of it
 *                                                   no:  look again soon, say nothing
 *
 * A worker that hangs so makes the supervisor bite. These looks are all that wakes an idle
 * server.
 */
#ifndef MAIN_WATCHDOG_H
#define MAIN_WATCHDOG_H

#include "main/supervisor.h"

#include <stdint.h>

/* How the workers are asked (claimd/http/server.h). */
struct watchdog_rounds {
    void (*ask)(void *ctx);
    bool (*all_went)(void *ctx);
    void *ctx; /* borrowed */
};

struct watchdog {
    int64_t
        look_ms; /* half of what the supervisor waits; 0: it watches somebody else, or nobody */
    bool asked;
};

/*
 * usec, pid: the values of WATCHDOG_USEC and WATCHDOG_PID, NULL without; self: our process.
 * False: they are none that we understand, and nobody is told anything.
 */
bool watchdog_init(struct watchdog *w, const char *usec, const char *pid, int64_t self);

/* Looks, and tells. Returns the milliseconds until the next look, -1 for never. One thread. */
int64_t watchdog_look(struct watchdog *w, const struct supervisor *s,
                      const struct watchdog_rounds *rounds);

#endif
