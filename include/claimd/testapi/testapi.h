/*
 * testapi: the test API of a server with `ci` (docs/ci.md): a clock that tests move, a
 * history of events, and rules that inject faults.
 *
 * The test API is a log of the store. It records each change in the history, and forwards
 * the change to the journal if there is one. It owns the clock of the store. Without
 * `ci`, no test API exists, and it costs nothing.
 *
 *   Memory   of the account given to testapi_new(); see history.h, leaks.h and faults.h
 *            for the bounds
 *   Threads  any, except for testapi_new(), testapi_attach() and testapi_free()
 */
#ifndef CLAIMD_TESTAPI_TESTAPI_H
#define CLAIMD_TESTAPI_TESTAPI_H

#include "claimd/base/clock.h"
#include "claimd/store/log.h"
#include "claimd/store/sampler.h"
#include "claimd/testapi/faults.h"
#include "claimd/testapi/history.h"
#include "claimd/testapi/leaks.h"

struct testapi;

/* Makes a test API, owned. Its clock runs with the wall clock. ST_NO_MEMORY. */
enum status testapi_new(struct mem *mem, struct testapi **out);

/* Call it after the store is closed. NULL is fine. */
void testapi_free(struct testapi *testapi);

/* The clock of the store. Once a store is attached, only the test API moves it. */
struct clock *testapi_clock(struct testapi *testapi);

struct history *testapi_history(struct testapi *testapi);
struct faults *testapi_faults(struct testapi *testapi);
struct leaks *testapi_leaks(struct testapi *testapi);

/* The log for the store. It forwards all calls to `log`, unless that is NULL. Call it
 * again with the same log if log->largest has changed. */
struct store_log *testapi_log(struct testapi *testapi, struct store_log *log);

/* Sets the store, and its sampler (NULL: none), which samples while the clock moves.
 * After each move of the clock, the test API calls moved(ctx), on any thread. */
void testapi_attach(struct testapi *testapi, struct store *store, struct sampler *sampler,
                    void (*moved)(void *ctx), void *ctx);

/* ------------------------------------------------------------------ time */

/* The longest move of the clock at a time: 366 days. */
enum { TESTAPI_STEP_MOST_S = 366 * 24 * 3600 };

struct testapi_time {
    int64_t now_ms;   /* of the store's clock */
    int64_t ahead_ms; /* how far that is ahead of the wall clock */
    bool stands;
};
void testapi_time(const struct testapi *testapi, struct testapi_time *out);

/* Stops the clock, or starts it again from its present time. */
void testapi_freeze(struct testapi *testapi, bool stop);

/*
 * Moves the clock one step towards until_ms: to the next deadline of the store, or by a
 * slice of what is due. True once the clock is there and everything due has happened.
 * Otherwise the caller calls it again. Between two steps, each notified waiter has
 * retried its operation.
 *
 * If `since` is not UINT64_MAX, the move also ends when the history has an event caused
 * by time with a number above `since`.
 *
 * Claims and messages that expire are no leaks if they are `expected`.
 */
bool testapi_move(struct testapi *testapi, int64_t until_ms, uint64_t since,
                  struct leaks_expected expected);

/* Begins to replace the whole state of the store. False if another request replaces it
 * now. */
bool testapi_begin_load(struct testapi *testapi);
void testapi_end_load(struct testapi *testapi);

/* ------------------------------------------------------------------ waiters */

/*
 * The store notifies a waiting request, and the request retries its operation a moment
 * later. A testapi_waiter is a listener between the two. It counts the notified requests
 * that have not retried yet. Meanwhile the clock does not move.
 */
struct testapi_waiter;

/*
 * Makes a waiter for a request of this project, owned. Its listener forwards each
 * notification to `inner`, which is borrowed. NULL without memory.
 */
struct testapi_waiter *testapi_waiter_new(struct testapi *testapi, struct bytes project,
                                          struct store_listener *inner);
struct store_listener *testapi_waiter_listener(struct testapi_waiter *waiter);

/* Frees a waiter whose listener the store no longer has. NULL is fine. */
void testapi_waiter_free(struct testapi_waiter *waiter);

/*
 * The request retries. True if it was notified. Call testapi_waiter_end_retry() after the
 * retry then.
 */
bool testapi_waiter_begin_retry(struct testapi_waiter *waiter);
void testapi_waiter_end_retry(struct testapi *testapi);

/* Ends the long polling of all requests of a project; absent: of all projects. */
void testapi_end_waits(struct testapi *testapi, struct bytes project);

/* True if each notified request has retried its operation. */
bool testapi_retries_are_done(const struct testapi *testapi);

#endif
