/*
 * crash: a store with its journal lives and dies on a simulated disk, and is judged after
 * each restart (docs/testing.md).
 *
 * A seed is a disk and a row of lives. In each a store is started, works, and ends: by a power
 * cut, by kill -9, in peace; some of the time the disk fails, lies, is full or dies under it,
 * also while it starts. All that it tells its journal is kept here too, with its LSN. The
 * log is one order, so after a restart the store must be what a replica is that was told just
 * what stands in the log; and everything whose answer could have gone out must be in it.
 */
#ifndef TESTS_CRASH_CRASH_H
#define TESTS_CRASH_CRASH_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* How a life ends. */
#define CRASH_END_LIST(X)                                                                \
    X(TORN, "power cuts, torn")                                                          \
    X(LOSING, "power cuts, nothing left that was not synced")                            \
    X(KILL, "kill -9")                                                                   \
    X(PEACE, "peaceful ends")

/* What is wrong with the disk meanwhile. */
#define CRASH_FAULT_LIST(X)                                                              \
    X(NONE, "with a sound disk")                                                         \
    X(SYNC, "with a sync that fails")                                                    \
    X(LYING, "with a sync that fails, and a memory that hides it")                       \
    X(OTHER, "with another operation that fails")                                        \
    X(DIES, "with a disk that dies")                                                     \
    X(SHORT, "with short reads and writes")                                              \
    X(FULL, "with a full disk")

enum crash_end {
#define CRASH_END_ENUM(name, text) CRASH_##name,
    CRASH_END_LIST(CRASH_END_ENUM)
#undef CRASH_END_ENUM
        CRASH_ENDS
};

enum crash_fault {
#define CRASH_FAULT_ENUM(name, text) FAULT_##name,
    CRASH_FAULT_LIST(CRASH_FAULT_ENUM)
#undef CRASH_FAULT_ENUM
        CRASH_FAULTS
};

struct crash_metrics {
    uint64_t seeds, lives, operations, refused, full;
    uint64_t ends[CRASH_ENDS], faults[CRASH_FAULTS];
    uint64_t starts, starts_failed, torn; /* recoveries: of logs with a torn end */
    uint64_t records, commits, checkpoints;
    uint64_t middle;   /* lives that ended in a commit */
    uint64_t failures; /* journals that gave up */
    uint64_t lost,
        survived; /* changes nobody was told of: not there again, there again */
};

/* Runs one seed, and adds to the metrics. Prints what is wrong and aborts if anything is. */
void crash_run(uint64_t seed, struct crash_metrics *metrics);

void crash_print(const struct crash_metrics *metrics, FILE *out);

#endif
