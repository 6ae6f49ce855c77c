#include "http/suspended.h"

#include "claimd/base/invariant.h"
#include "claimd/base/sometimes.h"
#include "http/injected_fault.h"
#include "http/request.h"
#include "http/respond.h"
#include "http/stream.h"

#include <poll.h>

/* SLICES_A_ROUND bounds how long other requests wait. EXPIRE_BUDGET: of
 * wheel_advance(). */
enum { SLICES_A_ROUND = 4, EXPIRE_BUDGET = 4096 };

/* ------------------------------------------------------------------ life */

static struct store_wakeup *
notify_of_log(struct store_listener *listener, enum store_notification notification)
{
    struct worker *w = container_of(listener, struct worker, suspended.log);

    (void)notification; /* a log sends only one kind */
    atomic_store(&w->suspended.log_moved, true);
    return eventq_notify(&w->loop.events) ? &w->loop.events.wakeup : NULL;
}

/* Fibers of a worker, and of all. A stack takes two mappings. Linux allows a process
 * 65,530. */
enum { FIBERS_MOST = 1024, FIBERS_ALL = 16384 };

/* For a fiber pool: has the worker resume a parked fiber. */
static void
wake_fiber(void *arg)
{
    struct conn *c = ((struct exchange *)arg)->conn;
    struct eventq *q = c->eventq;

    if (eventq_push(q, &c->event, EVENT_FIBER)) /* after it, c may be freed */
        eventq_wake(q);
}

enum status
suspended_init(struct worker *w)
{
    const struct server_config *config = w->shared->config;
    struct suspended *s = &w->suspended;
    size_t fibers = FIBERS_ALL / config->workers;

    list_init(&s->waiting);
    list_init(&s->turns);
    list_init(&s->starved);
    list_init(&s->loads);
    list_init(&s->commits);
    list_init(&s->delayed);
    if (fibers > FIBERS_MOST)
        fibers = FIBERS_MOST;
    if (config->fibers != 0)
        fibers = config->fibers;
    fiber_pool_init(&s->fibers, config->mem, config->executor, fibers, wake_fiber);
    s->log.notify = notify_of_log;
    s->deadlines = wheel_new(config->mem, clock_now_ms(&w->shared->real));
    if (s->deadlines == NULL)
        return ST_NO_MEMORY;
    store_log_listen(config->store_log, &s->log);
    return ST_OK;
}

void
suspended_fini(struct worker *w)
{
    if (w->suspended.deadlines == NULL)
        return;
    store_log_unlisten(w->shared->config->store_log, &w->suspended.log);
    fiber_pool_fini(&w->suspended.fibers);
    wheel_free(w->suspended.deadlines);
    w->suspended.deadlines = NULL;
}

/* ------------------------------------------------------------------ slices */

static struct conn *
conn_of_turn(struct list *link)
{
    return container_of(link, struct conn, turn);
}

/*
 * All slices but one go to the first exchange, so that of many long requests the first
 * ends soon. The last slice goes to the second exchange, which then moves to the end, so
 * that a short request need not wait for a long one.
 */
void
suspended_slices(struct worker *w)
{
    struct list *turns = &w->suspended.turns;
    struct conn *c;

    for (int i = 1; i < SLICES_A_ROUND && !list_empty(turns); i++)
        (void)respond_slice(w, conn_of_turn(turns->next)->exchange);
    if (list_empty(turns) || turns->next->next == turns)
        return;
    c = conn_of_turn(turns->next->next);
    if (respond_slice(w, c->exchange))
        return;
    list_remove(&c->turn);
    list_add_before(turns, &c->turn);
}

/* ------------------------------------------------------------------ long polling */

/* Calls the API again for an exchange in WAITING. Unless `end` is WAITING_ON, for the
 * last time. */
static void
retry_waiting(struct worker *w, struct exchange *ex, enum waiting_end end)
{
    struct pollfd fd = {.fd = ex->conn->fd, .events = POLLRDHUP};

    ENSURE(ex->state == EXCHANGE_WAITING);
    /* The client may have gone without an event so far. Then the request must not
     * claim. */
    if (ex->conn->hung_up || (poll(&fd, 1, 0) > 0 && fd.revents != 0))
        end = WAITING_ABANDONED;
    SOMETIMES_IF(end == WAITING_ABANDONED, GONE_IN_POLL);
    ex->waiting.end = end;
    respond_retry(w, ex);
}

void
suspended_event(struct worker *w, struct conn *c, unsigned bits)
{
    struct exchange *ex = c->exchange;

    if ((bits & EVENT_FIBER) != 0) {
        ENSURE(ex != NULL && ex->fiber != NULL);
        respond_resume_fiber(w, ex);
    }
    if (ex == NULL || c->phase == CONN_CLOSING)
        return;
    if (ex->state == EXCHANGE_REMOTE || ex->state == EXCHANGE_IDENTITY) {
        SOMETIMES(EVENT_IN_FIBER);
        ex->events |= bits; /* handled after the fiber, which has the exchange now */
    } else if (ex->state == EXCHANGE_WAITING) {
        bits |= ex->events;
        ex->events = 0;
        if ((bits & EVENT_GONE) != 0)
            retry_waiting(w, ex, WAITING_OVER);
        else if ((bits & EVENT_READY) != 0 || c->hung_up)
            retry_waiting(w, ex, WAITING_ON);
    }
}

void
http_on_hung_up(struct conn *c)
{
    if (c->exchange != NULL && c->exchange->state == EXCHANGE_WAITING)
        retry_waiting(worker_of(c), c->exchange, WAITING_ABANDONED);
}

/* ------------------------------------------------------------------ ends of waits */

/* The pause between two events of a stream has ended. */
static void
continue_stream(struct worker *w, struct exchange *ex)
{
    enum stream_step step = stream_continue(w, ex);

    if (step == STREAM_NEXT)
        respond_retry(w, ex);
    else if (step == STREAM_NOT_TAKEN)
        request_time_out(w, ex->conn);
}

/* The delay of a response, or between two pieces of it, has ended. */
static void
end_delay(struct worker *w, struct exchange *ex)
{
    state_unlist(w, ex);
    if (ex->state == EXCHANGE_DELAYED)
        state_make_ready(w, ex);
    else
        fault_piece_due(w, ex);
}

/* Ends the long polling or the delay of an exchange. */
static void
end_wait(struct worker *w, struct exchange *ex)
{
    if (ex->state == EXCHANGE_WAITING)
        retry_waiting(w, ex, WAITING_OVER);
    else if (ex->state == EXCHANGE_STREAM)
        continue_stream(w, ex);
    else
        end_delay(w, ex);
}

int64_t
suspended_expire(struct worker *w)
{
    struct suspended *s = &w->suspended;
    struct deadline *d;

    if (list_empty(&s->waiting) && list_empty(&s->delayed))
        return INT64_MAX;
    (void)wheel_advance(s->deadlines, w->loop.round.now_ms, EXPIRE_BUDGET);
    while ((d = wheel_drain(s->deadlines)) != NULL)
        end_wait(w, container_of(d, struct exchange, due));
    return wheel_next_ms(s->deadlines);
}

/* Gives exchanges a turn that wait for messages from the disk, if some were read. */
static void
resume_loads(struct worker *w)
{
    struct suspended *s = &w->suspended;
    const uint64_t loaded = store_log_loaded(w->shared->config->store_log);

    if (loaded != s->loaded)
        list_move(&s->turns, &s->loads);
    s->loaded = loaded;
}

void
suspended_commits(struct worker *w)
{
    struct suspended *s = &w->suspended;

    /* Clears log_moved also if nothing waits. Otherwise the worker would never sleep
     * again. */
    if (!atomic_load_explicit(&s->log_moved, memory_order_relaxed) ||
        !atomic_exchange(&s->log_moved, false))
        return;
    resume_loads(w);
    while (!list_empty(&s->commits)) {
        struct exchange *ex = container_of(s->commits.next, struct exchange, commit);
        enum store_durability durability =
            store_log_durability(w->shared->config->store_log, ex->response.lsn);

        ENSURE(ex->state == EXCHANGE_COMMIT && ex->response.lsn != 0);
        SOMETIMES_IF(durability == STORE_PENDING, COMMIT_LAGS);
        if (durability == STORE_PENDING)
            return;
        list_remove(&ex->commit);
        SOMETIMES_IF(durability == STORE_LOST, RESPONSE_LOST);
        if (durability == STORE_DURABLE)
            respond_finish(w, ex);
        else
            respond_abort(w, ex->conn, REFUSAL_NONE); /* no client may learn of it */
    }
}

static void
end_all(struct worker *w, struct list *conns)
{
    while (!list_empty(conns)) {
        struct conn *c = conn_of_turn(conns->next);

        if (!mhd_is_suspended(c))
            return; /* the next round continues */
        end_wait(w, c->exchange);
    }
}

void
suspended_drain(struct worker *w)
{
    end_all(w, &w->suspended.waiting);
    end_all(w, &w->suspended.delayed);
}
