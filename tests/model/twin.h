/*
 * twin: the naive store that the real ones are compared with.
 *
 * A second implementation of the seam as arrays and loops, meant to be obviously right
 * and nothing else. It has no wheels and no housekeeping: each operation on a message or
 * a claim compares its deadline with now.
 *
 *   Cost     every operation O(everything in its queue)
 *   Memory   plain malloc, not counted; a test without memory ends
 *   Threads  none: one thread at a time
 *
 * Its ids look different from those of the engine: they are opaque.
 */
#ifndef TESTS_MODEL_TWIN_H
#define TESTS_MODEL_TWIN_H

#include "claimd/engine/engine.h"

/* Opens an empty twin, owned: store_close() it. Never fails. */
enum status twin_open(const struct engine_config *config, struct store **out);

/*
 * The next moment behind now_ms at which something falls due (a message's life or delay,
 * a claim) in a queue that still exists; INT64_MAX if nothing will.
 */
int64_t twin_next_deadline(const struct store *s, int64_t now_ms);

/*
 * Dead letters of claims that expire go at one moment, which the twin must learn: the
 * order in which they arrive depends on it. The first moment behind now_ms at which some
 * go, and from where; INT64_MAX if none will. The name is valid until the twin changes.
 */
int64_t
twin_next_letter(const struct store *s, int64_t now_ms, struct store_queue *where);

/* Moves those of the claims of a queue that expire at now_ms. */
void
twin_expire_letters(struct store *s, const struct store_queue *where, int64_t now_ms);

/* Does a claim end together with one of the queue that begins now? They may expire in any
 * order. */
bool twin_claims_tie(const struct store *s, int64_t now_ms,
                     const struct store_queue *where, const struct store_terms *terms);

/* Must this waiter, in the wait queue, be notified by now? */
bool twin_calls(struct store *s, const struct store_waiter *waiter, int64_t now_ms);

/* The metrics of a queue that exists. */
void twin_metrics_of(struct store *s, const struct store_queue *where, int64_t now_ms,
                     struct store_queue_metrics *out);

/* Leases what this subscription has to get; false: nothing now. */
bool twin_lease(struct store *s, const struct store_queue *where, struct bytes id,
                int64_t now_ms, struct store_delivery *out);

/* Is anything due for delivery? */
bool twin_has_due(struct store *s, int64_t now_ms);

/* Live messages in all queues; so that a test can keep its backlog modest. */
size_t twin_total(const struct store *s, int64_t now_ms);

#endif
