/*
 * pop: takes messages out of a queue for a worker.
 *
 *   Threads  any; a context belongs to one call
 */
#ifndef API_HANDLERS_POP_H
#define API_HANDLERS_POP_H

#include "api/context.h"

/* Pops up to `limit` messages of the context's queue, or waits for one, and writes the
 * response. */
enum status pop_messages(struct context *ctx, size_t limit);

/* Replaces encrypted bodies by those that `opened` has decrypted. ST_UNCONFIRMED:
 * `opened` lacks one, so the store delivered a message that it must not. */
enum status
pop_reuse_decrypted(struct store_batch *batch, const struct store_batch *opened);

#endif
