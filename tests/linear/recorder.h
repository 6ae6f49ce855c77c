/*
 * recorder: workers that use a few queues of a real server at the same time, each over a
 * connection of its own, and write down what they saw.
 */
#ifndef TESTS_LINEAR_RECORDER_H
#define TESTS_LINEAR_RECORDER_H

#include "linear/operation.h"

struct recording {
    const char *host, *port; /* of the server */
    uint64_t seed;           /* of the workers' choices; the scheduling is not ours */
    uint64_t round;          /* part of the queues' names: every round has fresh ones */
    unsigned workers;
    unsigned operations; /* of each worker */
};

enum { RECORDER_QUEUES = 2 };

struct history {
    struct operation ops[LINEAR_OPERATIONS];
    size_t count;
};

/* Records one history for each queue. workers * operations <= LINEAR_OPERATIONS. */
void record(const struct recording *recording, struct history out[RECORDER_QUEUES]);

#endif
