#include "engine/shard.h"
#include "claimd/base/invariant.h"
#include "claimd/base/sometimes.h"

/* Waiters of deleted queues that are notified before the lock is released. */
enum { CLOSE_SLICE = 256 };

/* The fence base of a queue is the time of its creation, in 1/4096 ms. */
enum { FENCE_BITS = 12 };

enum status
shard_init(struct shard *sh, struct core *core, const struct engine_config *config,
           uint64_t seed)
{
    *sh = (struct shard){.core = core, .now_ms = config->now_ms};
    lock_init(&sh->lock);
    hashmap_init(&sh->queues, core->mem);
    hashmap_init(&sh->waitqueues, core->mem);
    seqmap_pool_init(&sh->pool, core->mem);
    list_init(&sh->dirty_waitqueues);
    list_init(&sh->closed_waitqueues);
    list_init(&sh->reclaim_list);
    list_init(&sh->checkpoint_order);
    hashmap_init(&sh->keys, core->mem);
    atomic_init(&sh->key_end_ms, INT64_MAX);
    list_init(&sh->key_order);
    list_init(&sh->long_backlogs);
    list_init(&sh->writes);
    list_init(&sh->ended_runs);
    list_init(&sh->due_feeds);
    list_init(&sh->stale_feeds);
    sh->unload_ms = WHEEL_NEVER;
    atomic_init(&sh->next_ms, WHEEL_NEVER);
    if (config->seeded)
        entropy_init_seeded(&sh->entropy, seed);
    else
        entropy_init_system(&sh->entropy);
    sh->claim_wheel = wheel_new(core->mem, config->now_ms);
    sh->message_wheel = wheel_new(core->mem, config->now_ms);
    if (sh->claim_wheel != NULL && sh->message_wheel != NULL)
        return ST_OK;
    shard_fini(sh);
    return ST_NO_MEMORY;
}

void
shard_fini(struct shard *sh)
{
    ENSURE(sh->queues.count == 0 && sh->waitqueues.count == 0 &&
           list_empty(&sh->closed_waitqueues) && list_empty(&sh->reclaim_list) &&
           list_empty(&sh->stale_feeds) && sh->keys.count == 0 &&
           list_empty(&sh->writes) && list_empty(&sh->ended_runs));
    hashmap_fini(&sh->queues);
    hashmap_fini(&sh->waitqueues);
    hashmap_fini(&sh->keys);
    seqmap_pool_fini(&sh->pool);
    wheel_free(sh->claim_wheel);
    wheel_free(sh->message_wheel);
    wheel_free(sh->subscription_wheel);
    wheel_free(sh->run_wheel);
    lock_fini(&sh->lock);
}

void
shard_restart(struct shard *sh, int64_t now_ms)
{
    lock_acquire(&sh->lock);
    ENSURE(sh->queues.count == 0 && sh->subscription_wheel == NULL &&
           sh->run_wheel == NULL);
    sh->now_ms = now_ms;
    wheel_restart(sh->claim_wheel, now_ms);
    wheel_restart(sh->message_wheel, now_ms);
    lock_release(&sh->lock);
}

int64_t
shard_enter(struct shard *sh, int64_t now_ms)
{
    lock_acquire(&sh->lock);
    if (sh->now_ms < now_ms)
        sh->now_ms = now_ms;
    return sh->now_ms;
}

/* ------------------------------------------------------------------ waking */

static void
free_waitqueue(struct shard *sh, struct waitqueue *waitqueue)
{
    if (list_linked(&waitqueue->link))
        list_remove(&waitqueue->link);
    if (!waitqueue->closed)
        hashmap_remove(&sh->waitqueues, &waitqueue->node);
    if (waitqueue->queue != NULL)
        waitqueue->queue->waitqueue = NULL;
    mem_free(sh->core->mem, waitqueue);
}

void
shard_release_runs(struct shard *sh)
{
    struct store_runs *runs = sh->core->config.runs;
    struct list *link;

    while ((link = list_pop(&sh->ended_runs)) != NULL) {
        struct run *r = container_of(link, struct run, link);

        if (r->adopted && runs != NULL)
            runs->release(runs, r->place.file);
        mem_free(sh->core->mem, r);
    }
}

static void __attribute__((noinline)) wake_and_leave(struct shard *sh)
{
    struct store_log *log = sh->core->log;
    struct wakeups wakeups = {.count = 0};
    struct waitqueue *waitqueue;
    struct list *link;

    if (sh->log_reserved != 0) /* reserved for changes and not used */
        log->unreserve(log, sh->log_reserved);
    sh->log_reserved = 0;
    shard_release_runs(sh);
    if (sh->delivery_due)
        wakeups_defer(&wakeups, core_notify_delivery(sh->core));
    sh->delivery_due = false;
    while ((link = list_pop(&sh->dirty_waitqueues)) != NULL) {
        waitqueue = container_of(link, struct waitqueue, link);
        if (waitqueue->queue != NULL)
            waitqueue_wake(waitqueue, queue_ready_count(waitqueue->queue), &wakeups);
    }
    for (int i = 0; i < CLOSE_SLICE && !list_empty(&sh->closed_waitqueues); i++) {
        waitqueue = container_of(sh->closed_waitqueues.next, struct waitqueue, link);
        waitqueue_close(waitqueue, &wakeups);
        if (waitqueue->count == 0)
            free_waitqueue(sh, waitqueue);
    }
    if (!list_empty(&sh->closed_waitqueues))
        shard_wake_at(sh, sh->now_ms);
    lock_release(&sh->lock);
    wakeups_fire(&wakeups);
}

void
shard_leave(struct shard *sh)
{
    if (list_empty(&sh->dirty_waitqueues) && list_empty(&sh->closed_waitqueues) &&
        sh->log_reserved == 0 && !sh->delivery_due && list_empty(&sh->ended_runs))
        lock_release(&sh->lock);
    else
        wake_and_leave(sh);
}

/* ------------------------------------------------------------------ queues */

static bool
queue_equal(const struct hashnode *node, const void *key)
{
    return store_queue_equal(&container_of(node, const struct queue, node)->where, key);
}

struct queue *
shard_find(const struct shard *sh, const struct store_queue *where, uint64_t hash)
{
    struct hashnode *node = hashmap_find(&sh->queues, hash, queue_equal, where);

    lock_assert_held(&sh->lock);
    return node == NULL ? NULL : container_of(node, struct queue, node);
}

static bool
waitqueue_equal(const struct hashnode *node, const void *key)
{
    return store_queue_equal(&container_of(node, const struct waitqueue, node)->where,
                             key);
}

/* The wait queue of an address; NULL if it has no waiter. Needs the lock. */
static struct waitqueue *
shard_waitqueue(const struct shard *sh, const struct store_queue *where, uint64_t hash)
{
    struct hashnode *node;

    lock_assert_held(&sh->lock);
    if (sh->waitqueues.count == 0)
        return NULL;
    node = hashmap_find(&sh->waitqueues, hash, waitqueue_equal, where);
    return node == NULL ? NULL : container_of(node, struct waitqueue, node);
}

struct queue *
shard_new_queue(struct shard *sh, const struct store_queue *where,
                const struct store_metadata *metadata)
{
    const uint64_t born = (uint64_t)sh->now_ms << FENCE_BITS;
    uint64_t fence = atomic_load_explicit(&sh->core->fence, memory_order_relaxed);
    struct queue *q = queue_new(sh->core, &sh->alive, where, metadata);

    lock_assert_held(&sh->lock);
    if (q == NULL)
        return NULL;
    q->version = ++sh->last_number;
    q->tag = core_next_tag(sh->core);
    q->fence_base = born > fence ? born : fence;
    queue_reserve_numbers(q);
    return q;
}

enum status
shard_enlist(struct shard *sh, struct queue *q, uint64_t most)
{
    enum status st = hashmap_reserve(&sh->queues, 1);

    lock_assert_held(&sh->lock);
    return st == ST_OK ? directory_add(&sh->core->directory, &q->where, &q->entry, most)
                       : st;
}

void
shard_discard(struct shard *sh, struct queue *q)
{
    lock_assert_held(&sh->lock);
    ENSURE(q->shard == NULL);
    if (q->entry.project != NULL)
        directory_remove(&sh->core->directory, &q->entry);
    queue_free(sh->core->mem, q);
}

void
shard_link(struct shard *sh, struct queue *q, uint64_t hash)
{
    lock_assert_held(&sh->lock);
    ENSURE(q->shard == NULL && q->entry.project != NULL);
    hashmap_insert(&sh->queues, &q->node, hash);
    q->shard = sh;
    q->checkpoint_no = sh->checkpoint.number;
    list_add_before(&sh->checkpoint_order, &q->checkpoint_link);
    if (q->where.kind != STORE_SCHEDULES &&
        q->where.project.len <= STORE_METRICS_PROJECT &&
        q->where.name.len <= STORE_METRICS_NAME)
        metrics_slots_enter(&sh->core->metrics_slots, sh, q, &q->metrics_slot);
    q->waitqueue = shard_waitqueue(sh, &q->where, hash);
    if (q->waitqueue != NULL)
        q->waitqueue->queue = q;
}

void
shard_unlink(struct shard *sh, struct queue *q)
{
    struct waitqueue *waitqueue = q->waitqueue;

    lock_assert_held(&sh->lock);
    ENSURE(q->shard == sh);
    core_raise_fence(sh->core, q->fence_base + q->last_claim);
    metrics_slots_leave(&sh->core->metrics_slots, &q->metrics_slot);
    list_remove(&q->checkpoint_link);
    SOMETIMES_IF(sh->checkpoint.queue == q, CHECKPOINT_QUEUE_GONE);
    if (sh->checkpoint.queue == q)
        sh->checkpoint.queue = NULL;
    hashmap_remove(&sh->queues, &q->node);
    if (sh->keys.count > 0 && sh->queues.count == 0)
        shard_wake_at(sh, sh->now_ms); /* nothing finds the keys any more */
    directory_remove(&sh->core->directory, &q->entry);
    SOMETIMES_IF(waitqueue != NULL, QUEUE_GONE_WAITED);
    if (waitqueue != NULL) {
        hashmap_remove(&sh->waitqueues, &waitqueue->node);
        waitqueue->queue = NULL;
        waitqueue->closed = true;
        if (list_linked(&waitqueue->link))
            list_remove(&waitqueue->link);
        list_add_before(&sh->closed_waitqueues, &waitqueue->link);
    }
    q->waitqueue = NULL;
    q->shard = NULL;
}

void
shard_wake_at(struct shard *sh, int64_t due_ms)
{
    lock_assert_held(&sh->lock);
    if (due_ms >= atomic_load_explicit(&sh->next_ms, memory_order_relaxed))
        return;
    atomic_store(&sh->next_ms, due_ms);
    core_wake_at(sh->core, due_ms);
}

void
shard_arm_claim(struct shard *sh, struct deadline *d, int64_t due_ms)
{
    wheel_arm(sh->claim_wheel, d, due_ms);
    shard_wake_at(sh, wheel_next_hint_ms(sh->claim_wheel));
}

void
shard_arm_message(struct shard *sh, struct deadline *d, int64_t due_ms)
{
    wheel_arm(sh->message_wheel, d, due_ms);
    shard_wake_at(sh, wheel_next_hint_ms(sh->message_wheel));
}

/* ------------------------------------------------------------------ waiters */

static struct waitqueue *
make_waitqueue(struct shard *sh, const struct store_queue *where, uint64_t hash,
               struct queue *q)
{
    struct waitqueue *waitqueue;

    if (hashmap_reserve(&sh->waitqueues, 1) != ST_OK)
        return NULL;
    waitqueue = waitqueue_new(sh->core->mem, where, &sh->dirty_waitqueues);
    if (waitqueue == NULL)
        return NULL;
    hashmap_insert(&sh->waitqueues, &waitqueue->node, hash);
    waitqueue->queue = q;
    if (q != NULL)
        q->waitqueue = waitqueue;
    return waitqueue;
}

enum status
shard_wait(struct shard *sh, const struct store_queue *where, uint64_t hash,
           struct queue *q, struct store_waiter *w, size_t wants)
{
    struct waitqueue *waitqueue =
        q != NULL ? q->waitqueue : shard_waitqueue(sh, where, hash);

    lock_assert_held(&sh->lock);
    ENSURE(w->home == NULL || w->home == sh);
    if (waitqueue == NULL)
        waitqueue = make_waitqueue(sh, where, hash, q);
    if (waitqueue == NULL)
        return ST_NO_MEMORY;
    w->home = sh;
    waitqueue_enter(waitqueue, w, wants);
    return ST_OK;
}

void
shard_stop_waiting(struct shard *sh, struct store_waiter *w)
{
    struct waitqueue *waitqueue = w->waitqueue;

    lock_assert_held(&sh->lock);
    ENSURE(waitqueue != NULL && w->home == sh);
    waitqueue_leave(waitqueue, w);
    if (waitqueue->count == 0)
        free_waitqueue(sh, waitqueue);
    else if (!waitqueue->closed)
        waitqueue_mark_dirty(waitqueue);
}
