/*
 * stats: what one driver counted; merged when the drivers have ended.
 */
#ifndef BENCH_STATS_H
#define BENCH_STATS_H

#include "bench/histogram.h"

#include <stdatomic.h>
#include <stdbool.h>

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

const char *op_name(enum op op);

/* Latencies and counts by kind of request. About 340 KB. */
struct op_stats {
    struct histogram latency[OP_COUNT];
    uint64_t requests[OP_COUNT]; /* a pipelined run of commands counts each */
    uint64_t messages[OP_COUNT];
    uint64_t errors[OP_COUNT]; /* refused or not understood */
    struct histogram delivery; /* DELIVERY: from the message's due time to its claim */
};

/* Written by one driver, sampled by the thread that shows progress. */
struct live_stats {
    _Atomic uint64_t requests;
    _Atomic uint64_t messages;
    _Atomic uint64_t errors;
};

struct stats {
    struct live_stats live;
    struct op_stats calm;
    struct op_stats storm; /* requests that started inside the phase's storm window */
    uint64_t empty_claims; /* claims that found nothing */
    uint64_t unfinished;   /* requests due but not answered when the run was cut off */
    int first_error;       /* status of the first refused request; 0: none */
};

/* Zeroed, owned by the caller (free()); NULL when out of memory. */
struct stats *stats_new(void);

void op_stats_merge(struct op_stats *into, const struct op_stats *from);
void stats_merge(struct stats *into, const struct stats *from);

uint64_t op_stats_requests(const struct op_stats *s);
uint64_t op_stats_errors(const struct op_stats *s);

#endif
