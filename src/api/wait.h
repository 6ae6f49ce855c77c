/*
 * wait: long polling (docs/api.md 11).
 *
 *     wait_begin()                            may the request wait, and how long?
 *     ctx->op.waiter = wait_waiter(ctx, i)    for the store's operation on the i-th queue
 *     return wait_result(ctx, ...)            no messages: ST_WAIT, or ST_OK without
 *                                             waiting
 *     wait_done()                             at the end of the request
 *
 * http/respond.c has the other half: the request that is suspended.
 *
 *   Threads  a context belongs to one call of api_handle()
 */
#ifndef API_WAIT_H
#define API_WAIT_H

#include "api/context.h"

/*
 * Reads Prefer, for a request to so many queues. If it may wait, the response gets
 * Preference-Applied. ST_NO_MEMORY.
 */
enum status wait_begin(struct context *ctx, size_t queues);

/* The waiter for the i-th queue. NULL if the request must not wait. */
struct store_waiter *wait_waiter(const struct context *ctx, size_t i);

/* True if the client has hung up: the request must not claim. */
bool wait_abandoned(const struct context *ctx);

/*
 * The result without a message: ST_WAIT; ST_OK if the request does not wait;
 * ST_PROJECT_WAITERS if it wants to but must not. queued: the waiters are in the wait
 * queues of all queues (op.waits).
 */
enum status wait_result(const struct context *ctx, bool queued);

/* Removes the waiters from all wait queues. */
void wait_done(struct store *store, struct mem *mem, struct waiting *waiting);

#endif
