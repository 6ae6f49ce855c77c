/*
 * dead_letter: moves messages whose delivery count has reached the limit to the
 * dead-letter queue.
 *
 * The two queues may lie in two shards. A claim on a queue with dead letters holds the
 * locks of both shards, taken in the order of the shards (docs/adr/0003-dead-letters.md).
 * So a message is always in exactly one of the queues.
 */
#ifndef ENGINE_DEAD_LETTER_H
#define ENGINE_DEAD_LETTER_H

#include "engine/txn.h"

enum { DEAD_LETTER_SLICE = 64 }; /* messages per slice, at most */

/* Messages that must be encrypted for the dead-letter queue, and their encrypted copies,
 * which are made without a lock. */
struct dead_letter_seals {
    struct metadata *metadata; /* pinned: it names the queue; NULL: none */
    uint64_t hash;             /* of that queue */
    size_t count;
    struct {
        struct message *clear;  /* pinned */
        struct message *sealed; /* owned copy; NULL: not made, or moved */
    } pairs[DEAD_LETTER_SLICE];
    enum status failed; /* not ST_OK: a copy could not be made */
};

/* A transaction on a queue and its dead-letter queue. */
struct dead_letter {
    struct txn from;
    struct shard *target;     /* locked; may be from.shard; NULL: no dead-letter queue */
    struct store_queue where; /* the dead-letter queue; texts of from.queue's metadata */
    uint64_t hash;            /* of where */
    struct dead_letter_seals seals; /* kept between transactions */
};

/* Begins: locks both shards, and expires what is due in the source. ST_AGAIN: as
 * txn_begin(). */
enum status dead_letter_begin(struct dead_letter *dl, struct store *s,
                              struct store_op *op, const struct store_queue *where);
void dead_letter_end(struct dead_letter *dl);

/*
 * Moves the dead letters among the first *count ready messages that dl->from may take, a
 * slice at a time, and releases the locks in between. Then *count is the number of
 * messages that can be claimed. If a move fails, these are the messages in front of the
 * dead letter: ST_NO_MEMORY, statuses of the log or the sealer. ST_AGAIN: there are more
 * dead letters, and the locks are not held.
 */
enum status dead_letters_move(struct dead_letter *dl, size_t *count);

/* Frees encrypted copies that were not moved. Without locks. */
void dead_letter_fini(struct dead_letter *dl);

#endif
