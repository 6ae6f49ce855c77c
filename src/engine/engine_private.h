/*
 * engine_private: the engine as its own files see it.
 */
#ifndef ENGINE_ENGINE_PRIVATE_H
#define ENGINE_ENGINE_PRIVATE_H

#include "claimd/base/hash.h"
#include "claimd/engine/engine.h"
#include "engine/directory.h"

#include <stdatomic.h>

struct shard;

struct engine {
    struct store store; /* first: the seam's handle */
    struct mem *mem;
    struct hash_key key; /* of queue addresses */
    struct directory directory;
    int64_t message_ttl_s, message_delay_s; /* defaults */
    int64_t max_message_ttl_s;
    uint64_t tag_start;
    _Atomic uint64_t tags_used;
    _Atomic int64_t next_ms; /* least of the shards' next_ms, or earlier */
    size_t shard_mask;       /* number of shards - 1 */
    struct shard *shards;    /* owned */
};

static inline struct engine *
engine_of(struct store *s)
{
    return (struct engine *)s;
}

/* Keyed hash of a queue's address. */
uint64_t engine_hash(const struct engine *e, const struct store_queue *where);

/* The shard of a hash; other bits than those that choose a chain in the shard's table. */
struct shard *engine_shard(const struct engine *e, uint64_t hash);

/* The tag of the next queue. */
uint32_t engine_next_tag(struct engine *e);

/* Makes e->next_ms at most due_ms. */
void engine_wake_at(struct engine *e, int64_t due_ms);

/*
 * Who is going to add `bytes` in `count` pieces frees twice as much first, if so much of
 * what expired, was purged or was deleted is left anywhere. So garbage never grows faster
 * than it is freed, however busy the event loops are, and what it costs is paid by who
 * makes it. One load when there is nothing to free. Needs no lock, takes those of shards.
 */
void engine_pay(struct engine *e, int64_t now_ms, size_t count, size_t bytes);

/* The operations, in queue_ops.c, message_ops.c and claim_ops.c. */
enum status
engine_queue_create(struct store *s, int64_t now_ms, const struct store_queue *where,
                    const struct store_metadata *metadata, bool *created);
enum status engine_queue_get(struct store *s, int64_t now_ms,
                             const struct store_queue *where, struct store_queues *out);
enum status
engine_queue_update(struct store *s, int64_t now_ms, const struct store_queue *where,
                    uint64_t version, const struct store_metadata *metadata);
enum status
engine_queue_delete(struct store *s, int64_t now_ms, const struct store_queue *where);
enum status engine_queue_list(struct store *s, int64_t now_ms, struct bytes project,
                              struct bytes marker, size_t limit, bool with_metadata,
                              struct store_queues *out);
enum status engine_queue_stats(struct store *s, int64_t now_ms,
                               const struct store_queue *where, struct store_stats *out);
enum status
engine_queue_purge(struct store *s, int64_t now_ms, const struct store_queue *where);
void engine_queues_release(const struct store *s, struct store_queues *queues);

enum status
engine_message_post(struct store *s, int64_t now_ms, const struct store_queue *where,
                    const struct store_post *post, struct store_id *ids);
enum status
engine_message_list(struct store *s, int64_t now_ms, const struct store_queue *where,
                    const struct store_filter *filter, struct store_batch *out);
enum status
engine_message_get(struct store *s, int64_t now_ms, const struct store_queue *where,
                   const struct bytes *ids, size_t count, struct store_batch *out);
enum status
engine_message_delete(struct store *s, int64_t now_ms, const struct store_queue *where,
                      struct bytes id, struct bytes claim_id);
enum status engine_message_delete_many(struct store *s, int64_t now_ms,
                                       const struct store_queue *where,
                                       const struct bytes *ids, size_t count,
                                       const struct bytes *claim_ids, size_t claim_count);
enum status
engine_message_pop(struct store *s, int64_t now_ms, const struct store_queue *where,
                   size_t limit, struct store_batch *out);

enum status
engine_claim_create(struct store *s, int64_t now_ms, const struct store_queue *where,
                    const struct store_terms *terms, size_t limit,
                    struct store_batch *out);
enum status
engine_claim_get(struct store *s, int64_t now_ms, const struct store_queue *where,
                 struct bytes claim_id, struct store_batch *out);
enum status
engine_claim_renew(struct store *s, int64_t now_ms, const struct store_queue *where,
                   struct bytes claim_id, const struct store_terms *terms);
enum status engine_claim_release(struct store *s, int64_t now_ms,
                                 const struct store_queue *where, struct bytes claim_id);

#endif
