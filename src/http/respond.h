/*
 * respond: from a whole request to its response.
 *
 * The API says how a request continues (claimd/api/api.h). If the response has to wait, the exchange
 * is suspended: libmicrohttpd leaves its connection alone (mhd_suspend), and it costs
 * no processor time. There are two ways to wait. A request for the store in memory calls the API
 * again when it is woken. A request that may block calls it in a fiber, which parks.
 *
 *     state     waits for                         ended by
 *     TURN      its turn in each round, or a free the last slice; request_seconds (503)
 *               fiber
 *     WAITING   a message (store/waiter.h)        READY, GONE, its deadline, a drain, the
 *                                                 client's hang-up
 *     COMMIT    the log to be durable up to       the log; not by a hang-up. If it never will be:
 *               response.lsn                 closed without a response
 *     REMOTE    the store, in a fiber             FIBER; not by a hang-up
 *     IDENTITY  Keystone, in a fiber              FIBER; not by a hang-up
 *     DELAYED   its time: a test wants it         its deadline, a drain; not by a hang-up
 *               to be late
 *
 * Then the API is called again, or the response is READY: the connection is resumed, and
 * libmicrohttpd asks for it.
 *
 * A claim that a client never received is released, unless the API has withdrawn it for a test
 * (response.claim_id): if its connection ends before the kernel has the whole response (docs/api.md
 * 11.5).
 *
 * suspended.c has what ends the waits.
 *
 * request.c has what happens before: the target, the head and the body of a request.
 *
 *   Bodies   up to api_body_limit() are kept. A longer one is refused with the API's own 400: if it
 *            is at most BODY_DISCARD_MOST longer, after it was read and discarded (so that a client
 *            which sends first and reads later sees the response and keeps its connection), else at
 *            once
 *   Cost     WAITING: nothing until it ends. Ending many: all in one round
 *   Bounds   max_waiters WAITING in all workers; as many REMOTE and IDENTITY as fibers
 *   Threads  all in the worker. While a fiber is parked, only it touches the exchange
 */
#ifndef HTTP_RESPOND_H
#define HTTP_RESPOND_H

#include "http/worker.h"

enum { BODY_DISCARD_MOST = 1024 * 1024 };

/* A connection's phase took too long: tells the client if it can, and closes (request.c). */
void request_time_out(struct worker *w, struct conn *c);

/*
 * In libmicrohttpd's call, when the request is whole: calls the API, and queues the response or
 * suspends the exchange. closing: the connection ends with it. False: it ends now.
 */
bool respond_request(struct worker *w, struct exchange *ex, bool closing);

/* Calls the API again for a suspended exchange. */
void respond_retry(struct worker *w, struct exchange *ex);

/* Calls the API for the next slice of an exchange in TURN. True: it is not in TURN any more. */
bool respond_slice(struct worker *w, struct exchange *ex);

/* The parked fiber of an exchange was woken: goes on with it. */
void respond_resume_fiber(struct worker *w, struct exchange *ex);

/* The response of a suspended exchange exists, and a client may know it. */
void respond_finish(struct worker *w, struct exchange *ex);

/* The delay of a response, or between two pieces of it, is over. */
void respond_delay_ended(struct worker *w, struct exchange *ex);

/* Takes an exchange off all lists, and closes its connection (mhd_end()). */
void respond_abort(struct worker *w, struct conn *c, enum refusal why);

/* The exchange ends. sent: the kernel has its whole response; else what it claimed is released. */
void respond_end(struct worker *w, struct exchange *ex, bool sent);

/* ------------------------------------------------------------------ suspended.c */

/* ST_NO_MEMORY. */
enum status suspended_init(struct worker *w);
void suspended_fini(struct worker *w);

/* Does some slices of the requests that are done so. */
void suspended_slices(struct worker *w);

/* There is an event of c. */
void suspended_event(struct worker *w, struct conn *c, unsigned bits);

/* Ends the waiting, or the delay, whose time is over. When the next one's is; INT64_MAX: never. */
int64_t suspended_expire(struct worker *w);

/* Resumes the exchanges whose change has become durable, if the log has made progress. */
void suspended_commits(struct worker *w);

/* The server drains: ends all waiting and all delays. */
void suspended_drain(struct worker *w);

#endif
