/*
 * instance: an engine, its shards and its operations, as its own files see it.
 */
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
    size_t checkpoint_shard;       /* that is in turn */
    _Atomic size_t delivery_shard; /* where to look first for what is due */
};

static inline struct engine *
engine_of(struct store *s)
{
    return (struct engine *)s;
}

/* The shard of a hash; other bits than those that choose a chain in the shard's table. */
struct shard *engine_shard(const struct engine *e, uint64_t hash);

/* The operations: queue_ops.c, message_ops.c, ... for what they are about, op.c to release a batch,
 * state_read.c, state_load.c, state_replay.c, and instance.c for all shards. */
#define ENGINE_OPERATION(name) store_##name##_fn engine_##name;
STORE_OPERATIONS(ENGINE_OPERATION)
STORE_STATE_OPERATIONS(ENGINE_OPERATION)
#undef ENGINE_OPERATION

/* Frees what a replay needed; replay_end() does, too. */
void engine_replay_drop(struct engine *e);

/*
 * Who is going to add `bytes` in `count` pieces frees twice as much first, if so much of
 * what expired, was purged or was deleted is left anywhere. So garbage never grows faster
 * than it is freed, however busy the event loops are, and what it costs is paid by who
 * makes it. One load when there is nothing to free. Needs no lock, takes those of shards.
 */
void housekeep_pay(struct engine *e, int64_t now_ms, size_t count, size_t bytes);

#endif
