/*
 * waitqueue: the waiters for messages of one queue, oldest first (store/waiter.h); for
 * stores.
 *
 * A wait queue exists while it has a waiter, whether its queue exists or not. In the
 * engine, a change after which a waiter may have to be woken adds it to the shard's list
 * of dirty wait queues. The shard wakes waiters once per operation, before it releases
 * its lock (shard_leave).
 *
 * Invariants (waitqueue_audit), when the lock is free: the wait queue has a waiter; each
 * waiter for which a ready message is left (store/waiter.h) is woken.
 *
 *   Cost     enter, leave O(1); reserved and wake O(STORE_RESERVED)
 *   Threads  the owner's lock: that of the engine's shard
 */
#ifndef CLAIMD_STORE_WAITQUEUE_H
#define CLAIMD_STORE_WAITQUEUE_H

#include "claimd/base/mem.h"
#include "claimd/ds/hashmap.h"
#include "claimd/ds/wheel.h"
#include "claimd/store/types.h"
#include "claimd/store/waiter.h"

struct queue; /* the engine's */

struct waitqueue {
    struct hashnode node;    /* in the owner's table; hash of the address */
    struct list link;        /* engine: in the shard's dirty or closed wait queues */
    struct list *dirty_list; /* engine: the shard's, borrowed */
    struct list waiters;
    size_t count;
    struct queue *queue;  /* engine: NULL: the queue does not exist */
    struct deadline look; /* Redis: time of the next poll, */
    size_t ready;         /* and ready messages at the last one */
    bool closed; /* the queue was deleted, and the waiters are about to be notified */
    struct store_queue where; /* points behind this structure */
    char text[];
};

/* Wake-ups to be fired without the lock. Further ones are fired at once. */
enum { WAKEUPS_DEFERRED = 8 };
struct wakeups {
    struct store_wakeup *kept[WAKEUPS_DEFERRED];
    size_t count;
};
void wakeups_fire(struct wakeups *wakeups);

/* Defers a wake-up; NULL: none. */
void wakeups_defer(struct wakeups *wakeups, struct store_wakeup *wakeup);

/* Makes an empty wait queue. NULL without memory. */
struct waitqueue *
waitqueue_new(struct mem *mem, const struct store_queue *where, struct list *dirty_list);

/* Adds a waiter to the end, or lets it keep its place. It asks for `wants` messages, at
 * least one. */
void waitqueue_enter(struct waitqueue *waitqueue, struct store_waiter *w, size_t wants);

/* Removes a waiter, woken or not. */
void waitqueue_leave(struct waitqueue *waitqueue, struct store_waiter *w);

/* Number of ready messages that are reserved for the waiters in front of w, which need
 * not be in the wait queue yet; SIZE_MAX: STORE_RESERVED or more. */
size_t
waitqueue_reserved(const struct waitqueue *waitqueue, const struct store_waiter *w);

/* Wakes each waiter for which one of `ready` messages is left. */
void waitqueue_wake(struct waitqueue *waitqueue, size_t ready, struct wakeups *wakeups);

/* Notifies the first waiter that the queue was deleted, and removes it. */
void waitqueue_close(struct waitqueue *waitqueue, struct wakeups *wakeups);

/* A waiter may have to be woken. */
static inline void
waitqueue_mark_dirty(struct waitqueue *waitqueue)
{
    if (!list_linked(&waitqueue->link))
        list_add_before(waitqueue->dirty_list, &waitqueue->link);
}

bool waitqueue_audit(const struct waitqueue *waitqueue, size_t ready);

#endif
