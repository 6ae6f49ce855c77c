/*
 * batch: messages of a response as a batch (store/types.h), and the end of an operation
 * that delivers them.
 *
 *   Memory   a batch keeps the response that its views point into
 *   Threads  any; a batch belongs to one operation
 */
#ifndef REDIS_BATCH_H
#define REDIS_BATCH_H

#include "redis/call.h"

/* Words of responses with messages. */
enum { BATCH_NOW = 1, BATCH_TAG };

struct batch_pin;

/* Makes space for `count` views. An operation that delivers messages does so before it
 * calls the script, so that it can return what it delivers. NULL: no memory. */
struct batch_pin *batch_pin_new(struct redis_store *s, size_t count);

/*
 * The number of messages from word `from` on. Each has four words (number, head, body,
 * claim). The list ends at the end of the response or at an empty number. call_run() has
 * checked that there are no more than requested.
 */
size_t batch_message_count(const struct call *c, size_t from);

/* Fills a batch with the messages from word `from` on. The batch takes ownership of the
 * response. ST_NO_MEMORY. */
enum status batch_fill_new(struct call *c, size_t from, struct store_batch *out);

/*
 * The same in the space of `pin` unless the call has a key: an earlier call may have got
 * more messages, and a client that gets none repeats its request. Returns st, or
 * ST_NO_MEMORY.
 */
enum status batch_fill_keyed(struct call *c, size_t from, struct batch_pin *pin,
                             enum status st, struct store_batch *out);

/* Notes that claims are paused: the batch is empty then. */
enum status
batch_note_paused(struct store_op *op, enum status st, struct store_batch *out);

/* Ends an operation that delivers messages: counts them, or enters the waiter. */
enum status
batch_finish_delivery(struct redis_store *s, struct store_op *op,
                      const struct store_queue *where, size_t limit,
                      enum store_counter which, const struct store_batch *out);

/* Adds the limits of scripts that deliver messages: their number, the number reserved for
 * earlier waiters, and the bytes of bodies that fit into the response. */
void call_add_limits(struct call *c, const struct store_op *op, size_t limit,
                     const struct store_batch *batch);

/* Adds the ids of messages that the caller has decrypted (struct store_batch). */
void call_add_decrypted_ids(struct call *c, const struct store_batch *opened);

#endif
