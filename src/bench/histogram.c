#include "bench/histogram.h"

#define PARTS     (UINT64_C(1) << HISTOGRAM_PART_BITS)
#define VALUE_MAX ((UINT64_C(1) << HISTOGRAM_VALUE_BITS) - 1)

/*
 * Bucket numbers are the value's highest 8 bits with the exponent in front:
 *
 *   value  0..127     128..255    256..511 (steps of 2)   512..1023 (steps of 4)
 *   bucket 0..127     128..255    256..383                384..511
 */
size_t
histogram_bucket(uint64_t value_ns)
{
    unsigned shift;

    if (value_ns > VALUE_MAX)
        value_ns = VALUE_MAX;
    if (value_ns < PARTS)
        return (size_t)value_ns;
    shift = 63U - (unsigned)__builtin_clzll(value_ns) - HISTOGRAM_PART_BITS;
    return (size_t)(((uint64_t)shift << HISTOGRAM_PART_BITS) + (value_ns >> shift));
}

uint64_t
histogram_bucket_top(size_t bucket)
{
    uint64_t part;
    unsigned shift;

    if (bucket < PARTS)
        return bucket;
    shift = (unsigned)(bucket >> HISTOGRAM_PART_BITS) - 1;
    part = (uint64_t)bucket - ((uint64_t)shift << HISTOGRAM_PART_BITS);
    return ((part + 1) << shift) - 1;
}

void
histogram_record(struct histogram *h, int64_t value_ns)
{
    uint64_t value = value_ns < 0 ? 0 : (uint64_t)value_ns;

    h->counts[histogram_bucket(value)]++;
    h->total++;
    h->sum += value;
    if (value > h->max)
        h->max = value;
}

void
histogram_merge(struct histogram *h, const struct histogram *from)
{
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
        h->counts[i] += from->counts[i];
    h->total += from->total;
    h->sum += from->sum;
    if (from->max > h->max)
        h->max = from->max;
}

/* How many values must be covered: percent of the total, rounded up, at least one. */
static uint64_t
rank_of(uint64_t total, double percent)
{
    double exact = percent / 100.0 * (double)total;
    uint64_t rank = (uint64_t)exact;

    if ((double)rank < exact)
        rank++;
    if (rank == 0)
        rank = 1;
    return rank > total ? total : rank;
}

uint64_t
histogram_percentile(const struct histogram *h, double percent)
{
    uint64_t rank = rank_of(h->total, percent);
    uint64_t seen = 0;

    if (h->total == 0)
        return 0;
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += h->counts[i];
        if (seen >= rank) {
            uint64_t top = histogram_bucket_top(i);

            return top < h->max ? top : h->max;
        }
    }
    return h->max;
}

double
histogram_mean(const struct histogram *h)
{
    return h->total == 0 ? 0 : (double)h->sum / (double)h->total;
}
