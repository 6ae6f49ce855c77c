/*
 * dead_letter: moves messages whose delivery count has reached the limit to the dead-letter
 * queue, when a claim meets them (docs/adr/0003-dead-letters.md).
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

#endif
