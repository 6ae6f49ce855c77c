/*
 * delivery: what subscribers of queues on Redis have to get, lent to the front end that comes first
 * (store/subscription.h).
 *
 * Queues that somebody is subscribed to stand in one of a few lists, by the time when there is something
 * to deliver; whoever takes the first of them has it for the time of a lease, looks, lends some of what
 * is due, and says when there is more. What is lent is leased, too: the keeper renews that until
 * somebody says what became of it. So a front end that dies loses nothing, and what it had is delivered
 * again.
 *
 *     post   ->  delivery_is_due()                     the queue is due now
 *     due_take, delivery_lend, due_set                 store_delivery_next(), several at once
 *     delivery_done, delivery_is_due()                 store_delivery_done()
 *
 * A queue whose front end died between the post and the list is looked at some time later.
 *
 *   Threads  next and done: one at a time; the rest any
 */
#ifndef REDIS_DELIVERY_H
#define REDIS_DELIVERY_H

#include "claimd/base/lock.h"
#include "claimd/store/store.h"

struct redis_store;

enum { DELIVERY_PARTS = 8 };

struct delivery {
    struct lock lock;
    struct store_listener *listener; /* borrowed; NULL: nobody wants to know */
    struct list lent;  /* all that has not come back, the one kept last behind */
    struct list ready; /* of these: what nobody has been given yet */
    int64_t look_ms[DELIVERY_PARTS]; /* when to look into a list; redis_clock_ms() */
    bool hurried[DELIVERY_PARTS]; /* something was entered since somebody began to look */
};

void delivery_init(struct delivery *d);

/* Nothing is handed out any more. */
void delivery_fini(struct redis_store *s);

/* A queue has something to deliver at this time of the store (0: now; less: never). If that cannot be
 * told, it is found later. */
void delivery_is_due(struct redis_store *s, const struct store_visit *visit,
                     const struct store_queue *where, int64_t ms);

/* Renews leases, and has the listener told when there may be something; when to do so again, in ms of
 * the stopwatch. The keeper's. */
int64_t delivery_keep(struct redis_store *s);

#endif
