/*
 * wait: requests that wait for a message (docs/api.md 11).
 *
 *     wait_begin()              may it wait, and for how long?
 *     ctx->visit.waiter = wait_place(ctx, i), then ask the store for the i-th queue
 *     nothing was taken: return wait_on(ctx, ...), which is ST_OK if it does not wait
 *     wait_done()               something was: it is in no other line any more
 */
#ifndef API_WAIT_H
#define API_WAIT_H

#include "api/context.h"
#include "claimd/base/bytes.h"

/*
 * Reads Prefer, for a request that takes messages of so many queues. If it may wait, the
 * answer says so. ST_NO_MEMORY.
 */
enum status wait_begin(struct context *ctx, size_t queues);

/* Its place in the line of the i-th queue; NULL if it does not wait. */
struct store_waiter *wait_place(const struct context *ctx, size_t i);

/* The client has hung up: nothing must be taken. */
bool wait_abandoned(const struct context *ctx);

/*
 * Nothing was taken: ST_WAIT, or ST_OK if the answer is the one without waiting. stands:
 * the store has it in the line of each queue (visit.waits); if not, one was deleted.
 * ST_PROJECT_WAITERS: too many of its project wait already.
 */
enum status wait_on(const struct context *ctx, bool stands);

/* It waits no more, in any line. */
void wait_done(struct store *store, struct mem *mem, struct waiting *waiting);

/* ------------------------------------------------------------------ the header Prefer */

/*
 * The header Prefer (RFC 7240), of which claimd knows `wait`.
 *
 *   Cost     O(length of the header)
 *   Memory   none
 */

/*
 * How many seconds the client prefers to wait: 0 if it says nothing about that, or
 * something that is not a whole number. Of several `wait` the first counts, whatever it
 * says; more than any int64_t is INT64_MAX. header: absent: not sent.
 */
int64_t prefer_wait(struct bytes header);

#endif
