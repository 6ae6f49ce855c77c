/*
 * subscription_ops: subscriptions of queues on Redis, and the deliveries to their subscribers
 * (store/subscription.h), each leased to the process that asks first.
 *
 * A few lists have the queues with subscriptions, by the time when something is due. A process takes the first
 * queue of a list for the time of a lease, leases some of its due deliveries, and says when more is due. The
 * maintenance thread renews the lease of a delivery until its outcome is known. So a process that ends loses
 * nothing: its deliveries are delivered again.
 *
 *     post   ->  delivery_is_due()                     the queue is due now
 *     due_take, delivery_lease, due_set                store_delivery_next(), several at once
 *     delivery_done, delivery_is_due()                 store_delivery_done()
 *
 * If a process ends between the post and the list, the queue is due some time later.
 *
 *   Threads  next and done: one at a time; the rest any
 */
#ifndef REDIS_SUBSCRIPTION_OPS_H
#define REDIS_SUBSCRIPTION_OPS_H

#include "redis/call.h"

/* Words of a response with subscriptions (lib/subscriptions.lua): now, then so many of each. */
enum {
    SHOWN_NOW = 1,
    SHOWN_FIRST,
    SHOWN_NUMBER = 0,
    SHOWN_ID,
    SHOWN_SUBSCRIBER,
    SHOWN_OPTIONS,
    SHOWN_STARTED,
    SHOWN_TTL,
    SHOWN_CONFIRMED,
    SHOWN_ASKED,
    SHOWN_DELIVERED,
    SHOWN_GIVEN_UP,
    SHOWN_FALLEN_OUT,
    SHOWN_BEHIND,
    SHOWN_MISSED,
    SHOWN_FAILURES,
    SHOWN_FAILED,
    SHOWN_LEASED,
    SHOWN_AGAIN,
    SHOWN_WORDS
};

/* How many the response shows, which is ST_OK. */
size_t show_subscription_count(const struct call *c);

void show_subscription_id(struct bytes text, struct store_id *out);

/* Makes s->deliveries. ST_NO_MEMORY. */
enum status deliveries_open(struct redis_store *s);

/* All deliveries have come back, or were not handed out. Fine if it is not open. */
void deliveries_close(struct redis_store *s);

/* A queue has something to deliver at this time of the store (0: now; less: never). If Redis cannot be told,
 * the queue is found later. */
void delivery_is_due(struct redis_store *s, const struct store_op *op,
                     const struct store_queue *where, int64_t ms);

/* For the maintenance thread: renews leases, and notifies the listener if something may be due. Returns when to
 * do so again, in ms of the stopwatch. */
int64_t delivery_keep(struct redis_store *s);

#endif
