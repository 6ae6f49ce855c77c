#include "testapi/testapi_private.h"

#include "claimd/base/invariant.h"
#include "claimd/store/store.h"

#include <string.h>

enum status
testapi_new(struct mem *mem, struct testapi **out)
{
    struct testapi *testapi = mem_calloc(mem, 1, sizeof(*testapi));
    enum status st;

    if (testapi == NULL)
        return ST_NO_MEMORY;
    testapi->mem = mem;
    clock_init_system(&testapi->clock);
    clock_init_system(&testapi->real);
    lock_init(&testapi->lock);
    list_init(&testapi->calls);
    witness_init(testapi);
    st = history_new(mem, &testapi->history);
    if (st == ST_OK)
        st = faults_new(mem, &testapi->faults);
    if (st == ST_OK)
        *out = testapi;
    else
        testapi_free(testapi);
    return st;
}

void
testapi_free(struct testapi *testapi)
{
    if (testapi == NULL)
        return;
    ENSURE(list_empty(&testapi->calls));
    faults_free(testapi->faults);
    history_free(testapi->history);
    lock_fini(&testapi->lock);
    mem_free(testapi->mem, testapi);
}

struct clock *
testapi_clock(struct testapi *testapi)
{
    return &testapi->clock;
}

struct history *
testapi_history(struct testapi *testapi)
{
    return testapi->history;
}

struct faults *
testapi_faults(struct testapi *testapi)
{
    return testapi->faults;
}

struct store_log *
testapi_log(struct testapi *testapi, struct store_log *log)
{
    testapi->log = log;
    testapi->observer.largest = log == NULL ? 0 : log->largest;
    return &testapi->observer;
}

void
testapi_attach(struct testapi *testapi, struct store *store, void (*moved)(void *ctx),
               void *ctx)
{
    testapi->store = store;
    testapi->moved = moved;
    testapi->moved_ctx = ctx;
}

/* ------------------------------------------------------------------ states */

bool
testapi_begin_exchange(struct testapi *testapi)
{
    return !atomic_exchange(&testapi->exchanging, true);
}

void
testapi_end_exchange(struct testapi *testapi)
{
    atomic_store(&testapi->exchanging, false);
}

/* ------------------------------------------------------------------ time */

void
testapi_time(const struct testapi *testapi, struct testapi_time *out)
{
    out->now_ms = clock_now_ms(&testapi->clock);
    out->ahead_ms = out->now_ms - clock_now_ms(&testapi->real);
    out->stands = clock_stands(&testapi->clock);
}

void
testapi_stop(struct testapi *testapi, bool stop)
{
    (stop ? clock_stop : clock_start)(&testapi->clock);
    testapi->moved(testapi->moved_ctx);
}

static bool
has_happened(struct testapi *testapi, uint64_t since)
{
    return since != UINT64_MAX && history_last_of(testapi->history, HISTORY_CLAIM_ENDED,
                                                  HISTORY_DEAD_LETTER) > since;
}

bool
testapi_move(struct testapi *testapi, int64_t until_ms, uint64_t since)
{
    int64_t now_ms, next_ms;

    if (!testapi_is_quiet(testapi))
        return false; /* they come first, at the time at which they were called */
    now_ms = clock_now_ms(&testapi->clock);
    next_ms = store_next_ms(testapi->store);
    if (next_ms <= now_ms) { /* in slices, like others' work */
        store_housekeep(testapi->store, now_ms, &next_ms);
        return false;
    }
    if (has_happened(testapi, since) || now_ms >= until_ms ||
        (since != UINT64_MAX && next_ms == INT64_MAX)) {
        testapi->moved(testapi->moved_ctx);
        return true;
    }
    clock_reach(&testapi->clock, next_ms < until_ms ? next_ms : until_ms);
    return false;
}

/* ------------------------------------------------------------------ waiters */

struct testapi_call {
    struct store_listener listener; /* what the store knows */
    struct store_listener *inner;   /* borrowed */
    struct testapi *testapi;        /* borrowed */
    struct list link;               /* among the test API's */
    _Atomic bool told;
    struct bytes project; /* stands behind this structure */
    char text[];
};

static struct store_wakeup *
tell(struct store_listener *listener, enum store_news news)
{
    struct testapi_call *call = container_of(listener, struct testapi_call, listener);

    if (!atomic_exchange(&call->told, true))
        atomic_fetch_add(&call->testapi->called, 1);
    return call->inner->notify(call->inner, news);
}

struct testapi_call *
testapi_call_new(struct testapi *testapi, struct bytes project,
                 struct store_listener *inner)
{
    struct testapi_call *call = mem_calloc(testapi->mem, 1, sizeof(*call) + project.len);

    if (call == NULL)
        return NULL;
    call->listener.notify = tell;
    call->inner = inner;
    call->testapi = testapi;
    if (project.len > 0)
        memcpy(call->text, project.data, project.len);
    call->project = bytes_of(call->text, project.len);
    lock_acquire(&testapi->lock);
    list_add_before(&testapi->calls, &call->link);
    lock_release(&testapi->lock);
    return call;
}

struct store_listener *
testapi_call_listener(struct testapi_call *call)
{
    return &call->listener;
}

void
testapi_call_free(struct testapi_call *call)
{
    if (call == NULL)
        return;
    lock_acquire(&call->testapi->lock);
    list_remove(&call->link);
    lock_release(&call->testapi->lock);
    if (testapi_call_take(call))
        testapi_call_served(call->testapi);
    mem_free(call->testapi->mem, call);
}

bool
testapi_call_take(struct testapi_call *call)
{
    return call != NULL && atomic_exchange(&call->told, false);
}

void
testapi_call_served(struct testapi *testapi)
{
    atomic_fetch_sub(&testapi->called, 1);
}

void
testapi_dismiss(struct testapi *testapi, struct bytes project)
{
    lock_acquire(&testapi->lock);
    for (struct list *at = testapi->calls.next; at != &testapi->calls; at = at->next) {
        struct testapi_call *call = container_of(at, struct testapi_call, link);
        struct store_wakeup *wakeup = NULL;

        if (!bytes_present(project) || bytes_equal(project, call->project))
            wakeup = tell(&call->listener, STORE_GONE);
        if (wakeup != NULL)
            wakeup->fire(wakeup);
    }
    lock_release(&testapi->lock);
}

bool
testapi_is_quiet(const struct testapi *testapi)
{
    return atomic_load(&testapi->called) <= 0;
}
