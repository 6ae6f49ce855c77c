#include "redis/wire.h"

#include "claimd/base/clock.h"
#include "claimd/base/invariant.h"
#include "claimd/base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* ------------------------------------------------------------------ pipeline */

enum { READS_MOST = 16 }; /* of one node, before other nodes have their turn */

/* Maximum batching delay. */
static const int64_t BATCH_DELAY_NS = 2000000;

void
pipeline_init(struct pipeline *p)
{
    *p = (struct pipeline){.count = 0};
    list_init(&p->waiting);
    list_init(&p->sent);
}

void
pipeline_add(struct pipeline *p, struct wire_request *request)
{
    list_add_before(&p->waiting, &request->link);
    p->count++;
}

int64_t
pipeline_due_ns(const struct pipeline *p)
{
    return p->count >= p->expected ? 0 : p->due_ns;
}

/* Moves waiting requests to the pipeline. */
static void
pipeline_fill(struct pipeline *p, size_t most)
{
    size_t count = 0, bytes = 0;

    p->replicas = 0;
    while (!list_empty(&p->waiting) && count < most && bytes < PIPELINE_BYTES) {
        struct wire_request *request = request_of(list_pop(&p->waiting));

        list_add_before(&p->sent, &request->link);
        if (request->replicas > p->replicas)
            p->replicas = request->replicas;
        bytes += request->words->words.len;
        count++;
    }
    ENSURE(count > 0 && count <= p->count);
    p->count -= count;
}

enum status
pipeline_begin(struct pipeline *p, size_t most, int64_t confirm_ms)
{
    static const struct bytes asking[] = {BYTES_LIT("ASKING")};
    char replicas[DECIMAL_CAP], limit[DECIMAL_CAP], number[DECIMAL_CAP];
    enum status st = ST_OK;

    ENSURE(!pipeline_is_under_way(p));
    pipeline_fill(p, most);
    p->next = p->sent.next;
    p->asking_confirmed = false;
    p->begun_ns = clock_stopwatch_ns();
    for (struct list *at = p->next; st == ST_OK && at != &p->sent; at = at->next) {
        struct wire_request *request = request_of(at);
        const struct bytes words[] = {BYTES_LIT("FCALL"), request->function};

        request->number = ++p->number;
        if (request->asking)
            st = link_append(&p->link, asking, 1, NULL, BYTES_NONE);
        if (st == ST_OK)
            st = link_append(&p->link, words, 2, request->words,
                             bytes_of(number, decimal_write(number, request->number)));
    }
    if (st == ST_OK && p->replicas > 0) {
        const struct bytes words[] = {
            BYTES_LIT("WAIT"),
            {replicas, decimal_write(replicas, p->replicas)},
            {limit, decimal_write(limit, (uint64_t)confirm_ms)}};

        st = link_append(&p->link, words, 3, NULL, BYTES_NONE);
    }
    return st;
}

/*
 * Takes the response of a script out of `numbered`, between the number of the request and
 * the time that may follow (*due_ms; 0: none). Errors are alone. NULL: the number is that
 * of another request, or the response is not of a script of claimd. Takes ownership of
 * `numbered`.
 */
static redisReply *
strip_number(const struct pipeline *p, redisReply *numbered, uint64_t number,
             int64_t *due_ms)
{
    redisReply *response = NULL;

    if (numbered->type == REDIS_REPLY_ERROR)
        return numbered;
    if (numbered->type == REDIS_REPLY_ARRAY &&
        (numbered->elements == 2 ||
         (numbered->elements == 3 && shape_integer(numbered->element[2], due_ms))) &&
        numbered->element[0]->type == REDIS_REPLY_INTEGER &&
        numbered->element[0]->integer == (long long)number) {
        response = numbered->element[1];
        numbered->element[1] = NULL; /* so that freeing spares the response */
    }
    link_free_response(&p->link, numbered);
    return response;
}

/*
 * Gives a response to its request, or reads that of WAIT (*confirmed). COMPLETE: it was
 * the last response. FAILED: it belongs to another request. Takes ownership of the
 * response.
 */
static enum pipeline_state
accept_response(struct pipeline *p, redisReply *response, long long *confirmed)
{
    struct wire_request *request = request_of(p->next);
    const int type = response->type;

    if (p->next == &p->sent) { /* the response to WAIT */
        if (type == REDIS_REPLY_INTEGER)
            *confirmed = response->integer;
        link_free_response(&p->link, response);
        return type == REDIS_REPLY_INTEGER || type == REDIS_REPLY_ERROR
                   ? PIPELINE_COMPLETE
                   : PIPELINE_FAILED;
    }
    if (request->asking && !p->asking_confirmed) {
        link_free_response(&p->link, response);
        p->asking_confirmed = true;
        return PIPELINE_INCOMPLETE;
    }
    ENSURE(request->response == NULL);
    request->response = strip_number(p, response, request->number, &request->due_ms);
    if (request->response == NULL)
        return PIPELINE_FAILED;
    request->responded_ns = p->progress_ns;
    p->asking_confirmed = false;
    p->next = p->next->next;
    return p->next == &p->sent && p->replicas == 0 ? PIPELINE_COMPLETE
                                                   : PIPELINE_INCOMPLETE;
}

/* Accepts the responses that were read completely. */
static enum pipeline_state
accept_responses(struct pipeline *p, long long *confirmed)
{
    enum pipeline_state state = PIPELINE_INCOMPLETE;
    redisReply *response;

    while (state == PIPELINE_INCOMPLETE &&
           (response = link_next_response(&p->link)) != NULL)
        state = accept_response(p, response, confirmed);
    if (state == PIPELINE_FAILED) {
        link_fail(&p->link, "Redis sent the response to a different request");
    } else if (state == PIPELINE_COMPLETE && !link_is_drained(&p->link)) {
        link_fail(&p->link, LINK_SURPLUS);
        state = PIPELINE_FAILED;
    }
    return p->link.context->err != 0 ? PIPELINE_FAILED : state;
}

enum pipeline_state
pipeline_read(struct pipeline *p)
{
    enum pipeline_state state = PIPELINE_INCOMPLETE;
    long long confirmed = -1;
    bool more = true;

    ENSURE(pipeline_is_under_way(p));
    for (int i = 0; i < READS_MOST && more && state == PIPELINE_INCOMPLETE; i++) {
        if (!link_read(&p->link, &more))
            return PIPELINE_FAILED;
        p->progress_ns = clock_stopwatch_ns();
        state = accept_responses(p, &confirmed);
    }
    for (struct list *at = p->sent.next; state == PIPELINE_COMPLETE && at != &p->sent;
         at = at->next) {
        struct wire_request *request = request_of(at);

        request->outcome = REQUEST_RESPONDED;
        request->whole = true;
        request->confirmed = confirmed;
        request->confirmed_ns = p->progress_ns;
    }
    return state;
}

void
pipeline_abort(struct pipeline *p, const struct reason *why)
{
    for (struct list *at = p->sent.next; at != &p->sent; at = at->next) {
        struct wire_request *request = request_of(at);

        request->outcome = request->response != NULL ? REQUEST_RESPONDED : REQUEST_LOST;
        request->whole = false;
        request->confirmed = -1;
        request->confirmed_ns = clock_stopwatch_ns();
        request->why = *why;
    }
}

void
pipeline_end(struct pipeline *p, struct list *ended)
{
    const int64_t now_ns = clock_stopwatch_ns(), half_ns = (now_ns - p->begun_ns) / 2;
    struct list *link;

    p->expected = p->count;
    p->due_ns = 0;
    if (p->replicas > 0)
        p->due_ns = now_ns + (half_ns < BATCH_DELAY_NS ? half_ns : BATCH_DELAY_NS);
    while ((link = list_pop(&p->sent)) != NULL) {
        list_add_before(ended, link);
        p->expected++;
    }
}

void
pipeline_reject_waiting(struct pipeline *p, enum request_outcome outcome,
                        const struct reason *why, struct list *ended)
{
    struct list *link;

    while ((link = list_pop(&p->waiting)) != NULL) {
        request_of(link)->outcome = outcome;
        if (why != NULL)
            request_of(link)->why = *why;
        list_add_before(ended, link);
    }
    p->count = 0;
}

/* ------------------------------------------------------------------ wire */

enum {
    EVENTS = 32,
    HUNG_MS = 1000,              /* time without requests after a timeout */
    PIPELINE_RESPONSES = 4 << 20 /* intended maximum of bytes */
};

static const int64_t MS_NS = 1000000;

/* The key of the event descriptor in epoll. Other keys are indexes of nodes. */
static const uint64_t EVENT_KEY = UINT64_MAX;

struct wire_node {
    struct list link; /* in `ready` or `under_way`, or in neither */
    struct pipeline pipeline;
    size_t most; /* requests of the next pipeline */
    bool unsent; /* a part of the pipeline is not written yet */
    bool stale;  /* the connection is of an earlier generation */
};

/* A connection that the thread does not have yet. */
struct link_offer {
    struct list list;
    struct link link;
    uint16_t node;
    unsigned generation;
};

static struct wire_node *
wire_node_of(struct list *link)
{
    return container_of(link, struct wire_node, link);
}

static uint16_t
node_index(const struct wire *w, const struct wire_node *n)
{
    return (uint16_t)(n - w->nodes);
}

/* ------------------------------------------------------------------ callers */

/* Adds an item to `requests` or `links`, and wakes the thread if it sleeps. */
static void
submit_to_thread(struct wire *w, struct list *to, struct list *item)
{
    lock_acquire(&w->lock);
    list_add_before(to, item);
    lock_release(&w->lock);
    if (atomic_load(&w->sleeping) && atomic_exchange(&w->sleeping, false))
        (void)eventfd_write(w->event_fd, 1); /* fails only if the counter is full */
}

void
wire_run(struct wire *w, uint16_t node, unsigned generation, struct wire_request *request)
{
    struct fiber *self = fiber_current();

    ENSURE(node < MAP_NODES);
    request->node = node;
    request->generation = generation;
    request->fiber = self;
    request->response = NULL;
    reason_init(&request->why);
    if (self == NULL)
        ENSURE(sem_init(&request->done, 0, 0) == 0);
    submit_to_thread(w, &w->requests, &request->link);
    if (self != NULL) {
        fiber_park(self);
        return;
    }
    while (sem_wait(&request->done) != 0)
        ENSURE(errno == EINTR);
    (void)sem_destroy(&request->done);
}

/* The size of a response of claimd's scripts, which is a list of texts. */
static size_t
response_size(const redisReply *response)
{
    size_t size = response->len;

    for (size_t i = 0; i < response->elements; i++)
        size += response->element[i]->len;
    return size;
}

void
wire_free_response(struct wire *w, redisReply *response)
{
    size_t size;

    if (response == NULL)
        return;
    size = response_size(response);
    ENSURE(atomic_fetch_sub(&w->response_bytes, size) >= size);
    w->config->link.library->free_reply(response);
}

enum status
wire_offer_link(struct wire *w, uint16_t node, unsigned generation, struct link *l)
{
    struct link_offer *o = mem_calloc(w->config->mem, 1, sizeof(*o));
    const int flags = fcntl(l->context->fd, F_GETFL);

    if (o == NULL || flags < 0 ||
        fcntl(l->context->fd, F_SETFL, flags | O_NONBLOCK) != 0) {
        mem_free(w->config->mem, o);
        link_close(l);
        return ST_NO_MEMORY;
    }
    l->context->flags &= ~REDIS_BLOCK;
    *o = (struct link_offer){.link = *l, .node = node, .generation = generation};
    submit_to_thread(w, &w->links, &o->list);
    return ST_OK;
}

bool
wire_is_hung(const struct wire *w, uint16_t node)
{
    const int64_t hung_ns = atomic_load(&w->hung_ns[node]);

    return hung_ns != 0 && clock_stopwatch_ns() - hung_ns < HUNG_MS * MS_NS;
}

void
wire_note_response(struct wire *w, uint16_t node)
{
    atomic_store(&w->hung_ns[node], 0);
}

void
wire_note_timeout(struct wire *w, uint16_t node)
{
    atomic_store(&w->hung_ns[node], clock_stopwatch_ns());
}

/* ------------------------------------------------------------------ one node */

static void
close_link(struct wire *w, struct wire_node *n)
{
    atomic_store(&w->linked[node_index(w, n)], false);
    link_close(&n->pipeline.link); /* which also removes it from epoll */
    n->stale = n->unsent = false;
}

/* Moves a node to the end of a list; NULL: to none. */
static void
move_node(struct wire_node *n, struct list *to)
{
    if (list_linked(&n->link))
        list_remove(&n->link);
    if (to != NULL)
        list_add_before(to, &n->link);
}

/* Counts the bytes of the responses. Limits the requests of the next pipeline so that
 * responses of the same size have at most PIPELINE_RESPONSES bytes. */
static void
note_responses(struct wire *w, struct wire_node *n)
{
    const struct list *sent = &n->pipeline.sent;
    size_t bytes = 0, count = 0;

    for (struct list *at = sent->next; at != sent; at = at->next, count++)
        if (request_of(at)->response != NULL)
            bytes += response_size(request_of(at)->response);
    atomic_fetch_add(&w->response_bytes, bytes);
    n->most = bytes == 0 ? PIPELINE_REQUESTS : 1 + PIPELINE_RESPONSES * count / bytes;
    if (n->most > PIPELINE_REQUESTS)
        n->most = PIPELINE_REQUESTS;
}

static void
finish_pipeline(struct wire *w, struct wire_node *n, struct list *ended)
{
    ENSURE(pipeline_is_under_way(&n->pipeline));
    note_responses(w, n);
    atomic_fetch_add(&w->pipelines, 1);
    pipeline_end(&n->pipeline, ended);
    move_node(n, n->pipeline.count > 0 ? &w->ready : NULL);
    if (n->stale)
        close_link(w, n);
}

static void
abort_pipeline(struct wire *w, struct wire_node *n, const char *what, struct list *ended)
{
    struct reason why;

    reason_init(&why);
    (void)reason_give(&why, ST_UNAVAILABLE, "%s", what);
    pipeline_abort(&n->pipeline, &why);
    close_link(w, n);
    finish_pipeline(w, n, ended);
}

static void
read_responses(struct wire *w, struct wire_node *n, struct list *ended)
{
    const redisContext *context = n->pipeline.link.context;

    switch (pipeline_read(&n->pipeline)) {
    case PIPELINE_INCOMPLETE:
        move_node(n, &w->under_way);
        break;
    case PIPELINE_COMPLETE:
        wire_note_response(w, node_index(w, n));
        finish_pipeline(w, n, ended);
        break;
    case PIPELINE_FAILED:
        if (context->err == REDIS_ERR_PROTOCOL && w->config->warn != NULL)
            w->config->warn(w->config->warn_arg, context->errstr);
        abort_pipeline(w, n, context->errstr, ended);
        break;
    }
}

/* Writes as much of the pipeline as the socket takes. If there is more, epoll reports
 * when the socket is writable. */
static void
write_pipeline(struct wire *w, struct wire_node *n, struct list *ended)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = node_index(w, n)};
    struct link *l = &n->pipeline.link;
    bool all;

    if (!link_write(l, &all)) {
        abort_pipeline(w, n, l->context->errstr, ended);
        return;
    }
    if (!all)
        event.events |= EPOLLOUT;
    if (n->unsent == all) /* MOD cannot fail for a descriptor that was added */
        (void)epoll_ctl(w->epoll_fd, EPOLL_CTL_MOD, l->context->fd, &event);
    n->unsent = !all;
    n->pipeline.progress_ns = clock_stopwatch_ns();
    move_node(n, &w->under_way);
}

/* Sends the waiting requests of a node that has nothing under way. */
static void
start_pipeline(struct wire *w, struct wire_node *n, struct list *ended)
{
    const bool many_bytes = atomic_load(&w->response_bytes) >= WIRE_RESPONSE_BYTES;
    struct pipeline *p = &n->pipeline;

    move_node(n, NULL);
    if (!link_is_reusable(&p->link)) {
        close_link(w, n);
        pipeline_reject_waiting(p, REQUEST_UNLINKED, NULL, ended);
    } else if (pipeline_begin(p, many_bytes ? 1 : n->most, w->config->confirm_ms) ==
               ST_OK) {
        write_pipeline(w, n, ended);
    } else {
        for (struct list *at = p->sent.next; at != &p->sent; at = at->next)
            request_of(at)->outcome = REQUEST_NO_MEMORY;
        close_link(w, n);
        finish_pipeline(w, n, ended);
    }
}

/* Starts the pipelines that are due. Returns when the next one is due. */
static int64_t
start_due_pipelines(struct wire *w, struct list *ended)
{
    const int64_t now_ns = clock_stopwatch_ns();
    struct list *at = w->ready.next;
    int64_t next_ns = INT64_MAX;

    while (at != &w->ready) {
        struct wire_node *n = wire_node_of(at);
        const int64_t due_ns = pipeline_due_ns(&n->pipeline);

        at = at->next;
        if (due_ns <= now_ns)
            start_pipeline(w, n, ended);
        else if (due_ns < next_ns)
            next_ns = due_ns;
    }
    return next_ns;
}

/* ------------------------------------------------------------------ events */

static void
handle_events(struct wire *w, struct wire_node *n, uint32_t events, struct list *ended)
{
    if (!link_is_open(&n->pipeline.link))
        return; /* an earlier event of this round closed it */
    if (!pipeline_is_under_way(&n->pipeline)) {
        if (!link_is_reusable(&n->pipeline.link))
            close_link(w, n);
        return;
    }
    if ((events & EPOLLOUT) != 0)
        write_pipeline(w, n, ended);
    if (pipeline_is_under_way(&n->pipeline) && (events & ~(uint32_t)EPOLLOUT) != 0)
        read_responses(w, n, ended);
}

/* The nodes have other indexes now. */
static void
change_generation(struct wire *w, unsigned generation)
{
    w->generation = generation;
    for (size_t i = 0; i < MAP_NODES; i++)
        if (pipeline_is_under_way(&w->nodes[i].pipeline))
            w->nodes[i].stale = true;
        else
            close_link(w, &w->nodes[i]);
}

/* Uses the offered link, or closes it if the node has one. */
static void
adopt_link(struct wire *w, struct link_offer *o)
{
    struct wire_node *n = &w->nodes[o->node];
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = o->node};

    ENSURE(o->node < MAP_NODES);
    if (o->generation > w->generation)
        change_generation(w, o->generation);
    if (o->generation == w->generation && !pipeline_is_under_way(&n->pipeline) &&
        !link_is_reusable(&n->pipeline.link)) {
        close_link(w, n);
        if (epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, o->link.context->fd, &event) == 0) {
            n->pipeline.link = o->link;
            o->link.context = NULL;
            atomic_store(&w->linked[o->node], true);
        }
    }
    link_close(&o->link);
    mem_free(w->config->mem, o);
}

/* Takes what callers have submitted. */
static void
take_submitted(struct wire *w)
{
    struct list requests, links, *link;

    list_init(&requests);
    list_init(&links);
    lock_acquire(&w->lock);
    list_move(&requests, &w->requests);
    list_move(&links, &w->links);
    lock_release(&w->lock);
    while ((link = list_pop(&links)) != NULL)
        adopt_link(w, container_of(link, struct link_offer, list));
    while ((link = list_pop(&requests)) != NULL) {
        struct wire_request *request = request_of(link);
        struct wire_node *n = &w->nodes[request->node];

        if (request->generation > w->generation)
            change_generation(w, request->generation);
        pipeline_add(&n->pipeline, request);
        if (!list_linked(&n->link))
            list_add_before(&w->ready, &n->link);
    }
}

/* Aborts the pipelines of nodes that have not responded in time, and rejects the requests
 * that wait for them. */
static void
expire_hung_nodes(struct wire *w, struct list *ended)
{
    static const char WHAT[] = "Redis does not respond";
    const int64_t now_ns = clock_stopwatch_ns();
    struct reason why;

    reason_init(&why);
    (void)reason_give(&why, ST_UNAVAILABLE, WHAT);
    while (!list_empty(&w->under_way)) {
        struct wire_node *n = wire_node_of(w->under_way.next);

        if (now_ns - n->pipeline.progress_ns < w->config->link.response_ms * MS_NS)
            return;
        wire_note_timeout(w, node_index(w, n));
        abort_pipeline(w, n, WHAT, ended);
        pipeline_reject_waiting(&n->pipeline, REQUEST_HUNG, &why, ended);
        move_node(n, NULL);
    }
}

/* ------------------------------------------------------------------ the thread */

/* Sleeps until this time (INT64_MAX: without limit), or until there is an event. */
static void
sleep_until(struct wire *w, int64_t until_ns)
{
    struct pollfd fd = {.fd = w->epoll_fd, .events = POLLIN};
    int64_t left_ns = until_ns - clock_stopwatch_ns();
    struct timespec left;
    bool idle;

    if (left_ns < 0)
        left_ns = 0;
    left = (struct timespec){left_ns / (1000 * MS_NS), left_ns % (1000 * MS_NS)};
    atomic_store(&w->sleeping, true); /* from here on callers wake the thread */
    lock_acquire(&w->lock);
    idle = list_empty(&w->requests) && list_empty(&w->links);
    lock_release(&w->lock);
    /* The round may have read the event of wire_close(). */
    if (idle && !atomic_load(&w->closing))
        (void)ppoll(&fd, 1, until_ns == INT64_MAX ? NULL : &left, NULL);
    atomic_store_explicit(&w->sleeping, false, memory_order_relaxed);
}

/* Runs one round of the loop. Returns when the next one is due. */
static int64_t
run_round(struct wire *w)
{
    struct epoll_event events[EVENTS];
    const int count = epoll_wait(w->epoll_fd, events, EVENTS, 0);
    int64_t due_ns, expires_ns;
    struct list ended, *link;
    eventfd_t wakeups;

    list_init(&ended);
    for (int i = 0; i < count; i++)
        if (events[i].data.u64 == EVENT_KEY)
            (void)eventfd_read(w->event_fd, &wakeups);
        else
            handle_events(w, &w->nodes[events[i].data.u64], events[i].events, &ended);
    expire_hung_nodes(w, &ended);
    take_submitted(w);
    due_ns = start_due_pipelines(w, &ended);
    /* Wakes the callers only now, so that the nodes have work meanwhile. A woken caller
     * owns its request. */
    while ((link = list_pop(&ended)) != NULL)
        if (request_of(link)->fiber != NULL)
            fiber_wake(request_of(link)->fiber);
        else
            (void)sem_post(&request_of(link)->done);
    if (list_empty(&w->under_way))
        return due_ns;
    expires_ns = wire_node_of(w->under_way.next)->pipeline.progress_ns +
                 w->config->link.response_ms * MS_NS;
    return expires_ns < due_ns ? expires_ns : due_ns;
}

static void *
thread_main(void *arg)
{
    struct wire *w = arg;

    while (!atomic_load(&w->closing))
        sleep_until(w, run_round(w));
    return NULL;
}

enum status
wire_open(struct wire *w, const struct cluster_config *config)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = EVENT_KEY};
    enum status st;

    w->config = config;
    lock_init(&w->lock);
    list_init(&w->requests);
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
        ENSURE(list_empty(&w->requests) && list_empty(&w->under_way));
        take_submitted(w); /* links that came last */
        for (size_t i = 0; i < MAP_NODES; i++)
            close_link(w, &w->nodes[i]);
    }
    if (w->event_fd >= 0)
        (void)close(w->event_fd);
    if (w->epoll_fd >= 0)
        (void)close(w->epoll_fd);
    mem_free(w->config->mem, w->nodes);
    lock_fini(&w->lock);
}
