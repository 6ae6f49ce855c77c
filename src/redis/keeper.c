#include "redis/keeper.h"

#include "claimd/base/thread.h"
#include "redis/ear.h"
#include "redis/private.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    REST_MOST_MS = 10000,
    MAP_MS = 30000 /* the map is looked at so often, though nobody was sent elsewhere */
};

struct keeper {
    struct redis_store *store; /* borrowed */
    struct ear ear;
    int64_t mapped_ms; /* when the map was looked at */
    _Atomic bool closing;
    int event_fd;
    pthread_t thread;
};

static int64_t
now_ms(void)
{
    return clock_stopwatch_ns() / 1000000;
}

void
keeper_wake(struct keeper *k)
{
    if (k != NULL)
        (void)eventfd_write(k->event_fd, 1);
}

static void
wake(void *arg)
{
    keeper_wake(arg);
}

static void
heard(void *arg, const struct store_queue *where, bool gone)
{
    struct keeper *k = arg;

    waiting_heard(k->store, where, gone);
}

/* Listens for those that somebody has begun to wait for. */
static void
take_fresh(struct keeper *k, int64_t now)
{
    struct store_queue where;
    struct buf text;

    buf_init(&text, k->store->config.mem);
    while (waiting_take_fresh(k->store, &text, &where))
        (void)ear_want(&k->ear, &where, now); /* or it is not heard, and looked at */
    buf_fini(&text);
}

static int64_t
sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t
look_at_map(struct keeper *k, int64_t now)
{
    struct cluster *c = &k->store->cluster;
    struct cluster_client *client;
    struct reason unused;

    if (c->map.single)
        return INT64_MAX;
    if (now - k->mapped_ms >= MAP_MS && (client = cluster_take(c)) != NULL) {
        (void)cluster_refresh(client, &unused);
        cluster_give(client);
        k->mapped_ms = now;
    }
    return k->mapped_ms + MAP_MS;
}

/* Does what there is to do; when there is more. */
static int64_t
go_round(struct keeper *k)
{
    const int64_t now = now_ms();
    int64_t next;

    take_fresh(k, now);
    next = waiting_call_due(k->store, now);
    next = sooner(next, delivery_keep(k->store));
    next = sooner(next, look_at_map(k, now));
    return sooner(next, ear_tend(&k->ear, now));
}

/* Rests until then, or until something is heard. */
static void
rest(struct keeper *k, int64_t until)
{
    struct pollfd fds[EAR_NODES + 1] = {{.fd = k->event_fd, .events = POLLIN}};
    uint16_t nodes[EAR_NODES];
    size_t count = ear_poll(&k->ear, fds + 1, nodes, EAR_NODES);
    int64_t wait_ms =
        sooner(until == INT64_MAX ? INT64_MAX : until - now_ms(), REST_MOST_MS);
    eventfd_t calls;

    if (poll(fds, count + 1, wait_ms < 0 ? 0 : (int)wait_ms) <= 0)
        return;
    if (fds[0].revents != 0)
        (void)eventfd_read(k->event_fd, &calls);
    for (size_t i = 0; i < count; i++)
        if (fds[i + 1].revents != 0)
            ear_read(&k->ear, nodes[i], now_ms());
}

static void *
thread_main(void *arg)
{
    struct keeper *k = arg;

    while (!atomic_load(&k->closing))
        rest(k, go_round(k));
    return NULL;
}

static void
free_keeper(struct keeper *k)
{
    ear_fini(&k->ear);
    if (k->event_fd >= 0)
        (void)close(k->event_fd);
    mem_free(k->store->config.mem, k);
}

enum status
keeper_start(struct redis_store *s)
{
    struct keeper *k = mem_calloc(s->config.mem, 1, sizeof(*k));
    enum status st;

    if (k == NULL)
        return ST_NO_MEMORY;
    k->store = s;
    k->mapped_ms = now_ms();
    ear_init(&k->ear, &s->cluster, &s->waiting.key);
    k->ear.heard = heard;
    k->ear.arg = k;
    k->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    waiting_keep(s, wake, k);
    st = k->event_fd < 0 ? ST_UNAVAILABLE : thread_start(&k->thread, thread_main, k);
    if (st == ST_OK)
        s->keeper = k;
    else
        free_keeper(k);
    return st;
}

void
keeper_end(struct keeper *k)
{
    if (k == NULL)
        return;
    atomic_store(&k->closing, true);
    keeper_wake(k);
    (void)pthread_join(k->thread, NULL);
    free_keeper(k);
}
