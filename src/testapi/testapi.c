#include "claimd/testapi/testapi.h"

#include "claimd/base/buf.h"
#include "claimd/base/invariant.h"
#include "claimd/base/lock.h"
#include "claimd/store/store.h"
#include "claimd/store/waitqueue.h"

#include <string.h>

struct testapi {
    struct mem *mem; /* borrowed */
    struct clock clock, real;
    struct history *history; /* owned */
    struct faults *faults;   /* owned */
    struct leaks *leaks;     /* owned */
    struct store_log observer;
    struct store_log *log;   /* borrowed; NULL: none */
    struct store *store;     /* borrowed */
    struct sampler *sampler; /* likewise; NULL: none */
    void (*moved)(void *ctx);
    void *moved_ctx;
    struct lock lock;         /* guards `waiters` */
    struct list waiters;      /* struct testapi_waiter */
    _Atomic int64_t unserved; /* waiters that were notified and have not retried yet */
    _Atomic bool loading;     /* a request replaces the whole state */
};

/* ------------------------------------------------------------------ log of the store */

static struct testapi *
observer_testapi(struct store_log *observer)
{
    return container_of(observer, struct testapi, observer);
}

/* The event of a change. HISTORY_EVENTS: the history does not record it. */
static enum history_event
change_event(const struct store_change *change)
{
    static const struct {
        enum store_change_kind kind;
        enum history_event event;
    } events[] = {{STORE_CHANGE_QUEUE, HISTORY_QUEUE_MADE},
                  {STORE_CHANGE_META, HISTORY_QUEUE_CHANGED},
                  {STORE_CHANGE_QUEUE_GONE, HISTORY_QUEUE_DELETED},
                  {STORE_CHANGE_PURGE, HISTORY_PURGED},
                  {STORE_CHANGE_POST, HISTORY_POSTED},
                  {STORE_CHANGE_DELETE, HISTORY_DELETED},
                  {STORE_CHANGE_CLAIM, HISTORY_CLAIMED},
                  {STORE_CHANGE_RENEW, HISTORY_RENEWED},
                  {STORE_CHANGE_RELEASE, HISTORY_RELEASED},
                  {STORE_CHANGE_RETRY, HISTORY_RELEASED},
                  {STORE_CHANGE_MOVE, HISTORY_DEAD_LETTER},
                  {STORE_CHANGE_SUBSCRIPTION, HISTORY_SUBSCRIBED},
                  {STORE_CHANGE_SUBSCRIPTION_GONE, HISTORY_UNSUBSCRIBED},
                  {STORE_CHANGE_UNSUBSCRIBED, HISTORY_UNSUBSCRIBED},
                  {STORE_CHANGE_EXPIRED, HISTORY_EXPIRED},
                  {STORE_CHANGE_DELAY_OVER, HISTORY_DELAY_ENDED},
                  {STORE_CHANGE_CLAIM_OVER, HISTORY_CLAIM_ENDED}};
    const struct store_actor *actor = change->actor;

    if (change->kind == STORE_CHANGE_DELETE && actor != NULL &&
        bytes_present(actor->claim))
        return HISTORY_FINISHED;
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
        if (events[i].kind == change->kind)
            return events[i].event;
    return HISTORY_EVENTS;
}

/* Writes the ids of the messages of a change. Leaves the change as it is, for the
 * journal. */
static void
write_ids(const struct store_change *change, struct buf *out, size_t *count)
{
    struct store_change copy = *change;
    struct store_message_record m;

    *count = 0;
    while (copy.next(&copy, &m)) {
        if ((*count)++ >= HISTORY_IDS)
            continue;
        if (*count > 1)
            buf_byte(out, ' ');
        buf_str(out, m.id.text);
    }
}

static void
note_change(struct testapi *testapi, const struct store_change *change)
{
    const enum store_change_kind kind = change->kind;
    const bool by_time = kind == STORE_CHANGE_EXPIRED ||
                         kind == STORE_CHANGE_DELAY_OVER ||
                         kind == STORE_CHANGE_CLAIM_OVER || kind == STORE_CHANGE_MOVE;
    const struct store_actor *actor = by_time ? NULL : change->actor;
    struct history_entry e = {.at_ms = change->now_ms, .queue = change->queue};
    struct buf ids;

    e.event = change_event(change);
    if (change->checkpoint || e.event == HISTORY_EVENTS ||
        change->queue.kind == STORE_SCHEDULES) /* claimd's own */
        return;
    buf_init(&ids, testapi->mem);
    write_ids(change, &ids, &e.count);
    if (actor != NULL) {
        e.client = actor->client;
        e.action = actor->action;
        e.claim = actor->claim;
    }
    if (change->claim.id.text[0] != '\0')
        e.claim = store_id_bytes(&change->claim.id);
    if (e.event == HISTORY_CLAIMED || e.event == HISTORY_RENEWED)
        e.ends_ms = change->claim.ends_ms;
    if (e.event == HISTORY_DEAD_LETTER)
        e.target = change->target;
    e.ids = buf_view(&ids); /* without memory, some are missing */
    history_add(testapi->history, &e);
    buf_fini(&ids);
}

/* Time has ended a claim, or messages that no client ever claimed. */
static void
note_expiry(struct testapi *testapi, const struct store_change *change)
{
    struct store_change copy = *change;
    struct store_message_record m;
    struct leak leak = {
        .end = LEAK_END_EXPIRED, .queue = change->queue, .ended_ms = change->now_ms};

    if (change->checkpoint || change->queue.kind != STORE_QUEUE)
        return;
    if (change->kind == STORE_CHANGE_CLAIM_OVER && change->count > 0) {
        leak.kind = LEAK_CLAIM;
        leak.id = change->claim.id;
        leak.at_ms = change->claim.started_ms;
        leak.messages = change->count;
        leaks_add_expired(testapi->leaks, &leak);
    }
    while (change->kind == STORE_CHANGE_EXPIRED && copy.next(&copy, &m)) {
        leak.kind = LEAK_UNREAD;
        leak.id = m.id;
        leak.at_ms = m.posted_ms;
        if (m.claim_count == 0)
            leaks_add_expired(testapi->leaks, &leak);
    }
}

static enum status
observer_reserve(struct store_log *observer, enum store_change_kind kind, bool checkpoint,
                 size_t count, size_t bytes, size_t *space)
{
    struct store_log *log = observer_testapi(observer)->log;

    return log == NULL ? ST_OK : log->reserve(log, kind, checkpoint, count, bytes, space);
}

static uint64_t
observer_append(struct store_log *observer, struct store_change *change, size_t *space)
{
    struct testapi *testapi = observer_testapi(observer);

    for (const struct store_change *one = change; one != NULL; one = one->then) {
        note_change(testapi, one);
        note_expiry(testapi, one);
    }
    return testapi->log == NULL ? 0 : testapi->log->append(testapi->log, change, space);
}

static void
observer_unreserve(struct store_log *observer, size_t space)
{
    struct store_log *log = observer_testapi(observer)->log;

    if (log != NULL)
        log->unreserve(log, space);
}

static void
observer_flush(struct store_log *observer)
{
    store_log_flush(observer_testapi(observer)->log);
}

/* ------------------------------------------------------------------ life */

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
    list_init(&testapi->waiters);
    testapi->observer = (struct store_log){.reserve = observer_reserve,
                                           .append = observer_append,
                                           .unreserve = observer_unreserve,
                                           .flush = observer_flush};
    st = history_new(mem, &testapi->history);
    if (st == ST_OK)
        st = faults_new(mem, &testapi->faults);
    if (st == ST_OK)
        st = leaks_new(mem, &testapi->leaks);
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
    ENSURE(list_empty(&testapi->waiters));
    leaks_free(testapi->leaks);
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

struct leaks *
testapi_leaks(struct testapi *testapi)
{
    return testapi->leaks;
}

struct store_log *
testapi_log(struct testapi *testapi, struct store_log *log)
{
    testapi->log = log;
    testapi->observer.largest = log == NULL ? 0 : log->largest;
    return &testapi->observer;
}

void
testapi_attach(struct testapi *testapi, struct store *store, struct sampler *sampler,
               void (*moved)(void *ctx), void *ctx)
{
    testapi->store = store;
    testapi->sampler = sampler;
    testapi->moved = moved;
    testapi->moved_ctx = ctx;
}

bool
testapi_begin_load(struct testapi *testapi)
{
    return !atomic_exchange(&testapi->loading, true);
}

void
testapi_end_load(struct testapi *testapi)
{
    atomic_store(&testapi->loading, false);
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
testapi_freeze(struct testapi *testapi, bool stop)
{
    (stop ? clock_stop : clock_start)(&testapi->clock);
    testapi->moved(testapi->moved_ctx);
}

bool
testapi_move(struct testapi *testapi, int64_t until_ms, uint64_t since,
             struct leaks_expected expected)
{
    int64_t now_ms, next_ms, sample_ms = INT64_MAX;

    if (!testapi_retries_are_done(testapi))
        return false; /* waiters retry at the time at which they were notified */
    leaks_expect(testapi->leaks, expected);
    now_ms = clock_now_ms(&testapi->clock);
    next_ms = store_next_ms(testapi->store);
    if (next_ms <= now_ms) { /* a slice, as in other requests */
        store_housekeep(testapi->store, now_ms, &next_ms);
        return false;
    }
    if (testapi->sampler != NULL)
        sample_ms =
            sampler_next_ms(testapi->sampler, until_ms != INT64_MAX ? until_ms : next_ms);
    if (sample_ms <= now_ms) {
        sampler_tick(testapi->sampler);
        return false;
    }
    if (now_ms >= until_ms ||
        (since != UINT64_MAX &&
         (next_ms == INT64_MAX || history_last_of(testapi->history, HISTORY_CLAIM_ENDED,
                                                  HISTORY_SCHEDULE) > since))) {
        leaks_expect(testapi->leaks, (struct leaks_expected){.any = false});
        testapi->moved(testapi->moved_ctx);
        return true;
    }
    if (next_ms > sample_ms)
        next_ms = sample_ms;
    clock_advance_to(&testapi->clock, next_ms < until_ms ? next_ms : until_ms);
    return false;
}

/* ------------------------------------------------------------------ waiters */

struct testapi_waiter {
    struct store_listener listener; /* for the store */
    struct store_listener *inner;   /* borrowed */
    struct testapi *testapi;        /* borrowed */
    struct list link;               /* in testapi.waiters */
    _Atomic bool notified;          /* and has not retried yet */
    struct bytes project;           /* its text is behind this structure */
    char text[];
};

static struct store_wakeup *
waiter_notify(struct store_listener *listener, enum store_notification notification)
{
    struct testapi_waiter *w = container_of(listener, struct testapi_waiter, listener);

    if (!atomic_exchange(&w->notified, true))
        atomic_fetch_add(&w->testapi->unserved, 1);
    return w->inner->notify(w->inner, notification);
}

struct testapi_waiter *
testapi_waiter_new(struct testapi *testapi, struct bytes project,
                   struct store_listener *inner)
{
    struct testapi_waiter *w = mem_calloc(testapi->mem, 1, sizeof(*w) + project.len);

    if (w == NULL)
        return NULL;
    w->listener.notify = waiter_notify;
    w->inner = inner;
    w->testapi = testapi;
    if (project.len > 0)
        memcpy(w->text, project.data, project.len);
    w->project = bytes_of(w->text, project.len);
    lock_acquire(&testapi->lock);
    list_add_before(&testapi->waiters, &w->link);
    lock_release(&testapi->lock);
    return w;
}

struct store_listener *
testapi_waiter_listener(struct testapi_waiter *w)
{
    return &w->listener;
}

void
testapi_waiter_free(struct testapi_waiter *w)
{
    if (w == NULL)
        return;
    lock_acquire(&w->testapi->lock);
    list_remove(&w->link);
    lock_release(&w->testapi->lock);
    if (testapi_waiter_begin_retry(w))
        testapi_waiter_end_retry(w->testapi);
    mem_free(w->testapi->mem, w);
}

bool
testapi_waiter_begin_retry(struct testapi_waiter *w)
{
    return w != NULL && atomic_exchange(&w->notified, false);
}

void
testapi_waiter_end_retry(struct testapi *testapi)
{
    atomic_fetch_sub(&testapi->unserved, 1);
}

void
testapi_end_waits(struct testapi *testapi, struct bytes project)
{
    struct wakeups wakeups = {.count = 0};

    lock_acquire(&testapi->lock);
    for (struct list *at = testapi->waiters.next; at != &testapi->waiters;
         at = at->next) {
        struct testapi_waiter *w = container_of(at, struct testapi_waiter, link);

        if (!bytes_present(project) || bytes_equal(project, w->project))
            wakeups_defer(&wakeups, waiter_notify(&w->listener, STORE_GONE));
    }
    lock_release(&testapi->lock);
    wakeups_fire(&wakeups);
}

bool
testapi_retries_are_done(const struct testapi *testapi)
{
    return atomic_load(&testapi->unserved) <= 0;
}
