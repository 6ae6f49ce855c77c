/* instance: an engine, its shards and its operations, private to src/engine. */
#ifndef ENGINE_INSTANCE_H
#define ENGINE_INSTANCE_H

#include "engine/core.h"

struct shard;

struct engine {
    struct store store; /* first: the seam's handle */
    struct core core;
    size_t shard_mask;             /* number of shards - 1 */
    struct shard *shards;          /* owned */
    struct replay *replay;         /* owned; NULL: nothing is being replayed */
    uint32_t checkpoint_no;        /* number of the latest checkpoint */
    size_t checkpoint_shard;       /* the shard that the checkpoint reads */
    _Atomic size_t delivery_shard; /* where the search for due deliveries starts */
};

static inline struct engine *
engine_of(struct store *s)
{
    return (struct engine *)s;
}

/* The shard of a hash. It depends on other bits than the position in the shard's table
 * does. */
struct shard *engine_shard(const struct engine *e, uint64_t hash);

/* The operations of the store, in *_ops.c, state_*.c, txn.c (batch_release) and
 * instance.c (all shards). */
#define ENGINE_OPERATION(name) store_##name##_fn engine_##name;
STORE_OPERATIONS(ENGINE_OPERATION)
STORE_STATE_OPERATIONS(ENGINE_OPERATION)
#undef ENGINE_OPERATION

/* Frees what a replay needed. engine_replay_end() does so, too. */
void engine_replay_drop(struct engine *e);

/*
 * Makes a post pay for garbage: before it adds `bytes` in `count` pieces, frees twice as
 * much of what expired, was purged or was deleted, if there is so much. So garbage never
 * grows faster than it is freed, however busy the event loops are. Costs one load if
 * nothing is due. Takes locks of shards.
 */
void housekeep_pay(struct engine *e, int64_t now_ms, size_t count, size_t bytes);

#endif
