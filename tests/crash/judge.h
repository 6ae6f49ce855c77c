/*
 * judge: is a store what a replica of it says, as far as anybody can see?
 */
#ifndef TESTS_CRASH_JUDGE_H
#define TESTS_CRASH_JUDGE_H

#include "crash/replica.h"

enum { JUDGE_TEXT_CAP = 256 };

/*
 * Looks at everything through the store's operations at that time: queues and their metadata,
 * messages in their order, what is free, claims and what they hold. False: why[] says what
 * is different. `fresh`: the store has just been started, so transient queues are empty.
 */
bool judge(struct store *s, const struct replica *r, int64_t now_ms, bool fresh,
           char why[JUDGE_TEXT_CAP]);

#endif
