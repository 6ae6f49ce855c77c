#include "bench/driver.h"

#include "bench/link.h"
#include "bench/scenario.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>

#define EVENTS 256

/* A connection that breaks this often in a row, without an answer between, is a failure.
 */
#define BROKEN_MAX 20U

/*
 * A sleeper wakes 10 to 30 us late on a virtual machine; a request due sooner than this
 * is waited for in a loop, so that it starts when it should.
 */
#define SPIN_NS INT64_C(40000)

struct driver {
    const struct plan *plan;
    struct stats *stats;
    struct mem *mem;
    pthread_t thread;
    int epoll;
    unsigned count;  /* links */
    unsigned active; /* links not finished */
    unsigned cursor; /* open loop: the next link to become due ... */
    uint64_t round;  /* ... for this round */
    const char *failure;
    _Atomic bool cancelled;
    _Atomic bool ended;
    struct link links[];
};

static void
fail(struct driver *d, const char *why)
{
    if (d->failure == NULL)
        d->failure = why;
}

static void
finish(struct driver *d, struct link *l)
{
    link_close(l);
    l->state = LINK_FINISHED;
    d->active--;
}

/* (Re)registers l; the socket is watched for writing only while there is a reason to. */
static void
watch(struct driver *d, struct link *l, bool write, int how)
{
    struct epoll_event event = {.events = EPOLLIN | (write ? (uint32_t)EPOLLOUT : 0U),
                                .data.ptr = l};

    l->wants_write = write;
    if (epoll_ctl(d->epoll, how, l->fd, &event) != 0) {
        fail(d, "cannot watch a socket");
        finish(d, l);
    }
}

static void
connect_link(struct driver *d, struct link *l)
{
    l->fd = endpoint_connect(d->plan->endpoint);
    if (l->fd < 0) {
        fail(d, errno == EMFILE ? "too many open files: raise the limit (ulimit -n)"
                                : "cannot connect to the server");
        finish(d, l);
        return;
    }
    l->state = LINK_CONNECTING;
    watch(d, l, true, EPOLL_CTL_ADD);
}

/*
 * A connection that ended before the answer: the request is lost, and asked again on a
 * new connection (its latency goes on counting).
 */
static void
reconnect(struct driver *d, struct link *l)
{
    link_close(l);
    l->broken++;
    if (l->broken >= BROKEN_MAX) {
        fail(d, "the server closes connections without an answer");
        finish(d, l);
        return;
    }
    connect_link(d, l);
}

static void
send_out(struct driver *d, struct link *l)
{
    switch (link_write(l)) {
    case LINK_IO_DONE:
        if (l->wants_write)
            watch(d, l, false, EPOLL_CTL_MOD);
        break;
    case LINK_IO_AGAIN:
        if (!l->wants_write)
            watch(d, l, true, EPOLL_CTL_MOD);
        break;
    case LINK_IO_ENDED:
        reconnect(d, l);
        break;
    }
}

/* Builds the request of l->step; false if the protocol has nothing to say for it. */
static bool
build(struct driver *d, struct link *l)
{
    buf_reset(&l->out, SIZE_MAX);
    l->sent = 0;
    l->requests = d->plan->protocol->ask(d->plan, &l->actor, &l->step, &l->out);
    if (l->out.failed)
        fail(d, "out of memory");
    return l->requests > 0;
}

static bool
paced(const struct plan *plan)
{
    return plan->pace.rate > 0;
}

static bool
over(const struct driver *d, const struct link *l, int64_t now)
{
    if (atomic_load_explicit(&d->cancelled, memory_order_relaxed))
        return true;
    if (paced(d->plan) && now >= d->plan->to_ns)
        return pace_due(&d->plan->pace, l->number, l->round) >= d->plan->to_ns;
    return now >= d->plan->to_ns;
}

/*
 * Decides when the next step starts: false if it is not due yet. Behind the end of an
 * open loop what was begun is finished without pace.
 */
static bool
take_turn(const struct driver *d, struct link *l, int64_t now)
{
    const struct pace *pace = &d->plan->pace;
    int64_t due;

    l->start_ns = now;
    if (!paced(d->plan))
        return true;
    due = pace_due(pace, l->number, l->round);
    if (due >= d->plan->to_ns)
        return true;
    if (due > now)
        return false;
    l->start_ns = due;
    l->round++;
    return true;
}

/* With more queues than connections, a connection serves several in turn. */
static void
change_queue(const struct plan *plan, struct actor *a)
{
    if (plan->queues > plan->connections && plan->scenario != SCENARIO_PREPARE)
        a->queue = (a->queue + plan->connections) % plan->queues;
}

/* Sends the next request of a free, connected link, or lets it wait or finish. */
static void
proceed(struct driver *d, struct link *l, int64_t now)
{
    do {
        bool at_start = scenario_at_start(d->plan, &l->actor);

        if (at_start && over(d, l, now)) {
            finish(d, l);
            return;
        }
        if (!take_turn(d, l, now)) {
            l->state = LINK_WAITING;
            return;
        }
        if (at_start)
            change_queue(d->plan, &l->actor);
        if (!scenario_next(d->plan, &l->actor, now, &l->step)) {
            finish(d, l);
            return;
        }
    } while (!build(d, l));
    l->state = LINK_ASKING;
    send_out(d, l);
}

/* A new connection: greet, send again what was lost, or go on. */
static void
connected(struct driver *d, struct link *l, int64_t now)
{
    int error = 0;
    socklen_t len = sizeof error;

    getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &error, &len);
    if (error != 0) {
        fail(d, "cannot connect to the server");
        finish(d, l);
        return;
    }
    watch(d, l, false, EPOLL_CTL_MOD);
    if (l->requests > 0 && l->step.op != OP_HELLO) {
        l->state = LINK_ASKING;
        l->sent = 0;
        send_out(d, l);
        return;
    }
    l->step = (struct step){.op = OP_HELLO};
    if (build(d, l)) {
        l->state = LINK_ASKING;
        l->start_ns = now;
        send_out(d, l);
        return;
    }
    proceed(d, l, now);
}

static void
add_live(_Atomic uint64_t *counter, uint64_t n)
{
    /* Only this thread writes: no locked instruction needed. */
    atomic_store_explicit(counter,
                          atomic_load_explicit(counter, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

static void
record(struct driver *d, const struct link *l, const struct reply *reply, int64_t now)
{
    const struct plan *plan = d->plan;
    struct stats *stats = d->stats;
    bool storm = l->start_ns >= plan->storm_from_ns && l->start_ns < plan->storm_to_ns;
    struct op_stats *s = storm ? &stats->storm : &stats->calm;
    enum op op = l->step.op;

    if (op == scenario_counted(plan))
        add_live(&stats->live.messages, reply->messages);
    add_live(&stats->live.requests, l->requests);
    if (reply->refused != 0) {
        add_live(&stats->live.errors, 1);
        if (stats->first_error == 0)
            stats->first_error = reply->refused;
    }
    if (l->start_ns < plan->from_ns || l->start_ns >= plan->to_ns)
        return;
    histogram_record(&s->latency[op], now - l->start_ns);
    s->requests[op] += l->requests;
    s->messages[op] += reply->messages;
    s->errors[op] += reply->refused != 0;
    stats->empty_claims += op == OP_CLAIM && reply->messages == 0;
}

static void
answered(struct driver *d, struct link *l, const struct reply *reply, int64_t now)
{
    if (l->step.op != OP_HELLO)
        record(d, l, reply, now);
    if (l->step.op == OP_CLAIM && reply->messages == 0)
        l->actor.dry = true;
    l->requests = 0;
    l->broken = 0;
    l->in.len = 0;
    if (reply->close) {
        link_close(l);
        connect_link(d, l);
        return;
    }
    proceed(d, l, now);
}

static void
read_answer(struct driver *d, struct link *l)
{
    bool ended = link_read(l) == LINK_IO_ENDED;
    struct reply reply;

    if (l->state != LINK_ASKING || (ended && l->in.len == 0)) {
        if (ended)
            reconnect(d, l);
        return;
    }
    switch (d->plan->protocol->read(d->plan, &l->actor, &l->step, buf_view(&l->in), ended,
                                    &reply)) {
    case READING_MORE:
        break;
    case READING_DONE:
        reply.close = reply.close || ended;
        answered(d, l, &reply, ticks_now());
        break;
    case READING_BROKEN:
        fail(d, "an answer that cannot be understood");
        finish(d, l);
        break;
    }
}

static void
handle_event(struct driver *d, struct link *l, uint32_t events)
{
    if (l->state == LINK_FINISHED)
        return;
    if (l->state == LINK_CONNECTING) {
        connected(d, l, ticks_now());
        return;
    }
    if (events & EPOLLOUT) {
        send_out(d, l);
        return;
    }
    read_answer(d, l);
}

/* Open loop: starts every waiting link that has become due, in the order of the plan. */
static void
start_due(struct driver *d, int64_t now)
{
    const struct pace *pace = &d->plan->pace;

    while (pace_due(pace, d->links[d->cursor].number, d->round) <= now) {
        struct link *l = &d->links[d->cursor];

        if (l->state == LINK_WAITING)
            proceed(d, l, now);
        if (++d->cursor == d->count) {
            d->cursor = 0;
            d->round++;
        }
    }
}

/* Waits for events, and in an open loop not beyond the next due time. */
static int
wait_events(struct driver *d, struct epoll_event *events, int64_t now)
{
    int64_t wait = d->plan->spin ? 0 : TICKS_SECOND / 10;
    struct timespec limit;

    if (paced(d->plan) && now < d->plan->to_ns) {
        int64_t left =
            pace_due(&d->plan->pace, d->links[d->cursor].number, d->round) - now;

        if (left < wait)
            wait = left < SPIN_NS ? 0 : left - SPIN_NS;
    }
    limit = (struct timespec){.tv_nsec = wait};
    return epoll_pwait2(d->epoll, events, EVENTS, &limit, NULL);
}

static bool
must_stop(struct driver *d, int64_t now)
{
    return d->active == 0 || d->failure != NULL || now >= d->plan->give_up_ns ||
           atomic_load_explicit(&d->cancelled, memory_order_relaxed);
}

/* A waiting link learns of the end of an open loop from nobody else. */
static void
stop_waiting(struct driver *d, int64_t now)
{
    for (unsigned i = 0; i < d->count; i++) {
        if (d->links[i].state == LINK_WAITING)
            proceed(d, &d->links[i], now);
    }
}

static void
loop(struct driver *d)
{
    struct epoll_event events[EVENTS];
    int64_t now = ticks_now();

    while (!must_stop(d, now)) {
        int n = wait_events(d, events, now);

        for (int i = 0; i < n; i++)
            handle_event(d, events[i].data.ptr, events[i].events);
        now = ticks_now();
        if (!paced(d->plan))
            continue;
        if (now < d->plan->to_ns)
            start_due(d, now);
        else
            stop_waiting(d, now);
    }
}

static void
count_unfinished(struct driver *d)
{
    for (unsigned i = 0; i < d->count; i++) {
        struct link *l = &d->links[i];

        if (l->state == LINK_ASKING && l->start_ns < d->plan->to_ns)
            d->stats->unfinished++;
        if (l->state == LINK_FINISHED || !paced(d->plan))
            continue;
        for (uint64_t r = l->round;
             pace_due(&d->plan->pace, l->number, r) < d->plan->to_ns; r++)
            d->stats->unfinished++;
    }
}

static void *
driver_main(void *arg)
{
    struct driver *d = arg;

    (void)prctl(PR_SET_TIMERSLACK, 1UL); /* waking late would count as latency */
    for (unsigned i = 0; i < d->count; i++)
        connect_link(d, &d->links[i]);
    loop(d);
    count_unfinished(d);
    atomic_store(&d->ended, true);
    return NULL;
}

static void
driver_free(struct driver *d)
{
    for (unsigned i = 0; i < d->count; i++)
        link_fini(&d->links[i]);
    if (d->epoll >= 0)
        close(d->epoll);
    mem_destroy(d->mem);
    free(d);
}

struct driver *
driver_start(const struct plan *plan, unsigned number, struct stats *stats)
{
    unsigned count = (plan->connections - number + plan->threads - 1) / plan->threads;
    struct driver *d = calloc(1, sizeof *d + count * sizeof d->links[0]);

    if (d == NULL)
        return NULL;
    d->plan = plan;
    d->stats = stats;
    d->count = count;
    d->active = count;
    d->mem = mem_new(0);
    if (d->mem == NULL) {
        free(d);
        return NULL;
    }
    for (unsigned i = 0; i < count; i++)
        link_init(&d->links[i], plan, number + i * plan->threads, d->mem);
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
