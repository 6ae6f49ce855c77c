/*
 * waitqueue: the waiters for messages of one queue, longest first (store/waiter.h); for stores.
 *
 * A wait queue exists while anybody is in it, whether its queue does or not. In the engine, changes that
 * may mean that somebody has to be called put it on its shard's list of dirty wait queues; the
 * shard calls when its lock is about to be let go (shard_leave), so it does so once for
 * all that an operation did.
 *
 * Invariants (waitqueue_audit), when the lock is free: the wait queue has a waiter; each waiter for which
 * a ready message is left (store/waiter.h) is called.
 *
 *   Cost     enter, leave O(1); reserved and call O(STORE_RESERVED)
 *   Threads  the lock of whoever has it: the engine's shard
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
    struct hashnode node; /* in the wait queues of whoever has it; hash of the address */
    struct list link;     /* the engine's: in the shard's dirty or ended ones */
    struct list *dirty_list; /* likewise: the shard's, borrowed */
    struct list waiters;
    size_t count;
    struct queue *queue;  /* the engine's; NULL: there is none of this address */
    struct deadline look; /* of a store that asks somebody else: when to do so, */
    size_t ready;         /* and what it heard the last time: messages ready */
    bool ended; /* its queue was deleted: all waiters are about to be notified */
    struct store_queue where; /* points behind this structure */
    char text[];
};

/* Wakeups to be fired when the lock has been let go; what does not fit is fired at once. */
enum { WAKEUPS_DEFERRED = 8 };
struct wakeups {
    struct store_wakeup *kept[WAKEUPS_DEFERRED];
    size_t count;
};
void wakeups_fire(struct wakeups *wakeups);

/* Keeps a wakeup, NULL: none, until then. */
void wakeups_defer(struct wakeups *wakeups, struct store_wakeup *wakeup);

/* Makes an empty wait queue; NULL without memory. */
struct waitqueue *
waitqueue_new(struct mem *mem, const struct store_queue *where, struct list *dirty_list);

/* Puts a waiter that is outside at the end, or has one that is in it wait on. It asks for
 * `wants` messages, at least one. */
void waitqueue_enter(struct waitqueue *waitqueue, struct store_waiter *w, size_t wants);

/* Takes a waiter out, whatever it is. */
void waitqueue_leave(struct waitqueue *waitqueue, struct store_waiter *w);

/* How many ready messages are reserved for the waiters in front of w, which may not be in the wait queue
 * yet; SIZE_MAX: STORE_RESERVED or more. */
size_t
waitqueue_reserved(const struct waitqueue *waitqueue, const struct store_waiter *w);

/* Calls each waiter for which one of so many ready messages is left. */
void waitqueue_wake(struct waitqueue *waitqueue, size_t ready, struct wakeups *wakeups);

/* Tells the first one that the queue has gone, and takes it out. */
void waitqueue_close(struct waitqueue *waitqueue, struct wakeups *wakeups);

/* Somebody may have to be called. */
static inline void
waitqueue_mark_dirty(struct waitqueue *waitqueue)
{
    if (!list_linked(&waitqueue->link))
        list_add_before(waitqueue->dirty_list, &waitqueue->link);
}

bool waitqueue_audit(const struct waitqueue *waitqueue, size_t ready);

#endif
