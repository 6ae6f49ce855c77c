/*
 * metrics: counters of a shard (store/metrics.h).
 *
 *   Cost     an addition under the shard's lock, which is held anyway
 *   Threads  counters are read without the lock
 */
#ifndef ENGINE_METRICS_H
#define ENGINE_METRICS_H

#include "claimd/base/lock.h"
#include "claimd/base/mem.h"
#include "claimd/base/status.h"
#include "claimd/store/metrics.h"

#include <stdatomic.h>
#include <stddef.h>

struct shard_metrics {
    struct counter counts[STORE_COUNTERS];
    struct buckets spans[STORE_SPANS];
    /* Of queues without a slot; under the shard's lock: */
    struct store_expired rest;
    uint64_t rest_counts[STORE_QUEUE_COUNTERS];
};

static inline void
metrics_count(struct shard_metrics *f, enum store_counter which, uint64_t by)
{
    counter_add(&f->counts[which], by);
}

/* Counts a duration: 0 if from_ms is later than now_ms because the clock was set. */
static inline void
metrics_span(struct shard_metrics *f, enum store_span which, int64_t from_ms,
             int64_t now_ms)
{
    buckets_add(&f->spans[which], &store_span_bounds[which],
                now_ms > from_ms ? (uint64_t)(now_ms - from_ms) : 0);
}

/*
 * metrics slots: the queues that /metrics shows one by one (store/metrics.h).
 *
 * A queue takes a free slot when it is made, and keeps it until it is deleted. The next
 * queue that is made takes the slot then. So a series never changes its queue, and a
 * queue never loses its series because another one has grown.
 *
 *   Cost     O(1) without a free slot; else a search that is O(1) unless many queues come
 *            and go in another order
 *   Threads  any. The lock of the queue's shard guards the pointer to the queue.
 *            `lock` guards the free slots, and no other lock is taken under it
 */

struct queue;
struct shard;

struct metrics_slot {
    _Atomic(struct shard *) shard; /* of the queue; NULL: free */
    struct queue *queue;
};

struct metrics_slots {
    struct metrics_slot *all; /* owned */
    size_t count;
    struct lock lock;    /* guards lowest, and the free slots */
    size_t lowest;       /* no slot before this one is free */
    _Atomic size_t free; /* number of free slots */
};

/* ST_NO_MEMORY. */
enum status metrics_slots_init(struct metrics_slots *s, struct mem *mem, size_t count);
void metrics_slots_fini(struct metrics_slots *s, struct mem *mem);

/* Give a queue a slot if one is free, and write its number, from 1; take the slot back,
 * and write 0. Both need the lock of the queue's shard. */
void metrics_slots_enter(struct metrics_slots *s, struct shard *sh, struct queue *q,
                         uint32_t *number);
void metrics_slots_leave(struct metrics_slots *s, uint32_t *number);

/* The shard of the first slot in use from *at on, which becomes its index; NULL: none. */
struct shard *metrics_slots_next(const struct metrics_slots *s, size_t *at);

/* The queue of the slot if it is in this shard, whose lock the caller holds; else
 * NULL. */
struct queue *
metrics_slots_queue(const struct metrics_slots *s, size_t at, const struct shard *sh);

#endif
