#include "http/answer.h"

#include "claimd/base/invariant.h"
#include "http/ask.h"
#include "http/delivery.h"
#include "http/fault.h"
#include "http/front.h"
#include "http/reply.h"

#include <poll.h>

/* Slices done in a round: what the others wait for at most. */
enum { SLICES_A_ROUND = 4 };

/* So many ends of waiting are looked at in one go. */
enum { EXPIRE_BUDGET = 4096 };

static struct conn *
conn_of_turn(struct list *link)
{
    return container_of(link, struct conn, turn);
}

static struct exchange *
exchange_of_commit(struct list *link)
{
    return container_of(link, struct exchange, commit);
}

static bool
draining(const struct worker *w)
{
    return atomic_load_explicit(&w->shared->draining, memory_order_relaxed);
}

/* ------------------------------------------------------------------ life */

static struct store_wakeup *
log_has_moved(struct store_listener *listener, enum store_news news)
{
    struct worker *w = container_of(listener, struct worker, parked.log);

    (void)news; /* there is only one */
    atomic_store(&w->parked.log_moved, true);
    return mailbox_note(&w->mailbox) ? &w->mailbox.wakeup : NULL;
}

enum status
answer_init(struct worker *w)
{
    struct parked *p = &w->parked;

    list_init(&p->waiting);
    list_init(&p->slices);
    list_init(&p->starved);
    list_init(&p->commits);
    list_init(&p->delayed);
    list_init(&p->fresh);
    ask_init(w);
    p->log.notify = log_has_moved;
    p->deadlines = wheel_new(w->shared->config->mem, clock_now_ms(&w->shared->real));
    if (p->deadlines == NULL)
        return ST_NO_MEMORY;
    store_log_listen(w->shared->config->store_log, &p->log);
    return ST_OK;
}

void
answer_fini(struct worker *w)
{
    if (w->parked.deadlines == NULL)
        return;
    store_log_unlisten(w->shared->config->store_log, &w->parked.log);
    ask_fini(w);
    wheel_free(w->parked.deadlines);
    w->parked.deadlines = NULL;
}

/* ------------------------------------------------------------------ states */

static bool
is_parked(enum exchange_state state)
{
    return state >= EXCHANGE_SLICES && state <= EXCHANGE_DELAYED;
}

/* The exchange's new state, or its end (ANSWERED), as far as that is for us to say. */
static void
enter(struct worker *w, struct exchange *ex, enum exchange_state state)
{
    if (is_parked(ex->state))
        counter_take(&w->parked.counts[ex->state], 1);
    if (is_parked(state))
        counter_add(&w->parked.counts[state], 1);
    ex->state = state;
}

/* ------------------------------------------------------------------ those who wait */

static struct store_wakeup *
told(struct store_listener *listener, enum store_news news)
{
    struct exchange *ex = container_of(listener, struct exchange, waiting.listener);
    struct mailbox *m = ex->conn->mailbox;
    enum mail_news which = news == STORE_GONE ? MAIL_GONE : MAIL_READY;

    return mailbox_post(m, &ex->conn->mail, which) ? &m->wakeup : NULL;
}

/* A request that would like to wait may, if there are not too many of its kind. */
static void
count_in(struct worker *w, struct exchange *ex)
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
    ex->waiting.listener.notify = told;
    ex->request.waiting = &ex->waiting;
}

static void
count_out(struct worker *w, struct exchange *ex)
{
    if (ex->counted)
        (void)atomic_fetch_sub(&w->shared->waiters, 1);
    ex->counted = false;
}

/* ------------------------------------------------------------------ parking */

void
answer_unpark(struct worker *w, struct exchange *ex)
{
    if (list_linked(&ex->conn->turn))
        list_remove(&ex->conn->turn);
    if (list_linked(&ex->commit))
        list_remove(&ex->commit);
    wheel_disarm(w->parked.deadlines, &ex->due);
}

/* Stands in the order of positions; nearly always at the end. */
static void
add_commit(struct worker *w, struct exchange *ex)
{
    struct list *at = w->parked.commits.prev;

    while (at != &w->parked.commits &&
           exchange_of_commit(at)->response.position > ex->response.position)
        at = at->prev;
    list_add_before(at->next, &ex->commit);
}

static void
set_deadline(struct worker *w, struct exchange *ex)
{
    if (ex->until_ms == 0) /* not a moment too early: now_ms is rounded down */
        ex->until_ms = w->now_ms + ex->waiting.wait_ms + 1;
    wheel_arm(w->parked.deadlines, &ex->due, ex->until_ms);
}

/* The answer is there, and may be known. True: it goes out now. */
static bool
finish(struct worker *w, struct exchange *ex)
{
    if (ex->response.fault.kind != FAULT_LATENCY || draining(w))
        return true;
    enter(w, ex, EXCHANGE_DELAYED);
    fault_rest(w, ex, ex->response.fault.ms);
    return false;
}

static bool
has_fiber(const struct exchange *ex)
{
    return ex->state == EXCHANGE_REMOTE || ex->state == EXCHANGE_IDENTITY;
}

/* Somebody else has the exchange until there is mail from there. Nothing is to be sent. */
static bool
is_away(struct worker *w, struct exchange *ex)
{
    enter(w, ex, ex->request.proof.asking ? EXCHANGE_IDENTITY : EXCHANGE_REMOTE);
    w->parked.remote++;
    conn_enter(&w->conns, ex->conn, CONN_PARKED, w->now_ms);
    return false;
}

/* Its turn comes later: behind others, or when a fiber is free. */
static bool
takes_turns(struct worker *w, struct exchange *ex, struct list *turns)
{
    enter(w, ex, EXCHANGE_SLICES);
    conn_enter(&w->conns, ex->conn, CONN_ANSWERING, w->now_ms);
    list_add_before(turns, &ex->conn->turn);
    return false;
}

/*
 * Puts the exchange where it belongs after the API has said what is next. True: its answer
 * is there.
 */
static bool
settle(struct worker *w, struct exchange *ex, enum api_next next)
{
    struct conn *c = ex->conn;
    enum store_durability fate;

    answer_unpark(w, ex);
    if (next == API_SEND || next == API_HOLD)
        count_out(w, ex);
    switch (next) {
    case API_AGAIN:
        return takes_turns(w, ex, &w->parked.slices);
    case API_WAIT:
        enter(w, ex, EXCHANGE_WAITING);
        conn_enter(&w->conns, c, CONN_PARKED, w->now_ms);
        list_add_before(&w->parked.waiting, &c->turn);
        set_deadline(w, ex);
        /* A client that has gone ends it in the next round, when libmicrohttpd has let go. */
        if (c->hung_up && mailbox_post(c->mailbox, &c->mail, MAIL_READY))
            mailbox_wake(c->mailbox);
        return false;
    case API_HOLD:
        fate = store_log_durability(w->shared->config->store_log, ex->response.position);
        if (fate == STORE_DURABLE)
            break;
        enter(w, ex, EXCHANGE_COMMIT);
        conn_enter(&w->conns, c, CONN_PARKED, w->now_ms);
        add_commit(w, ex); /* what has become of it meanwhile comes as news of the log, */
        if (fate == STORE_LOST) /* which there are no more of */
            atomic_store(&w->parked.log_moved, true);
        return false;
    case API_SEND:
        break;
    }
    return finish(w, ex);
}

/* A parked exchange whose answer is there: libmicrohttpd calls for it. */
static void
make_ready(struct worker *w, struct exchange *ex)
{
    struct conn *c = ex->conn;

    enter(w, ex, EXCHANGE_READY);
    conn_enter(&w->conns, c, CONN_ANSWERING, w->now_ms);
    if (c->held)
        worker_let_go(w, c);
}

/* A fiber that ended is free for the first exchange that has none. */
static void
feed_starved(struct worker *w)
{
    struct list *link = list_pop(&w->parked.starved);

    if (link != NULL)
        list_add_before(&w->parked.slices, link);
}

/* Goes on after a call in a fiber. True: the exchange has its response. */
static bool
look(struct worker *w, struct exchange *ex, enum asking asking)
{
    if (asking == ASK_AWAY)
        return is_away(w, ex);
    if (asking == ASK_STUCK)
        return takes_turns(w, ex, &w->parked.starved);
    feed_starved(w);
    return settle(w, ex, ex->next_step);
}

/* Does the API have to be called in a fiber, because the store or Keystone may block? */
static bool
needs_fiber(const struct worker *w, const struct exchange *ex)
{
    return api_may_block(w->shared->config->api, &ex->request);
}

/* Calls the API, at once or in a fiber. True: the exchange has its answer. */
static bool
ask(struct worker *w, struct exchange *ex)
{
    if (!needs_fiber(w, ex))
        return settle(w, ex, ask_here(w->shared, ex));
    answer_unpark(w, ex);
    return look(w, ex, ask_in_fiber(w, ex));
}

/* Asks the API again for a parked exchange. */
static void
ask_again(struct worker *w, struct exchange *ex)
{
    if (ask(w, ex))
        make_ready(w, ex);
}

/* ------------------------------------------------------------------ answering */

enum MHD_Result
answer_no_memory(struct worker *w, struct MHD_Connection *mhd)
{
    struct conn *c = worker_conn(mhd);

    conn_enter(&w->conns, c, CONN_ANSWERING, w->now_ms);
    if (c->exchange != NULL)
        c->exchange->code = MHD_HTTP_SERVICE_UNAVAILABLE;
    return MHD_queue_response(mhd, MHD_HTTP_SERVICE_UNAVAILABLE, w->no_memory);
}

enum MHD_Result
answer_ready(struct worker *w, struct MHD_Connection *mhd, struct exchange *ex)
{
    if (fault_befalls(ex) && fault_cuts(ex)) {
        conn_enter(&w->conns, ex->conn, CONN_DOOMED, w->now_ms);
        return MHD_NO;
    }
    /*
     * Should the answer be lost here, the connection is closed: what the request asked for
     * may have happened, and 503 would say that it has not.
     */
    return reply_queue(mhd, ex,
                       ex->closing || ex->head.chunked || draining(w) ||
                           ex->response.status == ST_PROJECT_CONNECTIONS);
}

/* Parks an exchange in libmicrohttpd's call. */
static enum MHD_Result
park(struct worker *w, struct exchange *ex)
{
    struct conn *c = ex->conn;

    if (ex->state == EXCHANGE_WAITING)
        ex->handed = delivery_handed(c->fd);
    if (ex->received < ex->head.content_length)
        worker_hold(w, c); /* or the rest of the body would be read */
    else
        list_add_before(&w->parked.fresh, &c->fresh);
    return MHD_YES;
}

enum MHD_Result
answer_request(struct worker *w, struct MHD_Connection *mhd, struct exchange *ex,
               bool closing)
{
    conn_enter(&w->conns, ex->conn, CONN_ANSWERING, w->now_ms);
    if (ex->no_memory)
        return reply_refuse(mhd, ex, REFUSAL_NO_MEMORY, closing) == MHD_YES
                   ? MHD_YES
                   : answer_no_memory(w, mhd);
    ENSURE(!list_linked(&ex->conn->turn)); /* it is not among the chunked any more */
    ex->closing = closing;
    count_in(w, ex);
    return ask(w, ex) ? answer_ready(w, mhd, ex) : park(w, ex);
}

void
answer_hold_fresh(struct worker *w)
{
    struct list *link;

    while ((link = list_pop(&w->parked.fresh)) != NULL)
        worker_hold(w, container_of(link, struct conn, fresh));
}

/* ------------------------------------------------------------------ going on */

/* Does a slice of the request of c. True when it is in slices no more. */
static bool
slice(struct worker *w, struct conn *c)
{
    struct exchange *ex = c->exchange;
    enum api_next next;

    if (needs_fiber(w, ex)) {
        ask_again(w, ex);
        return true;
    }
    next = ask_here(w->shared, ex);
    if (next == API_AGAIN)
        return false;
    if (settle(w, ex, next))
        make_ready(w, ex);
    return true;
}

/*
 * Most slices are of the first in line, so that many long ones are not all late; the last
 * is of the next one, who then goes to the end of the line, so that short ones need not
 * wait for long ones.
 */
void
answer_slices(struct worker *w)
{
    struct list *slices = &w->parked.slices;
    struct conn *c;

    for (int i = 1; i < SLICES_A_ROUND && !list_empty(slices); i++)
        (void)slice(w, conn_of_turn(slices->next));
    if (list_empty(slices) || slices->next->next == slices)
        return;
    c = conn_of_turn(slices->next->next);
    if (slice(w, c))
        return;
    list_remove(&c->turn);
    list_add_before(slices, &c->turn);
}

/* Has the client gone, unnoticed so far? Then nothing is claimed for it. */
static bool
has_hung_up(const struct conn *c)
{
    struct pollfd fd = {.fd = c->fd, .events = POLLRDHUP};

    return c->hung_up || (poll(&fd, 1, 0) > 0 && fd.revents != 0);
}

/* Asks again for somebody who waits: for the last time, unless it goes on (WAITING_ON). */
static void
ask_waiting(struct worker *w, struct exchange *ex, enum waiting_end end)
{
    if (has_hung_up(ex->conn))
        end = WAITING_ABANDONED;
    ex->waiting.end = end;
    ask_again(w, ex);
}

/* News for somebody who waits, perhaps none. */
static void
wake(struct worker *w, struct exchange *ex, unsigned news)
{
    ex->news = 0;
    if ((news & MAIL_GONE) != 0)
        ask_waiting(w, ex, WAITING_OVER);
    else if ((news & MAIL_READY) != 0 || ex->conn->hung_up)
        ask_waiting(w, ex, WAITING_ON);
}

/* Its fiber may go on. */
static void
come_back(struct worker *w, struct exchange *ex)
{
    w->parked.remote--;
    if (look(w, ex, ask_go_on(w, ex)))
        make_ready(w, ex);
}

void
answer_news(struct worker *w, struct conn *c, unsigned news)
{
    struct exchange *ex = c->exchange;

    if ((news & MAIL_DONE) != 0) {
        ENSURE(ex != NULL && has_fiber(ex));
        come_back(w, ex);
    }
    if (ex == NULL || c->phase == CONN_DOOMED)
        return;
    if (has_fiber(ex))
        ex->news |= news; /* for when it is back */
    else if (ex->state == EXCHANGE_WAITING)
        wake(w, ex, news | ex->news);
}

void
answer_hung_up(struct worker *w, struct conn *c)
{
    struct exchange *ex = c->exchange;

    if (ex != NULL && ex->state == EXCHANGE_WAITING)
        ask_waiting(w, ex, WAITING_ABANDONED);
}

/* The time of what was held back, or has to wait with a message, is over. */
static void
let_go_on(struct worker *w, struct exchange *ex)
{
    if (ex->state == EXCHANGE_WAITING) {
        ask_waiting(w, ex, WAITING_OVER);
        return;
    }
    answer_unpark(w, ex);
    if (ex->state == EXCHANGE_DELAYED)
        make_ready(w, ex);
    else
        fault_resume(w, ex);
}

int64_t
answer_expire(struct worker *w)
{
    struct deadline *d;

    if (list_empty(&w->parked.waiting) && list_empty(&w->parked.delayed))
        return INT64_MAX;
    (void)wheel_advance(w->parked.deadlines, w->now_ms, EXPIRE_BUDGET);
    while ((d = wheel_drain(w->parked.deadlines)) != NULL)
        let_go_on(w, container_of(d, struct exchange, due));
    return wheel_next_ms(w->parked.deadlines);
}

void
answer_commits(struct worker *w)
{
    /* The note is taken also when nobody is held, or the worker would not sleep any more. */
    if (!atomic_load_explicit(&w->parked.log_moved, memory_order_relaxed) ||
        !atomic_exchange(&w->parked.log_moved, false))
        return;
    while (!list_empty(&w->parked.commits)) {
        struct exchange *ex = exchange_of_commit(w->parked.commits.next);
        enum store_durability fate =
            store_log_durability(w->shared->config->store_log, ex->response.position);

        if (fate == STORE_PENDING)
            return;
        list_remove(&ex->commit);
        if (fate != STORE_DURABLE)
            front_end(w, ex->conn); /* nobody may be told */
        else if (finish(w, ex))
            make_ready(w, ex);
    }
}

static void
end_all(struct worker *w, struct list *parked)
{
    while (!list_empty(parked)) {
        struct conn *c = conn_of_turn(parked->next);

        if (!c->held)
            return; /* in the next round */
        let_go_on(w, c->exchange);
    }
}

void
answer_drain(struct worker *w)
{
    end_all(w, &w->parked.waiting);
    end_all(w, &w->parked.delayed);
}

/* ------------------------------------------------------------------ the end */

void
answer_end(struct worker *w, struct exchange *ex, bool whole)
{
    const struct server_config *config = w->shared->config;

    ENSURE(!has_fiber(ex));
    answer_unpark(w, ex);
    count_out(w, ex);
    api_stop_waiting(config->api, &ex->request);
    if (ex->request.waiting != NULL)
        mailbox_cancel(ex->conn->mailbox,
                       &ex->conn->mail); /* there will be no more news */
    if (!whole && bytes_present(ex->response.claim_id)) {
        bool unseen = ex->state != EXCHANGE_ANSWERED ||
                      (ex->handed != 0 && delivery_handed(ex->conn->fd) == ex->handed);

        delivery_give_back(w->shared, ex, unseen);
    }
    if (is_parked(ex->state))
        enter(w, ex, EXCHANGE_ANSWERED); /* nobody waits any more */
}

void
answer_await_remote(struct worker *w)
{
    while (w->parked.remote > 0) {
        struct pollfd fd = {.fd = w->mailbox.event_fd, .events = POLLIN};

        if (mailbox_rest(&w->mailbox))
            (void)poll(&fd, 1, -1);
        mailbox_rise(&w->mailbox);
        mailbox_reset(&w->mailbox);
        while (worker_read_mail(w))
            continue;
    }
}
