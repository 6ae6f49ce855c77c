/*
 * respond: calls the API for a whole request, and queues the response.
 *
 * A response without a wait:
 *
 *     1. respond_request() counts a waiter, if the request may become one, and calls the
 *        API (handle_request()).
 *     2. http_on_ready() gives the response to libmicrohttpd.
 *     3. respond_end() ends the exchange. If the client did not get the response, it
 *        releases the claim in it.
 *
 * Long polling:
 *
 *     1. The API returns API_WAIT: the waiter is in the wait queue of the store.
 *        wait_for_message() suspends the exchange, with its deadline.
 *     2. A post wakes the waiter: notify_waiter() pushes an event to the worker of the
 *        connection.
 *     3. The worker takes the event (suspended_event()), and respond_retry() calls the
 *        API again.
 *     4. With a message, or at the deadline, the API returns a response:
 *        state_make_ready() resumes the connection, and libmicrohttpd calls
 *        http_on_ready(). Else back to 1, with the place in the wait queue.
 *     5. If the client hangs up, the request must not claim any more
 *        (WAITING_ABANDONED).
 *
 * Read suspended.c next.
 */
#include "http/respond.h"

#include "claimd/base/invariant.h"
#include "http/injected_fault.h"
#include "http/lost_claim.h"
#include "http/stream.h"

/* ------------------------------------------------------------------ states */

/* Adds an exchange to the end of a list in TURN. False: it is suspended. */
static bool
wait_for_turn(struct worker *w, struct exchange *ex, struct list *turns)
{
    state_set(w, ex, EXCHANGE_TURN);
    worker_set_phase(w, ex->conn, CONN_RESPONDING);
    list_add_before(turns, &ex->conn->turn);
    return false;
}

/* The same for messages that are read from the disk. */
static bool
wait_for_load(struct worker *w, struct exchange *ex)
{
    if (ex->load_began_ns == 0)
        ex->load_began_ns = clock_stopwatch_ns();
    return wait_for_turn(w, ex, &w->suspended.loads);
}

/* Counts the wait for messages from the disk, if there was one. It may have taken several
 * loads. */
static void
end_load_wait(struct worker *w, struct exchange *ex)
{
    if (ex->load_began_ns == 0)
        return;
    traffic_count_load_wait(&w->traffic,
                            (clock_stopwatch_ns() - ex->load_began_ns) / 1000);
    ex->load_began_ns = 0;
}

static bool
wait_for_message(struct worker *w, struct exchange *ex)
{
    struct conn *c = ex->conn;

    ENSURE(ex->counted && ex->waiting.end == WAITING_ON); /* else it must not wait */
    state_set(w, ex, EXCHANGE_WAITING);
    worker_set_phase(w, c, CONN_SUSPENDED);
    list_add_before(&w->suspended.waiting, &c->turn);
    if (ex->until_ms == 0) /* + 1 because now_ms is rounded down */
        ex->until_ms = w->loop.round.now_ms + ex->waiting.wait_ms + 1;
    wheel_arm(w->suspended.deadlines, &ex->due, ex->until_ms);
    /* If the client has gone, the next round ends the exchange, which is suspended by
     * then. */
    if (c->hung_up && eventq_push(c->eventq, &c->event, EVENT_READY))
        eventq_wake(c->eventq);
    return false;
}

/* True: the change is durable. */
static bool
wait_for_log(struct worker *w, struct exchange *ex)
{
    enum store_durability durability =
        store_log_durability(w->shared->config->store_log, ex->response.lsn);
    struct list *at = w->suspended.commits.prev;

    if (durability == STORE_DURABLE)
        return true;
    state_set(w, ex, EXCHANGE_COMMIT);
    worker_set_phase(w, ex->conn, CONN_SUSPENDED);
    /* The list is in the order of LSNs. The place is nearly always the end. */
    while (at != &w->suspended.commits &&
           container_of(at, struct exchange, commit)->response.lsn > ex->response.lsn)
        at = at->prev;
    list_add_before(at->next, &ex->commit);
    if (durability == STORE_LOST) /* the log will not notify of this change */
        atomic_store(&w->suspended.log_moved, true);
    return false;
}

/* ------------------------------------------------------------------ long polling */

static struct store_wakeup *
notify_waiter(struct store_listener *listener, enum store_notification notification)
{
    struct exchange *ex = container_of(listener, struct exchange, waiting.listener);
    struct eventq *q = ex->conn->eventq;
    enum event_bits bits = notification == STORE_GONE ? EVENT_GONE : EVENT_READY;

    return eventq_push(q, &ex->conn->event, bits) ? &q->wakeup : NULL;
}

/* Permits long polling for a request that may want it, if fewer than max_waiters do. */
static void
count_waiter(struct worker *w, struct exchange *ex)
{
    const size_t most = w->shared->config->max_waiters;

    if (ex->counted || ex->waiting.end != WAITING_ON ||
        !api_may_wait(w->shared->config->api, &ex->request))
        return;
    if (atomic_fetch_add(&w->shared->waiters, 1) >= most) {
        (void)atomic_fetch_sub(&w->shared->waiters, 1);
        return;
    }
    ex->counted = true;
    ex->waiting.listener.notify = notify_waiter;
    ex->request.waiting = &ex->waiting;
}

static void
uncount_waiter(struct worker *w, struct exchange *ex)
{
    if (ex->counted)
        (void)atomic_fetch_sub(&w->shared->waiters, 1);
    ex->counted = false;
}

/* ------------------------------------------------------------------ calling the API */

static enum api_next
call_api(const struct server_config *config, struct exchange *ex)
{
    const char *outer = invariant_context(ex->id);
    enum api_next next;

    ex->request.now_ms = clock_now_ms(config->clock);
    ex->request.body = buf_view(&ex->body);
    next = api_handle(config->api, &ex->request, &ex->response);
    (void)invariant_context(outer);
    return next;
}

static void
run_fiber(void *arg)
{
    struct exchange *ex = arg;

    ex->next_step = call_api(worker_of(ex->conn)->shared->config, ex);
}

/* Does what the API returned. True: the exchange has its response. */
static bool
continue_with(struct worker *w, struct exchange *ex, enum api_next next)
{
    ENSURE(ex->fiber == NULL);
    state_unlist(w, ex);
    if ((next == API_SEND || next == API_HOLD) && !ex->response.stream)
        uncount_waiter(w, ex);
    if (next == API_LOAD)
        return wait_for_load(w, ex);
    end_load_wait(w, ex);
    if (next == API_AGAIN)
        return wait_for_turn(w, ex, &w->suspended.turns);
    if (next == API_WAIT)
        return wait_for_message(w, ex);
    if (next == API_HOLD && !wait_for_log(w, ex))
        return false;
    return fault_allows(w, ex);
}

/* After a fiber has parked or ended. True: the exchange has its response. */
static bool
after_fiber(struct worker *w, struct exchange *ex, enum fiber_state state)
{
    struct list *starved;

    if (state == FIBER_PARKED) {
        state_set(w, ex, ex->request.proof.asking ? EXCHANGE_IDENTITY : EXCHANGE_REMOTE);
        w->suspended.in_fibers++;
        worker_set_phase(w, ex->conn, CONN_SUSPENDED);
        return false;
    }
    fiber_give(&w->suspended.fibers, ex->fiber);
    ex->fiber = NULL;
    starved = list_pop(&w->suspended.starved); /* a fiber is free now */
    if (starved != NULL)
        list_add_before(&w->suspended.turns, starved);
    return continue_with(w, ex, ex->next_step);
}

/* Calls the API, in a fiber if it may block. True: the exchange has its response. */
static bool
handle_request(struct worker *w, struct exchange *ex)
{
    const struct server_config *config = w->shared->config;
    enum fiber_state state;
    const char *outer;

    if (!api_may_block(config->api, &ex->request))
        return continue_with(w, ex, call_api(config, ex));
    state_unlist(w, ex);
    ex->fiber = fiber_take(&w->suspended.fibers);
    if (ex->fiber == NULL)
        return wait_for_turn(w, ex, &w->suspended.starved);
    outer = invariant_context(ex->id);
    state = fiber_start(ex->fiber, run_fiber, ex);
    (void)invariant_context(outer);
    return after_fiber(w, ex, state);
}

void
respond_retry(struct worker *w, struct exchange *ex)
{
    if (handle_request(w, ex))
        state_make_ready(w, ex);
}

void
respond_resume_fiber(struct worker *w, struct exchange *ex)
{
    const char *outer = invariant_context(ex->id);
    enum fiber_state state;

    ENSURE(ex->state == EXCHANGE_REMOTE || ex->state == EXCHANGE_IDENTITY);
    ENSURE(w->suspended.in_fibers > 0);
    w->suspended.in_fibers--;
    state = fiber_resume(ex->fiber);
    (void)invariant_context(outer);
    if (after_fiber(w, ex, state))
        state_make_ready(w, ex);
}

bool
respond_slice(struct worker *w, struct exchange *ex)
{
    const enum method method = ex->request.method;
    enum api_next next;

    ENSURE(ex->state == EXCHANGE_TURN);
    if (ex->conn->hung_up && (method == METHOD_GET || method == METHOD_HEAD)) {
        respond_abort(w, ex->conn, REFUSAL_NONE);
        return true;
    }
    if (api_may_block(w->shared->config->api, &ex->request)) {
        respond_retry(w, ex);
        return true;
    }
    next = call_api(w->shared->config, ex);
    if (next == API_AGAIN) {
        end_load_wait(w, ex);
        return false;
    }
    if (continue_with(w, ex, next))
        state_make_ready(w, ex);
    return true;
}

void
respond_finish(struct worker *w, struct exchange *ex)
{
    ENSURE(ex->state == EXCHANGE_COMMIT);
    if (fault_allows(w, ex))
        state_make_ready(w, ex);
}

void
respond_abort(struct worker *w, struct conn *c, enum refusal why)
{
    if (c->exchange != NULL)
        state_unlist(w, c->exchange);
    mhd_end(c, why);
}

/* ------------------------------------------------------------------ begin and end */

bool
http_on_ready(struct conn *c)
{
    struct worker *w = worker_of(c);
    struct exchange *ex = c->exchange;
    const bool closing = ex->closing || ex->head.chunked || worker_is_draining(w) ||
                         ex->response.status == ST_PROJECT_CONNECTIONS;
    const int64_t piece = ex->response.fault.bytes;
    const struct mhd_pieces events = {stream_read_event, STREAM_PIECE, true};
    struct mhd_pieces pieces = {.read = fault_read_piece};

    if (fault_cuts(ex)) {
        worker_set_phase(w, c, CONN_CLOSING);
        return false;
    }
    /*
     * If libmicrohttpd cannot queue the response, the connection is closed. 503 would say
     * that nothing has happened, but the request may have had its effect.
     */
    if (ex->response.stream)
        return mhd_respond(ex, closing, &events);
    pieces.most = piece > FAULT_PIECE ? (size_t)piece : FAULT_PIECE;
    return mhd_respond(ex, closing, fault_divides(ex) ? &pieces : NULL);
}

bool
respond_request(struct worker *w, struct exchange *ex, bool closing)
{
    struct conn *c = ex->conn;

    worker_set_phase(w, c, CONN_RESPONDING);
    if (ex->no_memory)
        return mhd_refuse(w->conns.mhd, c, REFUSAL_NO_MEMORY, closing);
    ENSURE(!list_linked(&c->turn));
    ex->closing = closing;
    ex->stream = (struct stream){.mark = arena_mark(&ex->arena)};
    count_waiter(w, ex);
    if (handle_request(w, ex))
        return http_on_ready(c);
    if (ex->state == EXCHANGE_WAITING)
        ex->sent_before = socket_sent_bytes(c->fd);
    mhd_suspend(c);
    return true;
}

void
respond_end(struct worker *w, struct exchange *ex, bool sent)
{
    ENSURE(ex->state != EXCHANGE_REMOTE && ex->state != EXCHANGE_IDENTITY);
    state_unlist(w, ex);
    uncount_waiter(w, ex);
    api_stop_waiting(w->shared->config->api, &ex->request);
    if (ex->request.waiting != NULL)
        eventq_cancel(ex->conn->eventq, &ex->conn->event); /* its waiters are gone */
    if (!sent && bytes_present(ex->response.claim_id) && !ex->response.claim_stays) {
        bool unseen =
            ex->state != EXCHANGE_RESPONDED ||
            (ex->sent_before != 0 && socket_sent_bytes(ex->conn->fd) == ex->sent_before);

        lost_claim_release(w, ex, unseen);
    }
    if (state_is_suspended(ex->state))
        state_set(w, ex, EXCHANGE_RESPONDED);
}
