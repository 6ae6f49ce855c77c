#include "claimd/engine/engine.h"
#include "engine/batch.h"
#include "engine/shard.h"

#include <assert.h>

uint64_t
engine_hash(const struct engine *e, const struct store_queue *where)
{
    return hash_mix(hash_bytes(&e->key, where->name) * 3 +
                    hash_bytes(&e->key, where->project));
}

struct shard *
engine_shard(const struct engine *e, uint64_t hash)
{
    return &e->shards[(hash >> 40) & e->shard_mask];
}

uint32_t
engine_next_tag(struct engine *e)
{
    return ident_tag(e->tag_start, atomic_fetch_add(&e->tags_used, 1));
}

void
engine_wake_at(struct engine *e, int64_t due_ms)
{
    int64_t next_ms = atomic_load(&e->next_ms);

    while (due_ms < next_ms &&
           !atomic_compare_exchange_weak(&e->next_ms, &next_ms, due_ms))
        continue;
}

/* A piece frees at least so many bytes: a message's structure, its header, its index. */
enum { PIECE_BYTES = 128, PAY_AT_LEAST = 8 };

void
engine_pay(struct engine *e, int64_t now_ms, size_t count, size_t bytes)
{
    size_t budget = PAY_AT_LEAST + 2 * (count + bytes / PIECE_BYTES);

    if (atomic_load_explicit(&e->next_ms, memory_order_relaxed) > now_ms)
        return;
    for (size_t i = 0; i <= e->shard_mask && budget > 0; i++) {
        struct shard *sh = &e->shards[i];

        if (atomic_load_explicit(&sh->next_ms, memory_order_relaxed) > now_ms)
            continue;
        while (budget > 0 && shard_housekeep(sh, now_ms, &budget) <= now_ms)
            continue;
    }
}

static enum status
engine_ping(struct store *s, int64_t now_ms)
{
    (void)s, (void)now_ms; /* memory is always there */
    return ST_OK;
}

static enum status
engine_totals(struct store *s, int64_t now_ms, struct store_totals *out)
{
    struct engine *e = engine_of(s);

    *out = (struct store_totals){0};
    for (size_t i = 0; i <= e->shard_mask; i++) {
        enum status st = shard_count(&e->shards[i], now_ms, out);

        if (st != ST_OK)
            return st;
    }
    return ST_OK;
}

static int64_t
housekeep(struct shard *sh, int64_t now_ms)
{
    size_t budget = SIZE_MAX; /* a slice is bounded by itself */

    return shard_housekeep(sh, now_ms, &budget);
}

static void
engine_housekeep(struct store *s, int64_t now_ms, int64_t *next_ms)
{
    struct engine *e = engine_of(s);

    /* Whoever arms something from here on lowers next_ms again; nobody's wish is lost. */
    atomic_store(&e->next_ms, WHEEL_NEVER);
    for (size_t i = 0; i <= e->shard_mask; i++)
        engine_wake_at(e, housekeep(&e->shards[i], now_ms));
    *next_ms = atomic_load(&e->next_ms);
}

static int64_t
engine_next_ms(struct store *s)
{
    return atomic_load_explicit(&engine_of(s)->next_ms, memory_order_relaxed);
}

static bool
engine_audit(struct store *s)
{
    struct engine *e = engine_of(s);
    size_t total = 0;

    for (size_t i = 0; i <= e->shard_mask; i++) {
        size_t queues;

        if (!shard_audit(&e->shards[i], &queues))
            return false;
        total += queues;
    }
    return directory_audit(&e->directory, total);
}

static void
close_shards(struct engine *e, size_t count)
{
    while (count > 0)
        shard_fini(&e->shards[--count]);
    directory_fini(&e->directory);
    mem_free(e->mem, e->shards);
    mem_free(e->mem, e);
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
    .ping = engine_ping,
    .totals = engine_totals,
    .housekeep = engine_housekeep,
    .next_ms = engine_next_ms,
    .audit = engine_audit,
    .close = engine_close,
    .batch_release = engine_batch_release,
    .queues_release = engine_queues_release,
};

/* Draws the secrets of a new engine. */
static enum status
draw_secrets(struct engine *e, const struct engine_config *config, struct hash_key *names)
{
    uint64_t words[5];
    struct entropy entropy;
    enum status st;

    if (config->seeded)
        entropy_init_seeded(&entropy, config->seed);
    else
        entropy_init_system(&entropy);
    st = entropy_reserve(&entropy, sizeof(words));
    if (st != ST_OK)
        return st;
    entropy_take(&entropy, words, sizeof(words));
    e->key = (struct hash_key){words[0], words[1]};
    *names = (struct hash_key){words[2], words[3]};
    e->tag_start = words[4] >> 32;
    return ST_OK;
}

enum status
engine_open(const struct engine_config *config, struct store **out)
{
    size_t shards = config->shards, ready = 0;
    struct hash_key names;
    struct engine *e;
    enum status st;

    assert(shards > 0 && shards <= 1024 && (shards & (shards - 1)) == 0);
    e = mem_calloc(config->mem, 1, sizeof(*e));
    if (e == NULL)
        return ST_NO_MEMORY;
    e->store.ops = &engine_ops;
    e->mem = config->mem;
    e->message_ttl_s = config->message_ttl_s;
    e->message_delay_s = config->message_delay_s;
    e->max_message_ttl_s = config->max_message_ttl_s;
    e->shard_mask = shards - 1;
    atomic_init(&e->next_ms, WHEEL_NEVER);
    atomic_init(&e->tags_used, 0);
    st = draw_secrets(e, config, &names);
    if (st != ST_OK) {
        mem_free(e->mem, e);
        return st;
    }
    directory_init(&e->directory, e->mem, names);
    e->shards = mem_calloc(e->mem, shards, sizeof(*e->shards));
    st = e->shards == NULL ? ST_NO_MEMORY : ST_OK;
    while (st == ST_OK && ready < shards) {
        st = shard_init(&e->shards[ready], e, config, config->seed + ready + 1);
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
