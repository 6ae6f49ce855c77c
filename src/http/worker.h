/*
 * worker: a thread with an event loop around libmicrohttpd (mhd/mhd.h).
 *
 *     epoll set
 *       +- libmicrohttpd's epoll descriptors     -> mhd_run()
 *       +- event queue: connections and events   -> mhd_add(), suspended_event()
 *       +- connections, for their end only       -> mhd_event()
 *       +- lingering sockets                     -> linger_read()
 *     time-out: the least of libmicrohttpd's, the phases', the suspended requests' and
 *               the store's
 *
 * loop.h runs it. respond.h has the requests that take long or have to wait.
 *
 *   Threads  the thread of the worker, except the atomics, which any thread reads
 */
#ifndef HTTP_WORKER_H
#define HTTP_WORKER_H

#include "claimd/store/housekeeper.h"
#include "http/metrics.h"
#include "http/mhd/mhd.h"
#include "http/request_log.h"

#include <pthread.h>

/* Shared by all workers of a server. Written before they start, or atomic. */
struct worker_shared {
    const struct server_config *config; /* borrowed */
    struct housekeeper housekeeper;
    struct request_log log;
    struct clock real;   /* for time limits of connections; the store may have another */
    size_t linger_slots; /* lingering sockets of each event loop, at most */
    bool has_successor;  /* another process continues with the listening sockets */
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
    _Atomic bool ended;          /* after the last round */
    unsigned asked_round;        /* seen_round at server_ask_round(); of its thread */
};

struct connections {
    struct mhd *mhd; /* owned; has the connections of the table */
    struct conn_table table;
    struct linger_set linger;
    /* Pushed and not closed; the server adds, the worker subtracts. */
    _Atomic size_t load;
};

/* Exchanges whose response has to wait (respond.h). */
struct suspended {
    struct wheel *deadlines; /* of the exchanges of `waiting` and `delayed`; owned */
    /* Connections, linked by `turn`, of exchanges in these states: */
    struct list waiting;       /* WAITING */
    struct list turns;         /* TURN, in the order of their slices */
    struct list starved;       /* TURN, without a free fiber */
    struct list loads;         /* TURN, when messages were read from the disk */
    uint64_t loaded;           /* store_log_loaded() when it was last looked at */
    struct list delayed;       /* DELAYED, or RESPONDED and between two pieces */
    struct list commits;       /* exchanges in COMMIT, by LSN */
    size_t in_fibers;          /* exchanges in REMOTE or IDENTITY */
    struct fiber_pool fibers;  /* of all requests that may block */
    struct store_listener log; /* notified when the log has made progress */
    _Atomic bool log_moved;
    struct counter counts[EXCHANGE_STATES]; /* exchanges by state; for any thread */
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
    uint64_t logged; /* requests that the access log samples */
    size_t cut_off;  /* requests that a drain did not finish; final after worker_join() */
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

#endif
