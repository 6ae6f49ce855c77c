/*
 * answer: from a whole request to its queued answer, at once or after a while.
 *
 * The API says what is next (claimd/api/api.h). An answer that has to wait for something is
 * *parked*: libmicrohttpd leaves its connection alone meanwhile (worker_hold), and it costs
 * no processor time.
 *
 *     state     waits for                         ended by
 *     SLICES    its turn in each round, or a free the last slice; request_seconds (503)
 *               fiber (ask.h)
 *     WAITING   a message (store/waiter.h)        mail READY, mail GONE, its deadline, a
 *                                                 drain, the client's hanging up
 *     COMMIT    the log to be durable up to       the store's news; not by a hang-up. If it
 *               response.position                 never will be: closed without an answer
 *     REMOTE    the store, in a fiber             mail DONE; not by a hang-up
 *     IDENTITY  Keystone, in a fiber              mail DONE; not by a hang-up
 *     DELAYED   its time: a test wants it         its deadline, a drain; not by a hang-up
 *               to be late (fault.h)
 *
 * When it can go on, the API is asked again, or the answer is READY: the connection is let
 * go, and libmicrohttpd calls for it.
 *
 * A claim that a client never got is given back, unless the API has withdrawn it for a test's
 * sake (response.claim_id): when its connection ends before the answer
 * was handed to the kernel whole (docs/api.md 11.5).
 *
 *   Bounds   max_waiters WAITING in all workers; as many REMOTE as there may be fibers
 *   Cost     WAITING: nothing until it ends. Ending many: all in one round
 *   Threads  all in the worker. In REMOTE nothing but the fiber touches the exchange
 */
#ifndef HTTP_ANSWER_H
#define HTTP_ANSWER_H

#include "http/worker.h"

/* ST_NO_MEMORY. */
enum status answer_init(struct worker *w);
void answer_fini(struct worker *w);

/*
 * In libmicrohttpd's call, when the request is whole: asks the API, and queues the answer or
 * parks it. closing: the connection ends with it.
 */
enum MHD_Result answer_request(struct worker *w, struct MHD_Connection *mhd,
                               struct exchange *ex, bool closing);

/* In libmicrohttpd's call: queues the answer that is READY. */
enum MHD_Result
answer_ready(struct worker *w, struct MHD_Connection *mhd, struct exchange *ex);

/* Without memory for an answer: the prepared one. */
enum MHD_Result answer_no_memory(struct worker *w, struct MHD_Connection *mhd);

/*
 * Holds the connections that have been parked since libmicrohttpd ran. (Held within its
 * call, one would be read from first when it is let go, and closed if its client has ended
 * its input; now it is known to wait for an answer.)
 */
void answer_hold_fresh(struct worker *w);

/* Does some slices of requests that are answered so. */
void answer_slices(struct worker *w);

/* There is news of c, by mail. */
void answer_news(struct worker *w, struct conn *c, unsigned news);

/* The client of c has hung up, or half: if it waits for a message, it does so no more. */
void answer_hung_up(struct worker *w, struct conn *c);

/* Ends the waiting, or the delay, whose time is over. When the next one's is; INT64_MAX: never. */
int64_t answer_expire(struct worker *w);

/* Lets go what has become durable, if the log has got on. */
void answer_commits(struct worker *w);

/* Nobody waits any longer for a message, or for an answer: the server drains. */
void answer_drain(struct worker *w);

/* Takes an exchange off whatever list it is parked in: it is not asked for again. */
void answer_unpark(struct worker *w, struct exchange *ex);

/*
 * The exchange ends. whole: its answer was handed to the kernel; else what it claimed is
 * given back.
 */
void answer_end(struct worker *w, struct exchange *ex, bool whole);

/* Waits until all fibers have ended. */
void answer_await_remote(struct worker *w);

#endif
