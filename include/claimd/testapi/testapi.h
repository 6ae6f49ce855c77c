/*
 * testapi: what a server has besides when tests are run against it (docs/ci.md): a clock that they
 * move, a history of what happened, and rules for what is to go wrong.
 *
 * It stands beside the store: it observes its changes, passes them on to the log if there is
 * one, and moves the clock by which the store lives. Without `ci` there is no test API, and nothing
 * of this costs anything.
 *
 *   Threads  any, but for testapi_new(), testapi_attach() and testapi_free()
 */
#ifndef CLAIMD_TESTAPI_TESTAPI_H
#define CLAIMD_TESTAPI_TESTAPI_H

#include "claimd/base/clock.h"
#include "claimd/store/log.h"
#include "claimd/testapi/faults.h"
#include "claimd/testapi/history.h"

struct testapi;

/* A test API whose clock runs with the wall clock; owned. ST_NO_MEMORY. */
enum status testapi_new(struct mem *mem, struct testapi **out);

/* After the store. */
void testapi_free(struct testapi *testapi);

/* The store's clock. Only the test API moves it once it is attached. */
struct clock *testapi_clock(struct testapi *testapi);

struct history *testapi_history(struct testapi *testapi);
struct faults *testapi_faults(struct testapi *testapi);

/* The log for the store, which passes everything on to `log`, if not NULL. */
struct store_log *testapi_log(struct testapi *testapi, struct store_log *log);

/* This is the store; moved(ctx) is called, from any thread, when its clock was moved. */
void testapi_attach(struct testapi *testapi, struct store *store,
                    void (*moved)(void *ctx), void *ctx);

/* ------------------------------------------------------------------ time */

/* The clock can be moved by so much at a time: 366 days. */
enum { TESTAPI_STEP_MOST_S = 366 * 24 * 3600 };

struct testapi_time {
    int64_t now_ms, ahead_ms; /* of the wall clock */
    bool stands;
};
void testapi_time(const struct testapi *testapi, struct testapi_time *out);

/* Stops the clock, or starts it from where it stands. */
void testapi_stop(struct testapi *testapi, bool stop);

/*
 * Moves the clock towards until_ms, from one deadline to the next: a step, or a slice of what
 * is due. True: it is there, and all that was due by then has happened. Between two steps all
 * waiters that were called have been served. `since`: it stops when something that time does has
 * happened behind this number of the history; UINT64_MAX: it does not.
 */
bool testapi_move(struct testapi *testapi, int64_t until_ms, uint64_t since);

/* One whole state replaces another at a time. False: another request replaces one now. */
bool testapi_begin_exchange(struct testapi *testapi);
void testapi_end_exchange(struct testapi *testapi);

/* ------------------------------------------------------------------ waiters */

/*
 * A request that waits for a message is told by the store, and asks again a moment later. The
 * test API stands between: while a request that was told has not asked again, time does not go on.
 */
struct testapi_call;

/*
 * Makes the call of a request of this project, owned: what the store tells testapi_call_listener()
 * is passed on to `inner`, which is borrowed. NULL without memory.
 */
struct testapi_call *testapi_call_new(struct testapi *testapi, struct bytes project,
                                      struct store_listener *inner);
struct store_listener *testapi_call_listener(struct testapi_call *call);

/* It waits no more, and the store does not know its listener any more. Fine with NULL. */
void testapi_call_free(struct testapi_call *call);

/* It asks again; true: because it was told. Then testapi_call_served() comes when it has asked. */
bool testapi_call_take(struct testapi_call *call);
void testapi_call_served(struct testapi *testapi);

/* Tells all waiting requests, of one project or (absent) of all, that their waiting is over. */
void testapi_dismiss(struct testapi *testapi, struct bytes project);

/* Has each request that was told asked again? */
bool testapi_is_quiet(const struct testapi *testapi);

#endif
