/*
 * driver: one thread of the load generator, with its own epoll set and connections.
 *
 * Driver d of T has the connections d, d+T, d+2T ... of the plan, one request in
 * flight on each.
 */
#ifndef BENCH_DRIVER_H
#define BENCH_DRIVER_H

#include "bench/plan.h"

struct driver; /* opaque */

/* Starts a thread for a phase; plan and stats are borrowed until driver_join(). NULL and
 * errno if it cannot. */
struct driver *
driver_start(const struct plan *plan, unsigned number, struct stats *stats);

/* Asks the driver to stop at once; from any thread. */
void driver_cancel(struct driver *d);

/* True once the driver has nothing left to do. */
bool driver_ended(const struct driver *d);

/*
 * Waits for the end and frees d. Returns NULL, or why the phase failed: a constant text.
 */
const char *driver_join(struct driver *d);

#endif
