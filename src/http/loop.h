/*
 * loop: the thread of a worker (worker.h).
 *
 * A round of the event loop:
 *
 *     1. sleep in epoll until something happens, or until the next deadline
 *     2. handle what woke it: events of other threads (suspended_event()), ends of
 *        connections, lingering sockets
 *     3. run slices of long requests, and finish those whose change became durable
 *        (suspended.h)
 *     4. mhd_run(): libmicrohttpd reads and writes, and calls back (request.h, respond.h)
 *     5. end phases and waits whose deadline has passed
 *     6. do a step of the store's housekeeping, and flush the log: all requests of the
 *        round share a commit
 *
 *   Threads  the server, except the thread itself
 */
#ifndef HTTP_LOOP_H
#define HTTP_LOOP_H

#include "http/worker.h"

/* Initialises a worker without a thread. ST_NO_MEMORY, ST_IO. */
enum status worker_init(struct worker *w, struct worker_shared *shared, const char *tag,
                        unsigned index);

/* Starts the thread. ST_UNAVAILABLE. */
enum status worker_start(struct worker *w);

/* Waits for the thread to end, after shared->draining or shared->cut was set. */
void worker_join(struct worker *w);

/* Closes the connections of a worker whose thread has ended or was never started. */
void worker_close(struct worker *w);

/* Frees a closed worker, which no thread wakes any more. */
void worker_fini(struct worker *w);

#endif
