/*
 * ticks: nanoseconds for measuring. A load generator needs finer time than base/clock
 * gives, and none of what it measures may depend on the wall clock.
 */
#ifndef BENCH_TICKS_H
#define BENCH_TICKS_H

#include <stdint.h>
#include <time.h>

#define TICKS_SECOND INT64_C(1000000000)

static inline int64_t
ticks_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * TICKS_SECOND + ts.tv_nsec;
}

#endif
