#include "engine/instance.h"
#include "claimd/base/invariant.h"
#include "claimd/engine/engine.h"
#include "engine/graveyard.h"
#include "engine/settle.h"
#include "engine/subscription.h"

struct shard *
engine_shard(const struct engine *e, uint64_t hash)
{
    return &e->shards[(hash >> 40) & e->shard_mask];
}

static enum status
engine_ping(struct store *s, struct store_visit *visit)
{
    (void)s, (void)visit; /* memory is always there */
    return ST_OK;
}

static enum status
engine_totals(struct store *s, struct store_visit *visit, struct store_totals *out)
{
    struct engine *e = engine_of(s);

    *out = (struct store_totals){0};
    for (size_t i = 0; i <= e->shard_mask; i++) {
        struct shard *sh = &e->shards[i];
        int64_t now_ms = visit->now_ms;
        enum status st = settle_enter(sh, &now_ms, SETTLE_ALL);

        if (st != ST_OK)
            return st;
        if (visit->position < sh->position)
            visit->position = sh->position;
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
    core_limit(&engine_of(s)->core, limits);
}

/* ---------------------------------------------------------------------- the log */

static enum status
durable_replay(struct store_durable *durable, struct store_change *change)
{
    return engine_replay(engine_of_durable(durable), change);
}

static void
durable_replay_marks(struct store_durable *durable, const struct store_marks *marks)
{
    core_use_up(&engine_of_durable(durable)->core, marks);
}

static enum status
durable_replay_end(struct store_durable *durable, int64_t now_ms)
{
    return engine_replay_end(engine_of_durable(durable), now_ms);
}

static void
durable_marks(struct store_durable *durable, struct store_marks *out)
{
    core_marks(&engine_of_durable(durable)->core, out);
}

static void
durable_live(struct store_durable *durable, uint64_t *messages, uint64_t *bytes)
{
    struct engine *e = engine_of_durable(durable);

    *messages = *bytes = 0;
    for (size_t i = 0; i <= e->shard_mask; i++) {
        struct shard *sh = &e->shards[i];

        lock_acquire(&sh->lock);
        *messages += sh->alive.messages + sh->queues.count + sh->subscriptions;
        *bytes += sh->alive.bytes + sh->feed_bytes;
        lock_release(&sh->lock);
    }
}

static void
durable_checkpoint_begin(struct store_durable *durable)
{
    engine_checkpoint_begin(engine_of_durable(durable));
}

static enum status
durable_checkpoint(struct store_durable *durable, bool *done)
{
    return engine_checkpoint(engine_of_durable(durable), done);
}

static const struct store_durable durable_side = {
    .replay = durable_replay,
    .replay_marks = durable_replay_marks,
    .replay_end = durable_replay_end,
    .marks = durable_marks,
    .live = durable_live,
    .checkpoint_begin = durable_checkpoint_begin,
    .checkpoint = durable_checkpoint,
};

struct store_durable *
engine_durable(struct store *s)
{
    return &engine_of(s)->durable;
}

/* ---------------------------------------------------------------------- life */

/* Frees all that a shard has, and the shard's own. */
static void
close_shard(struct shard *sh)
{
    struct hashnode *node;

    lock_acquire(&sh->lock);
    while ((node = hashmap_walk(&sh->queues, NULL)) != NULL)
        graveyard_bury(sh, container_of(node, struct queue, node));
    while (!graveyard_empty(sh) || !list_empty(&sh->stale_feeds)) {
        size_t budget = SETTLE_SLICE, more = SETTLE_SLICE;

        (void)graveyard_slice(sh, &budget);
        (void)feed_chores(sh, sh->now_ms, &more);
    }
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

static void
engine_close(struct store *s)
{
    struct engine *e = engine_of(s);

    engine_replay_drop(e);
    close_shards(e, e->shard_mask + 1);
}

static const struct store_ops engine_ops = {
    .queue_create = engine_queue_create,
    .queue_get = engine_queue_get,
    .queue_update = engine_queue_update,
    .queue_delete = engine_queue_delete,
    .queue_list = engine_queue_list,
    .project_list = engine_project_list,
    .queue_image = engine_queue_image,
    .queue_load = engine_queue_load,
    .image_release = engine_image_release,
    .queue_stats = engine_queue_stats,
    .queue_purge = engine_queue_purge,
    .message_post = engine_message_post,
    .message_list = engine_message_list,
    .message_get = engine_message_get,
    .message_delete = engine_message_delete,
    .message_pop = engine_message_pop,
    .claim_create = engine_claim_create,
    .claim_get = engine_claim_get,
    .claim_renew = engine_claim_renew,
    .claim_release = engine_claim_release,
    .subscription_create = engine_subscription_create,
    .subscription_get = engine_subscription_get,
    .subscription_list = engine_subscription_list,
    .subscription_update = engine_subscription_update,
    .subscription_delete = engine_subscription_delete,
    .subscription_confirm = engine_subscription_confirm,
    .delivery_next = engine_delivery_next,
    .delivery_done = engine_delivery_done,
    .delivery_watch = engine_delivery_watch,
    .waiter_leave = engine_waiter_leave,
    .ping = engine_ping,
    .totals = engine_totals,
    .figures = engine_figures,
    .queue_figures = engine_queue_figures,
    .housekeep = engine_housekeep,
    .next_ms = engine_next_ms,
    .audit = engine_audit,
    .close = engine_close,
    .batch_release = engine_batch_release,
    .queues_release = engine_queues_release,
    .subscriptions_release = engine_subscriptions_release,
};

enum status
engine_open(const struct engine_config *config, struct store **out)
{
    size_t shards = config->shards, ready = 0;
    struct engine *e;
    enum status st;

    ENSURE(shards > 0 && shards <= 1024 && (shards & (shards - 1)) == 0);
    e = mem_calloc(config->mem, 1, sizeof(*e));
    if (e == NULL)
        return ST_NO_MEMORY;
    e->store.ops = &engine_ops;
    e->durable = durable_side;
    e->shard_mask = shards - 1;
    st = core_init(&e->core, config);
    if (st != ST_OK) {
        mem_free(config->mem, e);
        return st;
    }
    e->shards = mem_calloc(config->mem, shards, sizeof(*e->shards));
    st = e->shards == NULL ? ST_NO_MEMORY : ST_OK;
    while (st == ST_OK && ready < shards) {
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
