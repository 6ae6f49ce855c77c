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

/* Defines the function of an operation: its name, its parameters and its arguments. */
#define SLOW(name, parameters, ...)                                                      \
    static enum status slow_##name parameters                                            \
    {                                                                                    \
        struct store *inside = enter(s);                                                 \
                                                                                         \
        return inside == NULL ? ST_AGAIN : store_##name(inside, op, __VA_ARGS__);        \
    }

#define WHERE struct store *s, struct store_op *op, const struct store_queue *q

SLOW(queue_create, (WHERE, const struct store_metadata *m, bool *made), q, m, made)
SLOW(queue_get, (WHERE, struct store_queues *out), q, out)
SLOW(queue_update, (WHERE, uint64_t version, const struct store_metadata *m), q, version,
     m)
SLOW(queue_delete, (WHERE), q)
SLOW(queue_list,
     (struct store * s, struct store_op *op, const struct store_page *page,
      struct store_queues *out),
     page, out)
SLOW(project_list,
     (struct store * s, struct store_op *op, const struct store_page *page,
      struct store_queues *out),
     page, out)
SLOW(queue_purge, (WHERE, enum store_purge what), q, what)
SLOW(read, (WHERE, struct store_records *records), q, records)
SLOW(apply, (WHERE, const struct store_record *records, size_t count), q, records, count)
SLOW(message_post, (WHERE, const struct store_post *post, struct store_id *ids), q, post,
     ids)
SLOW(message_list, (WHERE, const struct store_filter *f, struct store_batch *out), q, f,
     out)
SLOW(message_get, (WHERE, const struct bytes *ids, size_t count, struct store_batch *out),
     q, ids, count, out)
SLOW(message_delete, (WHERE, const struct store_delete *which), q, which)
SLOW(message_pop, (WHERE, size_t limit, struct store_batch *out), q, limit, out)
SLOW(claim_create,
     (WHERE, const struct store_terms *terms, size_t limit, struct store_batch *out), q,
     terms, limit, out)
SLOW(claim_get, (WHERE, struct bytes claim, struct store_batch *out), q, claim, out)
SLOW(claim_list, (WHERE, struct store_claim_page *page), q, page)
SLOW(claim_renew,
     (WHERE, struct bytes claim, const struct store_terms *terms, uint64_t *number), q,
     claim, terms, number)
SLOW(claim_release, (WHERE, struct bytes claim, enum store_release why), q, claim, why)
SLOW(claim_finish, (WHERE, struct store_finish *finish), q, finish)
SLOW(redrive, (WHERE, struct store_redrive *which, struct store_redriven *out), q, which,
     out)
SLOW(subscription_create,
     (WHERE, const struct store_subscription_draft *draft, struct store_subscribed *out),
     q, draft, out)
SLOW(subscription_get, (WHERE, struct bytes id, struct store_subscriptions *out), q, id,
     out)
SLOW(subscription_list,
     (WHERE, struct bytes marker, size_t limit, struct store_subscriptions *out), q,
     marker, limit, out)
SLOW(subscription_update,
     (WHERE, struct bytes id, const struct store_subscription_draft *draft), q, id, draft)
SLOW(subscription_delete, (WHERE, struct bytes id), q, id)
SLOW(subscription_confirm, (WHERE, struct bytes id, bool confirmed), q, id, confirmed)
SLOW(delivery_next, (struct store * s, struct store_op *op, struct store_delivery *out),
     out)
SLOW(totals, (struct store * s, struct store_op *op, struct store_totals *out), out)
SLOW(metrics, (struct store * s, struct store_op *op, struct store_metrics *out), out)
SLOW(queue_metrics,
     (struct store * s, struct store_op *op, size_t *at, struct store_queue_metrics *out),
     at, out)
SLOW(queue_survey, (struct store * s, struct store_op *op, struct store_survey *survey),
     survey)

static enum status
slow_queue_stats(WHERE, struct store_stats *out)
{
    struct store *inside = stats_pass(s) ? slow_of(s)->inside : enter(s);

    return inside == NULL ? ST_AGAIN : store_queue_stats(inside, op, q, out);
}

static enum status
slow_ping(struct store *s, struct store_op *op)
{
    struct store *inside = enter(s);

    return inside == NULL ? ST_AGAIN : store_ping(inside, op);
}

/* The operations below never wait. */

/* A leased delivery goes back to the store that leased it: `delivery->store`. */
static void
slow_delivery_done(struct store *s, struct store_op *op, struct store_delivery *delivery,
                   enum store_outcome outcome, int64_t again_ms)
{
    store_delivery_done(slow_of(s)->inside, op, delivery, outcome, again_ms);
}

static void
slow_delivery_watch(struct store *s, struct store_listener *listener)
{
    store_delivery_watch(slow_of(s)->inside, listener);
}

static void
slow_waiter_leave(struct store *s, struct store_waiter *waiter)
{
    store_waiter_leave(slow_of(s)->inside, waiter);
}

static void
slow_housekeep(struct store *s, int64_t now_ms, int64_t *next_ms)
{
    store_housekeep(slow_of(s)->inside, now_ms, next_ms);
}

static int64_t
slow_next_ms(struct store *s)
{
    return store_next_ms(slow_of(s)->inside);
}

static bool
slow_audit(struct store *s)
{
    return store_audit(slow_of(s)->inside);
}

static void
slow_close(struct store *s)
{
    struct slow *w = slow_of(s);

    store_close(w->inside);
    if (!list_empty(&w->listeners))
        abort(); /* a listener still watches */
    pthread_cond_destroy(&w->moved);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

static const struct store_state_vtable slow_state_ops = {.read = slow_read,
                                                         .apply = slow_apply};

/* Batches and queues are released by the store that made them. */
static const struct store_vtable slow_ops = {
    .queue_create = slow_queue_create,
    .queue_get = slow_queue_get,
    .queue_update = slow_queue_update,
    .queue_delete = slow_queue_delete,
    .queue_list = slow_queue_list,
    .project_list = slow_project_list,
    .queue_stats = slow_queue_stats,
    .queue_purge = slow_queue_purge,
    .message_post = slow_message_post,
    .message_list = slow_message_list,
    .message_get = slow_message_get,
    .message_delete = slow_message_delete,
    .message_pop = slow_message_pop,
    .claim_create = slow_claim_create,
    .claim_get = slow_claim_get,
    .claim_list = slow_claim_list,
    .claim_renew = slow_claim_renew,
    .claim_release = slow_claim_release,
    .claim_finish = slow_claim_finish,
    .redrive = slow_redrive,
    .subscription_create = slow_subscription_create,
    .subscription_get = slow_subscription_get,
    .subscription_list = slow_subscription_list,
    .subscription_update = slow_subscription_update,
    .subscription_delete = slow_subscription_delete,
    .subscription_confirm = slow_subscription_confirm,
    .delivery_next = slow_delivery_next,
    .delivery_done = slow_delivery_done,
    .delivery_watch = slow_delivery_watch,
    .waiter_leave = slow_waiter_leave,
    .ping = slow_ping,
    .totals = slow_totals,
    .metrics = slow_metrics,
    .queue_metrics = slow_queue_metrics,
    .queue_survey = slow_queue_survey,
    .housekeep = slow_housekeep,
    .next_ms = slow_next_ms,
    .audit = slow_audit,
    .close = slow_close,
};

struct store *
slow_store_open(const struct engine_config *config, unsigned kinds)
{
    struct slow *w = calloc(1, sizeof(*w));
    struct engine_config inside = *config;

    if (w == NULL)
        abort();
    w->store.vtable = &slow_ops;
    w->store.state = &slow_state_ops;
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
