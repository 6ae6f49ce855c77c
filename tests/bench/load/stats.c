#include "load/stats.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define PARTS     (UINT64_C(1) << HISTOGRAM_PART_BITS)
#define VALUE_MAX ((UINT64_C(1) << HISTOGRAM_VALUE_BITS) - 1)

/*
 * A bucket number consists of the exponent and the highest 8 bits of the value:
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

uint64_t
histogram_percentile(const struct histogram *h, double percent)
{
    double exact = percent / 100.0 * (double)h->total;
    uint64_t rank = (uint64_t)exact; /* rounded up below, at least 1 */
    uint64_t seen = 0;

    if (h->total == 0)
        return 0;
    if ((double)rank < exact || rank == 0)
        rank++;
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += h->counts[i];
        if (seen >= rank && histogram_bucket_top(i) < h->max)
            return histogram_bucket_top(i);
        if (seen >= rank)
            break;
    }
    return h->max;
}

double
histogram_mean(const struct histogram *h)
{
    return h->total == 0 ? 0 : (double)h->sum / (double)h->total;
}

const char *const op_names[OP_COUNT] = {
#define OP_TEXT(name, text) text,
    OP_LIST_ALL(OP_TEXT)
#undef OP_TEXT
};

static void
op_stats_merge(struct op_stats *into, const struct op_stats *from)
{
    for (size_t i = 0; i < OP_COUNT; i++) {
        histogram_merge(&into->latency[i], &from->latency[i]);
        into->requests[i] += from->requests[i];
        into->messages[i] += from->messages[i];
        into->errors[i] += from->errors[i];
    }
    histogram_merge(&into->delivery, &from->delivery);
}

void
stats_merge(struct stats *into, const struct stats *from)
{
    op_stats_merge(&into->normal, &from->normal);
    op_stats_merge(&into->storm, &from->storm);
    into->empty_claims += from->empty_claims;
    into->unfinished += from->unfinished;
    if (into->first_error == 0)
        into->first_error = from->first_error;
}

uint64_t
stats_requests(const struct stats *s)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < OP_COUNT; i++)
        sum += s->normal.requests[i] + s->storm.requests[i];
    return sum;
}

uint64_t
stats_errors(const struct stats *s)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < OP_COUNT; i++)
        sum += s->normal.errors[i] + s->storm.errors[i];
    return sum;
}

bool
series_add(struct series *s, struct sample sample)
{
    if (s->count == s->cap) {
        size_t cap = s->cap == 0 ? 256 : s->cap * 2;
        struct sample *grown = realloc(s->samples, cap * sizeof *grown);

        if (grown == NULL)
            return false;
        s->samples = grown;
        s->cap = cap;
    }
    s->samples[s->count++] = sample;
    return true;
}

double
series_rate(const struct series *s, size_t i, size_t span, bool messages)
{
    const struct sample *to = &s->samples[i];
    const struct sample *from = &s->samples[i - span];
    uint64_t done =
        messages ? to->messages - from->messages : to->requests - from->requests;
    double seconds = to->at - from->at;

    return seconds > 0 ? (double)done / seconds : 0;
}

/* ------------------------------------------------------------------ processes */

/*
 * The command's name may contain anything, so fields are counted from the last ")": state
 * is field 3, utime 14, stime 15, rss 24.
 */
bool
process_parse_stat(const char *text, uint64_t *ticks, uint64_t *resident_pages)
{
    const char *at = strrchr(text, ')');
    uint64_t user, system, pages;

    if (at == NULL)
        return false;
    if (sscanf(at + 1,
               " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %" SCNu64 " %" SCNu64
               " %*s %*s %*s %*s %*s %*s %*s %*s %" SCNu64,
               &user, &system, &pages) != 3)
        return false;
    *ticks = user + system;
    *resident_pages = pages;
    return true;
}

bool
process_usage(const struct process_list *list, struct process_usage *out)
{
    uint64_t all_ticks = 0;
    uint64_t all_pages = 0;

    for (size_t i = 0; i < list->count; i++) {
        uint64_t ticks, pages;
        char path[64], text[1024];
        FILE *file;
        size_t len;

        snprintf(path, sizeof path, "/proc/%" PRId32 "/stat", list->pids[i]);
        file = fopen(path, "r");
        if (file == NULL)
            return false;
        len = fread(text, 1, sizeof text - 1, file);
        fclose(file);
        text[len] = '\0';
        if (!process_parse_stat(text, &ticks, &pages))
            return false;
        all_ticks += ticks;
        all_pages += pages;
    }
    out->cpu_seconds = (double)all_ticks / (double)sysconf(_SC_CLK_TCK);
    out->resident_bytes = all_pages * (uint64_t)sysconf(_SC_PAGESIZE);
    return true;
}

double
process_own_cpu(void)
{
    struct rusage usage;

    if (getrusage(RUSAGE_SELF, &usage) != 0)
        return 0;
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}
