/*
 * histogram: how often which latency was seen, in log-linear buckets.
 *
 * Below 256 ns every value has its own bucket; above, each power of two is cut into 128
 * equal parts, so that a reported value is at most 0.8 % above the recorded one
 * (the idea of G. Tene's HdrHistogram).
 *
 *   Cost     record O(1), percentile O(buckets)
 *   Range    0 .. 2^40 - 1 ns (18 minutes); longer values count as the longest
 *   Threads  none: each driver has its own, merged at the end
 */
#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

#define HISTOGRAM_PART_BITS  7 /* 128 parts a power of two */
#define HISTOGRAM_VALUE_BITS 40
#define HISTOGRAM_BUCKETS                                                                \
    ((HISTOGRAM_VALUE_BITS - HISTOGRAM_PART_BITS + 1) << HISTOGRAM_PART_BITS)

struct histogram {
    uint64_t total; /* values recorded */
    uint64_t sum;   /* of the values, ns */
    uint64_t max;   /* exact; 0 while total is 0 */
    uint64_t counts[HISTOGRAM_BUCKETS];
};

/* Negative values count as 0. */
void histogram_record(struct histogram *h, int64_t value_ns);

/* Adds what `from` has seen to h. */
void histogram_merge(struct histogram *h, const struct histogram *from);

/*
 * The least bucket value that at least percent (0..100) of the recorded values do not
 * exceed, never above the exact maximum; 0 for an empty histogram.
 */
uint64_t histogram_percentile(const struct histogram *h, double percent);

/* Mean in ns, 0 for an empty histogram. */
double histogram_mean(const struct histogram *h);

/* The bucket of a value and the highest value of a bucket, for tests. */
size_t histogram_bucket(uint64_t value_ns);
uint64_t histogram_bucket_top(size_t bucket);

#endif
