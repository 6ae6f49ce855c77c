/*
 * dead_letter: messages that were claimed too often move to another queue.
 *
 * The two queues may lie in two shards. A claim on a queue with dead letters holds both
 * shards' locks, taken in the order of the shards (docs/adr/0003-dead-letters.md), so
 * that a message is always in exactly one of the queues.
 */
#ifndef ENGINE_DEAD_LETTER_H
#define ENGINE_DEAD_LETTER_H

#include "engine/txn.h"

enum { DEAD_LETTER_SLICE = 64 }; /* messages moved in one go, at most */

/* Messages that must be encrypted for the dead-letter queue, and their encrypted copies. Copies are
 * made without a lock. */
struct dead_letter_seals {
    struct metadata *metadata; /* pinned: it names the queue; NULL: none */
    uint64_t hash;             /* of that queue */
    size_t count;
    struct {
        struct message *clear;  /* pinned */
        struct message *sealed; /* owned copy; NULL: not made, or moved */
    } pairs[DEAD_LETTER_SLICE];
    enum status failed; /* why a copy could not be made */
};

/* A transaction on a queue and its dead-letter queue. */
struct dead_letter {
    struct txn from;
    struct shard *target;     /* locked, may be from.shard; NULL: no dead letters */
    struct store_queue where; /* the dead-letter queue; texts of from.queue's metadata */
    uint64_t hash;            /* of where */
    struct dead_letter_seals seals; /* kept between transactions */
};

/* Enters, with all expired that is due. ST_AGAIN: as txn_begin(). */
enum status dead_letter_enter(struct dead_letter *dl, struct store *s,
                              struct store_op *op, const struct store_queue *where);
void dead_letter_leave(struct dead_letter *dl);

/*
 * How many of the first `count` messages that dl->from may take stand in front of the first
 * dead letter among them; count if there is none (or there are fewer). Its number in *seq.
 */
size_t dead_letter_scan(const struct dead_letter *dl, size_t count, uint64_t *seq);

/*
 * Moves a slice of the dead letters that stand in a row from number seq on; there is at
 * least one. Makes the target queue if needed. ST_NO_MEMORY, or what the log or the sealer
 * says: nothing was moved. ST_SEALED: nothing was moved, because dead_letter_seal() has to
 * encrypt them.
 */
enum status dead_letter_move(struct dead_letter *dl, uint64_t seq);

/* Encrypts what dead_letter_move() found, and then can move. Without locks. Up to 64 KiB. */
void dead_letter_seal(struct dead_letter *dl);

/* Frees what was encrypted and not moved. Without locks. */
void dead_letter_fini(struct dead_letter *dl);

#endif
