/*
 * worker: one thread of the load generator, with its own epoll set and connections.
 *
 * Worker w of T drives the connections w, w+T, w+2T ... of the plan, one request in
 * flight on each.
 */
#ifndef BENCH_WORKER_H
#define BENCH_WORKER_H

#include "bench/plan.h"
#include "bench/stats.h"

struct worker; /* opaque */

/* Starts a thread for a phase; plan and stats are borrowed until worker_join(). NULL and
 * errno if it cannot. */
struct worker *
worker_start(const struct plan *plan, unsigned number, struct stats *stats);

/* Asks the worker to stop at once; from any thread. */
void worker_cancel(struct worker *w);

/* True once the worker has nothing left to do. */
bool worker_ended(const struct worker *w);

/*
 * Waits for the end and frees w. Returns NULL, or why the phase failed: a constant text.
 */
const char *worker_join(struct worker *w);

#endif
