/*
 * worker: a thread with an event loop around one libmicrohttpd daemon, or more.
 *
 *     epoll set of ours
 *       +- libmicrohttpd's epoll descriptors     -> MHD_run()     (section.h)
 *       +- mailbox: new connections, and news    -> MHD_add_connection(), answer_news()
 *       +- connections, for their end only       -> shutdown(), which it then sees
 *       +- lingering sockets                     -> read and forget
 *     time-out: the least of libmicrohttpd's, our phases', the waiting requests' and the
 *     store's
 *
 * Answers that take long or have to wait are in answer.h.
 *
 * The daemons run in external mode, without threads and listeners of their own. Their epoll
 * sets are edge-triggered and MHD_run() takes 128 events at a time without waiting, so a
 * full batch cannot stall; what is left over shows as a time-out of zero.
 */
#ifndef HTTP_WORKER_H
#define HTTP_WORKER_H

#include "claimd/http/server.h"
#include "claimd/store/housekeeper.h"
#include "http/exchange.h"
#include "http/linger.h"
#include "http/mailbox.h"
#include "http/parked.h"
#include "http/refused.h"
#include "http/section.h"
#include "http/traffic.h"

#include <pthread.h>

/* What all workers of a server share; written before they start, or atomic. */
struct worker_shared {
    const struct server_config *config; /* borrowed */
    struct housekeeper housekeeper;
    struct refused refused;
    struct clock real;   /* for time-outs of connections, whatever clock the store has */
    size_t linger_slots; /* lingering sockets of each event loop, at most */
    bool relieved;       /* another process goes on with the listening sockets */
    _Atomic size_t waiters;      /* requests that wait for a message */
    _Atomic uint64_t log_one_in; /* server_log_requests() */
    _Atomic bool draining;       /* finish what is in flight, then end */
    _Atomic bool cut;            /* end now */
    int done_fd;                 /* borrowed; an event for each worker that has ended */
};

struct worker {
    struct worker_shared *shared; /* borrowed */
    pthread_t thread;
    bool started;
    int epoll_fd;
    struct section *sections; /* owned; the first section_count are open */
    size_t section_count, section_room;
    struct MHD_Response *no_memory; /* prepared answer */
    struct mailbox mailbox;
    _Atomic size_t
        load; /* connections posted and not closed; acceptor adds, worker takes */
    struct conn *adopting; /* while libmicrohttpd adds this connection */
    struct conn_table conns;
    struct exchange_pool exchanges;
    struct request_ids ids;
    struct linger_set linger;
    struct housekeeping housekeeping;
    size_t block;        /* memory of a connection: room.h */
    struct list chunked; /* connections in the middle of a chunked body */
    struct parked parked;
    struct traffic traffic;
    struct list knocking, shaking; /* connections in a handshake of TLS: secure.h */
    struct list ended; /* those whose client sends no more, to be told libmicrohttpd */
    uint64_t logged;   /* requests that could have had a line in the access log */
    unsigned round;    /* counts the rounds of the loop */
    _Atomic unsigned seen_round; /* the same, for other threads */
    _Atomic bool over;           /* there will be no more of them */
    unsigned asked_round;        /* what seen_round was when it was asked for another; the
                                    asking thread's */
    bool called;                 /* the section that runs has called us */
    int64_t now_ms;              /* real time when the loop woke up */
    int64_t round_ns;            /* the same of clock_stopwatch_ns() */
    size_t
        cut_off; /* requests of a drain that were not finished; whole after worker_join() */
};

/* Makes everything a worker needs, without a thread. ST_NO_MEMORY, ST_IO. */
enum status worker_init(struct worker *w, struct worker_shared *shared, const char *tag,
                        unsigned index);

/* Starts the thread. ST_UNAVAILABLE. */
enum status worker_start(struct worker *w);

/* The connection that libmicrohttpd means. */
struct conn *worker_conn(struct MHD_Connection *mhd);

/* Watches a descriptor for input in the worker's epoll set. ST_IO. */
enum status worker_watch(struct worker *w, int fd, struct source *source);

/*
 * Takes mail if any is noted, so much at most that the others need not wait for long. True:
 * there is more.
 */
bool worker_read_mail(struct worker *w);

/*
 * Has libmicrohttpd leave a connection alone, and go on with it in its next run, which
 * comes in the same round or without delay in the next one.
 */
void worker_hold(struct worker *w, struct conn *c);
void worker_let_go(struct worker *w, struct conn *c);

/* Waits for the thread's end, which shared->draining or cut bring about. */
void worker_join(struct worker *w);

/* Frees a worker whose thread has ended or was never started. */
void worker_fini(struct worker *w);

#endif
