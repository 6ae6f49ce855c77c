/*
 * delivery_ops: deliveries to the subscribers of queues on Redis (store/subscription.h).
 * A script leases each delivery to one process.
 *
 * The queues with subscriptions are in lists (due.h). A process leases a queue, and some
 * of its due deliveries. Until the outcome of a delivery is known, the maintenance thread
 * renews its lease. If the process ends, the lease ends, and another process delivers
 * again.
 *
 *     post                                 -> delivery_mark_due(): adds the queue to its
 *                                             list
 *     store_delivery_next()                -> due_poll(), delivery_lease
 *     store_delivery_done()                -> delivery_done, delivery_mark_due()
 *
 * If a process ends between a post and delivery_mark_due(), the queue comes due after a
 * minute.
 *
 *   Threads  redis_delivery_next() and redis_delivery_done(): one at a time. All others:
 *            any
 *   Memory   a copy of each leased delivery
 */
#ifndef REDIS_DELIVERY_OPS_H
#define REDIS_DELIVERY_OPS_H

#include "redis/call.h"

/* Makes s->deliveries. ST_NO_MEMORY. */
enum status deliveries_open(struct redis_store *s);

/* No caller may have a delivery. Does nothing if s->deliveries is NULL. */
void deliveries_close(struct redis_store *s);

/* The queue has a delivery at this time of the store (0: now; negative: none). If Redis
 * does not respond, the queue comes due later. */
void delivery_mark_due(struct redis_store *s, const struct store_op *op,
                       const struct store_queue *where, int64_t ms);

/* For the maintenance thread: renews a lease, and notifies the listener if a delivery may
 * be due. Returns when to call it again, in ms of the stopwatch. */
int64_t delivery_leases_renew(struct redis_store *s);

#endif
