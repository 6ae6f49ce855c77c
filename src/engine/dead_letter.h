/*
 * dead_letter: moves messages whose delivery count has reached the limit to the
 * dead-letter queue (docs/adr/0003-dead-letters.md): when their last claim expires
 * (housekeeping.h), when a finish releases them (claim_finish.c), or else when a claim
 * meets them.
 */
#ifndef ENGINE_DEAD_LETTER_H
#define ENGINE_DEAD_LETTER_H

#include "engine/move.h"

/*
 * Number of messages in front of the first dead letter, of the first `count` that the
 * transaction may take; `count` if there is no dead letter. O(count), or O(1) for a queue
 * without limit.
 */
size_t count_before_dead_letter(const struct txn *t, size_t count);

/*
 * Moves the dead letters among the first `limit` messages that the operation may take, in
 * transactions of its own, a slice in each. *moved: it moved some. ST_AGAIN: there are
 * more, and other requests of the thread should run first. ST_NO_MEMORY, statuses of the
 * log or the sealer: they cannot move now.
 */
enum status dead_letters_move(struct store *s, struct store_op *op,
                              const struct store_queue *where, size_t limit, bool *moved);

#endif
