#include "claimd/http/server.h"

#include "claimd/base/entropy.h"
#include "claimd/base/invariant.h"
#include "http/listener.h"
#include "http/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

/*
 * A connection beyond the limit gets 503 with Retry-After and is closed, because a client
 * in a backlog learns nothing. If the process runs out of descriptors, the server closes
 * its reserve descriptor for the moment that this response takes.
 */
struct server {
    struct metrics_source source;
    struct server_config config;
    struct listener listeners[LISTEN_MAX];
    size_t listener_count; /* initialised */
    struct worker_shared shared;
    /* Of the thread that accepts: */
    struct source stop;
    int epoll_fd, stop_fd; /* owned */
    int reserve_fd;        /* owned; -1 while it is closed */
    bool refusing;         /* the last connection was beyond the limit */
    bool exhausted;        /* accept4() failed without descriptors or memory */
    bool paused;           /* listeners are out of the epoll set, for PAUSE_MS */
    struct counter accepted, refused; /* connections; for any thread to read */
    int64_t now_ms;
    struct request_ids ids;
    struct linger_set linger;
    size_t worker_count; /* initialised */
    struct worker workers[];
};

/* Descriptors of the server and of each worker, with some to spare. */
enum { OWN_DESCRIPTORS = 24, WORKER_DESCRIPTORS = 4 };

enum {
    EVENTS = 32,
    ACCEPTS_IN_A_ROW = 64,
    PAUSE_MS = 100,       /* until the next try without descriptors */
    ACCEPTOR_SOURCE = 255 /* in request ids; workers count from 0 */
};

/*
 * Divides the available descriptors: up to a quarter for the lingering sockets of the
 * event loops, the rest for connections. Each loop has at least one, and so have the
 * connections. If that is too much, accept4() fails.
 */
static void
divide_descriptors(struct server *s, size_t available)
{
    const size_t loops = s->config.workers + 1;
    size_t linger = available / 4, slots;

    if (linger > loops * LINGER_SLOTS)
        linger = loops * LINGER_SLOTS;
    if (s->config.max_connections > available - linger)
        s->config.max_connections = available > linger ? available - linger : 1;
    slots = available > s->config.max_connections
                ? (available - s->config.max_connections) / loops
                : 0;
    s->shared.linger_slots = slots < 1 ? 1 : slots < LINGER_SLOTS ? slots : LINGER_SLOTS;
}

/* Daemons of libmicrohttpd that so many connections may need besides the initial ones. */
static size_t
extra_daemons(const struct server *s, size_t connections)
{
    return mhd_daemons(&s->config, connections) - mhd_daemons(&s->config, 0);
}

/*
 * Raises the limit of open files to what max_connections needs, and lowers
 * max_connections to what the limit allows.
 */
static void
fit_connection_limit(struct server *s)
{
    const size_t wanted = s->config.max_connections, workers = s->config.workers;
    const size_t own = OWN_DESCRIPTORS + s->config.listen->count - 1 +
                       workers * (WORKER_DESCRIPTORS + mhd_daemons(&s->config, 0) - 1);
    const size_t need =
        own + (workers + 1) * LINGER_SLOTS + wanted + extra_daemons(s, wanted);
    struct rlimit files;
    size_t taken;

    s->shared.linger_slots = LINGER_SLOTS;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= need)
        return;
    files.rlim_cur = files.rlim_max < need ? files.rlim_max : (rlim_t)need;
    if (setrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= need)
        return; /* if the limit is still too low, accept4() fails in time */
    taken = own + extra_daemons(s, files.rlim_cur);
    divide_descriptors(s, files.rlim_cur > taken ? files.rlim_cur - taken : 0);
    if (s->config.max_connections < wanted)
        log_event(s->config.log, LOG_WARN, "max_connections_lowered",
                  LOG_I("max_connections", s->config.max_connections),
                  LOG_I("open_files", files.rlim_cur));
}

/* ------------------------------------------------------------------ accepting */

static void
open_reserve(struct server *s)
{
    if (s->reserve_fd < 0)
        s->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static bool
watch_source(struct server *s, int fd, struct source *source)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = source};

    return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* Adds the listeners to the epoll set. False if one could not be added. */
static bool
watch_listeners(struct server *s)
{
    bool all = true;

    for (size_t i = 0; i < s->listener_count; i++) {
        struct listener *l = &s->listeners[i];

        l->watched = l->watched || watch_source(s, l->fd, &l->source);
        all = all && l->watched;
    }
    return all;
}

/* ST_IO without descriptors. */
static enum status
open_acceptor(struct server *s, const char *tag)
{
    s->stop.kind = SOURCE_STOP;
    request_ids_init(&s->ids, tag, ACCEPTOR_SOURCE);
    s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    s->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
    linger_init(&s->linger, s->epoll_fd, s->shared.linger_slots);
    open_reserve(s);
    return s->epoll_fd >= 0 && s->stop_fd >= 0 && watch_listeners(s) &&
                   watch_source(s, s->stop_fd, &s->stop)
               ? ST_OK
               : ST_IO;
}

/* Sends 503, unless the listener has TLS. */
static void
refuse_socket(struct server *s, const struct listener *l, int fd, char id[REQUEST_ID_CAP])
{
    request_ids_next(&s->ids, id);
    counter_add(&s->refused, 1);
    if (l->kind != LISTEN_TLS)
        mhd_refuse_socket(fd, REFUSAL_BUSY, id, &s->shared.real);
}

/* Owns fd. */
static void
refuse_connection(struct server *s, const struct listener *l, int fd)
{
    const struct log *log = s->config.log;
    char id[REQUEST_ID_CAP];

    refuse_socket(s, l, fd, id);
    if (l->kind != LISTEN_TLS)
        linger_add(&s->linger, fd, s->now_ms);
    else
        (void)close(fd); /* nothing was written */
    if (!s->refusing)
        log_event(log, LOG_WARN, "refusing_connections",
                  LOG_I("max_connections", s->config.max_connections),
                  LOG_S("request_id", id));
    else if (request_log_one_in(&s->shared.log) > 0)
        log_event(log, LOG_INFO, "connection_refused", LOG_I("status", 503),
                  LOG_S("request_id", id));
    s->refusing = true;
}

/* The worker with the fewest connections. NULL if all together have reached
 * max_connections. */
static struct worker *
choose_worker(struct server *s)
{
    struct worker *best = NULL;
    size_t best_load = SIZE_MAX, total = 0;

    for (size_t i = 0; i < s->worker_count; i++) {
        size_t load =
            atomic_load_explicit(&s->workers[i].conns.load, memory_order_relaxed);

        total += load;
        if (load < best_load) {
            best_load = load;
            best = &s->workers[i];
        }
    }
    return total < s->config.max_connections ? best : NULL;
}

/* Hands an accepted socket to a worker, or refuses it. Owns fd. */
static void
assign_connection(struct server *s, const struct listener *l, int fd,
                  const union peer *peer, socklen_t peer_len)
{
    struct worker *w = choose_worker(s);
    unsigned char address[ADDRESS_BYTES];
    struct conn *c = NULL;

    if (w != NULL)
        c = mem_calloc(s->config.mem, 1, sizeof(*c));
    if (c == NULL) {
        refuse_connection(s, l, fd);
        return;
    }
    if (s->refusing)
        log_event(s->config.log, LOG_INFO, "accepting_again",
                  LOG_I("max_connections", s->config.max_connections));
    s->refusing = false;
    counter_add(&s->accepted, 1);
    c->fd = fd;
    c->kind = l->kind;
    c->check_host = l->loopback && (s->config.open_to_all || l->kind == LISTEN_METRICS);
    c->peer = *peer;
    c->peer_len = peer_len < sizeof(*peer) ? peer_len : (socklen_t)sizeof(*peer);
    if (address_of_socket(&c->peer.any, c->peer_len, address))
        address_write(address, c->address);
    c->from_proxy = s->config.proxies != NULL &&
                    proxies_have(s->config.proxies, &c->peer.any, c->peer_len);
    atomic_fetch_add_explicit(&w->conns.load, 1, memory_order_relaxed);
    c->source.kind = SOURCE_CONN;
    c->eventq = &w->loop.events;
    /* From here on the worker owns c. */
    if (eventq_push(&w->loop.events, &c->event, EVENT_ARRIVED))
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
 * There is no descriptor or no memory for another connection. With the reserve descriptor
 * the server sends one client 503. If that fails, too, it pauses all listeners.
 */
static void
refuse_without_descriptors(struct server *s, const struct listener *l, int why)
{
    char id[REQUEST_ID_CAP];
    union peer peer;
    socklen_t peer_len;
    int fd = -1;

    if (!s->exhausted)
        log_event(s->config.log, LOG_ERROR, "cannot_accept",
                  LOG_S("reason", strerror(why)));
    s->exhausted = true;
    if (s->reserve_fd >= 0) {
        (void)close(s->reserve_fd);
        s->reserve_fd = -1;
        fd = accept_one(l, &peer, &peer_len);
    }
    if (fd >= 0) {
        refuse_socket(s, l, fd, id);
        (void)close(fd); /* no lingering: the descriptor is needed */
    }
    open_reserve(s);
    for (size_t i = 0; i < s->listener_count && fd < 0; i++) {
        struct listener *paused = &s->listeners[i];

        if (paused->watched &&
            epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, paused->fd, NULL) == 0)
            paused->watched = false;
        s->paused = s->paused || !paused->watched;
    }
}

/* True if more clients may be waiting. */
static bool
accept_some(struct server *s, const struct listener *l)
{
    for (int i = 0; i < ACCEPTS_IN_A_ROW; i++) {
        union peer peer;
        socklen_t peer_len;
        int fd = accept_one(l, &peer, &peer_len), why;

        if (fd >= 0) {
            if (s->exhausted)
                log_event(s->config.log, LOG_INFO, "accepting_again",
                          LOG_S("listen", l->text));
            s->exhausted = false;
            assign_connection(s, l, fd, &peer, peer_len);
            continue;
        }
        why = errno;
        if (why == EMFILE || why == ENFILE || why == ENOBUFS || why == ENOMEM)
            refuse_without_descriptors(s, l, why);
        else if (why != EINTR && why != ECONNABORTED)
            return false; /* the backlog is empty */
        if (s->paused)
            return false;
    }
    return true;
}

void
server_run(struct server *s)
{
    s->now_ms = clock_now_ms(&s->shared.real);
    for (;;) {
        struct epoll_event events[EVENTS];
        int64_t sleep_ms = linger_expire(&s->linger, s->now_ms) - s->now_ms;
        int n;

        if (s->paused && sleep_ms > PAUSE_MS)
            sleep_ms = PAUSE_MS;
        n = epoll_wait(s->epoll_fd, events, EVENTS,
                       sleep_ms > INT_MAX ? -1 : (int)sleep_ms);
        s->now_ms = clock_now_ms(&s->shared.real);
        if (s->paused)
            s->paused = !watch_listeners(s);
        for (int i = 0; i < n; i++) {
            struct source *source = events[i].data.ptr;

            if (source->kind == SOURCE_STOP)
                return;
            if (source->kind == SOURCE_LISTENER) /* the next round accepts the rest */
                (void)accept_some(s, container_of(source, struct listener, source));
            else
                linger_read(&s->linger, source);
        }
    }
}

/* ------------------------------------------------------------------ life */

static enum status
start_workers(struct server *s, const char *tag)
{
    enum status st = ST_OK;

    for (size_t i = 0; i < s->config.workers; i++) {
        st = worker_init(&s->workers[i], &s->shared, tag, (unsigned)i);
        if (st != ST_OK)
            return st;
        s->worker_count++;
    }
    for (size_t i = 0; i < s->worker_count && st == ST_OK; i++)
        st = worker_start(&s->workers[i]);
    return st;
}

/* Ends the workers at once. Returns how many requests were cut off. */
static size_t
end_workers(struct server *s)
{
    size_t cut = 0;

    atomic_store(&s->shared.draining, true);
    atomic_store(&s->shared.cut, true);
    server_wake(s);
    for (size_t i = 0; i < s->worker_count; i++) {
        worker_join(&s->workers[i]);
        cut += s->workers[i].cut_off;
    }
    return cut;
}

static enum status
open_listeners(struct server *s, struct reason *why)
{
    const struct server_config *config = &s->config;
    const struct listener_access access = {.mode = (mode_t)config->socket_mode,
                                           .group = (gid_t)config->socket_group};

    for (size_t i = 0; i < config->listen->count; i++) {
        enum status st = listener_open(&s->listeners[i], &config->listen->entries[i],
                                       &access, config->request_seconds * 1000, why);

        if (st != ST_OK)
            return st;
        ENSURE(s->listeners[i].fd >= 0);
        s->listener_count++;
        s->shared.has_successor = s->shared.has_successor || s->listeners[i].inherited;
    }
    return ST_OK;
}

static void
close_listeners(struct server *s)
{
    for (size_t i = 0; i < s->listener_count; i++)
        listener_close(&s->listeners[i]);
}

enum status
server_open(const struct server_config *config, struct server **out, struct reason *why)
{
    struct server *s =
        mem_calloc(config->mem, 1, sizeof(*s) + config->workers * sizeof(struct worker));
    char tag[37];
    enum status st;

    ENSURE(config->workers > 0 && config->workers < 255);
    if (s == NULL)
        return reason_give(why, ST_NO_MEMORY, "%s", status_text(ST_NO_MEMORY));
    s->config = *config;
    s->shared.done_fd = -1;
    fit_connection_limit(s);
    s->shared.config = &s->config;
    s->shared.housekeeper =
        (struct housekeeper){.store = config->store, .clock = config->clock};
    trimmer_init(&s->shared.housekeeper.trimmer, config->mem);
    request_log_init(&s->shared.log, config->log, config->access_log_one_in);
    s->shared.log.proxies = config->proxies;
    clock_init_system(&s->shared.real);
    uid_text(tag);
    s->epoll_fd = s->stop_fd = s->reserve_fd = -1;
    st = open_listeners(s, why);
    if (st != ST_OK)
        goto fail;
    s->shared.done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    st = s->shared.done_fd < 0 ? ST_IO : open_acceptor(s, tag);
    if (st == ST_OK)
        st = start_workers(s, tag);
    if (st == ST_OK) {
        *out = s;
        return ST_OK;
    }
    (void)reason_give(why, st, "cannot start: %s", status_text(st));

fail:
    server_close(s);
    server_free(s);
    return st;
}

size_t
server_listener_count(const struct server *s)
{
    return s->listener_count;
}

const char *
server_address(const struct server *s, size_t index)
{
    ENSURE(index < s->listener_count);
    return s->listeners[index].text;
}

enum listen_kind
server_listen_kind(const struct server *s, size_t index)
{
    ENSURE(index < s->listener_count);
    return s->listeners[index].kind;
}

void
server_log_requests(struct server *s, uint64_t one_in)
{
    atomic_store_explicit(&s->shared.log.one_in, one_in, memory_order_relaxed);
}

void
server_stop(struct server *s)
{
    (void)eventfd_write(s->stop_fd, 1); /* fails only when the counter is full */
}

void
server_wake(struct server *s)
{
    for (size_t i = 0; i < s->worker_count; i++)
        eventq_wake(&s->workers[i].loop.events);
}

void
server_ask_round(struct server *s)
{
    for (size_t i = 0; i < s->worker_count; i++) {
        struct worker *w = &s->workers[i];

        w->loop.asked_round =
            atomic_load_explicit(&w->loop.seen_round, memory_order_acquire);
        eventq_wake(&w->loop.events);
    }
}

bool
server_went_round(const struct server *s)
{
    for (size_t i = 0; i < s->worker_count; i++) {
        const struct worker *w = &s->workers[i];

        if (atomic_load_explicit(&w->loop.seen_round, memory_order_acquire) ==
                w->loop.asked_round &&
            !atomic_load_explicit(&w->loop.ended, memory_order_acquire))
            return false;
    }
    return true;
}

/* Waits until all workers have ended, the time is up, or server_stop() is called. */
static void
await_workers(struct server *s, int64_t drain_ms)
{
    struct pollfd fds[] = {{.fd = s->shared.done_fd, .events = POLLIN},
                           {.fd = s->stop_fd, .events = POLLIN}};
    int64_t end_ms = clock_now_ms(&s->shared.real) + drain_ms;
    size_t left = s->worker_count;
    eventfd_t ended; /* workers, since it was read last */

    while (left > 0) {
        int64_t wait_ms = end_ms - clock_now_ms(&s->shared.real);

        if (wait_ms <= 0 || (poll(fds, 2, (int)wait_ms) < 0 && errno != EINTR))
            return;
        if (fds[1].revents != 0)
            return;
        if (eventfd_read(s->shared.done_fd, &ended) == 0)
            left -= (size_t)ended;
    }
}

size_t
server_drain(struct server *s, int64_t drain_ms)
{
    eventfd_t calls;
    size_t cut;

    /* Clears the server_stop() that ended server_run(). Another one ends this drain. */
    (void)eventfd_read(s->stop_fd, &calls);
    /*
     * Accepts the clients in the backlogs. Otherwise close() would reset their
     * connections, and lose their requests. In the backlog of an inherited socket,
     * clients wait for the next process.
     */
    for (size_t i = 0; i < s->listener_count; i++) {
        size_t batches = s->listeners[i].inherited
                             ? 0
                             : s->config.max_connections / ACCEPTS_IN_A_ROW + 1;

        while (batches-- > 0 && accept_some(s, &s->listeners[i]))
            continue;
    }
    close_listeners(s);
    atomic_store(&s->shared.draining, true);
    server_wake(s);
    await_workers(s, drain_ms);
    cut = end_workers(s);
    (void)request_log_expire(&s->shared.log, INT64_MAX);
    return cut;
}

static void
write_metrics(struct metrics_source *source, struct exposition *x)
{
    const struct server *s = container_of(source, struct server, source);
    struct http_counts counts = {.workers = s->config.workers,
                                 .max_connections = s->config.max_connections,
                                 .max_waiters = s->config.max_waiters,
                                 .unloads = s->config.unloads,
                                 .accepted = counter_read(&s->accepted),
                                 .refused = counter_read(&s->refused)};
    struct traffic sum;

    traffic_init(&sum, s->config.mem);
    for (size_t i = 0; i < s->config.workers; i++) {
        const struct worker *w = &s->workers[i];

        for (size_t phase = 0; phase < CONN_PHASES; phase++)
            counts.connections[phase] += counter_read(&w->conns.table.counts[phase]);
        for (size_t state = 0; state < EXCHANGE_STATES; state++)
            counts.suspended[state] += counter_read(&w->suspended.counts[state]);
        traffic_merge(&sum, &w->traffic);
    }
    http_metrics_write(&counts, &sum, x);
    traffic_fini(&sum);
}

void
server_measure(struct server *s, struct metrics *metrics)
{
    s->source.write = write_metrics;
    metrics_add(metrics, &s->source);
}

void
server_close(struct server *s)
{
    if (s == NULL)
        return;
    (void)end_workers(s);
    for (size_t i = 0; i < s->worker_count; i++)
        worker_close(&s->workers[i]);
}

void
server_free(struct server *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->worker_count; i++)
        worker_fini(&s->workers[i]);
    if (s->epoll_fd >= 0) {
        if (s->linger.slot_count > 0)
            linger_fini(&s->linger);
        (void)close(s->epoll_fd);
    }
    if (s->reserve_fd >= 0)
        (void)close(s->reserve_fd);
    if (s->stop_fd >= 0)
        (void)close(s->stop_fd);
    close_listeners(s);
    if (s->shared.done_fd >= 0)
        (void)close(s->shared.done_fd);
    request_log_fini(&s->shared.log);
    mem_free(s->config.mem, s);
}
