#include "support/slow_store.h"

#include "claimd/base/fiber.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct slow {
    struct store store; /* first: the seam's handle */
    struct store *inside;
    struct store_log log;
    pthread_mutex_t lock; /* guards what follows up to `listeners` */
    pthread_cond_t moved;
    bool shut, slices, stats_pass;
    size_t standing, passes;
    struct list parked; /* of those that stand there, fibers that have not been woken */
    struct list listeners;
    _Atomic uint64_t lsn, durable, flushed;
    _Atomic bool lost;
};

static struct slow *
slow_of(const struct store *s)
{
    return (struct slow *)(uintptr_t)s;
}

/* ---------------------------------------------------------------------- the gate */

struct parked {
    struct list link;
    struct fiber *fiber;
};

/* Something has moved. */
static void
notify(struct slow *w)
{
    struct list *link;

    pthread_cond_broadcast(&w->moved);
    while ((link = list_pop(&w->parked)) != NULL)
        fiber_wake(container_of(link, struct parked, link)->fiber);
}

static void
stand(struct slow *w)
{
    struct parked mine = {.fiber = fiber_current()};

    if (mine.fiber == NULL) {
        pthread_cond_wait(&w->moved, &w->lock);
        return;
    }
    list_add_before(&w->parked, &mine.link);
    pthread_mutex_unlock(&w->lock);
    fiber_park(mine.fiber);
    pthread_mutex_lock(&w->lock);
}

/* The engine; NULL if the operation is not finished yet. */
static struct store *
enter(struct store *s)
{
    struct slow *w = slow_of(s);

    pthread_mutex_lock(&w->lock);
    if (w->shut && w->slices) {
        pthread_mutex_unlock(&w->lock);
        return NULL;
    }
    if (w->shut) {
        w->standing++;
        pthread_cond_broadcast(&w->moved);
        while (w->shut && w->passes == 0)
            stand(w);
        if (w->shut)
            w->passes--;
        w->standing--;
        pthread_cond_broadcast(&w->moved);
    }
    pthread_mutex_unlock(&w->lock);
    return w->inside;
}

static void
set_shut(struct store *s, bool shut)
{
    struct slow *w = slow_of(s);

    pthread_mutex_lock(&w->lock);
    w->shut = shut;
    w->stats_pass = false;
    w->passes = 0;
    notify(w);
    pthread_mutex_unlock(&w->lock);
}

void
slow_store_shut(struct store *s)
{
    set_shut(s, true);
}

void
slow_store_unshut(struct store *s)
{
    set_shut(s, false);
}

void
slow_store_await(struct store *s, size_t count)
{
    struct slow *w = slow_of(s);

    pthread_mutex_lock(&w->lock);
    while (w->standing < count + w->passes) /* a caller with a pass still stands */
        pthread_cond_wait(&w->moved, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

void
slow_store_let_one(struct store *s)
{
    struct slow *w = slow_of(s);

    pthread_mutex_lock(&w->lock);
    w->passes++;
    notify(w);
    pthread_mutex_unlock(&w->lock);
}

void
slow_store_let_stats(struct store *s)
{
    struct slow *w = slow_of(s);

    pthread_mutex_lock(&w->lock);
    w->stats_pass = true;
    pthread_mutex_unlock(&w->lock);
}

static bool
stats_pass(struct store *s)
{
    struct slow *w = slow_of(s);
    bool pass;

    pthread_mutex_lock(&w->lock);
    pass = w->stats_pass;
    pthread_mutex_unlock(&w->lock);
    return pass;
}

/* ---------------------------------------------------------------------- the log */

static enum status
grant(struct store_log *log, enum store_change_kind kind, bool checkpoint, size_t count,
      size_t bytes, size_t *reserved)
{
    (void)log, (void)kind, (void)checkpoint, (void)count, (void)bytes, (void)reserved;
    return ST_OK;
}

static uint64_t
log_change(struct store_log *log, struct store_change *change, size_t *reserved)
{
    struct slow *w = container_of(log, struct slow, log);
    uint64_t lsn = 0;

    (void)reserved;
    for (; change != NULL; change = change->then)
        if (change->kind < STORE_CHANGE_EXPIRED)
            lsn = atomic_fetch_add(&w->lsn, 1) + 1;
    return lsn;
}

struct store_log *
slow_store_log(struct store *s)
{
    return &slow_of(s)->log;
}

uint64_t
slow_store_flushed(struct store *s)
{
    return atomic_load(&slow_of(s)->flushed);
}

uint64_t
slow_store_lsn(struct store *s)
{
    return atomic_load(&slow_of(s)->lsn);
}

size_t
slow_store_notify(struct store *s)
{
    struct store_wakeup *wakeups[64];
    struct slow *w = slow_of(s);
    size_t count = 0;

    pthread_mutex_lock(&w->lock);
    for (struct list *at = w->listeners.next; at != &w->listeners; at = at->next) {
        struct store_listener *listener = container_of(at, struct store_listener, link);
        struct store_wakeup *wakeup = listener->notify(listener, STORE_READY);

        if (wakeup != NULL && count < sizeof(wakeups) / sizeof(wakeups[0]))
            wakeups[count++] = wakeup;
    }
    pthread_mutex_unlock(&w->lock);
    for (size_t i = 0; i < count; i++)
        wakeups[i]->fire(wakeups[i]);
    return count;
}

void
slow_store_make_durable(struct store *s, uint64_t lsn)
{
    atomic_store(&slow_of(s)->durable, lsn);
    (void)slow_store_notify(s);
}

void
slow_store_lose(struct store *s)
{
    atomic_store(&slow_of(s)->lost, true);
    (void)slow_store_notify(s);
}

static enum store_durability
slow_durability(struct store_log *log, uint64_t lsn)
{
    struct slow *w = container_of(log, struct slow, log);

    if (lsn <= atomic_load(&w->durable))
        return STORE_DURABLE;
    return atomic_load(&w->lost) ? STORE_LOST : STORE_PENDING;
}

static void
slow_flush(struct store_log *log)
{
    struct slow *w = container_of(log, struct slow, log);

    atomic_store(&w->flushed, atomic_load(&w->lsn)); /* tests say what is durable */
}

static void
slow_listen(struct store_log *log, struct store_listener *listener)
{
    struct slow *w = container_of(log, struct slow, log);

    pthread_mutex_lock(&w->lock);
    list_add_before(&w->listeners, &listener->link);
    pthread_mutex_unlock(&w->lock);
}

static void
slow_unlisten(struct store_log *log, struct store_listener *listener)
{
    struct slow *w = container_of(log, struct slow, log);

    pthread_mutex_lock(&w->lock);
    list_remove(&listener->link);
    pthread_mutex_unlock(&w->lock);
}

/* ---------------------------------------------------------------------- operations */

static struct store *
wrapped_store(struct store *s)
{
    return slow_of(s)->inside;
}

#define WRAP(name, parameters, ...)                                                      \
    static enum status wrapped_##name parameters                                         \
    {                                                                                    \
        struct store *inside = enter(s);                                                 \
                                                                                         \
        return inside == NULL ? ST_AGAIN : store_##name(inside, __VA_ARGS__);            \
    }

#include "support/store_wrapper.h"

static enum status
wrapped_queue_stats(WHERE, struct store_stats *out)
{
    struct store *inside = stats_pass(s) ? slow_of(s)->inside : enter(s);

    return inside == NULL ? ST_AGAIN : store_queue_stats(inside, op, q, out);
}

static void
wrapped_close(struct store *s)
{
    struct slow *w = slow_of(s);

    store_close(w->inside);
    if (!list_empty(&w->listeners))
        abort(); /* a listener still watches */
    pthread_cond_destroy(&w->moved);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

struct store *
slow_store_open(const struct engine_config *config, unsigned kinds)
{
    struct slow *w = calloc(1, sizeof(*w));
    struct engine_config inside = *config;

    if (w == NULL)
        abort();
    w->store.vtable = &wrapper_ops;
    w->store.state = &wrapper_state_ops;
    w->store.blocks = (kinds & SLOW_STORE_BLOCKS) != 0;
    w->slices = (kinds & SLOW_STORE_SLICES) != 0;
    list_init(&w->parked);
    w->log = (struct store_log){.reserve = grant,
                                .append = log_change,
                                .durability = slow_durability,
                                .flush = slow_flush,
                                .listen = slow_listen,
                                .unlisten = slow_unlisten};
    list_init(&w->listeners);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->moved, NULL);
    if ((kinds & SLOW_STORE_LOGS) != 0)
        inside.log = &w->log;
    if (engine_open(&inside, &w->inside) != ST_OK)
        abort();
    return &w->store;
}
