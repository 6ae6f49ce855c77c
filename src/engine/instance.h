/*
 * instance: an engine, its shards and its operations, as its own files see it.
 */
#ifndef ENGINE_INSTANCE_H
#define ENGINE_INSTANCE_H

#include "claimd/store/store.h"
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

/* The operations: queue_ops.c */
store_queue_create_fn engine_queue_create;
store_queue_get_fn engine_queue_get;
store_queue_update_fn engine_queue_update;
store_queue_delete_fn engine_queue_delete;
store_queue_list_fn engine_queue_list;
store_project_list_fn engine_project_list;
store_queue_stats_fn engine_queue_stats;
store_queue_purge_fn engine_queue_purge;
store_queues_release_fn engine_queues_release;

/* state_read.c, state_load.c */
store_read_fn engine_read;
store_records_release_fn engine_records_release;
store_apply_fn engine_apply;
store_checkpoint_begin_fn engine_checkpoint_begin;
store_checkpoint_fn engine_checkpoint;

/* message_ops.c, batch.c */
store_message_post_fn engine_message_post;
store_message_list_fn engine_message_list;
store_message_get_fn engine_message_get;
store_message_delete_fn engine_message_delete;
store_message_pop_fn engine_message_pop;
store_batch_release_fn engine_batch_release;

/* claim_ops.c */
store_claim_create_fn engine_claim_create;
store_claim_get_fn engine_claim_get;
store_claim_renew_fn engine_claim_renew;
store_claim_release_fn engine_claim_release;
store_waiter_leave_fn engine_waiter_leave;

/* subscription_ops.c */
store_subscription_create_fn engine_subscription_create;
store_subscription_get_fn engine_subscription_get;
store_subscription_list_fn engine_subscription_list;
store_subscription_update_fn engine_subscription_update;
store_subscription_delete_fn engine_subscription_delete;
store_subscription_confirm_fn engine_subscription_confirm;
store_subscriptions_release_fn engine_subscriptions_release;

/* delivery_ops.c */
store_delivery_next_fn engine_delivery_next;
store_delivery_done_fn engine_delivery_done;
store_delivery_watch_fn engine_delivery_watch;

/* state_replay.c; _end and _drop also free what the replay needed */
store_replay_fn engine_replay;
store_replay_end_fn engine_replay_end;
void engine_replay_drop(struct engine *e);

/*
 * Who is going to add `bytes` in `count` pieces frees twice as much first, if so much of
 * what expired, was purged or was deleted is left anywhere. So garbage never grows faster
 * than it is freed, however busy the event loops are, and what it costs is paid by who
 * makes it. One load when there is nothing to free. Needs no lock, takes those of shards.
 */
void housekeep_pay(struct engine *e, int64_t now_ms, size_t count, size_t bytes);

#endif
