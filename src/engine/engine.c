#include "claimd/engine/engine.h"
#include "claimd/base/invariant.h"
#include "engine/graveyard.h"
#include "engine/housekeep.h"
#include "engine/settle.h"

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

/* Nothing here waits for a log of the engine's own. */
static enum store_fate
engine_fate(struct store *s, uint64_t position)
{
    (void)s, (void)position;
    return STORE_DURABLE;
}

static void
engine_no_watch(struct store *s, struct store_watcher *watcher)
{
    (void)s, (void)watcher; /* there is never any news */
}

/* Frees all that a shard has, and the shard's own. */
static void
close_shard(struct shard *sh)
{
    struct hashnode *node;

    lock_acquire(&sh->lock);
    while ((node = hashmap_walk(&sh->queues, NULL)) != NULL)
        graveyard_bury(sh, container_of(node, struct queue, node));
    while (!graveyard_empty(sh)) {
        size_t budget = SETTLE_SLICE;

        (void)graveyard_slice(sh, &budget);
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

    close_shards(e, e->shard_mask + 1);
}

static const struct store_ops engine_ops = {
    .queue_create = engine_queue_create,
    .queue_get = engine_queue_get,
    .queue_update = engine_queue_update,
    .queue_delete = engine_queue_delete,
    .queue_list = engine_queue_list,
    .queue_stats = engine_queue_stats,
    .queue_purge = engine_queue_purge,
    .message_post = engine_message_post,
    .message_list = engine_message_list,
    .message_get = engine_message_get,
    .message_delete = engine_message_delete,
    .message_delete_many = engine_message_delete_many,
    .message_pop = engine_message_pop,
    .claim_create = engine_claim_create,
    .claim_get = engine_claim_get,
    .claim_renew = engine_claim_renew,
    .claim_release = engine_claim_release,
    .claim_give_back = engine_claim_give_back,
    .waiter_leave = engine_waiter_leave,
    .fate = engine_fate,
    .watch = engine_no_watch,
    .unwatch = engine_no_watch,
    .ping = engine_ping,
    .totals = engine_totals,
    .housekeep = engine_housekeep,
    .next_ms = engine_next_ms,
    .audit = engine_audit,
    .close = engine_close,
    .batch_release = engine_batch_release,
    .queues_release = engine_queues_release,
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
