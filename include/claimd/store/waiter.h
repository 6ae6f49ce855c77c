/*
 * store/waiter: waiting for the messages of a queue.
 *
 * If an operation that takes messages (claim, pop) finds none, it adds its waiter to the
 * queue's wait queue, in the same critical section. So the waiter misses no later
 * message. A queue that does not exist has a wait queue, too.
 *
 *     outside --finds nothing--> in the wait queue --messages come--> woken --finds
 *     some--> outside
 *        ^                          ^                         |
 *        |                          +------ finds nothing ----+
 *        +---- store_waiter_leave(), the queue is deleted
 *
 * The oldest waiter is served first, whichever thread is faster. A waiter asks for as
 * many messages as its operation may take. The oldest ready messages are reserved for the
 * first waiter, as many as it asks for, the next ones for the second waiter, and so on. A
 * waiter is woken when a message is left for it, and repeats its operation, which takes
 * the messages behind the reserved ones. If STORE_RESERVED messages or more are reserved
 * for earlier waiters, it waits for those. If a waiter leaves, the next one can be woken.
 * An operation without a waiter takes the oldest ready messages, reserved or not.
 *
 *   Ownership  the caller embeds the waiter. It belongs to the store while it is in a
 *              wait queue, until store_waiter_leave() at the latest
 *   Threads    notify() is called under a lock of the store, from any thread, perhaps
 *              from several at a time if one listener is in several wait queues. It only
 *              records the notification. The wake-up that it returns is fired without the
 *              lock
 */
#ifndef CLAIMD_STORE_WAITER_H
#define CLAIMD_STORE_WAITER_H

#include "claimd/ds/list.h"

enum { STORE_RESERVED = 64 };

enum store_notification {
    STORE_READY, /* there may be a message: repeat the operation */
    STORE_GONE   /* the queue was deleted: the waiter is out of the wait queue */
};

/* Wakes the thread of a listener. Must outlive its use by the store. */
struct store_wakeup {
    void (*fire)(struct store_wakeup *wakeup);
};

/* A receiver of notifications. */
struct store_listener {
    /* Records the notification. Returns the wake-up to fire, or NULL if none is
     * needed. */
    struct store_wakeup *(*notify)(struct store_listener *listener,
                                   enum store_notification notification);
    struct list link; /* the store's, see store_log_listen() */
};

/* A waiter of one wait queue. Zeros but for `listener` before its first use. */
struct store_waiter {
    struct store_listener *listener; /* borrowed while in the wait queue */
    struct list link;                /* this and the rest are the store's */
    /* The owner of the lock that guards this; NULL: never was in a wait queue. */
    void *home;
    void *waitqueue; /* NULL: outside */
    size_t wants;    /* messages that its operation may take */
    bool called;
};

#endif
