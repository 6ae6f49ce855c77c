#include "http/respond.h"

#include "claimd/base/invariant.h"

#include <linux/tcp.h>
#include <sys/socket.h>

/* ------------------------------------------------------------------ states */

static bool
is_suspended(enum exchange_state state)
{
    return state >= EXCHANGE_TURN && state <= EXCHANGE_STREAM;
}

static void
set_state(struct worker *w, struct exchange *ex, enum exchange_state state)
{
    if (is_suspended(ex->state))
        counter_subtract(&w->suspended.counts[ex->state], 1);
    if (is_suspended(state))
        counter_add(&w->suspended.counts[state], 1);
    ex->state = state;
}

/* Removes an exchange from the list that it is suspended in. */
static void
remove_from_lists(struct worker *w, struct exchange *ex)
{
    if (list_linked(&ex->conn->turn))
        list_remove(&ex->conn->turn);
    if (list_linked(&ex->commit))
        list_remove(&ex->commit);
    wheel_disarm(w->suspended.deadlines, &ex->due);
}

/* Delays what the connection of an exchange sends next, for an injected fault. */
static void
delay_sending(struct worker *w, struct exchange *ex)
{
    const int64_t now_ms = w->loop.round.now_ms;

    worker_set_phase(w, ex->conn, CONN_SUSPENDED);
    list_add_before(&w->suspended.delayed, &ex->conn->turn);
    /* + 1 because now_ms is rounded down */
    wheel_arm(w->suspended.deadlines, &ex->due, now_ms + ex->response.fault.ms + 1);
}

/* The response of a suspended exchange exists: resumes the connection, which then asks for it. */
static void
make_ready(struct worker *w, struct exchange *ex)
{
    ENSURE(is_suspended(ex->state) && !list_linked(&ex->conn->turn));
    set_state(w, ex, EXCHANGE_READY);
    worker_set_phase(w, ex->conn, CONN_RESPONDING);
    mhd_resume(ex->conn);
}

/* The response exists and may be sent. True: now; false: after an injected delay. */
static bool
is_finished(struct worker *w, struct exchange *ex)
{
    if (ex->response.fault.kind != FAULT_LATENCY || worker_is_draining(w))
        return true;
    set_state(w, ex, EXCHANGE_DELAYED);
    delay_sending(w, ex);
    return false;
}

/* Adds an exchange to the end of a list in TURN. False: it is suspended. */
static bool
wait_for_turn(struct worker *w, struct exchange *ex, struct list *turns)
{
    set_state(w, ex, EXCHANGE_TURN);
    worker_set_phase(w, ex->conn, CONN_RESPONDING);
    list_add_before(turns, &ex->conn->turn);
    return false;
}

static bool
wait_for_message(struct worker *w, struct exchange *ex)
{
    struct conn *c = ex->conn;

    ENSURE(ex->counted && ex->waiting.end == WAITING_ON); /* else it must not wait */
    set_state(w, ex, EXCHANGE_WAITING);
    worker_set_phase(w, c, CONN_SUSPENDED);
    list_add_before(&w->suspended.waiting, &c->turn);
    if (ex->until_ms == 0) /* + 1 because now_ms is rounded down */
        ex->until_ms = w->loop.round.now_ms + ex->waiting.wait_ms + 1;
    wheel_arm(w->suspended.deadlines, &ex->due, ex->until_ms);
    /* If the client has gone, the next round ends the exchange, which is suspended by then. */
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
    set_state(w, ex, EXCHANGE_COMMIT);
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
    remove_from_lists(w, ex);
    if ((next == API_SEND || next == API_HOLD) && !ex->response.stream)
        uncount_waiter(w, ex);
    if (next == API_AGAIN)
        return wait_for_turn(w, ex, &w->suspended.turns);
    if (next == API_WAIT)
        return wait_for_message(w, ex);
    if (next == API_HOLD && !wait_for_log(w, ex))
        return false;
    return is_finished(w, ex);
}

/* After a fiber has parked or ended. True: the exchange has its response. */
static bool
after_fiber(struct worker *w, struct exchange *ex, enum fiber_state state)
{
    struct list *starved;

    if (state == FIBER_PARKED) {
        set_state(w, ex, ex->request.proof.asking ? EXCHANGE_IDENTITY : EXCHANGE_REMOTE);
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
    remove_from_lists(w, ex);
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
        make_ready(w, ex);
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
        make_ready(w, ex);
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
    if (next == API_AGAIN)
        return false;
    if (continue_with(w, ex, next))
        make_ready(w, ex);
    return true;
}

void
respond_finish(struct worker *w, struct exchange *ex)
{
    ENSURE(ex->state == EXCHANGE_COMMIT);
    if (is_finished(w, ex))
        make_ready(w, ex);
}

void
respond_abort(struct worker *w, struct conn *c, enum refusal why)
{
    if (c->exchange != NULL)
        remove_from_lists(w, c->exchange);
    mhd_end(c, why);
}

/* ------------------------------------------------------------------ injected faults */

/* Bytes of a piece at most, unless the fault asks for more. */
enum { PIECE = 16384 };

/* True if the response has a body that a fault divides. */
static bool
is_divided(const struct exchange *ex)
{
    const enum fault_kind kind = ex->response.fault.kind;

    return (kind == FAULT_HALF || kind == FAULT_SLOW) && !ex->response.stream &&
           ex->request.method != METHOD_HEAD && ex->response.code != 204 &&
           ex->response.code != 304 && ex->response.body.len > 0;
}

/* True if a fault closes the connection instead of a response, or of the next event. */
static bool
is_cut(const struct exchange *ex)
{
    const enum fault_kind kind = ex->response.fault.kind;

    /* An event, and a response without a body, has no half. */
    return kind == FAULT_CUT_BEFORE || kind == FAULT_CUT_AFTER ||
           (kind == FAULT_HALF && !is_divided(ex));
}

/* True if the next piece is due. If one was just sent, suspends the connection for a while. */
static bool
piece_is_due(struct worker *w, struct exchange *ex)
{
    if (ex->piece == PIECE_DUE) {
        ex->piece = PIECE_SENT;
        return true;
    }
    if (ex->piece == PIECE_SENT) {
        ex->piece = PIECE_WAITS;
        delay_sending(w, ex);
        mhd_suspend(ex->conn);
    }
    return false;
}

/* See struct mhd_pieces. */
static ssize_t
read_piece(struct exchange *ex, uint64_t at, char *out, size_t cap)
{
    struct worker *w = worker_of(ex->conn);
    const struct fault *fault = &ex->response.fault;
    const struct bytes body = buf_view(&ex->response.body);
    const uint64_t end = fault->kind == FAULT_HALF ? body.len / 2 : body.len;
    bool slow = fault->kind == FAULT_SLOW && !worker_is_draining(w);
    uint64_t len = cap;

    if (at >= end || ex->conn->phase == CONN_CLOSING)
        return PIECES_BREAK;
    if (slow && !piece_is_due(w, ex))
        return 0;
    if (len > end - at)
        len = end - at;
    if (slow && len > (uint64_t)fault->bytes)
        len = (uint64_t)fault->bytes;
    memcpy(out, body.data + at, (size_t)len);
    return (ssize_t)len;
}

/* ------------------------------------------------------------------ streams of events */

/* STREAM_PIECE: bytes of an event that libmicrohttpd copies at once. */
enum { STREAM_INTERVAL_MS = 1000, STREAM_PIECE = 8192 };

/* Copies the part of a text that the bytes from *at to *at + cap of the event contain. */
static size_t
copy_part(struct bytes text, uint64_t *at, char *out, size_t cap)
{
    size_t len;

    if (*at >= text.len) {
        *at -= text.len;
        return 0;
    }
    len = text.len - (size_t)*at < cap ? text.len - (size_t)*at : cap;
    memcpy(out, text.data + *at, len);
    *at = 0;
    return len;
}

static void
arm_event(struct worker *w, struct exchange *ex)
{
    list_add_before(&w->suspended.delayed, &ex->conn->turn);
    wheel_arm(w->suspended.deadlines, &ex->due,
              w->loop.round.now_ms + STREAM_INTERVAL_MS);
}

/* Suspends a stream whose event was sent until the next one is due. */
static void
await_event(struct worker *w, struct exchange *ex)
{
    set_state(w, ex, EXCHANGE_STREAM);
    worker_set_phase(w, ex->conn, CONN_SUSPENDED);
    ex->stream.sent_ms = w->loop.round.now_ms;
    arm_event(w, ex);
    mhd_suspend(ex->conn);
}

/* See struct mhd_pieces. Sends the present event, then waits for the next one. */
static ssize_t
read_event(struct exchange *ex, uint64_t at, char *out, size_t cap)
{
    struct bytes parts[] = {bytes_str("data: "), buf_view(&ex->response.body),
                            bytes_str("\n\n")};
    struct worker *w = worker_of(ex->conn);
    size_t len = 0;

    if (ex->conn->phase == CONN_CLOSING)
        return PIECES_BREAK;
    if (ex->stream.over)
        return PIECES_END;
    /* Without chunks, libmicrohttpd asks again before it is suspended. */
    if (ex->state == EXCHANGE_STREAM)
        return 0;
    if (ex->state == EXCHANGE_READY) { /* the next event exists */
        if (is_cut(ex))
            return PIECES_BREAK;
        set_state(w, ex, EXCHANGE_RESPONDED);
        ex->stream.begin = at;
        ex->stream.last = !ex->response.stream;
    }
    if (ex->stream.last)
        parts[0] = bytes_str("event: end\ndata: ");
    at -= ex->stream.begin;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        len += copy_part(parts[i], &at, out + len, cap - len);
    ex->sent += len;
    if (len > 0)
        return (ssize_t)len;
    if (ex->stream.last)
        return PIECES_END;
    await_event(w, ex);
    return 0;
}

/*
 * Makes the next event of a stream. While the client has not taken the last one, there is none: the
 * kernel would keep it, and it would be old when the client reads it. The last event has the time
 * limit of a response.
 */
static void
continue_stream(struct worker *w, struct exchange *ex)
{
    const int64_t limit_ms = w->conns.table.limit_ms[CONN_RESPONDING];

    remove_from_lists(w, ex);
    if (ex->conn->hung_up || worker_is_draining(w)) {
        ex->stream.over = true;
        make_ready(w, ex);
        return;
    }
    if (conn_unsent(ex->conn) > 0) {
        if (w->loop.round.now_ms - ex->stream.sent_ms < limit_ms)
            arm_event(w, ex);
        else
            request_time_out(w, ex->conn);
        return;
    }
    arena_rewind(&ex->arena, ex->stream.mark);
    ex->request.progress = (struct progress){.admitted = true};
    ex->waiting.end = WAITING_ON; /* the event before may have waited for a snapshot */
    ex->until_ms = 0;
    respond_retry(w, ex);
}

void
respond_delay_ended(struct worker *w, struct exchange *ex)
{
    if (ex->state == EXCHANGE_STREAM) {
        continue_stream(w, ex);
        return;
    }
    remove_from_lists(w, ex);
    if (ex->state == EXCHANGE_DELAYED) {
        make_ready(w, ex);
        return;
    }
    ENSURE(ex->state == EXCHANGE_RESPONDED && ex->piece == PIECE_WAITS);
    ex->piece = PIECE_DUE;
    worker_set_phase(w, ex->conn, CONN_RESPONDING);
    mhd_resume(ex->conn);
}

/* ------------------------------------------------------------------ claims of lost responses */

/*
 * Returns a number that grows with each byte that the kernel takes for this socket. 0 if the kernel
 * does not tell, as for a Unix socket. Makes a system call.
 */
static uint64_t
sent_bytes(int fd)
{
    struct tcp_info info = {0};
    socklen_t len = sizeof(info);

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0 ||
        len < offsetof(struct tcp_info, tcpi_bytes_retrans) +
                  sizeof(info.tcpi_bytes_retrans))
        return 0;
    return 1 + info.tcpi_bytes_sent - info.tcpi_bytes_retrans + info.tcpi_notsent_bytes;
}

/* A claim to release, by the executor if the store blocks. */
struct claim_release {
    struct executor_job job;
    const struct server_config *config;
    struct store_queue queue;
    struct bytes claim_id;
    bool unseen; /* the client has received no byte of the response */
    char text[];
};

static void
release_claim(const struct claim_release *r)
{
    const struct server_config *config = r->config;
    enum status st;

    do
        st = store_claim_release(config->store, STORE_AT(clock_now_ms(config->clock)),
                                 &r->queue, r->claim_id,
                                 r->unseen ? STORE_NOT_SEEN : STORE_NOT_SENT);
    while (st == ST_AGAIN);
    /* If the release fails, the claim expires. */
}

static void
run_release(struct executor_job *job)
{
    struct claim_release *r = container_of(job, struct claim_release, job);

    release_claim(r);
    mem_free(r->config->mem, r);
}

/*
 * Releases the claim of a response that its client did not receive. unseen: the delivery does not
 * count. If the executor is overloaded, the claim expires instead.
 */
static void
release_unreceived(const struct worker *w, const struct exchange *ex, bool unseen)
{
    const struct server_config *config = w->shared->config;
    const struct claim_release here = {.config = config,
                                       .queue = ex->response.claim_queue,
                                       .claim_id = ex->response.claim_id,
                                       .unseen = unseen};
    const struct store_queue *queue = &here.queue;
    struct claim_release *r;
    char *at;

    if (!config->store->blocks) {
        release_claim(&here);
        return;
    }
    r = mem_alloc(config->mem,
                  sizeof(*r) + queue->project.len + queue->name.len + here.claim_id.len);
    if (r == NULL)
        return;
    *r = here;
    r->job.run = run_release;
    at = r->text;
    r->queue.project = bytes_copy_to(&at, queue->project);
    r->queue.name = bytes_copy_to(&at, queue->name);
    r->claim_id = bytes_copy_to(&at, here.claim_id);
    if (executor_submit(config->executor, &r->job) != ST_OK)
        mem_free(config->mem, r);
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
    const struct mhd_pieces events = {read_event, STREAM_PIECE, true};
    struct mhd_pieces pieces = {.read = read_piece};

    if (is_cut(ex)) {
        worker_set_phase(w, c, CONN_CLOSING);
        return false;
    }
    /*
     * If libmicrohttpd cannot queue the response, the connection is closed. 503 would say that
     * nothing has happened, but the request may have had its effect.
     */
    if (ex->response.stream)
        return mhd_respond(ex, closing, &events);
    pieces.most = piece > PIECE ? (size_t)piece : PIECE;
    return mhd_respond(ex, closing, is_divided(ex) ? &pieces : NULL);
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
        ex->sent_before = sent_bytes(c->fd);
    mhd_suspend(c);
    return true;
}

void
respond_end(struct worker *w, struct exchange *ex, bool sent)
{
    ENSURE(ex->state != EXCHANGE_REMOTE && ex->state != EXCHANGE_IDENTITY);
    remove_from_lists(w, ex);
    uncount_waiter(w, ex);
    api_stop_waiting(w->shared->config->api, &ex->request);
    if (ex->request.waiting != NULL)
        eventq_cancel(ex->conn->eventq, &ex->conn->event); /* its waiters are gone */
    if (!sent && bytes_present(ex->response.claim_id) && !ex->response.claim_stays) {
        bool unseen =
            ex->state != EXCHANGE_RESPONDED ||
            (ex->sent_before != 0 && sent_bytes(ex->conn->fd) == ex->sent_before);

        release_unreceived(w, ex, unseen);
    }
    if (is_suspended(ex->state))
        set_state(w, ex, EXCHANGE_RESPONDED);
}
