/*
 * stats: the measurements of a run: latencies, requests by operation, throughput over
 * time, and the CPU time and memory of processes, from /proc.
 */
#ifndef LOAD_STATS_H
#define LOAD_STATS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ------------------------------------------------------------------ histogram */

/*
 * histogram: the number of values in each of log-linear buckets.
 *
 * Below 256 ns every value has its own bucket. Above, 128 buckets divide each power of
 * two, so a reported value is at most 0.8 % above the recorded one (after G. Tene's
 * HdrHistogram).
 *
 *   Cost     record O(1), percentile O(buckets)
 *   Range    0 .. 2^40 - 1 ns (18 minutes); longer values count as the longest
 *   Threads  none: each driver has its own, merged at the end
 */
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

/* Adds the values of `from` to h. */
void histogram_merge(struct histogram *h, const struct histogram *from);

/*
 * The smallest bucket value that at least percent (0..100) of the recorded values do not
 * exceed. Never above the exact maximum. 0 for an empty histogram.
 */
uint64_t histogram_percentile(const struct histogram *h, double percent);

/* Mean in ns, 0 for an empty histogram. */
double histogram_mean(const struct histogram *h);

/* The bucket of a value and the highest value of a bucket, for tests. */
size_t histogram_bucket(uint64_t value_ns);
uint64_t histogram_bucket_top(size_t bucket);

/* ------------------------------------------------------------------ operations */

/* X(name, text): each kind of request that a scenario can send. */
#define OP_LIST_ALL(X)                                                                   \
    X(HELLO, "hello")                                                                    \
    X(DROP, "drop queue")                                                                \
    X(CREATE, "create queue")                                                            \
    X(POST, "post")                                                                      \
    X(CLAIM, "claim")                                                                    \
    X(DELETE, "delete")                                                                  \
    X(BULK_DELETE, "bulk delete")                                                        \
    X(RELEASE, "release")                                                                \
    X(LIST, "list")

enum op {
#define OP_ENUM(name, text) OP_##name,
    OP_LIST_ALL(OP_ENUM)
#undef OP_ENUM
        OP_COUNT
};

extern const char *const op_names[OP_COUNT];

/* Latencies and counts by kind of request. About 340 KB. */
struct op_stats {
    struct histogram latency[OP_COUNT];
    uint64_t requests[OP_COUNT]; /* a pipelined run of commands counts each */
    uint64_t messages[OP_COUNT];
    uint64_t errors[OP_COUNT]; /* refused or invalid */
    struct histogram delivery; /* DELIVERY: from the message's due time to its claim */
};

/* One driver writes it; the main thread samples it for the progress. */
struct live_stats {
    _Atomic uint64_t requests;
    _Atomic uint64_t messages;
    _Atomic uint64_t errors;
};

struct stats {
    struct live_stats live;
    struct op_stats normal;
    struct op_stats storm; /* requests that started inside the phase's storm window */
    uint64_t empty_claims; /* claims that found nothing */
    uint64_t unfinished;   /* requests that were due and had no response at the end */
    int first_error;       /* status of the first refused request; 0: none */
};

void stats_merge(struct stats *into, const struct stats *from);

/* Sums over all operations, inside and outside the storm window. */
uint64_t stats_requests(const struct stats *s);
uint64_t stats_errors(const struct stats *s);

/* ------------------------------------------------------------------ series */

/* Throughput over time, one sample every 100 ms. */
struct sample {
    double at;         /* seconds since the start of the measurement */
    uint64_t requests; /* since the start of the phase, as are the other two */
    uint64_t messages;
    uint64_t errors;
};

struct series {
    struct sample *samples; /* owned */
    size_t count;
    size_t cap;
};

/* False when out of memory. */
bool series_add(struct series *s, struct sample sample);

/* Per second over `span` samples that end with sample i (i >= span). */
double series_rate(const struct series *s, size_t i, size_t span, bool messages);

/* ------------------------------------------------------------------ processes */

#define PROCESS_MAX 16

struct process_list {
    int32_t pids[PROCESS_MAX];
    size_t count;
};

struct process_usage {
    double cpu_seconds;      /* user and system, to 10 ms */
    uint64_t resident_bytes; /* RSS */
};

/* Sums over the list. False if one of the processes cannot be read. */
bool process_usage(const struct process_list *list, struct process_usage *out);

/* CPU seconds of the calling process. */
double process_own_cpu(void);

/* Reads CPU ticks (user + system) and RSS from the text of /proc/PID/stat. False if it is
 * malformed. */
bool process_parse_stat(const char *text, uint64_t *ticks, uint64_t *resident_pages);

#endif
