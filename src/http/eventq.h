/*
 * eventq: the queue through which a worker gets its connections and their events.
 *
 * A connection embeds one event. The first push brings the connection itself, later ones say what
 * has happened to it. Bits accumulate until the worker takes the event, so each connection is in
 * the queue once at most.
 *
 * A worker looks into its queue before it sleeps, so only a sleeping one has to be woken. Both
 * sides write their own flag and then read the other's, in one order for all threads. So either
 * the pushing thread sees that the worker sleeps, or the worker sees the notification.
 *
 *   Bounds   as many events as there are connections
 *   Threads  push, notify and wake from any, the first two also under a lock of the store; the
 *            rest from the worker
 */
#ifndef HTTP_EVENTQ_H
#define HTTP_EVENTQ_H

#include "claimd/base/lock.h"
#include "claimd/base/status.h"
#include "claimd/ds/list.h"
#include "claimd/store/waiter.h"

/*
 * The kinds of entries of an epoll set. Each watched object embeds a source, and the entry's
 * data points at it.
 */
enum source_kind {
    SOURCE_STOP,     /* server: it must stop */
    SOURCE_LISTENER, /* server: a client connects */
    SOURCE_EVENTQ,   /* struct eventq */
    SOURCE_MHD,      /* a daemon of libmicrohttpd (mhd/mhd.h) */
    SOURCE_CONN,     /* struct conn */
    SOURCE_LINGER    /* struct linger_slot */
};

struct source {
    enum source_kind kind;
};

enum event_bits {
    EVENT_ARRIVED = 1, /* a new connection */
    EVENT_READY = 2,   /* there may be a message for its waiter */
    EVENT_GONE = 4,    /* the queue of its waiter was deleted */
    EVENT_FIBER = 8    /* its fiber may go on */
};

struct event {
    struct list link; /* in the queue */
    unsigned bits;    /* of enum event_bits, while in the queue; guarded by its lock */
};

struct eventq {
    struct source source;
    struct store_wakeup wakeup; /* wakes the worker */
    struct lock lock;           /* guards events, and the bits in them */
    struct list events;
    _Atomic bool notified; /* there is something to look at */
    _Atomic bool sleeping; /* the worker sleeps, or is about to */
    int fd;                /* owned eventfd; readable when the worker must wake up */
};

/* ST_IO without a descriptor. */
enum status eventq_init(struct eventq *q);
void eventq_fini(struct eventq *q);

/* Adds bits and notifies. True: as eventq_notify(). */
bool eventq_push(struct eventq *q, struct event *event, enum event_bits bits);

/*
 * Notes that there is something to look at. True if the worker sleeps: it must be woken, with
 * eventq_wake(). Only the first caller since it went to sleep gets true.
 */
bool eventq_notify(struct eventq *q);

/* Makes fd readable; async-signal-safe. */
void eventq_wake(struct eventq *q);

/* Makes fd unreadable again. */
void eventq_reset(struct eventq *q);

/* The worker is about to sleep. False: there is something to look at, it must not sleep. */
bool eventq_prepare_sleep(struct eventq *q);

/* It does not sleep any more. */
void eventq_cancel_sleep(struct eventq *q);

/* Was there a notification since the last poll? To be asked before events are taken. */
bool eventq_poll(struct eventq *q);

/* Takes the oldest event, and its bits; NULL when there is none. */
struct event *eventq_take(struct eventq *q, unsigned *bits);

/* Removes an event, if it is in the queue. No more pushes may be under way. */
void eventq_cancel(struct eventq *q, struct event *event);

#endif
