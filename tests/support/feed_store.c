#include "support/feed_store.h"

#include <pthread.h>
#include <stdlib.h>

struct entry {
    struct store_delivery delivery;
    struct feed_result notification;
    bool leased, over;
    int64_t due_ms;
};

struct feed {
    struct store store; /* first: feed_of() casts */
    struct store_log log;
    const struct clock *clock;
    pthread_mutex_t lock; /* guards all members below */
    pthread_cond_t moved;
    struct store_listener *due, *durable;
    uint64_t durable_up_to;
    bool rest_lost;
    size_t fails;
    enum status failure;
    size_t count, at, leased, ever_leased;
    struct entry entries[FEED_MOST];
};

static struct feed *
feed_of(struct store *s)
{
    return (struct feed *)s;
}

static enum status
feed_next(struct store *s, struct store_op *op, struct store_delivery *out)
{
    struct feed *f = feed_of(s);
    enum status st = ST_NOT_FOUND;

    pthread_mutex_lock(&f->lock);
    if (f->fails > 0) {
        f->fails--;
        st = f->failure;
    }
    for (size_t i = 0; st == ST_NOT_FOUND && i < f->count; i++) {
        struct entry *e = &f->entries[(f->at + i) % f->count];

        if (e->leased || e->over || e->due_ms > op->now_ms)
            continue;
        e->leased = true;
        f->leased++;
        f->ever_leased++;
        f->at = (f->at + i + 1) % f->count;
        *out = e->delivery;
        out->store = s;
        out->failed = e->notification.failed;
        st = ST_OK;
    }
    pthread_cond_broadcast(&f->moved);
    pthread_mutex_unlock(&f->lock);
    return st;
}

static void
feed_done(struct store *s, struct store_op *op, struct store_delivery *delivery,
          enum store_outcome outcome, int64_t again_ms)
{
    struct feed *f = feed_of(s);
    struct entry *e = &f->entries[delivery->ordinal];

    (void)op;
    pthread_mutex_lock(&f->lock);
    if (!e->leased)
        abort(); /* the notifier did not lease it */
    e->leased = false;
    f->leased--;
    e->due_ms = again_ms;
    e->over = outcome != STORE_OUTCOME_FAILED && outcome != STORE_OUTCOME_BACKED_OFF;
    e->notification.failed += outcome == STORE_OUTCOME_FAILED;
    e->notification.times++;
    e->notification.outcome = outcome;
    e->notification.again_ms = again_ms;
    pthread_cond_broadcast(&f->moved);
    pthread_mutex_unlock(&f->lock);
    if (!e->over && again_ms <= clock_now_ms(f->clock))
        feed_store_notify(s);
}

static void
feed_watch_due(struct store *s, struct store_listener *listener)
{
    struct feed *f = feed_of(s);

    pthread_mutex_lock(&f->lock);
    f->due = listener;
    pthread_mutex_unlock(&f->lock);
}

static enum store_durability
feed_durability(struct store_log *log, uint64_t lsn)
{
    struct feed *f = container_of(log, struct feed, log);
    enum store_durability durability;

    pthread_mutex_lock(&f->lock);
    durability = lsn <= f->durable_up_to ? STORE_DURABLE
                 : f->rest_lost          ? STORE_LOST
                                         : STORE_PENDING;
    pthread_mutex_unlock(&f->lock);
    return durability;
}

static void
feed_listen(struct store_log *log, struct store_listener *listener)
{
    struct feed *f = container_of(log, struct feed, log);

    pthread_mutex_lock(&f->lock);
    f->durable = listener;
    pthread_mutex_unlock(&f->lock);
}

static void
feed_unlisten(struct store_log *log, struct store_listener *listener)
{
    (void)listener;
    feed_listen(log, NULL);
}

static void
feed_close(struct store *s)
{
    struct feed *f = feed_of(s);

    if (f->leased > 0 || f->due != NULL || f->durable != NULL)
        abort();
    pthread_cond_destroy(&f->moved);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

static void
feed_housekeep(struct store *s, int64_t now_ms, int64_t *next_ms)
{
    struct feed *f = feed_of(s);

    *next_ms = INT64_MAX;
    pthread_mutex_lock(&f->lock);
    for (size_t i = 0; i < f->count; i++) {
        const struct entry *e = &f->entries[i];

        if (!e->leased && !e->over && e->due_ms > now_ms && e->due_ms < *next_ms)
            *next_ms = e->due_ms;
    }
    pthread_mutex_unlock(&f->lock);
}

static const struct store_vtable ops = {
    .housekeep = feed_housekeep,
    .delivery_next = feed_next,
    .delivery_done = feed_done,
    .delivery_watch = feed_watch_due,
    .close = feed_close,
};

struct store *
feed_store_open(const struct clock *clock)
{
    struct feed *f = calloc(1, sizeof(*f));

    if (f == NULL)
        abort();
    f->store.vtable = &ops;
    f->log = (struct store_log){
        .durability = feed_durability, .listen = feed_listen, .unlisten = feed_unlisten};
    f->clock = clock;
    f->durable_up_to = UINT64_MAX;
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->moved, NULL);
    return &f->store;
}

struct store_log *
feed_store_log(struct store *s)
{
    return &feed_of(s)->log;
}

static void
notify(struct feed *f, struct store_listener *listener)
{
    struct store_wakeup *wakeup =
        listener == NULL ? NULL : listener->notify(listener, STORE_READY);

    if (wakeup != NULL)
        wakeup->fire(wakeup);
    (void)f;
}

void
feed_store_notify(struct store *s)
{
    struct feed *f = feed_of(s);

    pthread_mutex_lock(&f->lock);
    notify(f, f->due);
    pthread_mutex_unlock(&f->lock);
}

size_t
feed_store_add(struct store *s, const struct store_delivery *delivery)
{
    struct feed *f = feed_of(s);
    size_t which;

    pthread_mutex_lock(&f->lock);
    if (f->count == FEED_MOST)
        abort();
    which = f->count++;
    f->entries[which] = (struct entry){.delivery = *delivery};
    f->entries[which].delivery.ordinal = which;
    notify(f, f->due);
    pthread_mutex_unlock(&f->lock);
    return which;
}

struct feed_result
feed_store_await(struct store *s, size_t which, size_t times)
{
    struct feed *f = feed_of(s);
    struct feed_result notification;

    pthread_mutex_lock(&f->lock);
    while (f->entries[which].notification.times < times)
        pthread_cond_wait(&f->moved, &f->lock);
    notification = f->entries[which].notification;
    pthread_mutex_unlock(&f->lock);
    return notification;
}

struct feed_result
feed_store_result(struct store *s, size_t which)
{
    return feed_store_await(s, which, 0);
}

void
feed_store_await_leased(struct store *s, size_t count)
{
    struct feed *f = feed_of(s);

    pthread_mutex_lock(&f->lock);
    while (f->ever_leased < count)
        pthread_cond_wait(&f->moved, &f->lock);
    pthread_mutex_unlock(&f->lock);
}

void
feed_store_settle(struct store *s, uint64_t durable, bool rest_lost)
{
    struct feed *f = feed_of(s);

    pthread_mutex_lock(&f->lock);
    f->durable_up_to = durable;
    f->rest_lost = rest_lost;
    notify(f, f->durable);
    pthread_mutex_unlock(&f->lock);
}

size_t
feed_store_leased(struct store *s)
{
    struct feed *f = feed_of(s);
    size_t leased;

    pthread_mutex_lock(&f->lock);
    leased = f->leased;
    pthread_mutex_unlock(&f->lock);
    return leased;
}

void
feed_store_fail(struct store *s, size_t times, enum status st)
{
    struct feed *f = feed_of(s);

    pthread_mutex_lock(&f->lock);
    f->fails = times;
    f->failure = st;
    pthread_mutex_unlock(&f->lock);
}
