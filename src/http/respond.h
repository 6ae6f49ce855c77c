/*
 * respond: from a whole request to its response.
 *
 * The API tells how a request continues (claimd/api/api.h). If the response has to wait,
 * the worker suspends the exchange. libmicrohttpd leaves its connection alone
 * (mhd_suspend), so the exchange costs no processor time. There are two ways to wait. For
 * a request to the store in memory, the worker calls the API again when the waiter is
 * woken. For a request that may block, it calls the API in a fiber, which parks.
 *
 *     state     waits for                         ended by
 *     TURN      its turn in each round, a free    the last slice; request_seconds (503)
 *               fiber, or messages that are read
 *     WAITING   a message (store/waiter.h)        READY, GONE, its deadline, a drain, the
 *                                                 client's hang-up
 *     COMMIT    the log to be durable up to       the log; not by a hang-up. If the
 *               response.lsn                      change is lost: closed without response
 *     REMOTE    the store, in a fiber             FIBER; not by a hang-up
 *     IDENTITY  Keystone, in a fiber              FIBER; not by a hang-up
 *     DELAYED   the time of an injected fault     its deadline, a drain; not by a hang-up
 *
 * Then the worker calls the API again, or the response is READY: the worker resumes the
 * connection, and libmicrohttpd asks for the response.
 *
 * If the connection ends before the kernel has the whole response, the worker releases
 * the claim in it (docs/api.md 11.5), because the client never received it. An injected
 * fault can prevent that: it removes response.claim_id.
 *
 * request.h has what happens before: the target, the head and the body. suspended.h ends
 * the waits.
 *
 *   Cost     WAITING: nothing until it ends. Ending many: all in one round
 *   Bounds   max_waiters WAITING in all workers; as many REMOTE and IDENTITY as fibers
 *   Threads  the worker. While a fiber is parked, only the fiber uses its exchange
 */
#ifndef HTTP_RESPOND_H
#define HTTP_RESPOND_H

#include "http/worker.h"

/*
 * Within libmicrohttpd's callback, when the request is whole: calls the API, and queues
 * the response or suspends the exchange. closing: the connection ends with the response.
 * False: it ends now.
 */
bool respond_request(struct worker *w, struct exchange *ex, bool closing);

/* Calls the API again for a suspended exchange. */
void respond_retry(struct worker *w, struct exchange *ex);

/* Calls the API for the next slice of an exchange in TURN. True if the exchange has left
 * TURN. */
bool respond_slice(struct worker *w, struct exchange *ex);

/* Resumes the fiber of an exchange in REMOTE or IDENTITY. */
void respond_resume_fiber(struct worker *w, struct exchange *ex);

/* The change of an exchange in COMMIT has become durable. */
void respond_finish(struct worker *w, struct exchange *ex);

/* Removes an exchange from all lists, and closes its connection (mhd_end()). */
void respond_abort(struct worker *w, struct conn *c, enum refusal why);

/* Ends an exchange. sent: the kernel has the whole response. If not, releases the claim
 * in it. */
void respond_end(struct worker *w, struct exchange *ex, bool sent);

#endif
