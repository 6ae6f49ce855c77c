#include "http/loop.h"

#include "claimd/base/invariant.h"
#include "claimd/base/thread.h"
#include "http/request.h"
#include "http/suspended.h"

#include <limits.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { EPOLL_EVENTS = 32, EVENTS_A_ROUND = 256 };

/* ------------------------------------------------------------------ events */

/*
 * If there was a notification, handles up to EVENTS_A_ROUND events, so that other work
 * need not wait for long. True if more events are left.
 */
static bool
handle_events(struct worker *w)
{
    unsigned bits;

    if (!eventq_poll(&w->loop.events))
        return false;
    for (int i = 0; i < EVENTS_A_ROUND; i++) {
        struct event *event = eventq_take(&w->loop.events, &bits);
        struct conn *c;

        if (event == NULL)
            return false;
        c = container_of(event, struct conn, event);
        if ((bits & EVENT_ARRIVED) != 0)
            mhd_add(w->conns.mhd, c);
        else
            suspended_event(w, c, bits);
    }
    (void)eventq_notify(&w->loop.events); /* the rest in the next round */
    return true;
}

void
http_between_runs(struct worker *w)
{
    (void)handle_events(w);
}

/* ------------------------------------------------------------------ life */

enum status
worker_init(struct worker *w, struct worker_shared *shared, const char *tag,
            unsigned index)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &w->loop.events.source};
    enum status st;

    *w = (struct worker){.shared = shared};
    atomic_init(&w->loop.seen_round, 0);
    atomic_init(&w->loop.ended, false);
    exchange_pool_init(&w->exchanges, shared->config->mem);
    traffic_init(&w->traffic, shared->config->mem);
    request_ids_init(&w->ids, tag, index);
    w->housekeeping.shared = &shared->housekeeper;
    housekeeping_hurry(&w->housekeeping);
    w->loop.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    st = eventq_init(&w->loop.events);
    if (w->loop.epoll_fd < 0 ||
        (st == ST_OK &&
         epoll_ctl(w->loop.epoll_fd, EPOLL_CTL_ADD, w->loop.events.fd, &event) != 0))
        st = ST_IO;
    if (st == ST_OK)
        st = suspended_init(w);
    if (st == ST_OK) {
        const struct mhd_config mhd = {.worker = w,
                                       .server = shared->config,
                                       .table = &w->conns.table,
                                       .round = &w->loop.round,
                                       .real = &shared->real,
                                       .epoll_fd = w->loop.epoll_fd};

        conn_table_init(&w->conns.table, shared->config->idle_seconds * 1000,
                        shared->config->request_seconds * 1000);
        linger_init(&w->conns.linger, w->loop.epoll_fd, shared->linger_slots);
        st = mhd_open(&mhd, &w->conns.mhd);
    }
    if (st != ST_OK) {
        worker_close(w);
        worker_fini(w);
    }
    return st;
}

void
worker_close(struct worker *w)
{
    ENSURE(!w->started);
    mhd_close(w->conns.mhd);
    w->conns.mhd = NULL;
    suspended_fini(w);
    if (w->conns.linger.slot_count > 0)
        linger_fini(&w->conns.linger);
    exchange_pool_fini(&w->exchanges);
    traffic_fini(&w->traffic);
}

void
worker_fini(struct worker *w)
{
    eventq_fini(&w->loop.events);
    if (w->loop.epoll_fd >= 0)
        (void)close(w->loop.epoll_fd);
}

/* ------------------------------------------------------------------ a round */

static int64_t
earlier_ms(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/*
 * If another process continues with the listening sockets, no client need notice the
 * change. A client that connected this short a time ago is about to send its first
 * request.
 */
enum { NEW_CONNECTION_MS = 1000 };

/*
 * During a drain: closes connections without a request. Input in the kernel is a request
 * that libmicrohttpd is about to read. Returns when to call this again.
 */
static int64_t
close_idle(struct worker *w)
{
    struct list *head = &w->conns.table.phases[CONN_WAITING], *at = head->next;
    int64_t next_ms = INT64_MAX;

    while (at != head) {
        struct conn *c = container_of(at, struct conn, link);
        int64_t until_ms =
            w->shared->has_successor && !c->used ? c->since_ms + NEW_CONNECTION_MS : 0;

        at = at->next;
        if (conn_unread(c) == UNREAD_DATA)
            continue;
        if (until_ms <= w->loop.round.now_ms)
            request_time_out(w, c);
        else if (until_ms < next_ms)
            next_ms = until_ms;
    }
    return next_ms;
}

/* All of a round except sleeping. Returns how long the worker may sleep; -1: until an
 * event. */
static int64_t
run_round(struct worker *w)
{
    const int64_t now_ms = w->loop.round.now_ms;
    int64_t next_ms, limit_ms, sleep_ms;
    struct conn *c;

    suspended_slices(w);
    suspended_commits(w);
    next_ms = mhd_run(w->conns.mhd);
    while ((c = conn_earliest(&w->conns.table, &limit_ms)) != NULL && limit_ms <= now_ms)
        request_time_out(w, c);
    if (atomic_load(&w->shared->draining)) {
        suspended_drain(w);
        next_ms = earlier_ms(next_ms, close_idle(w));
    }
    next_ms = earlier_ms(next_ms, suspended_expire(w));
    (void)conn_earliest(&w->conns.table,
                        &limit_ms); /* drains and waiters change phases */
    next_ms = earlier_ms(next_ms, limit_ms);
    next_ms = earlier_ms(next_ms, linger_expire(&w->conns.linger, now_ms));
    next_ms = earlier_ms(next_ms, request_log_expire(&w->shared->log, now_ms));
    if (mhd_is_due(w->conns.mhd) || !list_empty(&w->suspended.turns) ||
        atomic_load(&w->suspended.log_moved))
        next_ms = now_ms;
    sleep_ms = housekeeping_step(&w->housekeeping, now_ms);
    if (next_ms != INT64_MAX && (sleep_ms < 0 || next_ms - now_ms < sleep_ms))
        sleep_ms = next_ms > now_ms ? next_ms - now_ms : 0;
    /* All requests of the round share a commit. */
    store_log_flush(w->shared->config->store_log);
    return sleep_ms;
}

static void
handle_source(struct worker *w, struct source *source)
{
    switch (source->kind) {
    case SOURCE_EVENTQ:
        eventq_reset(&w->loop.events);
        housekeeping_hurry(
            &w->housekeeping); /* a test may have moved the store's clock */
        return;
    case SOURCE_LINGER:
        linger_read(&w->conns.linger, source);
        return;
    default:
        ENSURE(source->kind == SOURCE_MHD || source->kind == SOURCE_CONN);
        mhd_event(w->conns.mhd, source);
    }
}

static void
run_loop(struct worker *w)
{
    struct epoll_event events[EPOLL_EVENTS];
    struct round *round = &w->loop.round;
    int64_t sleep_ms = 0;

    while (!atomic_load(&w->shared->cut)) {
        int n;

        /* The drain is over: all connections, and all responses on their way, have
         * ended. */
        if (atomic_load(&w->shared->draining) && w->conns.linger.count == 0 &&
            atomic_load_explicit(&w->conns.load, memory_order_acquire) == 0)
            break;
        round->number++;
        atomic_store_explicit(&w->loop.seen_round, round->number, memory_order_release);
        if (sleep_ms != 0 && !eventq_prepare_sleep(&w->loop.events))
            sleep_ms = 0;
        n = epoll_wait(w->loop.epoll_fd, events, EPOLL_EVENTS,
                       sleep_ms > INT_MAX ? INT_MAX : (int)sleep_ms);
        eventq_cancel_sleep(&w->loop.events);
        round->now_ms = clock_now_ms(&w->shared->real);
        round->stopwatch_ns = clock_stopwatch_ns();
        if (n > 0)
            trimmer_busy(&w->shared->housekeeper.trimmer, round->now_ms);
        for (int i = 0; i < n; i++)
            handle_source(w, events[i].data.ptr);
        (void)handle_events(w);
        sleep_ms = run_round(w);
    }
}

/* ------------------------------------------------------------------ the thread */

/* Waits until all fibers have ended. They use exchanges, which must not be freed
 * before. */
static void
await_fibers(struct worker *w)
{
    struct eventq *q = &w->loop.events;

    while (w->suspended.in_fibers > 0) {
        struct pollfd fd = {.fd = q->fd, .events = POLLIN};

        if (eventq_prepare_sleep(q))
            (void)poll(&fd, 1, -1);
        eventq_cancel_sleep(q);
        eventq_reset(q);
        while (handle_events(w))
            continue;
    }
}

static void *
thread_main(void *arg)
{
    struct worker *w = arg;

    w->loop.round.now_ms = clock_now_ms(&w->shared->real);
    run_loop(w);
    atomic_store_explicit(&w->loop.ended, true, memory_order_release);
    await_fibers(w);
    while (handle_events(w)) /* adds the last connections, to be closed with the others */
        continue;
    w->cut_off += conn_unfinished(&w->conns.table);
    mhd_close(w->conns.mhd);
    w->conns.mhd = NULL;
    ENSURE(w->conns.table.count == 0 && w->suspended.in_fibers == 0);
    (void)eventfd_write(w->shared->done_fd, 1); /* fails only when the counter is full */
    return NULL;
}

enum status
worker_start(struct worker *w)
{
    enum status st;

    ENSURE(!w->started);
    st = thread_start(&w->thread, thread_main, w);
    w->started = st == ST_OK;
    return st;
}

void
worker_join(struct worker *w)
{
    if (w->started)
        (void)pthread_join(w->thread, NULL); /* fails only when misused */
    w->started = false;
}
