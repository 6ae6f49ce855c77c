/*
 * acceptor: takes connections from the listeners and hands each to the worker with the
 * fewest.
 *
 * A connection beyond the limit gets 503 with Retry-After and is closed: a client that waits in a
 * backlog learns nothing. If the process runs out of descriptors, the acceptor gives up one that it
 * keeps in reserve for the moment it takes to tell the client the same.
 *
 *   Threads  acceptor_run() belongs to one thread; acceptor_stop() any, also a signal
 *            handler
 */
#ifndef HTTP_ACCEPTOR_H
#define HTTP_ACCEPTOR_H

#include "http/listener.h"
#include "http/worker.h"

struct acceptor {
    const struct worker_shared *shared; /* borrowed */
    struct listener *listeners;         /* borrowed */
    size_t listener_count;
    struct worker *workers; /* borrowed */
    size_t worker_count;
    size_t max_connections;
    struct source stop;
    int epoll_fd, stop_fd; /* owned */
    int reserve_fd;        /* owned; -1 while it is given up */
    bool refusing;         /* the last connection was one too many */
    bool exhausted;        /* accepting failed for want of descriptors or memory */
    bool paused;           /* the listeners are out of the epoll set for a moment */
    struct counter accepted, refused; /* connections; for any thread to read */
    int64_t now_ms;
    struct request_ids ids;
    struct linger_set linger;
};

/* ST_IO without descriptors. Fields above stop_fd are set by the caller before. */
enum status acceptor_init(struct acceptor *a, const char *tag);
void acceptor_fini(struct acceptor *a);

/* Accepts until acceptor_stop(). */
void acceptor_run(struct acceptor *a);

void acceptor_stop(struct acceptor *a);

/*
 * Accepts the clients that have connected before the listeners close, once acceptor_run() has
 * ended: the kernel would reset them, and what they have sent would be lost. In the backlog of an
 * inherited socket they wait for the next process.
 */
void acceptor_take_rest(struct acceptor *a);

#endif
