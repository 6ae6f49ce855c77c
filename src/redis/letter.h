/*
 * letter: dead letters on their way from one queue to another, which may be in another slot.
 *
 * A script takes a letter out of its queue and into that queue's key X, in one step; it arrives in
 * the other queue, which remembers the trip, so that it arrives once; then it is taken out of X, and
 * the trip is forgotten when nobody can still be about to bring it. It is in one queue, or on its way; never in two, never lost. One that is
 * left in X by a process that dies is driven on by the next claim of its queue some seconds later, or by
 * the queue's deletion.
 */
#ifndef REDIS_LETTER_H
#define REDIS_LETTER_H

#include "redis/call.h"

/*
 * Drives on the letters of an answer: from its `from`-th word on, two words each (id, letter), for
 * this queue, for a minute at most: then they may have been lent to somebody else, and have arrived.
 * Letters that cannot arrive now stay on their way: its status is for those who wait for them only.
 */
enum status
letters_drive(const struct call *c, size_t from, const struct store_visit *visit,
              const struct store_queue *where);

#endif
