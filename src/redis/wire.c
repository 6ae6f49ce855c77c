#include "redis/wire.h"

#include "claimd/base/clock.h"
#include "claimd/base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    EVENTS = 32,
    LEFT_ALONE_MS = 1000, /* a node that has not responded */
    ANSWERS = 4 << 20     /* bytes that are wanted in a pipeline, at most */
};

static const int64_t MS_NS = 1000000;

/* For epoll: the event descriptor. Other numbers are places of nodes. */
static const uint64_t CALLED = UINT64_MAX;

struct wire_node {
    struct list place; /* in `ready` or `under_way`, or in neither */
    struct pipeline pipeline;
    size_t most; /* requests in the next one */
    bool unsent; /* there is more to write */
    bool stale;  /* the link is that of another generation */
};

/* A connection on its way to the thread. */
struct offer {
    struct list place;
    struct link link;
    uint16_t node;
    unsigned generation;
};

static struct wire_node *
node_of(struct list *place)
{
    return container_of(place, struct wire_node, place);
}

static uint16_t
place_of(const struct wire *w, const struct wire_node *n)
{
    return (uint16_t)(n - w->nodes);
}

/* ------------------------------------------------------------------ asking */

/* Adds to one of the lists that the thread looks into. */
static void
hand_over(struct wire *w, struct list *to, struct list *what)
{
    lock_acquire(&w->lock);
    list_add_before(to, what);
    lock_release(&w->lock);
    if (atomic_load(&w->resting) && atomic_exchange(&w->resting, false))
        (void)eventfd_write(w->event_fd, 1); /* fails only when the counter is full */
}

void
wire_ask(struct wire *w, uint16_t node, unsigned generation, struct request *request)
{
    struct fiber *self = fiber_current();

    request->node = node;
    request->generation = generation;
    request->fiber = self;
    request->answer = NULL;
    reason_init(&request->why);
    if (self == NULL)
        ENSURE(sem_init(&request->done, 0, 0) == 0);
    hand_over(w, &w->asked, &request->link);
    if (self != NULL) {
        fiber_park(self);
        return;
    }
    while (sem_wait(&request->done) != 0)
        ENSURE(errno == EINTR);
    (void)sem_destroy(&request->done);
}

/* The answers of our scripts are lists of texts. */
static size_t
size_of(const redisReply *answer)
{
    size_t size = answer->len;

    for (size_t i = 0; i < answer->elements; i++)
        size += answer->element[i]->len;
    return size;
}

void
wire_give_back(struct wire *w, redisReply *answer)
{
    if (answer == NULL)
        return;
    atomic_fetch_sub(&w->held, size_of(answer));
    w->config->link.library->free_reply(answer);
}

enum status
wire_link(struct wire *w, uint16_t node, unsigned generation, struct link *l)
{
    struct offer *o = mem_calloc(w->config->mem, 1, sizeof(*o));
    const int flags = fcntl(l->context->fd, F_GETFL);

    if (o == NULL || flags < 0 ||
        fcntl(l->context->fd, F_SETFL, flags | O_NONBLOCK) != 0) {
        mem_free(w->config->mem, o);
        link_close(l);
        return ST_NO_MEMORY;
    }
    l->context->flags &= ~REDIS_BLOCK;
    *o = (struct offer){.link = *l, .node = node, .generation = generation};
    hand_over(w, &w->links, &o->place);
    return ST_OK;
}

bool
wire_is_hung(const struct wire *w, uint16_t node)
{
    const int64_t hung_ns = atomic_load(&w->hung_ns[node]);

    return hung_ns != 0 && clock_stopwatch_ns() - hung_ns < LEFT_ALONE_MS * MS_NS;
}

void
wire_heard(struct wire *w, uint16_t node)
{
    atomic_store(&w->hung_ns[node], 0);
}

void
wire_missed(struct wire *w, uint16_t node)
{
    atomic_store(&w->hung_ns[node], clock_stopwatch_ns());
}

/* ------------------------------------------------------------------ one node */

static void
hang_up(struct wire *w, struct wire_node *n)
{
    atomic_store(&w->linked[place_of(w, n)], false);
    link_close(&n->pipeline.link); /* epoll forgets it */
    n->stale = n->unsent = false;
}

static void
move(struct wire_node *n, struct list *to)
{
    if (list_linked(&n->place))
        list_remove(&n->place);
    if (to != NULL)
        list_add_before(to, &n->place);
}

/* Counts the bytes of the responses, and computes how many requests may go next so that responses of the same
 * size are no more than ANSWERS bytes. */
static void
note_answers(struct wire *w, struct wire_node *n)
{
    const struct list *sent = &n->pipeline.sent;
    size_t bytes = 0, count = 0;

    for (struct list *at = sent->next; at != sent; at = at->next, count++)
        if (request_of(at)->answer != NULL)
            bytes += size_of(request_of(at)->answer);
    atomic_fetch_add(&w->held, bytes);
    n->most = bytes == 0 ? PIPELINE_REQUESTS : 1 + ANSWERS * count / bytes;
    if (n->most > PIPELINE_REQUESTS)
        n->most = PIPELINE_REQUESTS;
}

/* Its pipeline is over; the next one has its turn. */
static void
finish(struct wire *w, struct wire_node *n, struct list *ended)
{
    note_answers(w, n);
    atomic_fetch_add(&w->pipelines, 1);
    pipeline_end(&n->pipeline, ended);
    move(n, n->pipeline.count > 0 ? &w->ready : NULL);
    if (n->stale)
        hang_up(w, n);
}

static void
break_off(struct wire *w, struct wire_node *n, const char *what, struct list *ended)
{
    struct reason why;

    reason_init(&why);
    (void)reason_give(&why, ST_UNAVAILABLE, "%s", what);
    pipeline_break_off(&n->pipeline, &why);
    hang_up(w, n);
    finish(w, n, ended);
}

static void
read_answers(struct wire *w, struct wire_node *n, struct list *ended)
{
    switch (pipeline_read(&n->pipeline)) {
    case PIPELINE_GOES_ON:
        move(n, &w->under_way);
        break;
    case PIPELINE_ARRIVED:
        wire_heard(w, place_of(w, n));
        finish(w, n, ended);
        break;
    case PIPELINE_FAILED:
        if (n->pipeline.link.context->err == REDIS_ERR_PROTOCOL &&
            w->config->warn != NULL)
            w->config->warn(w->config->warn_arg, n->pipeline.link.context->errstr);
        break_off(w, n, n->pipeline.link.context->errstr, ended);
        break;
    }
}

/* Writes the rest of the pipeline, as far as there is space. Has epoll wait for space if there is more. */
static void
push(struct wire *w, struct wire_node *n, struct list *ended)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = place_of(w, n)};
    struct link *l = &n->pipeline.link;
    bool all;

    if (!link_push(l, &all)) {
        break_off(w, n, l->context->errstr, ended);
        return;
    }
    if (!all)
        event.events |= EPOLLOUT;
    if (n->unsent == all) /* the link is there, so this works */
        (void)epoll_ctl(w->epoll_fd, EPOLL_CTL_MOD, l->context->fd, &event);
    n->unsent = !all;
    n->pipeline.heard_ns = clock_stopwatch_ns();
    move(n, &w->under_way);
}

/* Sends the requests that wait for a node with nothing under way. */
static void
start(struct wire *w, struct wire_node *n, struct list *ended)
{
    const size_t most = atomic_load(&w->held) < WIRE_HELD ? n->most : 1;
    struct pipeline *p = &n->pipeline;
    struct list *at;

    move(n, NULL);
    if (!link_is_fresh(&p->link)) {
        hang_up(w, n);
        pipeline_turn_away(p, REQUEST_UNLINKED, NULL, ended);
    } else if (pipeline_begin(p, most, w->config->confirm_ms) == ST_OK) {
        push(w, n, ended);
    } else {
        for (at = p->sent.next; at != &p->sent; at = at->next)
            request_of(at)->end = REQUEST_NO_MEMORY;
        hang_up(w, n);
        finish(w, n, ended);
    }
}

/* Starts the pipelines that are due. Returns when the next one is. */
static int64_t
start_due(struct wire *w, struct list *ended)
{
    const int64_t now_ns = clock_stopwatch_ns();
    struct list *at = w->ready.next;
    int64_t next_ns = INT64_MAX;

    while (at != &w->ready) {
        struct wire_node *n = node_of(at);
        const int64_t due_ns = pipeline_due_ns(&n->pipeline);

        at = at->next;
        if (due_ns <= now_ns)
            start(w, n, ended);
        else if (due_ns < next_ns)
            next_ns = due_ns;
    }
    return next_ns;
}

/* ------------------------------------------------------------------ news */

static void
handle(struct wire *w, struct wire_node *n, uint32_t events, struct list *ended)
{
    if (!link_is_open(&n->pipeline.link))
        return; /* it was closed in this round */
    if (!pipeline_is_under_way(&n->pipeline)) {
        if (!link_is_fresh(&n->pipeline.link)) /* the other side has hung up */
            hang_up(w, n);
        return;
    }
    if ((events & EPOLLOUT) != 0)
        push(w, n, ended);
    if (pipeline_is_under_way(&n->pipeline) && (events & ~(uint32_t)EPOLLOUT) != 0)
        read_answers(w, n, ended);
}

/* Nodes have other places now. */
static void
change_generation(struct wire *w, unsigned generation)
{
    w->generation = generation;
    for (size_t i = 0; i < MAP_NODES; i++)
        if (pipeline_is_under_way(&w->nodes[i].pipeline))
            w->nodes[i].stale = true;
        else
            hang_up(w, &w->nodes[i]);
}

static void
take_link(struct wire *w, struct offer *o)
{
    struct wire_node *n = &w->nodes[o->node];
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = o->node};

    if (o->generation > w->generation)
        change_generation(w, o->generation);
    if (o->generation == w->generation && !pipeline_is_under_way(&n->pipeline) &&
        !link_is_fresh(&n->pipeline.link)) {
        hang_up(w, n);
        if (epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, o->link.context->fd, &event) == 0) {
            n->pipeline.link = o->link;
            o->link.context = NULL;
            atomic_store(&w->linked[o->node], true);
        }
    }
    link_close(&o->link);
    mem_free(w->config->mem, o);
}

/* Takes new requests and connections. */
static void
take_all(struct wire *w)
{
    struct list asked, links, *link;

    list_init(&asked);
    list_init(&links);
    lock_acquire(&w->lock);
    list_move(&asked, &w->asked);
    list_move(&links, &w->links);
    lock_release(&w->lock);
    while ((link = list_pop(&links)) != NULL)
        take_link(w, container_of(link, struct offer, place));
    while ((link = list_pop(&asked)) != NULL) {
        struct request *request = request_of(link);
        struct wire_node *n = &w->nodes[request->node];

        if (request->generation > w->generation)
            change_generation(w, request->generation);
        pipeline_add(&n->pipeline, request);
        if (!list_linked(&n->place))
            list_add_before(&w->ready, &n->place);
    }
}

/* Gives up nodes that have not responded in time, and the requests for them. */
static void
expire(struct wire *w, struct list *ended)
{
    static const char WHAT[] = "Redis does not respond";
    const int64_t now_ns = clock_stopwatch_ns();
    struct reason why;

    reason_init(&why);
    (void)reason_give(&why, ST_UNAVAILABLE, WHAT);
    while (!list_empty(&w->under_way)) {
        struct wire_node *n = node_of(w->under_way.next);

        if (now_ns - n->pipeline.heard_ns < w->config->link.answer_ms * MS_NS)
            return;
        wire_missed(w, place_of(w, n));
        break_off(w, n, WHAT, ended);
        pipeline_turn_away(&n->pipeline, REQUEST_HUNG, &why, ended);
        move(n, NULL);
    }
}

/* ------------------------------------------------------------------ the thread */

/* Until something has happened, or the time is over; INT64_MAX: there is none. */
static void
rest(struct wire *w, int64_t until_ns)
{
    struct pollfd fd = {.fd = w->epoll_fd, .events = POLLIN};
    int64_t left_ns = until_ns - clock_stopwatch_ns();
    struct timespec left;
    bool idle;

    if (left_ns < 0)
        left_ns = 0;
    left = (struct timespec){left_ns / (1000 * MS_NS), left_ns % (1000 * MS_NS)};
    atomic_store(&w->resting, true); /* from here on callers wake the thread */
    lock_acquire(&w->lock);
    idle = list_empty(&w->asked) && list_empty(&w->links);
    lock_release(&w->lock);
    if (idle)
        (void)ppoll(&fd, 1, until_ns == INT64_MAX ? NULL : &left, NULL);
    atomic_store_explicit(&w->resting, false, memory_order_relaxed);
}

/* One round of the loop. Returns when the next one is due. */
static int64_t
go_round(struct wire *w)
{
    struct epoll_event events[EVENTS];
    const int count = epoll_wait(w->epoll_fd, events, EVENTS, 0);
    int64_t due_ns, expires_ns;
    struct list ended, *link;
    eventfd_t calls;

    list_init(&ended);
    for (int i = 0; i < count; i++)
        if (events[i].data.u64 == CALLED)
            (void)eventfd_read(w->event_fd, &calls);
        else
            handle(w, &w->nodes[events[i].data.u64], events[i].events, &ended);
    expire(w, &ended);
    take_all(w);
    due_ns = start_due(w, &ended);
    /* Wakes the callers now that the nodes have something to do. The requests belong to them again. */
    while ((link = list_pop(&ended)) != NULL)
        if (request_of(link)->fiber != NULL)
            fiber_wake(request_of(link)->fiber);
        else
            (void)sem_post(&request_of(link)->done);
    if (list_empty(&w->under_way))
        return due_ns;
    expires_ns =
        node_of(w->under_way.next)->pipeline.heard_ns + w->config->link.answer_ms * MS_NS;
    return expires_ns < due_ns ? expires_ns : due_ns;
}

static void *
thread_main(void *arg)
{
    struct wire *w = arg;

    while (!atomic_load(&w->closing))
        rest(w, go_round(w));
    return NULL;
}

enum status
wire_open(struct wire *w, const struct cluster_config *config)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = CALLED};
    enum status st;

    w->config = config;
    lock_init(&w->lock);
    list_init(&w->asked);
    list_init(&w->links);
    list_init(&w->ready);
    list_init(&w->under_way);
    w->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    w->nodes = mem_calloc(w->config->mem, MAP_NODES, sizeof(*w->nodes));
    if (w->nodes == NULL)
        return ST_NO_MEMORY;
    for (size_t i = 0; i < MAP_NODES; i++) {
        pipeline_init(&w->nodes[i].pipeline);
        w->nodes[i].most = PIPELINE_REQUESTS;
    }
    if (w->event_fd < 0 || w->epoll_fd < 0 ||
        epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, w->event_fd, &event) != 0)
        return ST_UNAVAILABLE;
    st = thread_start(&w->thread, thread_main, w);
    w->started = st == ST_OK;
    return st;
}

void
wire_close(struct wire *w)
{
    if (w->started) {
        atomic_store(&w->closing, true);
        (void)eventfd_write(w->event_fd, 1);
        (void)pthread_join(w->thread, NULL);
        take_all(w); /* connections that came last */
        for (size_t i = 0; i < MAP_NODES; i++)
            hang_up(w, &w->nodes[i]);
    }
    if (w->event_fd >= 0)
        (void)close(w->event_fd);
    if (w->epoll_fd >= 0)
        (void)close(w->epoll_fd);
    mem_free(w->config->mem, w->nodes);
    lock_fini(&w->lock);
}
