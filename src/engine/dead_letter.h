/*
 * dead_letter: moves messages whose delivery count has reached the limit to the dead-letter
 * queue (docs/adr/0003-dead-letters.md): when their last claim expires (housekeeping.h), when
 * a finish releases them (claim_finish.c), or else when a claim meets them.
 */
#ifndef ENGINE_DEAD_LETTER_H
#define ENGINE_DEAD_LETTER_H

#include "engine/move.h"

/* A claim on a queue that may have a dead-letter queue, which is the target of the pair then. */
struct dead_letter {
    struct move_pair pair;
    struct move_seals seals; /* kept between transactions */
};

/* Begins: as move_pair_begin(). Ends with move_pair_end(). */
enum status dead_letter_begin(struct dead_letter *dl, struct store *s,
                              struct store_op *op, const struct store_queue *where);

/*
 * Moves the dead letters among the first *count ready messages that the claim may take, a
 * slice at a time, and releases the locks in between. Then *count is the number of
 * messages that can be claimed. If a move fails, these are the messages in front of the
 * dead letter: ST_NO_MEMORY, statuses of the log or the sealer. ST_AGAIN: there are more
 * dead letters, and the locks are not held.
 */
enum status dead_letters_move(struct dead_letter *dl, size_t *count);

/* True if the queue dead-letters messages that were claimed too often. */
bool limits_claims(const struct queue *q);

/* True if m has been claimed as often as its queue allows, and the queue has a dead-letter
 * queue. */
bool is_exhausted(const struct queue *q, const struct message *m);

#endif
