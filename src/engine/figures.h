/*
 * figures: what a shard has done (store/figures.h), counted where the log is told of it.
 *
 *   Cost     an addition under the shard's lock, which is held anyway
 *   Threads  counts are read without the lock
 */
#ifndef ENGINE_FIGURES_H
#define ENGINE_FIGURES_H

#include "claimd/store/figures.h"

struct figures {
    struct counter counts[STORE_COUNTERS];
    struct buckets spans[STORE_SPANS];
    struct store_expired rest; /* of queues that are not shown; under the shard's lock */
};

static inline void
figures_count(struct figures *f, enum store_counter which, uint64_t by)
{
    counter_add(&f->counts[which], by);
}

/* from_ms may be ahead of now_ms, by a clock that was set: that is no time at all. */
static inline void
figures_span(struct figures *f, enum store_span which, int64_t from_ms, int64_t now_ms)
{
    buckets_add(&f->spans[which], &store_span_bounds[which],
                now_ms > from_ms ? (uint64_t)(now_ms - from_ms) : 0);
}

#endif
