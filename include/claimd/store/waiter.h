/*
 * store/waiter: waiting for the messages of a queue.
 *
 * An operation that takes messages (claim, pop) and finds none enters the waiter that it
 * was given into the queue's wait queue, in the same critical section: no message that comes
 * afterwards is missed. A queue that does not exist has a wait queue, too.
 *
 *     outside --finds nothing--> in the wait queue --messages come--> called --takes some--> outside
 *        ^                          ^                         |
 *        |                          +------ finds nothing ----+
 *        +---- store_waiter_leave(), the queue is deleted
 *
 * The longest waiter is served first, whichever thread is faster. A waiter asks for as many
 * messages as its operation may take. The oldest ready messages are reserved for the first
 * waiter, as many as it asks for, the next ones for the second waiter, and so on. A waiter is
 * called when a message is left for it, and tries its operation again, which takes the
 * messages behind the reserved ones. It waits for those in front of it if
 * STORE_RESERVED messages or more are reserved for them. A waiter that leaves, served or
 * not, lets the next one be called. An operation without a waiter takes the oldest ready
 * messages, reserved or not.
 *
 *   Ownership  a waiter is embedded in who waits, and belongs to the store while it is in
 *              wait queue; store_waiter_leave() ends that for sure
 *   Threads    notify() is called under a lock of the store, from any thread, perhaps several
 *              at a time if one listener is in several wait queues: it only takes a note. What
 *              it returns is fired when the lock has been let go
 */
#ifndef CLAIMD_STORE_WAITER_H
#define CLAIMD_STORE_WAITER_H

#include "claimd/ds/list.h"

enum { STORE_RESERVED = 64 };

enum store_news {
    STORE_READY, /* there may be a message: ask again */
    STORE_GONE   /* the queue was deleted: the waiter is out of the wait queue */
};

/* Wakes a thread that has got notes. Outlives the store's use. */
struct store_wakeup {
    void (*fire)(struct store_wakeup *wakeup);
};

/* Is notified. */
struct store_listener {
    /* Takes a note; returns a wakeup to be fired for it, NULL if that is not needed. */
    struct store_wakeup *(*notify)(struct store_listener *listener, enum store_news news);
    struct list link; /* the store's, see store_log_listen() */
};

/* A place in one wait queue. Zero but for `listener` before its first use. */
struct store_waiter {
    struct store_listener *listener; /* borrowed while in the wait queue */
    struct list link;                /* the rest is the store's */
    void *home;      /* whose lock guards this; NULL: never was in the wait queue */
    void *waitqueue; /* NULL: outside */
    size_t wants;    /* messages that its operation may take */
    bool called;
};

#endif
