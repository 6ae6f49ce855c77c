/*
 * dead_letter_outbox: transfers of dead letters from one queue to another, which may be in another slot.
 *
 * A script moves a dead letter out of its queue and into that queue's key X, in one step. Then it is posted to
 * the other queue, which remembers the id of the transfer, so that it arrives once. Then it leaves X. The
 * other queue forgets the transfer when no process can still be about to post it. So a dead letter is in one
 * queue, or in X, never in two, and never lost. If a process ends in between, the next claim of the queue
 * some seconds later completes the transfer, or the queue's deletion does.
 */
#ifndef REDIS_DEAD_LETTER_OUTBOX_H
#define REDIS_DEAD_LETTER_OUTBOX_H

#include "redis/call.h"

/*
 * Transfers the dead letters of a response: from its `from`-th word on, two words each (id of the transfer,
 * dead letter), out of this queue, for a minute at most. Later another process may have them, and they may
 * have arrived. Dead letters that cannot arrive now stay in X: only a caller that waits for them needs the
 * status.
 */
enum status
outbox_deliver(const struct call *c, size_t from, const struct store_visit *visit,
               const struct store_queue *where);

#endif
