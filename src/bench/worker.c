#include "bench/worker.h"

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
 * Sleeping and waking takes about 50 us on a virtual machine; a request due sooner than
 * that is waited for in a loop, so that it starts when it should.
 */
#define SPIN_NS INT64_C(80000)

struct worker {
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
fail(struct worker *w, const char *why)
{
    if (w->failure == NULL)
        w->failure = why;
}

static void
finish(struct worker *w, struct link *l)
{
    link_close(l);
    l->state = LINK_FINISHED;
    w->active--;
}

/* (Re)registers l; the socket is watched for writing only while there is a reason to. */
static void
watch(struct worker *w, struct link *l, bool write, int how)
{
    struct epoll_event event = {.events = EPOLLIN | (write ? (uint32_t)EPOLLOUT : 0U),
                                .data.ptr = l};

    l->wants_write = write;
    if (epoll_ctl(w->epoll, how, l->fd, &event) != 0) {
        fail(w, "cannot watch a socket");
        finish(w, l);
    }
}

static void
connect_link(struct worker *w, struct link *l)
{
    l->fd = endpoint_connect(w->plan->endpoint);
    if (l->fd < 0) {
        fail(w, errno == EMFILE ? "too many open files: raise the limit (ulimit -n)"
                                : "cannot connect to the server");
        finish(w, l);
        return;
    }
    l->state = LINK_CONNECTING;
    watch(w, l, true, EPOLL_CTL_ADD);
}

/*
 * A connection that ended before the answer: the request is lost, and asked again on a
 * new connection (its latency goes on counting).
 */
static void
reconnect(struct worker *w, struct link *l)
{
    link_close(l);
    l->broken++;
    if (l->broken >= BROKEN_MAX) {
        fail(w, "the server closes connections without an answer");
        finish(w, l);
        return;
    }
    connect_link(w, l);
}

static void
send_out(struct worker *w, struct link *l)
{
    switch (link_write(l)) {
    case LINK_IO_DONE:
        if (l->wants_write)
            watch(w, l, false, EPOLL_CTL_MOD);
        break;
    case LINK_IO_AGAIN:
        if (!l->wants_write)
            watch(w, l, true, EPOLL_CTL_MOD);
        break;
    case LINK_IO_ENDED:
        reconnect(w, l);
        break;
    }
}

/* Builds the request of l->step; false if the protocol has nothing to say for it. */
static bool
build(struct worker *w, struct link *l)
{
    buf_reset(&l->out, SIZE_MAX);
    l->sent = 0;
    l->requests = w->plan->protocol->ask(w->plan, &l->actor, &l->step, &l->out);
    if (l->out.failed)
        fail(w, "out of memory");
    return l->requests > 0;
}

static bool
paced(const struct plan *plan)
{
    return plan->pace.rate > 0;
}

static bool
over(const struct worker *w, const struct link *l, int64_t now)
{
    if (atomic_load_explicit(&w->cancelled, memory_order_relaxed))
        return true;
    if (paced(w->plan) && now >= w->plan->to_ns)
        return pace_due(&w->plan->pace, l->number, l->round) >= w->plan->to_ns;
    return now >= w->plan->to_ns;
}

/*
 * Decides when the next step starts: false if it is not due yet. Behind the end of an
 * open loop what was begun is finished without pace.
 */
static bool
take_turn(const struct worker *w, struct link *l, int64_t now)
{
    const struct pace *pace = &w->plan->pace;
    int64_t due;

    l->start_ns = now;
    if (!paced(w->plan))
        return true;
    due = pace_due(pace, l->number, l->round);
    if (due >= w->plan->to_ns)
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
proceed(struct worker *w, struct link *l, int64_t now)
{
    do {
        bool at_start = scenario_at_start(w->plan, &l->actor);

        if (at_start && over(w, l, now)) {
            finish(w, l);
            return;
        }
        if (!take_turn(w, l, now)) {
            l->state = LINK_WAITING;
            return;
        }
        if (at_start)
            change_queue(w->plan, &l->actor);
        if (!scenario_next(w->plan, &l->actor, now, &l->step)) {
            finish(w, l);
            return;
        }
    } while (!build(w, l));
    l->state = LINK_ASKING;
    send_out(w, l);
}

/* A new connection: greet, send again what was lost, or go on. */
static void
connected(struct worker *w, struct link *l, int64_t now)
{
    int error = 0;
    socklen_t len = sizeof error;

    getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &error, &len);
    if (error != 0) {
        fail(w, "cannot connect to the server");
        finish(w, l);
        return;
    }
    watch(w, l, false, EPOLL_CTL_MOD);
    if (l->requests > 0 && l->step.op != OP_HELLO) {
        l->state = LINK_ASKING;
        l->sent = 0;
        send_out(w, l);
        return;
    }
    l->step = (struct step){.op = OP_HELLO};
    if (build(w, l)) {
        l->state = LINK_ASKING;
        l->start_ns = now;
        send_out(w, l);
        return;
    }
    proceed(w, l, now);
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
record(struct worker *w, const struct link *l, const struct reply *reply, int64_t now)
{
    const struct plan *plan = w->plan;
    struct stats *stats = w->stats;
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
answered(struct worker *w, struct link *l, const struct reply *reply, int64_t now)
{
    if (l->step.op != OP_HELLO)
        record(w, l, reply, now);
    if (l->step.op == OP_CLAIM && reply->messages == 0)
        l->actor.dry = true;
    l->requests = 0;
    l->broken = 0;
    l->in.len = 0;
    if (reply->close) {
        link_close(l);
        connect_link(w, l);
        return;
    }
    proceed(w, l, now);
}

static void
read_answer(struct worker *w, struct link *l)
{
    bool ended = link_read(l) == LINK_IO_ENDED;
    struct reply reply;

    if (l->state != LINK_ASKING || (ended && l->in.len == 0)) {
        if (ended)
            reconnect(w, l);
        return;
    }
    switch (w->plan->protocol->read(w->plan, &l->actor, &l->step, buf_view(&l->in), ended,
                                    &reply)) {
    case READING_MORE:
        break;
    case READING_DONE:
        reply.close = reply.close || ended;
        answered(w, l, &reply, ticks_now());
        break;
    case READING_BROKEN:
        fail(w, "an answer that cannot be understood");
        finish(w, l);
        break;
    }
}

static void
handle_event(struct worker *w, struct link *l, uint32_t events)
{
    if (l->state == LINK_FINISHED)
        return;
    if (l->state == LINK_CONNECTING) {
        connected(w, l, ticks_now());
        return;
    }
    if (events & EPOLLOUT) {
        send_out(w, l);
        return;
    }
    read_answer(w, l);
}

/* Open loop: starts every waiting link that has become due, in the order of the plan. */
static void
start_due(struct worker *w, int64_t now)
{
    const struct pace *pace = &w->plan->pace;

    while (pace_due(pace, w->links[w->cursor].number, w->round) <= now) {
        struct link *l = &w->links[w->cursor];

        if (l->state == LINK_WAITING)
            proceed(w, l, now);
        if (++w->cursor == w->count) {
            w->cursor = 0;
            w->round++;
        }
    }
}

/* Waits for events, and in an open loop not beyond the next due time. */
static int
wait_events(struct worker *w, struct epoll_event *events, int64_t now)
{
    int64_t wait = TICKS_SECOND / 10;
    struct timespec limit;

    if (paced(w->plan) && now < w->plan->to_ns) {
        int64_t left =
            pace_due(&w->plan->pace, w->links[w->cursor].number, w->round) - now;

        if (left < wait)
            wait = left < SPIN_NS ? 0 : left - SPIN_NS / 2;
    }
    limit = (struct timespec){.tv_nsec = wait};
    return epoll_pwait2(w->epoll, events, EVENTS, &limit, NULL);
}

static bool
must_stop(struct worker *w, int64_t now)
{
    return w->active == 0 || w->failure != NULL || now >= w->plan->give_up_ns ||
           atomic_load_explicit(&w->cancelled, memory_order_relaxed);
}

/* A waiting link learns of the end of an open loop from nobody else. */
static void
stop_waiting(struct worker *w, int64_t now)
{
    for (unsigned i = 0; i < w->count; i++) {
        if (w->links[i].state == LINK_WAITING)
            proceed(w, &w->links[i], now);
    }
}

static void
loop(struct worker *w)
{
    struct epoll_event events[EVENTS];
    int64_t now = ticks_now();

    while (!must_stop(w, now)) {
        int n = wait_events(w, events, now);

        for (int i = 0; i < n; i++)
            handle_event(w, events[i].data.ptr, events[i].events);
        now = ticks_now();
        if (!paced(w->plan))
            continue;
        if (now < w->plan->to_ns)
            start_due(w, now);
        else
            stop_waiting(w, now);
    }
}

static void
count_unfinished(struct worker *w)
{
    for (unsigned i = 0; i < w->count; i++) {
        struct link *l = &w->links[i];

        if (l->state == LINK_ASKING && l->start_ns < w->plan->to_ns)
            w->stats->unfinished++;
        if (l->state == LINK_FINISHED || !paced(w->plan))
            continue;
        for (uint64_t r = l->round;
             pace_due(&w->plan->pace, l->number, r) < w->plan->to_ns; r++)
            w->stats->unfinished++;
    }
}

static void *
worker_main(void *arg)
{
    struct worker *w = arg;

    (void)prctl(PR_SET_TIMERSLACK, 1UL); /* waking late would count as latency */
    for (unsigned i = 0; i < w->count; i++)
        connect_link(w, &w->links[i]);
    loop(w);
    count_unfinished(w);
    atomic_store(&w->ended, true);
    return NULL;
}

static void
worker_free(struct worker *w)
{
    for (unsigned i = 0; i < w->count; i++)
        link_fini(&w->links[i]);
    if (w->epoll >= 0)
        close(w->epoll);
    mem_destroy(w->mem);
    free(w);
}

struct worker *
worker_start(const struct plan *plan, unsigned number, struct stats *stats)
{
    unsigned count = (plan->connections - number + plan->threads - 1) / plan->threads;
    struct worker *w = calloc(1, sizeof *w + count * sizeof w->links[0]);

    if (w == NULL)
        return NULL;
    w->plan = plan;
    w->stats = stats;
    w->count = count;
    w->active = count;
    w->mem = mem_new(0);
    if (w->mem == NULL) {
        free(w);
        return NULL;
    }
    for (unsigned i = 0; i < count; i++)
        link_init(&w->links[i], plan, number + i * plan->threads, w->mem);
    w->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (w->epoll >= 0 && pthread_create(&w->thread, NULL, worker_main, w) == 0)
        return w;
    worker_free(w);
    return NULL;
}

void
worker_cancel(struct worker *w)
{
    atomic_store(&w->cancelled, true);
}

bool
worker_ended(const struct worker *w)
{
    return atomic_load(&w->ended);
}

const char *
worker_join(struct worker *w)
{
    const char *failure;

    pthread_join(w->thread, NULL);
    failure = w->failure;
    worker_free(w);
    return failure;
}
