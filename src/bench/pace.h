/*
 * pace: when each request of an open loop is meant to start.
 *
 * The requests of a run are numbered 0, 1, 2 ... and are due at equal distances; request
 * n belongs to connection n mod connections. A connection that is late sends at once, and
 * its latency counts from the due time: a server that stalls is charged for every request
 * that should have been sent meanwhile (no coordinated omission).
 */
#ifndef BENCH_PACE_H
#define BENCH_PACE_H

#include "bench/stopwatch.h"

struct pace {
    double rate;          /* requests a second over all connections; 0: closed loop */
    int64_t start_ns;     /* when request 0 is due */
    unsigned connections; /* over all threads, > 0 */
};

/* When the round-th request of a connection is due; needs rate > 0. */
static inline int64_t
pace_due(const struct pace *p, unsigned connection, uint64_t round)
{
    double number = (double)round * p->connections + connection;

    return p->start_ns + (int64_t)(number * (double)STOPWATCH_SECOND / p->rate);
}

/* How many requests are due before end_ns; needs rate > 0. */
static inline int64_t
pace_count(const struct pace *p, int64_t end_ns)
{
    struct pace one = {.rate = p->rate, .start_ns = p->start_ns, .connections = 1};
    double about = (double)(end_ns - p->start_ns) * p->rate / (double)STOPWATCH_SECOND;
    uint64_t count = about < 1 ? 0 : (uint64_t)about - 1;

    /* The product is rounded: the due times themselves decide. */
    while (pace_due(&one, 0, count) < end_ns)
        count++;
    return (int64_t)count;
}

#endif
