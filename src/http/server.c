#include "claimd/http/server.h"

#include "claimd/base/entropy.h"
#include "claimd/base/invariant.h"
#include "http/acceptor.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

struct server {
    struct metrics_source source;
    struct server_config config;
    struct listener listeners[LISTEN_MAX];
    size_t listener_count; /* open ones */
    struct acceptor acceptor;
    struct worker_shared shared;
    size_t worker_count; /* initialised ones */
    struct worker workers[];
};

/* Descriptors a server needs for itself and for each worker, with some to spare. */
enum { OWN_DESCRIPTORS = 24, WORKER_DESCRIPTORS = 4 };

/*
 * Divides what descriptors there are: a quarter, if it need be that much, for lingering
 * sockets, of which each event loop has its own; the rest for connections. A loop always
 * has one, and there is always one connection: when that is too much, accept4() tells.
 */
static void
share_descriptors(struct server *s, size_t available)
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

/* Daemons of libmicrohttpd that so many connections may need besides the first ones. */
static size_t
more_daemons(const struct server *s, size_t connections)
{
    return mhd_daemons(&s->config, connections) - mhd_daemons(&s->config, 0);
}

/*
 * Raises the limit of open files to what max_connections needs, and lowers
 * max_connections to what the limit allows.
 */
static void
fit_connections(struct server *s)
{
    const size_t wanted = s->config.max_connections, workers = s->config.workers;
    const size_t own = OWN_DESCRIPTORS + s->config.listen->count - 1 +
                       workers * (WORKER_DESCRIPTORS + mhd_daemons(&s->config, 0) - 1);
    const size_t need =
        own + (workers + 1) * LINGER_SLOTS + wanted + more_daemons(s, wanted);
    struct rlimit files;
    size_t taken;

    s->shared.linger_slots = LINGER_SLOTS;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= need)
        return;
    files.rlim_cur = files.rlim_max < need ? files.rlim_max : (rlim_t)need;
    if (setrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= need)
        return; /* when it could not be raised, accept4() tells in time */
    taken = own + more_daemons(s, files.rlim_cur);
    share_descriptors(s, files.rlim_cur > taken ? files.rlim_cur - taken : 0);
    if (s->config.max_connections < wanted)
        log_event(s->config.log, LOG_WARN, "max_connections_lowered",
                  LOG_I("max_connections", s->config.max_connections),
                  LOG_I("open_files", files.rlim_cur));
}

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

/* Ends the workers at once; returns the requests cut off. */
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
open_listeners(struct server *s, char *error, size_t error_cap)
{
    const struct server_config *config = &s->config;
    const struct listener_access access = {.mode = (mode_t)config->socket_mode,
                                           .group = (gid_t)config->socket_group};

    for (size_t i = 0; i < config->listen->count; i++) {
        enum status st = listener_open(&s->listeners[i], &config->listen->entries[i],
                                       &access, error, error_cap);

        if (st != ST_OK)
            return st;
        s->acceptor.listener_count = ++s->listener_count;
        s->shared.relieved = s->shared.relieved || s->listeners[i].inherited;
    }
    return ST_OK;
}

/* They are still there, closed. */
static void
close_listeners(struct server *s)
{
    for (size_t i = 0; i < s->listener_count; i++)
        listener_close(&s->listeners[i]);
}

enum status
server_open(const struct server_config *config, struct server **out, char *error,
            size_t error_cap)
{
    struct server *s =
        mem_calloc(config->mem, 1, sizeof(*s) + config->workers * sizeof(struct worker));
    char tag[37];
    enum status st;

    ENSURE(config->workers > 0 && config->workers < 255);
    if (s == NULL) {
        (void)snprintf(error, error_cap, "%s", status_text(ST_NO_MEMORY));
        return ST_NO_MEMORY;
    }
    s->config = *config;
    s->shared.done_fd = -1;
    fit_connections(s);
    s->shared.config = &s->config;
    s->shared.housekeeper =
        (struct housekeeper){.store = config->store, .clock = config->clock};
    trimmer_init(&s->shared.housekeeper.trimmer, config->mem);
    request_log_init(&s->shared.log, config->log, config->access_log_one_in);
    clock_init_system(&s->shared.real);
    uid_text(tag);
    s->acceptor = (struct acceptor){.shared = &s->shared,
                                    .listeners = s->listeners,
                                    .workers = s->workers,
                                    .worker_count = config->workers,
                                    .max_connections = s->config.max_connections,
                                    .epoll_fd = -1,
                                    .stop_fd = -1,
                                    .reserve_fd = -1};
    st = open_listeners(s, error, error_cap);
    if (st != ST_OK)
        goto fail;
    s->shared.done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    st = s->shared.done_fd < 0 ? ST_IO : acceptor_init(&s->acceptor, tag);
    if (st == ST_OK)
        st = start_workers(s, tag);
    if (st == ST_OK) {
        *out = s;
        return ST_OK;
    }
    (void)snprintf(error, error_cap, "cannot start: %s", status_text(st));

fail:
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
server_run(struct server *s)
{
    acceptor_run(&s->acceptor);
}

void
server_log_requests(struct server *s, uint64_t one_in)
{
    atomic_store_explicit(&s->shared.log.one_in, one_in, memory_order_relaxed);
}

void
server_stop(struct server *s)
{
    acceptor_stop(&s->acceptor);
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
            !atomic_load_explicit(&w->loop.over, memory_order_acquire))
            return false;
    }
    return true;
}

/* Waits until all workers have ended, the time is up, or server_stop() is called. */
static void
await_workers(struct server *s, int64_t drain_ms)
{
    struct pollfd fds[] = {{.fd = s->shared.done_fd, .events = POLLIN},
                           {.fd = s->acceptor.stop_fd, .events = POLLIN}};
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

    /* One call of server_stop() ended server_run() and is used up; another ends this. */
    (void)eventfd_read(s->acceptor.stop_fd, &calls);
    acceptor_take_rest(&s->acceptor);
    close_listeners(s);
    atomic_store(&s->shared.draining, true);
    server_wake(s);
    await_workers(s, drain_ms);
    cut = end_workers(s);
    (void)request_log_settle(&s->shared.log, INT64_MAX); /* no more will come */
    return cut;
}

static void
write_metrics(struct metrics_source *source, struct exposition *x)
{
    const struct server *s = container_of(source, struct server, source);
    struct http_counts counts = {.workers = s->config.workers,
                                 .max_connections = s->config.max_connections,
                                 .max_waiters = s->config.max_waiters,
                                 .accepted = counter_read(&s->acceptor.accepted),
                                 .refused = counter_read(&s->acceptor.refused)};
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
server_free(struct server *s)
{
    if (s == NULL)
        return;
    (void)end_workers(s);
    for (size_t i = 0; i < s->worker_count; i++)
        worker_fini(&s->workers[i]);
    acceptor_fini(&s->acceptor);
    close_listeners(s);
    if (s->shared.done_fd >= 0)
        (void)close(s->shared.done_fd);
    request_log_fini(&s->shared.log);
    mem_free(s->config.mem, s);
}
