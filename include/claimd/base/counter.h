/*
 * counter: numbers that one thread at a time writes and any thread reads, such as the
 * counters of a worker or a shard.
 *
 *   Cost     the cost of a plain variable, because no instruction locks the bus
 *   Threads  one writer at a time; the owner ensures this with a lock, or with one thread
 *            that writes. Any thread may read at any time. A reader may see a value that
 *            is a moment old
 */
#ifndef CLAIMD_BASE_COUNTER_H
#define CLAIMD_BASE_COUNTER_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct counter {
    _Atomic uint64_t value;
};

static inline uint64_t
counter_read(const struct counter *c)
{
    return atomic_load_explicit(&c->value, memory_order_relaxed);
}

static inline void
counter_add(struct counter *c, uint64_t by)
{
    atomic_store_explicit(&c->value, counter_read(c) + by, memory_order_relaxed);
}

/* Subtracts from a gauge. A counter of the metrics never decreases. */
static inline void
counter_subtract(struct counter *c, uint64_t by)
{
    atomic_store_explicit(&c->value, counter_read(c) - by, memory_order_relaxed);
}

static inline void
counter_set(struct counter *c, uint64_t value)
{
    atomic_store_explicit(&c->value, value, memory_order_relaxed);
}

enum { BUCKETS_MAX = 14 };

/* The buckets of a histogram. Bucket i has the values up to at[i] that are above the
 * bound before it. Bucket `count`, the last one, has the values above all bounds. */
struct bucket_bounds {
    size_t count;             /* of bounds, at most BUCKETS_MAX */
    uint64_t at[BUCKETS_MAX]; /* ascending */
};

/* The number of values in each bucket (not cumulative), and the sum of all values. */
struct buckets {
    struct counter counts[BUCKETS_MAX + 1];
    struct counter sum;
};

/* Counts a value. */
static inline void
buckets_add(struct buckets *b, const struct bucket_bounds *bounds, uint64_t value)
{
    size_t i = 0;

    while (i < bounds->count && value > bounds->at[i])
        i++;
    counter_add(&b->counts[i], 1);
    counter_add(&b->sum, value);
}

/* Adds the counts and the sum of `from`, which have the same bounds, to `to`. No other
 * thread may write `to`. */
static inline void
buckets_merge(struct buckets *to, const struct buckets *from)
{
    for (size_t i = 0; i <= BUCKETS_MAX; i++)
        counter_add(&to->counts[i], counter_read(&from->counts[i]));
    counter_add(&to->sum, counter_read(&from->sum));
}

#endif
