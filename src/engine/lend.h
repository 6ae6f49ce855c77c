/*
 * lend: the numbers of a transient queue, which its log lends it in large pieces.
 *
 * What a transient queue does is not logged, so after a restart the log does not know which
 * numbers of messages and claims it has used. It says beforehand up to which they may be
 * used; the queue that begins anew goes on behind those. So markers that clients hold, and
 * fencing numbers, never meet a smaller one.
 */
#ifndef ENGINE_LEND_H
#define ENGINE_LEND_H

#include "engine/changelog.h"

/* Before the queue uses so many more: asks the log for a loan if need be. */
enum status lend_reserve(struct queue *q, uint64_t messages, uint64_t claims);

/* It has used them: tells the log of the loan, if there is a new one. */
void lend_commit(struct queue *q, int64_t now_ms);

#endif
