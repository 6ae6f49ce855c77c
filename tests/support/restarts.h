/*
 * restarts: a journalled store, and what would be left of it if it were started again.
 *
 *     r = restarts_open(now_ms, false);
 *     restarts_process(r)->store       is used
 *     restarts_try(r, now_ms, ...)     all is durable now: a store that is started from a
 *                                      copy of the disk after a crash shows the same
 *     restarts_do(r, now_ms, ...)      it ends in peace, and is started again
 *     restarts_close(r)
 *
 * A crash leaves what the dice of sim_disk leave, or nothing of what was not synced, or
 * is that of the process only; now and then the journal is in a checkpoint before.
 *
 *   Cost     trying: a commit, a copy of the disk, a recovery, and a look at both stores
 *   Threads  none
 */
#ifndef TESTS_SUPPORT_RESTARTS_H
#define TESTS_SUPPORT_RESTARTS_H

#include "support/journalled.h"

struct restarts; /* opaque */

/* A process on an empty disk, owned. */
struct restarts *restarts_open(int64_t now_ms, bool confirming);

/* The one that runs; borrowed, and another one after restarts_do(). */
const struct journalled *restarts_process(const struct restarts *r);

/* All that has happened is durable. */
void restarts_commit(struct restarts *r);

/* projects: all that have queues; a NULL stands behind them. */
void restarts_try(struct restarts *r, int64_t now_ms, const char *const *projects);

/* Tries, and restarts; nothing of the store may be held, and no request waits. */
void restarts_do(struct restarts *r, int64_t now_ms, const char *const *projects);

void restarts_close(struct restarts *r);

#endif
