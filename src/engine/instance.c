/*
 * instance: opens and closes an engine, and has the operations of the store on all
 * shards: totals, metrics, housekeeping and audit. Declared in claimd/engine/engine.h
 * and in txn.h. No function here holds two locks of shards. Each takes one shard after
 * the other, so sums are of no single moment.
 *
 * Read txn.h next, and claim_ops.c for an operation on one queue.
 */
#include "claimd/base/invariant.h"
#include "claimd/engine/engine.h"
#include "engine/keys.h"
#include "engine/run_unload.h"
#include "engine/subscription.h"
#include "engine/txn.h"

struct shard *
engine_shard(const struct engine *e, uint64_t hash)
{
    return &e->shards[(hash & CORE_OF_SCHEDULES) != 0 ? e->shard_mask + 1
                                                      : (hash >> 40) & e->shard_mask];
}

enum status
engine_ping(struct store *s, struct store_op *op)
{
    (void)s, (void)op; /* memory is always available */
    return ST_OK;
}

enum status
engine_totals(struct store *s, struct store_op *op, struct store_totals *out)
{
    struct engine *e = engine_of(s);

    *out = (struct store_totals){0};
    for (size_t i = 0; i <= e->shard_mask; i++) {
        struct shard *sh = &e->shards[i];
        int64_t now_ms = op->now_ms;
        enum status st = expire_enter(sh, &now_ms, EXPIRE_ALL);

        if (st != ST_OK)
            return st;
        if (op->lsn < sh->lsn)
            op->lsn = sh->lsn;
        out->queues += sh->queues.count;
        out->messages += sh->alive.messages;
        out->claimed += sh->alive.claimed;
        shard_leave(sh);
    }
    return ST_OK;
}

void
engine_limit(struct store *s, const struct engine_limits *limits)
{
    struct project_limits *l = &engine_of(s)->core.limits;

    atomic_store(&l->queues, limits->queues);
    atomic_store(&l->messages, limits->messages);
    atomic_store(&l->bytes, limits->bytes);
}

void
engine_live(struct store *s, struct store_live *out)
{
    struct engine *e = engine_of(s);

    *out = (struct store_live){0};
    for (size_t i = 0; i < e->shard_count; i++) {
        struct shard *sh = &e->shards[i];

        lock_acquire(&sh->lock);
        out->messages += sh->alive.messages - sh->alive.unloaded + sh->queues.count +
                         sh->subscriptions;
        out->bytes += sh->alive.bytes - sh->alive.unloaded_bytes + sh->feed_bytes;
        out->unloaded += sh->alive.unloaded;
        out->unloaded_bytes += sh->alive.unloaded_bytes;
        lock_release(&sh->lock);
    }
}

void
engine_replay_marks(struct store *s, const struct store_marks *marks)
{
    core_restore_marks(&engine_of(s)->core, marks);
}

void
engine_marks(struct store *s, struct store_marks *out)
{
    core_marks(&engine_of(s)->core, out);
}

/* ---------------------------------------------------------------------- housekeeping */

/* Bytes that freeing one piece returns at least: a message with its header and its
 * index. */
enum { PIECE_BYTES = 128, PAY_AT_LEAST = 8 };

void
housekeep_pay(struct engine *e, int64_t now_ms, size_t count, size_t bytes)
{
    size_t budget = PAY_AT_LEAST + 2 * (count + bytes / PIECE_BYTES);

    if (atomic_load_explicit(&e->core.next_ms, memory_order_relaxed) > now_ms)
        return;
    for (size_t i = 0; i < e->shard_count && budget > 0; i++) {
        struct shard *sh = &e->shards[i];

        if (atomic_load_explicit(&sh->next_ms, memory_order_relaxed) > now_ms)
            continue;
        while (budget > 0 && housekeep_shard(sh, now_ms, &budget) <= now_ms)
            continue;
    }
}

void
engine_housekeep(struct store *s, int64_t now_ms, int64_t *next_ms)
{
    struct engine *e = engine_of(s);

    /* A deadline that is armed from here on lowers next_ms again, so none is lost. */
    atomic_store(&e->core.next_ms, WHEEL_NEVER);
    for (size_t i = 0; i < e->shard_count; i++) {
        size_t budget = SIZE_MAX; /* each slice is bounded anyway */

        core_wake_at(&e->core, housekeep_shard(&e->shards[i], now_ms, &budget));
    }
    store_log_flush(e->core.log);
    *next_ms = atomic_load(&e->core.next_ms);
}

int64_t
engine_next_ms(struct store *s)
{
    const struct engine *e = engine_of(s);
    int64_t least_ms = WHEEL_NEVER;

    /* core.next_ms is too late while another thread is in engine_housekeep(). */
    for (size_t i = 0; i < e->shard_count; i++) {
        int64_t next_ms = atomic_load(&e->shards[i].next_ms);

        if (least_ms > next_ms)
            least_ms = next_ms;
    }
    return least_ms;
}

/* ---------------------------------------------------------------------- metrics */

enum status
engine_metrics(struct store *s, struct store_op *op, struct store_metrics *out)
{
    struct engine *e = engine_of(s);

    *out = (struct store_metrics){.unloads = e->core.config.runs != NULL &&
                                             e->core.config.backlog_memory != UINT64_MAX};
    for (size_t i = 0; i <= e->shard_mask; i++) {
        struct shard *sh = &e->shards[i];
        const struct tally *t = &sh->alive;
        int64_t lag_ms =
            op->now_ms - atomic_load_explicit(&sh->next_ms, memory_order_relaxed);

        if (out->lag_ms < lag_ms)
            out->lag_ms = lag_ms;
        for (size_t j = 0; j < STORE_COUNTERS; j++)
            out->counts[j] += counter_read(&sh->metrics.counts[j]);
        for (size_t j = 0; j < STORE_SPANS; j++)
            buckets_merge(&out->spans[j], &sh->metrics.spans[j]);
        (void)shard_enter(sh, op->now_ms);
        out->all.ready += t->messages - t->claimed - t->delayed;
        out->all.claimed += t->claimed;
        out->all.delayed += t->delayed;
        out->all.dead_letters += t->dead_letters;
        out->all.claims += t->claims;
        out->all.bytes += t->bytes;
        out->all.unloaded += t->unloaded;
        out->all.unloaded_bytes += t->unloaded_bytes;
        out->rest.messages += sh->metrics.rest.messages;
        out->rest.unread += sh->metrics.rest.unread;
        out->rest.dead_letters += sh->metrics.rest.dead_letters;
        for (size_t j = 0; j < STORE_QUEUE_COUNTERS; j++)
            out->rest_counts[j] += sh->metrics.rest_counts[j];
        out->queues += sh->queues.count;
        out->subscriptions += sh->subscriptions;
        out->feed_bytes += sh->feed_bytes;
        out->garbage += sh->reclaiming.messages;
        shard_leave(sh);
    }
    return ST_OK;
}

static size_t
copy_text(char *to, struct bytes from)
{
    if (from.len > 0)
        memcpy(to, from.data, from.len);
    to[from.len] = '\0';
    return from.len;
}

static int64_t
age_of(int64_t from_ms, int64_t now_ms)
{
    return from_ms < now_ms ? now_ms - from_ms : 0;
}

static void
fill_queue_metrics(const struct queue *q, int64_t now_ms, struct store_queue_metrics *out)
{
    const struct bytes dead_letter = queue_settings(q)->dead_letter;
    const struct backlog *b = q->backlog;
    const struct message *oldest;
    const struct claim *first; /* claim numbers ascend with time */
    uint64_t seq = 0, number = 0;

    out->project_len = copy_text(out->project, q->where.project);
    out->name_len = copy_text(out->name, q->where.name);
    out->dead_letter_len =
        copy_text(out->dead_letter,
                  dead_letter.len <= STORE_METRICS_NAME ? dead_letter : BYTES_NONE);
    out->kind = q->where.kind;
    out->paused = queue_settings(q)->paused;
    out->waiters = q->waitqueue == NULL ? 0 : q->waitqueue->count;
    out->subscriptions = q->feed == NULL ? 0 : q->feed->subscribers.count;
    out->here = (struct store_population){
        .ready = backlog_ready(b),
        .claimed = b->claimed,
        .delayed = backlog_delayed(b),
        .dead_letters = b->dead_letters,
        .claims = b->claims.live,
        .bytes = b->bytes,
        .unloaded = b->unloaded,
        .unloaded_bytes = b->unloaded_bytes,
    };
    seq = backlog_next_ready(b, 0);
    oldest = seqmap_find(&b->messages, seq);
    out->has_oldest = seq != RUN_NONE;
    out->posted_ms = out->age_ms = 0;
    if (out->has_oldest) {
        out->posted_ms =
            oldest != NULL ? oldest->posted_ms : backlog_run(b, seq)->posted_ms;
        out->age_ms = age_of(out->posted_ms, now_ms);
    }
    first = seqmap_next_live(&b->claims, &number);
    out->claimed_age_ms = first == NULL ? 0 : age_of(first->made_ms, now_ms);
    memcpy(out->counts, q->counts, sizeof(out->counts));
    out->expired = q->expired;
}

enum status
engine_queue_metrics(struct store *s, struct store_op *op, size_t *at,
                     struct store_queue_metrics *out)
{
    const struct metrics_slots *slots = &engine_of(s)->core.metrics_slots;
    struct shard *sh;

    while ((sh = metrics_slots_next(slots, at)) != NULL) {
        int64_t now_ms = op->now_ms;
        const struct queue *q;

        /* Expires a few slices at most: a reader of metrics need not do all the work. */
        if (expire_enter(sh, &now_ms, EXPIRE_ALL) != ST_OK)
            now_ms = shard_enter(sh, now_ms);
        q = metrics_slots_queue(slots, *at, sh);
        if (q != NULL)
            fill_queue_metrics(q, now_ms, out);
        shard_leave(sh);
        if (q == NULL)
            continue; /* the queue was deleted: the slot is read again */
        ++*at;
        return ST_OK;
    }
    return ST_NOT_FOUND;
}

/* Fills in the row of a queue. False: it was deleted meanwhile. */
static bool
survey_queue(struct engine *e, int64_t now_ms, struct store_queue_metrics *row)
{
    const struct store_queue where = store_queue_metrics_address(row);
    const uint64_t hash = core_hash(&e->core, &where);
    struct shard *sh = engine_shard(e, hash);
    const struct queue *q;

    if (expire_enter(sh, &now_ms, EXPIRE_ALL) != ST_OK)
        now_ms = shard_enter(sh, now_ms); /* as for metrics */
    q = shard_find(sh, &where, hash);
    if (q != NULL)
        fill_queue_metrics(q, now_ms, row);
    shard_leave(sh);
    return q != NULL;
}

enum status
engine_queue_survey(struct store *s, struct store_op *op, struct store_survey *survey)
{
    struct engine *e = engine_of(s);

    directory_survey(&e->core.directory, survey);
    for (size_t i = 0; i < survey->count; i++)
        survey->rows[i].gone = !survey_queue(e, op->now_ms, &survey->rows[i]);
    return ST_OK;
}

/* ---------------------------------------------------------------------- audit */

static bool
queue_audit(const struct shard *sh, const struct queue *q)
{
    uint64_t number = q->last_claim + 1, seq = 0;
    const struct message *last = seqmap_last(&q->backlog->messages, &seq);

    if (q->shard != sh || q->backlog->queue != q || !backlog_audit(q->backlog))
        return false;
    if (last != NULL && last->seq > q->last_seq)
        return false;
    if (seqmap_next_live(&q->backlog->claims, &number) != NULL)
        return false;
    if (q->waitqueue != NULL && (q->waitqueue->queue != q ||
                                 !waitqueue_audit(q->waitqueue, queue_ready_count(q))))
        return false;
    if (q->feed != NULL && (q->feed->queue != q || q->feed->subscriptions.live == 0 ||
                            !feed_audit(sh, q->feed)))
        return false;
    return claims_audit(q->backlog);
}

/* The table also has wait queues of queues that do not exist. */
static bool
waitqueues_audit(const struct shard *sh)
{
    const struct hashnode *node = NULL;

    if (!list_empty(&sh->dirty_waitqueues) || !hashmap_audit(&sh->waitqueues))
        return false;
    while ((node = hashmap_walk(&sh->waitqueues, node)) != NULL) {
        const struct waitqueue *waitqueue =
            container_of(node, const struct waitqueue, node);

        if (waitqueue->closed ||
            (waitqueue->queue == NULL ? !waitqueue_audit(waitqueue, 0)
                                      : waitqueue->queue->waitqueue != waitqueue))
            return false;
    }
    return true;
}

static bool
tally_audit(const struct shard *sh)
{
    const struct hashnode *node = NULL;
    struct tally sum = {0};
    uint64_t subscriptions = 0, feed_bytes = 0;

    while ((node = hashmap_walk(&sh->queues, node)) != NULL) {
        const struct queue *q = container_of(node, const struct queue, node);

        tally_backlog(&sum, q->backlog, 1);
        subscriptions += q->feed == NULL ? 0 : q->feed->subscriptions.live;
        feed_bytes += q->feed == NULL ? 0 : q->feed->bytes;
    }
    return subscriptions == sh->subscriptions && feed_bytes == sh->feed_bytes &&
           memcmp(&sum, &sh->alive, sizeof(sum)) == 0;
}

static bool
shard_audit(struct shard *sh, struct directory_sum *sum)
{
    const struct hashnode *node = NULL;
    bool sound;

    lock_acquire(&sh->lock);
    sound = hashmap_audit(&sh->queues) && wheel_audit(sh->claim_wheel) &&
            wheel_audit(sh->message_wheel) &&
            (sh->run_wheel == NULL || wheel_audit(sh->run_wheel)) &&
            (sh->subscription_wheel == NULL || wheel_audit(sh->subscription_wheel)) &&
            reclaim_audit(sh) && tally_audit(sh) && waitqueues_audit(sh) &&
            keys_audit(sh) && !sh->delivery_due;
    sum->queues += sh->queues.count;
    sum->messages += sh->alive.messages;
    sum->bytes += sh->alive.bytes;
    sum->keys += sh->keys.count;
    while (sound && (node = hashmap_walk(&sh->queues, node)) != NULL)
        sound = queue_audit(sh, container_of(node, const struct queue, node));
    lock_release(&sh->lock);
    return sound;
}

bool
engine_audit(struct store *s)
{
    struct engine *e = engine_of(s);
    struct directory_sum sum = {0};

    for (size_t i = 0; i < e->shard_count; i++)
        if (!shard_audit(&e->shards[i], &sum))
            return false;
    return directory_audit(&e->core.directory, &sum);
}

/* ---------------------------------------------------------------------- life */

static void
close_shard(struct shard *sh)
{
    struct hashnode *node;

    lock_acquire(&sh->lock);
    unload_drop_all(sh);
    while ((node = hashmap_walk(&sh->queues, NULL)) != NULL)
        reclaim_queue(sh, container_of(node, struct queue, node));
    while (!list_empty(&sh->reclaim_list) || !list_empty(&sh->stale_feeds)) {
        size_t budget = EXPIRE_SLICE, more = EXPIRE_SLICE;

        (void)reclaim_slice(sh, sh->now_ms, &budget);
        (void)feed_chores(sh, sh->now_ms, &more);
    }
    keys_free(sh);
    shard_release_runs(sh);
    lock_release(&sh->lock);
    shard_fini(sh);
}

static void
close_shards(struct engine *e, size_t count)
{
    while (count > 0)
        close_shard(&e->shards[--count]);
    core_fini(&e->core);
    mem_free(e->core.mem, e->shards);
    mem_free(e->core.mem, e);
}

void
engine_close(struct store *s)
{
    struct engine *e = engine_of(s);

    e->core.config.runs = NULL; /* the journal may be closed */
    engine_replay_drop(e);
    close_shards(e, e->shard_count);
}

#define ENGINE_OPERATION(name) .name = engine_##name,

static const struct store_vtable engine_ops = {STORE_OPERATIONS(ENGINE_OPERATION)};
static const struct store_state_vtable engine_state_ops = {
    STORE_STATE_OPERATIONS(ENGINE_OPERATION)};

enum status
engine_open(const struct engine_config *config, struct store **out)
{
    const size_t shards = config->shards;
    size_t ready = 0;
    struct engine *e;
    enum status st;

    ENSURE(shards > 0 && shards <= 1024 && (shards & (shards - 1)) == 0);
    e = mem_calloc(config->mem, 1, sizeof(*e));
    if (e == NULL)
        return ST_NO_MEMORY;
    e->store.vtable = &engine_ops;
    e->store.state = &engine_state_ops;
    e->shard_mask = shards - 1;
    e->shard_count = shards + 1;
    st = core_init(&e->core, config);
    if (st != ST_OK) {
        mem_free(config->mem, e);
        return st;
    }
    engine_limit(&e->store, &config->project_limits);
    e->shards = mem_calloc(config->mem, e->shard_count, sizeof(*e->shards));
    st = e->shards == NULL ? ST_NO_MEMORY : ST_OK;
    while (st == ST_OK && ready < e->shard_count) {
        st = shard_init(&e->shards[ready], &e->core, config, config->seed + ready + 1);
        if (st == ST_OK)
            ready++;
    }
    if (st != ST_OK) {
        close_shards(e, ready);
        return st;
    }
    *out = &e->store;
    return ST_OK;
}
