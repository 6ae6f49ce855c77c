/*
 * recorder: workers that use a few queues of a real server at the same time, each over a
 * connection of its own, and write down what they saw.
 *
 * They work in windows of a few operations each. No thread begins the next one before all
 * have ended theirs, and none of the first requests of a window is sent before all have
 * been called. So however the machine shares its time, operations overlap at each
 * beginning, and none overlaps with more than a window has.
 *
 * Some claims and pops wait for a message. If there is none, a feeder does: a worker
 * that posts where a client has been waiting for a while, and does nothing else.
 * Before that it fetches the number of requests that wait for a message. If these are
 * all that may, and none came or went meanwhile, it notes that each of them is in the
 * wait queue (queued_ns).
 *
 * If the server is to be killed, the test requests that from its parent: a line "kill"
 * goes out, at some moment of each part of the history and at its end, and a line
 * comes in when it is there again, at the same address and with all that it had. Then
 * one thread reads all of it. A request that was cut off has no response, and ends
 * when its connection broke: the process was gone by then.
 */
#ifndef TESTS_LINEAR_RECORDER_H
#define TESTS_LINEAR_RECORDER_H

#include "model/linear/operation.h"

struct recording {
    const char *host;
    /* Of the server, or of two that share their store: each has half of the workers. */
    const char *ports[2];
    uint64_t seed;  /* of the workers' choices; the scheduling is not ours */
    uint64_t round; /* part of the queues' names: every round has fresh ones */
    unsigned workers;
    unsigned operations; /* of each worker: a multiple of `window` */
    unsigned window;     /* of these in a row before it waits for the others */
    unsigned kills;      /* of the server; not 0: no request waits for messages */
};

enum { RECORDER_QUEUES = 2 };

struct history {
    struct operation ops[LINEAR_OPERATIONS];
    size_t count;
};

/* Records one history for each queue. The operations leave space for the feeder's. */
void record(const struct recording *recording, struct history out[RECORDER_QUEUES]);

#endif
