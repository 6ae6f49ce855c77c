/*
 * driver: a thread of the load generator (connection.h).
 *
 * Its epoll loop starts the requests that are due, reads responses and lets scenario.c
 * choose the next step of each connection. In an open loop a request has a due time, and
 * its latency counts from then. Read plan.h first: it has the settings of a phase, the
 * due times and the state of a connection.
 */
#include "load/connection.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>

#define EVENTS 256

/* If a connection breaks so often in a row without a response, the phase fails. */
#define BROKEN_MAX 20U

/*
 * A sleeping thread wakes 10 to 30 us late on a virtual machine. So a driver does not
 * sleep if a request is due within this time.
 */
#define SPIN_NS INT64_C(40000)

struct driver {
    const struct plan *plan;
    struct stats *stats;
    struct mem *mem;
    pthread_t thread;
    int epoll;
    unsigned count;  /* connections */
    unsigned active; /* connections that are not finished */
    unsigned paced;  /* the first connections, which follow the pace of an open loop */
    unsigned cursor; /* the one of them that is due next ... */
    uint64_t round;  /* ... in this round */
    struct pause_list pauses;
    const char *failure;
    _Atomic bool cancelled;
    _Atomic bool ended;
    struct connection connections[];
};

static void
driver_fail(struct driver *d, const char *why)
{
    if (d->failure == NULL)
        d->failure = why;
}

static void
end_pause(struct driver *d, struct connection *c)
{
    if (c->state == CONNECTION_PAUSING)
        pauses_remove(&d->pauses, c);
}

static void
finish_connection(struct driver *d, struct connection *c)
{
    end_pause(d, c);
    connection_close(c);
    c->state = CONNECTION_FINISHED;
    d->active--;
}

/* Sets the events of c in the epoll set: reading, and writing if `write`. */
static void
watch_socket(struct driver *d, struct connection *c, bool write, int how)
{
    struct epoll_event event = {.events = EPOLLIN | (write ? (uint32_t)EPOLLOUT : 0U),
                                .data.ptr = c};

    c->wants_write = write;
    if (epoll_ctl(d->epoll, how, c->fd, &event) != 0) {
        driver_fail(d, "epoll cannot watch a socket");
        finish_connection(d, c);
    }
}

static void
open_connection(struct driver *d, struct connection *c)
{
    c->fd = endpoint_connect(d->plan->endpoint);
    if (c->fd < 0) {
        driver_fail(d, errno == EMFILE
                           ? "too many open files. Raise the limit (ulimit -n)"
                           : "cannot connect to the server");
        finish_connection(d, c);
        return;
    }
    c->state = CONNECTION_CONNECTING;
    watch_socket(d, c, true, EPOLL_CTL_ADD);
}

/*
 * Reopens a connection that ended before the response. The driver sends the request
 * again, and its latency still counts from the first time.
 */
static void
reconnect(struct driver *d, struct connection *c)
{
    end_pause(d, c);
    connection_close(c);
    c->broken++;
    if (c->broken >= BROKEN_MAX) {
        driver_fail(d, "the server closes connections without a response");
        finish_connection(d, c);
        return;
    }
    open_connection(d, c);
}

/* Writes the rest of the requests, as far as the socket takes them. */
static void
send_requests(struct driver *d, struct connection *c)
{
    bool full = false;

    while (c->sent < c->out.len && !full) {
        ssize_t n =
            send(c->fd, c->out.data + c->sent, c->out.len - c->sent, MSG_NOSIGNAL);

        full = n < 0 && errno == EAGAIN;
        if (n >= 0) {
            c->sent += (size_t)n;
        } else if (!full && errno != EINTR) {
            reconnect(d, c);
            return;
        }
    }
    if (c->wants_write != full)
        watch_socket(d, c, full, EPOLL_CTL_MOD);
}

/* Writes the requests of c->step. False if the step needs none. */
static bool
build_request(struct driver *d, struct connection *c)
{
    buf_reset(&c->out, SIZE_MAX);
    c->sent = 0;
    c->requests = d->plan->protocol->build(d->plan, &c->actor, &c->step, &c->out);
    if (c->out.failed)
        driver_fail(d, "out of memory");
    return c->requests > 0;
}

static bool
is_paced(const struct plan *plan, const struct connection *c)
{
    return plan->pace.rate > 0 && c->number < plan->pace.connections;
}

/* True in DELIVERY when all messages that were due have been claimed or refused. */
static bool
delivery_is_complete(const struct plan *plan)
{
    return plan->scenario == SCENARIO_DELIVERY &&
           atomic_load_explicit(plan->quota, memory_order_relaxed) <= 0;
}

/*
 * Sets the start of the next step. False if it is not due yet. After the end of an open
 * loop, the steps of a round that has begun have no pace.
 */
static bool
step_is_due(const struct driver *d, struct connection *c, int64_t now)
{
    const struct pace *pace = &d->plan->pace;
    int64_t due;

    c->start_ns = now;
    if (!is_paced(d->plan, c))
        return true;
    due = pace_due(pace, c->number, c->round);
    if (due >= d->plan->to_ns)
        return true;
    if (due > now)
        return false;
    c->start_ns = due;
    c->round++;
    return true;
}

/* Sends the next request of a connection, or makes the connection wait, pause or
 * finish. */
static void
start_next_step(struct driver *d, struct connection *c, int64_t now)
{
    const struct plan *plan = d->plan;
    struct actor *a = &c->actor;
    unsigned others =
        plan->scenario == SCENARIO_DELIVERY ? plan->producers : plan->connections;

    do {
        bool at_start = scenario_at_start(plan, a), over = now >= plan->to_ns;

        if (a->worker)
            over = delivery_is_complete(plan);
        else if (is_paced(plan, c))
            over = pace_due(&plan->pace, c->number, c->round) >= plan->to_ns;
        if (at_start &&
            (over || atomic_load_explicit(&d->cancelled, memory_order_relaxed))) {
            finish_connection(d, c);
            return;
        }
        if (c->resume_ns > now) {
            c->state = CONNECTION_PAUSING;
            pauses_add(&d->pauses, c);
            return;
        }
        if (!step_is_due(d, c, now)) {
            c->state = CONNECTION_WAITING;
            return;
        }
        /* With more queues than connections, a connection uses several in turn. */
        if (at_start && plan->queues > others && plan->scenario != SCENARIO_PREPARE &&
            !a->worker)
            a->queue = (a->queue + others) % plan->queues;
        if (!scenario_next(plan, a, c->start_ns, &c->step)) {
            finish_connection(d, c);
            return;
        }
    } while (!build_request(d, c));
    c->state = CONNECTION_IN_FLIGHT;
    send_requests(d, c);
}

/* After connecting: sends the greeting of the protocol, a lost request, or the next
 * one. */
static void
finish_connecting(struct driver *d, struct connection *c, int64_t now)
{
    int error = 0;
    socklen_t len = sizeof error;

    getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &len);
    if (error != 0) {
        driver_fail(d, "cannot connect to the server");
        finish_connection(d, c);
        return;
    }
    watch_socket(d, c, false, EPOLL_CTL_MOD);
    if (c->requests > 0 && c->step.op != OP_HELLO) {
        c->state = CONNECTION_IN_FLIGHT;
        c->sent = 0;
        send_requests(d, c);
        return;
    }
    c->step = (struct step){.op = OP_HELLO};
    if (build_request(d, c)) {
        c->state = CONNECTION_IN_FLIGHT;
        c->start_ns = now;
        send_requests(d, c);
        return;
    }
    start_next_step(d, c, now);
}

static void
live_add(_Atomic uint64_t *counter, uint64_t n)
{
    /* Only this thread writes, so no locked instruction is needed. */
    atomic_store_explicit(counter,
                          atomic_load_explicit(counter, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

/* The statistics for requests that started at this time. */
static struct op_stats *
op_stats_at(struct driver *d, int64_t start_ns)
{
    bool storm = start_ns >= d->plan->storm_from_ns && start_ns < d->plan->storm_to_ns;

    return storm ? &d->stats->storm : &d->stats->normal;
}

/* DELIVERY: counts messages that were claimed or refused. */
static void
record_delivery(struct driver *d, const struct connection *c, const struct reply *reply,
                int64_t now)
{
    const struct plan *plan = d->plan;
    const struct actor *a = &c->actor;
    int64_t done = 0;

    if (c->step.op == OP_POST && reply->refused != 0)
        done = c->step.count;
    for (unsigned i = 0; c->step.op == OP_CLAIM && i < a->arrived; i++) {
        int64_t due = a->arrived_due_ns[i];

        if (due < plan->pace.start_ns || due >= plan->to_ns)
            continue; /* posted by another run, or for a backlog */
        done++;
        if (due >= plan->from_ns)
            histogram_record(&op_stats_at(d, due)->delivery, now - due);
    }
    if (done > 0)
        atomic_fetch_sub_explicit(plan->quota, done, memory_order_relaxed);
}

static void
record_response(struct driver *d, const struct connection *c, const struct reply *reply,
                int64_t now)
{
    const struct plan *plan = d->plan;
    struct stats *stats = d->stats;
    struct op_stats *s = op_stats_at(d, c->start_ns);
    enum op op = c->step.op;

    if (op == scenario_counted(plan))
        live_add(&stats->live.messages, reply->messages);
    live_add(&stats->live.requests, c->requests);
    if (reply->refused != 0) {
        live_add(&stats->live.errors, 1);
        if (stats->first_error == 0)
            stats->first_error = reply->refused;
    }
    if (c->start_ns < plan->from_ns || c->start_ns >= plan->to_ns)
        return;
    histogram_record(&s->latency[op], now - c->start_ns);
    s->requests[op] += c->requests;
    s->messages[op] += reply->messages;
    s->errors[op] += reply->refused != 0;
    stats->empty_claims += op == OP_CLAIM && reply->messages == 0;
}

static void
finish_request(struct driver *d, struct connection *c, const struct reply *reply,
               int64_t now)
{
    if (c->step.op != OP_HELLO)
        record_response(d, c, reply, now);
    if (d->plan->scenario == SCENARIO_DELIVERY) {
        int64_t pause = scenario_pause(d->plan, &c->actor, &c->step, reply->messages,
                                       now - c->start_ns);

        record_delivery(d, c, reply, now);
        c->resume_ns = pause > 0 ? now + pause : 0;
    }
    if (c->step.op == OP_CLAIM && reply->messages == 0)
        c->actor.queue_empty = true;
    c->requests = 0;
    c->broken = 0;
    c->in.len = 0;
    if (reply->close) {
        connection_close(c);
        open_connection(d, c);
        return;
    }
    start_next_step(d, c, now);
}

static void
read_response(struct driver *d, struct connection *c)
{
    bool ended = !connection_read(c);
    struct reply reply;

    if (c->state != CONNECTION_IN_FLIGHT || (ended && c->in.len == 0)) {
        if (ended)
            reconnect(d, c);
        return;
    }
    switch (
        protocol_read(d->plan, &c->actor, &c->step, buf_view(&c->in), ended, &reply)) {
    case READING_MORE:
        break;
    case READING_DONE:
        reply.close = reply.close || ended;
        finish_request(d, c, &reply, stopwatch_now());
        break;
    case READING_BROKEN:
        driver_fail(d, "the server sent an invalid response");
        finish_connection(d, c);
        break;
    }
}

/* Open loop: starts each waiting connection that is due, in the order of due times. */
static void
start_due(struct driver *d, int64_t now)
{
    const struct pace *pace = &d->plan->pace;

    while (pace_due(pace, d->connections[d->cursor].number, d->round) <= now) {
        struct connection *c = &d->connections[d->cursor];

        if (c->state == CONNECTION_WAITING)
            start_next_step(d, c, now);
        if (++d->cursor == d->paced) {
            d->cursor = 0;
            d->round++;
        }
    }
}

/* Waits for events until the next due time or the end of a pause, at most 100 ms. */
static int
wait_events(struct driver *d, struct epoll_event *events, int64_t now)
{
    int64_t wait = d->plan->spin ? 0 : STOPWATCH_SECOND / 10;
    struct timespec limit;

    if (d->pauses.first != NULL && d->pauses.first->resume_ns - now < wait)
        wait = d->pauses.first->resume_ns > now ? d->pauses.first->resume_ns - now : 0;
    if (d->paced > 0 && now < d->plan->to_ns) {
        int64_t left =
            pace_due(&d->plan->pace, d->connections[d->cursor].number, d->round) - now;

        if (left < wait)
            wait = left < SPIN_NS ? 0 : left - SPIN_NS;
    }
    limit = (struct timespec){.tv_nsec = wait};
    return epoll_pwait2(d->epoll, events, EVENTS, &limit, NULL);
}

/*
 * Ends connections that no event reaches. A waiting connection finishes at the end of an
 * open loop. A worker finishes once delivery is complete, even if its claim has no
 * response yet.
 */
static void
end_idle_connections(struct driver *d, int64_t now, bool all_delivered)
{
    for (unsigned i = 0; i < d->count; i++) {
        struct connection *c = &d->connections[i];

        if (all_delivered && c->actor.worker && c->state != CONNECTION_FINISHED &&
            scenario_at_start(d->plan, &c->actor))
            finish_connection(d, c);
        else if (d->paced > 0 && now >= d->plan->to_ns && c->state == CONNECTION_WAITING)
            start_next_step(d, c, now);
    }
}

static void
driver_loop(struct driver *d)
{
    struct epoll_event events[EVENTS];
    int64_t now = stopwatch_now();

    while (d->active > 0 && d->failure == NULL && now < d->plan->give_up_ns &&
           !atomic_load_explicit(&d->cancelled, memory_order_relaxed)) {
        const int n = wait_events(d, events, now);
        struct connection *c;
        bool all_delivered;

        for (int i = 0; i < n; i++) {
            c = events[i].data.ptr;
            if (c->state == CONNECTION_CONNECTING)
                finish_connecting(d, c, stopwatch_now());
            else if (c->state != CONNECTION_FINISHED &&
                     (events[i].events & EPOLLOUT) != 0)
                send_requests(d, c);
            else if (c->state != CONNECTION_FINISHED)
                read_response(d, c);
        }
        now = stopwatch_now();
        while ((c = d->pauses.first) != NULL && c->resume_ns <= now) {
            pauses_remove(&d->pauses, c);
            c->state = CONNECTION_WAITING;
            start_next_step(d, c, now);
        }
        all_delivered = delivery_is_complete(d->plan);
        if (all_delivered || (d->paced > 0 && now >= d->plan->to_ns))
            end_idle_connections(d, now, all_delivered);
        if (d->paced > 0 && now < d->plan->to_ns)
            start_due(d, now);
    }
}

static void
count_unfinished(struct driver *d)
{
    for (unsigned i = 0; i < d->count; i++) {
        struct connection *c = &d->connections[i];

        /* A claim of a worker without a response is not unfinished: it may be waiting. */
        if (c->state == CONNECTION_IN_FLIGHT && c->start_ns < d->plan->to_ns &&
            !(c->actor.worker && c->step.op == OP_CLAIM))
            d->stats->unfinished++;
        if (c->state == CONNECTION_FINISHED || !is_paced(d->plan, c))
            continue;
        for (uint64_t r = c->round;
             pace_due(&d->plan->pace, c->number, r) < d->plan->to_ns; r++)
            d->stats->unfinished++;
    }
}

static void *
driver_main(void *arg)
{
    struct driver *d = arg;

    (void)prctl(PR_SET_TIMERSLACK, 1UL); /* a late wake-up would count as latency */
    for (unsigned i = 0; i < d->count; i++)
        open_connection(d, &d->connections[i]);
    driver_loop(d);
    count_unfinished(d);
    atomic_store(&d->ended, true);
    return NULL;
}

static void
driver_free(struct driver *d)
{
    for (unsigned i = 0; i < d->count; i++)
        connection_fini(&d->connections[i]);
    if (d->epoll >= 0)
        close(d->epoll);
    mem_destroy(d->mem);
    free(d);
}

/* Number of the first `connections` connections that belong to a driver. */
static unsigned
driver_share(const struct plan *plan, unsigned number, unsigned connections)
{
    return connections <= number
               ? 0
               : (connections - number + plan->threads - 1) / plan->threads;
}

struct driver *
driver_start(const struct plan *plan, unsigned number, struct stats *stats)
{
    unsigned count = driver_share(plan, number, plan->connections);
    struct driver *d = calloc(1, sizeof *d + count * sizeof d->connections[0]);

    if (d == NULL)
        return NULL;
    d->plan = plan;
    d->stats = stats;
    d->count = count;
    d->active = count;
    d->paced =
        plan->pace.rate > 0 ? driver_share(plan, number, plan->pace.connections) : 0;
    d->mem = mem_new(0);
    if (d->mem == NULL) {
        free(d);
        return NULL;
    }
    for (unsigned i = 0; i < count; i++)
        connection_init(&d->connections[i], plan, number + i * plan->threads, d->mem);
    d->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (d->epoll >= 0 && pthread_create(&d->thread, NULL, driver_main, d) == 0)
        return d;
    driver_free(d);
    return NULL;
}

void
driver_cancel(struct driver *d)
{
    atomic_store(&d->cancelled, true);
}

bool
driver_ended(const struct driver *d)
{
    return atomic_load(&d->ended);
}

const char *
driver_join(struct driver *d)
{
    const char *failure;

    pthread_join(d->thread, NULL);
    failure = d->failure;
    driver_free(d);
    return failure;
}
