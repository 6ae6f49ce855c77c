#include "engine/shard.h"
#include "claimd/base/invariant.h"

/* So many waiters of a deleted queue are told before the lock is let go. */
enum { DISMISS_SLICE = 256 };

/* Claim numbers of a queue begin behind its birth in units of this part of a millisecond. */
enum { FENCE_BITS = 12 };

enum status
shard_init(struct shard *sh, struct core *core, const struct engine_config *config,
           uint64_t seed)
{
    *sh = (struct shard){.core = core, .now_ms = config->now_ms};
    lock_init(&sh->lock);
    hashmap_init(&sh->queues, core->mem);
    hashmap_init(&sh->lines, core->mem);
    seqmap_pool_init(&sh->pool, core->mem);
    list_init(&sh->stirred);
    list_init(&sh->ended);
    list_init(&sh->dead_backlogs);
    list_init(&sh->swept);
    list_init(&sh->news);
    list_init(&sh->stale_feeds);
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
    ENSURE(sh->queues.count == 0 && sh->lines.count == 0 && list_empty(&sh->ended) &&
           list_empty(&sh->dead_backlogs) && list_empty(&sh->stale_feeds));
    hashmap_fini(&sh->queues);
    hashmap_fini(&sh->lines);
    seqmap_pool_fini(&sh->pool);
    wheel_free(sh->claim_wheel);
    wheel_free(sh->message_wheel);
    wheel_free(sh->subscription_wheel);
    lock_fini(&sh->lock);
}

int64_t
shard_enter(struct shard *sh, int64_t now_ms)
{
    lock_acquire(&sh->lock);
    if (sh->now_ms < now_ms)
        sh->now_ms = now_ms;
    return sh->now_ms;
}

/* ------------------------------------------------------------------ calling */

static struct line *
line_of(struct list *link)
{
    return container_of(link, struct line, link);
}

/* Frees a line in which nobody is any more. */
static void
free_line(struct shard *sh, struct line *line)
{
    if (list_linked(&line->link))
        list_remove(&line->link);
    if (!line->ended)
        hashmap_remove(&sh->lines, &line->node);
    if (line->queue != NULL)
        line->queue->line = NULL;
    mem_free(sh->core->mem, line);
}

static void
call_stirred(struct shard *sh, struct bells *bells)
{
    struct list *link;

    while ((link = list_pop(&sh->stirred)) != NULL) {
        struct line *line = line_of(link);

        if (line->queue != NULL)
            line_call(line, backlog_ready(line->queue->backlog), bells);
    }
}

static void
dismiss_ended(struct shard *sh, struct bells *bells)
{
    for (int i = 0; i < DISMISS_SLICE && !list_empty(&sh->ended); i++) {
        struct line *line = line_of(sh->ended.next);

        line_dismiss(line, bells);
        if (line->count == 0)
            free_line(sh, line);
    }
    if (!list_empty(&sh->ended))
        shard_wake_at(sh, sh->now_ms);
}

/* What was set aside for changes and not used goes back. */
static void
return_room(struct shard *sh)
{
    struct store_observer *observer = sh->core->observer;

    if (sh->room != 0)
        observer->give_back(observer, sh->room);
    sh->room = 0;
}

static void __attribute__((noinline)) call_and_leave(struct shard *sh)
{
    struct bells bells = {.count = 0};

    return_room(sh);
    if (sh->tells)
        bells_keep(&bells, core_tell_deliverer(sh->core));
    sh->tells = false;
    call_stirred(sh, &bells);
    dismiss_ended(sh, &bells);
    lock_release(&sh->lock);
    bells_ring(&bells);
}

void
shard_leave(struct shard *sh)
{
    if (list_empty(&sh->stirred) && list_empty(&sh->ended) && sh->room == 0 && !sh->tells)
        lock_release(&sh->lock);
    else
        call_and_leave(sh);
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

    return node == NULL ? NULL : container_of(node, struct queue, node);
}

uint64_t
shard_number(struct shard *sh)
{
    lock_assert_held(&sh->lock);
    return ++sh->last_number;
}

struct queue *
shard_new_queue(struct shard *sh, const struct store_queue *where,
                const struct store_metadata *metadata)
{
    uint64_t born = (uint64_t)sh->now_ms << FENCE_BITS;
    uint64_t fence = atomic_load_explicit(&sh->core->fence, memory_order_relaxed);
    struct queue *q = queue_new(sh->core, &sh->alive, where, metadata);

    if (q == NULL)
        return NULL;
    q->version = shard_number(sh);
    q->tag = core_next_tag(sh->core);
    q->fence_base = born > fence ? born : fence;
    queue_lend(q);
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
    q->epoch = sh->sweep.epoch;
    list_add_before(&sh->swept, &q->sweep_link);
    if (q->where.project.len <= STORE_FIGURES_PROJECT &&
        q->where.name.len <= STORE_FIGURES_NAME)
        metrics_slots_enter(&sh->core->metrics_slots, sh, q, &q->metrics_slot);
    q->line = shard_line(sh, &q->where, hash);
    if (q->line != NULL)
        q->line->queue = q;
}

/* Nobody waits in this line any more. */
static void
end_line(struct shard *sh, struct line *line)
{
    hashmap_remove(&sh->lines, &line->node);
    line->queue = NULL;
    line->ended = true;
    if (list_linked(&line->link))
        list_remove(&line->link);
    list_add_before(&sh->ended, &line->link);
}

void
shard_unlink(struct shard *sh, struct queue *q)
{
    lock_assert_held(&sh->lock);
    ENSURE(q->shard == sh);
    core_raise_fence(sh->core, q->fence_base + q->last_claim);
    metrics_slots_leave(&sh->core->metrics_slots, &q->metrics_slot);
    list_remove(&q->sweep_link);
    if (sh->sweep.queue == q)
        sh->sweep.queue = NULL;
    hashmap_remove(&sh->queues, &q->node);
    directory_remove(&sh->core->directory, &q->entry);
    if (q->line != NULL)
        end_line(sh, q->line);
    q->line = NULL;
    q->shard = NULL;
}

/* ------------------------------------------------------------------ deadlines */

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
    shard_wake_at(sh, wheel_calm_ms(sh->claim_wheel)); /* may be earlier than due_ms */
}

void
shard_arm_message(struct shard *sh, struct deadline *d, int64_t due_ms)
{
    wheel_arm(sh->message_wheel, d, due_ms);
    shard_wake_at(sh, wheel_calm_ms(sh->message_wheel)); /* may be earlier than due_ms */
}

/* ------------------------------------------------------------------ waiters */

static bool
line_equal(const struct hashnode *node, const void *key)
{
    return store_queue_equal(&container_of(node, const struct line, node)->where, key);
}

struct line *
shard_line(const struct shard *sh, const struct store_queue *where, uint64_t hash)
{
    struct hashnode *node;

    if (sh->lines.count == 0)
        return NULL;
    node = hashmap_find(&sh->lines, hash, line_equal, where);
    return node == NULL ? NULL : container_of(node, struct line, node);
}

static struct line *
make_line(struct shard *sh, const struct store_queue *where, uint64_t hash,
          struct queue *q)
{
    struct line *line;

    if (hashmap_reserve(&sh->lines, 1) != ST_OK)
        return NULL;
    line = line_new(sh->core->mem, where, &sh->stirred);
    if (line == NULL)
        return NULL;
    hashmap_insert(&sh->lines, &line->node, hash);
    line->queue = q;
    if (q != NULL)
        q->line = line;
    return line;
}

enum status
shard_wait(struct shard *sh, const struct store_queue *where, uint64_t hash,
           struct queue *q, struct store_waiter *w, size_t wants)
{
    struct line *line = q != NULL ? q->line : shard_line(sh, where, hash);

    lock_assert_held(&sh->lock);
    ENSURE(w->home == NULL || w->home == sh);
    if (line == NULL)
        line = make_line(sh, where, hash, q);
    if (line == NULL)
        return ST_NO_MEMORY;
    w->home = sh;
    line_enter(line, w, wants);
    return ST_OK;
}

void
shard_stop_waiting(struct shard *sh, struct store_waiter *w)
{
    struct line *line = w->line;

    lock_assert_held(&sh->lock);
    ENSURE(line != NULL && w->home == sh);
    line_leave(line, w);
    if (line->count == 0)
        free_line(sh, line);
    else if (!line->ended)
        line_stir(line);
}
