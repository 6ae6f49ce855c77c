/*
 * worker: a thread with an event loop around libmicrohttpd (mhd/mhd.h). loop.c runs it.
 *
 *     epoll set
 *       +- libmicrohttpd's epoll descriptors     -> mhd_run()
 *       +- event queue: connections and events   -> mhd_add(), suspended_event()
 *       +- connections, for their end only       -> mhd_event()
 *       +- lingering sockets                     -> read and discard
 *     time-out: the least of libmicrohttpd's, the phases', the suspended requests' and the store's
 *
 * Requests that take long or have to wait are in respond.h.
 */
#ifndef HTTP_WORKER_H
#define HTTP_WORKER_H

#include "claimd/store/housekeeper.h"
#include "http/metrics.h"
#include "http/mhd/mhd.h"
#include "http/request_log.h"

#include <pthread.h>

/* Shared by all workers of a server; written before they start, or atomic. */
struct worker_shared {
    const struct server_config *config; /* borrowed */
    struct housekeeper housekeeper;
    struct request_log log;
    struct clock real;   /* for time-outs of connections, whatever clock the store has */
    size_t linger_slots; /* lingering sockets of each event loop, at most */
    bool relieved;       /* another process goes on with the listening sockets */
    _Atomic size_t waiters; /* long-polling requests */
    _Atomic bool draining;  /* finish the requests under way, then end */
    _Atomic bool cut;       /* end now */
    int done_fd;            /* borrowed; an event for each worker that has ended */
};

struct loop {
    int epoll_fd;
    struct eventq events;
    struct round round;
    _Atomic unsigned seen_round; /* round.number, for other threads */
    _Atomic bool over;           /* there will be no more rounds */
    unsigned asked_round; /* seen_round when a round was asked for; the asking thread's */
};

struct connections {
    struct mhd *mhd; /* owned; has those in the table */
    struct conn_table table;
    struct linger_set linger;
    _Atomic size_t load; /* pushed and not closed; the server adds, the worker takes */
};

/* Exchanges whose response has to wait (respond.h). */
struct suspended {
    struct wheel *deadlines;   /* of those in `waiting` and `delayed`; owned */
    struct list waiting;       /* connections of exchanges WAITING, by `turn` */
    struct list turns;         /* those in TURN, next one first, likewise, */
    struct list starved;       /* and those in TURN for which no fiber is free */
    struct list delayed;       /* connections DELAYED, or between two pieces, likewise */
    struct list commits;       /* exchanges in COMMIT, by LSN */
    size_t in_fibers;          /* exchanges in REMOTE or IDENTITY */
    struct fiber_pool fibers;  /* which have them */
    struct store_listener log; /* notified when the log has made progress */
    _Atomic bool log_moved;
    struct counter
        counts[EXCHANGE_STATES]; /* exchanges in each of these states; for any thread */
};

struct worker {
    struct worker_shared *shared; /* borrowed */
    pthread_t thread;
    bool started;
    struct loop loop;
    struct connections conns;
    struct suspended suspended;
    struct exchange_pool exchanges;
    struct request_ids ids;
    struct housekeeping housekeeping;
    struct traffic traffic;
    uint64_t logged; /* requests that could have had a line in the access log */
    size_t
        cut_off; /* requests that a drain has not finished; final after worker_join() */
};

static inline struct worker *
worker_of(const struct conn *c)
{
    return container_of(c->eventq, struct worker, loop.events);
}

static inline bool
worker_is_draining(const struct worker *w)
{
    return atomic_load_explicit(&w->shared->draining, memory_order_relaxed);
}

static inline void
worker_set_phase(struct worker *w, struct conn *c, enum conn_phase phase)
{
    conn_set_phase(&w->conns.table, c, phase, w->loop.round.now_ms);
}

/* Makes everything a worker needs, without a thread. ST_NO_MEMORY, ST_IO. */
enum status worker_init(struct worker *w, struct worker_shared *shared, const char *tag,
                        unsigned index);

/* Starts the thread. ST_UNAVAILABLE. */
enum status worker_start(struct worker *w);

/* Waits for the thread's end, which shared->draining or cut bring about. */
void worker_join(struct worker *w);

/* Frees a worker whose thread has ended or was never started. */
void worker_fini(struct worker *w);

#endif
