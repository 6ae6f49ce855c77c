/*
 * eventq: the queue through which a worker gets its connections and their events.
 *
 * A connection embeds one event. The first push delivers the connection itself, and each
 * later one a bit for what has happened. Bits accumulate until the worker takes the
 * event, so a connection is in the queue at most once.
 *
 * A worker polls its queue before it sleeps, so only a sleeping worker needs a wake-up.
 * Each side writes its own flag and then reads the flag of the other side, sequentially
 * consistent. So either the pushing thread sees that the worker sleeps, or the worker
 * sees the notification.
 *
 *   Bounds   as many events as there are connections
 *   Threads  any thread pushes, notifies and wakes; push and notify also under a lock of
 *            the store. Only the worker calls the other functions
 */
#ifndef HTTP_EVENTQ_H
#define HTTP_EVENTQ_H

#include "claimd/base/lock.h"
#include "claimd/base/status.h"
#include "claimd/ds/list.h"
#include "claimd/store/waiter.h"

/*
 * The kinds of entries of an epoll set. Each watched object embeds a source, and the
 * entry's data points at it.
 */
enum source_kind {
    SOURCE_STOP,     /* of the server: server_stop() was called */
    SOURCE_LISTENER, /* of the server: a client connects */
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
    EVENT_FIBER = 8    /* its fiber is ready to resume */
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
    _Atomic bool notified; /* since the last poll */
    _Atomic bool sleeping; /* the worker sleeps, or is about to */
    int fd;                /* owned eventfd; readable when the worker must wake up */
};

/* ST_IO without a descriptor. */
enum status eventq_init(struct eventq *q);
void eventq_fini(struct eventq *q);

/* Adds bits and notifies. Returns what eventq_notify() returns. */
bool eventq_push(struct eventq *q, struct event *event, enum event_bits bits);

/*
 * Notifies the worker. True if the worker sleeps, and the caller must call eventq_wake().
 * Only the first caller since the worker went to sleep gets true.
 */
bool eventq_notify(struct eventq *q);

/* Makes fd readable. Async-signal-safe. */
void eventq_wake(struct eventq *q);

/* Makes fd unreadable again. */
void eventq_reset(struct eventq *q);

/* The worker is about to sleep. False: there was a notification, and it must not
 * sleep. */
bool eventq_prepare_sleep(struct eventq *q);

/* The worker does not sleep any more. */
void eventq_cancel_sleep(struct eventq *q);

/* True if there was a notification since the last poll. Call it before eventq_take(). */
bool eventq_poll(struct eventq *q);

/* Takes the oldest event and its bits. NULL if the queue is empty. */
struct event *eventq_take(struct eventq *q, unsigned *bits);

/* Removes an event, if it is in the queue. No push of this event may be under way. */
void eventq_cancel(struct eventq *q, struct event *event);

#endif
