/*
 * stopwatch: nanoseconds for measuring. A load generator needs finer time than base/clock
 * gives, and none of what it measures may depend on the wall clock.
 */
#ifndef BENCH_STOPWATCH_H
#define BENCH_STOPWATCH_H

#include <stdint.h>
#include <time.h>

#define STOPWATCH_SECOND INT64_C(1000000000)

static inline int64_t
stopwatch_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * STOPWATCH_SECOND + ts.tv_nsec;
}

#endif
