#include "http/acceptor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    EVENTS = 32,
    ACCEPTS_IN_A_ROW = 64,
    PAUSE_MS = 100, /* without descriptors: until the next try */
    SOURCE = 255    /* in request ids; workers count from 0 */
};

static void
open_reserve(struct acceptor *a)
{
    if (a->reserve_fd < 0)
        a->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static bool
watch_source(struct acceptor *a, int fd, struct source *source)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = source};

    return epoll_ctl(a->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* False: not all could be watched. */
static bool
watch_listeners(struct acceptor *a)
{
    bool all = true;

    for (size_t i = 0; i < a->listener_count; i++) {
        struct listener *l = &a->listeners[i];

        l->watched = l->watched || watch_source(a, l->fd, &l->source);
        all = all && l->watched;
    }
    return all;
}

enum status
acceptor_init(struct acceptor *a, const char *tag)
{
    a->stop.kind = SOURCE_STOP;
    request_ids_init(&a->ids, tag, SOURCE);
    a->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    a->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
    linger_init(&a->linger, a->epoll_fd, a->shared->linger_slots);
    open_reserve(a);
    if (a->epoll_fd >= 0 && a->stop_fd >= 0 && watch_listeners(a) &&
        watch_source(a, a->stop_fd, &a->stop))
        return ST_OK;
    acceptor_fini(a);
    return ST_IO;
}

void
acceptor_fini(struct acceptor *a)
{
    if (a->epoll_fd >= 0)
        linger_fini(&a->linger);
    if (a->reserve_fd >= 0)
        (void)close(a->reserve_fd);
    if (a->stop_fd >= 0)
        (void)close(a->stop_fd);
    if (a->epoll_fd >= 0)
        (void)close(a->epoll_fd);
    a->reserve_fd = a->stop_fd = a->epoll_fd = -1;
}

void
acceptor_stop(struct acceptor *a)
{
    const uint64_t one = 1;

    if (write(a->stop_fd, &one, sizeof(one)) < 0)
        return; /* the counter is full: it was told often enough */
}

/* ------------------------------------------------------------------ connections */

/* Sends 503; with TLS no word can be said. */
static void
refuse_socket(struct acceptor *a, const struct listener *l, int fd,
              char id[REQUEST_ID_CAP])
{
    request_ids_next(&a->ids, id);
    counter_add(&a->refused, 1);
    if (l->kind != LISTEN_TLS)
        mhd_refuse_socket(fd, REFUSAL_BUSY, id);
}

/* Takes fd. */
static void
refuse_connection(struct acceptor *a, const struct listener *l, int fd)
{
    const struct log *log = a->shared->config->log;
    char id[REQUEST_ID_CAP];

    refuse_socket(a, l, fd, id);
    if (l->kind != LISTEN_TLS)
        linger_add(&a->linger, fd, a->now_ms);
    else
        (void)close(fd); /* nothing was written */
    if (!a->refusing)
        log_event(log, LOG_WARN, "refusing_connections",
                  LOG_I("max_connections", a->max_connections), LOG_S("request_id", id));
    else if (request_log_one_in(&a->shared->log) > 0)
        log_event(log, LOG_INFO, "connection_refused", LOG_I("status", 503),
                  LOG_S("request_id", id));
    a->refusing = true;
}

/* The worker with the fewest connections; NULL when all together have too many. */
static struct worker *
choose_worker(const struct acceptor *a)
{
    struct worker *best = NULL;
    size_t best_load = SIZE_MAX, total = 0;

    for (size_t i = 0; i < a->worker_count; i++) {
        size_t load =
            atomic_load_explicit(&a->workers[i].conns.load, memory_order_relaxed);

        total += load;
        if (load < best_load) {
            best_load = load;
            best = &a->workers[i];
        }
    }
    return total < a->max_connections ? best : NULL;
}

/* Hands an accepted socket to a worker, or refuses it. Takes fd. */
static void
assign_connection(struct acceptor *a, const struct listener *l, int fd,
                  const union peer *peer, socklen_t peer_len)
{
    struct worker *w = choose_worker(a);
    struct conn *c = NULL;

    if (w != NULL)
        c = mem_calloc(a->shared->config->mem, 1, sizeof(*c));
    if (c == NULL) {
        refuse_connection(a, l, fd);
        return;
    }
    if (a->refusing)
        log_event(a->shared->config->log, LOG_INFO, "accepting_again",
                  LOG_I("max_connections", a->max_connections));
    a->refusing = false;
    counter_add(&a->accepted, 1);
    c->fd = fd;
    c->kind = l->kind;
    c->check_host =
        l->loopback && (a->shared->config->open_to_all || l->kind == LISTEN_METRICS);
    c->peer = *peer;
    c->peer_len = peer_len < sizeof(*peer) ? peer_len : (socklen_t)sizeof(*peer);
    atomic_fetch_add_explicit(&w->conns.load, 1, memory_order_relaxed);
    c->source.kind = SOURCE_CONN;
    c->eventq = &w->loop.events;
    if (eventq_push(&w->loop.events, &c->event,
                    EVENT_ARRIVED)) /* c is the worker's now */
        eventq_wake(&w->loop.events);
}

static int
accept_one(const struct listener *l, union peer *peer, socklen_t *peer_len)
{
    memset(peer, 0, sizeof(*peer));
    *peer_len = sizeof(*peer);
    return accept4(l->fd, &peer->any, peer_len, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

/*
 * No descriptor or memory for another connection. The reserve makes room for one at a
 * time, which is told to come back; if that does not help, all listeners rest a moment.
 */
static void
refuse_for_want_of_descriptors(struct acceptor *a, const struct listener *l, int why)
{
    char id[REQUEST_ID_CAP];
    union peer peer;
    socklen_t peer_len;
    int fd = -1;

    if (!a->exhausted)
        log_event(a->shared->config->log, LOG_ERROR, "cannot_accept",
                  LOG_S("reason", strerror(why)));
    a->exhausted = true;
    if (a->reserve_fd >= 0) {
        (void)close(a->reserve_fd);
        a->reserve_fd = -1;
        fd = accept_one(l, &peer, &peer_len);
    }
    if (fd >= 0) {
        refuse_socket(a, l, fd, id);
        (void)close(fd); /* no lingering: the descriptor is needed */
    }
    open_reserve(a);
    for (size_t i = 0; i < a->listener_count && fd < 0; i++) {
        struct listener *paused = &a->listeners[i];

        if (paused->watched &&
            epoll_ctl(a->epoll_fd, EPOLL_CTL_DEL, paused->fd, NULL) == 0)
            paused->watched = false;
        a->paused = a->paused || !paused->watched;
    }
}

/* True if more clients may be waiting. */
static bool
accept_some(struct acceptor *a, const struct listener *l)
{
    for (int i = 0; i < ACCEPTS_IN_A_ROW; i++) {
        union peer peer;
        socklen_t peer_len;
        int fd = accept_one(l, &peer, &peer_len), why;

        if (fd >= 0) {
            if (a->exhausted)
                log_event(a->shared->config->log, LOG_INFO, "accepting_again",
                          LOG_S("listen", l->text));
            a->exhausted = false;
            assign_connection(a, l, fd, &peer, peer_len);
            continue;
        }
        why = errno;
        if (why == EMFILE || why == ENFILE || why == ENOBUFS || why == ENOMEM)
            refuse_for_want_of_descriptors(a, l, why);
        else if (why != EINTR && why != ECONNABORTED)
            return false; /* no client is waiting any more */
        if (a->paused)
            return false;
    }
    return true;
}

/* ------------------------------------------------------------------ the loop */

static int
sleep_ms(struct acceptor *a)
{
    int64_t next_ms = linger_expire(&a->linger, a->now_ms);

    if (a->paused && next_ms > a->now_ms + PAUSE_MS)
        next_ms = a->now_ms + PAUSE_MS;
    if (next_ms == INT64_MAX)
        return -1;
    next_ms -= a->now_ms;
    return next_ms > INT_MAX ? INT_MAX : (int)next_ms;
}

void
acceptor_run(struct acceptor *a)
{
    a->now_ms = clock_now_ms(&a->shared->real);
    for (;;) {
        struct epoll_event events[EVENTS];
        int n = epoll_wait(a->epoll_fd, events, EVENTS, sleep_ms(a));

        a->now_ms = clock_now_ms(&a->shared->real);
        if (a->paused)
            a->paused = !watch_listeners(a);
        for (int i = 0; i < n; i++) {
            struct source *source = events[i].data.ptr;

            if (source->kind == SOURCE_STOP)
                return;
            if (source->kind == SOURCE_LISTENER) /* the rest in the next round */
                (void)accept_some(a, container_of(source, struct listener, source));
            else
                linger_read(&a->linger, source);
        }
    }
}

void
acceptor_take_rest(struct acceptor *a)
{
    for (size_t i = 0; i < a->listener_count; i++) {
        size_t batches =
            a->listeners[i].inherited ? 0 : a->max_connections / ACCEPTS_IN_A_ROW + 1;

        while (batches-- > 0 && accept_some(a, &a->listeners[i]))
            continue;
    }
}
