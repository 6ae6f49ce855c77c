/*
 * dead_letter: messages that were claimed too often move to another queue.
 *
 * The two queues may lie in two shards. A claim on a queue with dead letters holds both
 * shards' locks, taken in the order of the shards (docs/adr/0003-dead-letters.md), so
 * that a message is always in exactly one of the queues.
 */
#ifndef ENGINE_DEAD_LETTER_H
#define ENGINE_DEAD_LETTER_H

#include "engine/engine_private.h"
#include "engine/queue.h"

/* Two shards under lock; `target` is NULL if there are no dead letters to think of. */
struct dead_letter {
    struct shard *source, *target; /* may be the same; source NULL: not entered */
    struct queue *queue;           /* of the claim; NULL if it does not exist */
    struct store_queue where;      /* the dead letter queue; texts of queue's metadata */
    uint64_t hash;                 /* of where */
    int64_t now_ms;                /* the time the operation takes place at */
};

/*
 * Enters the queue's shard, settled, and that of its dead letter queue if it has one.
 * ST_AGAIN: see shard_settle(); no lock is held, and *out may be left all the same.
 */
enum status dead_letter_enter(struct engine *e, int64_t now_ms,
                              const struct store_queue *where, struct dead_letter *out);

/* Lets go of the locks. Fine if they are not held. */
void dead_letter_leave(struct dead_letter *dl);

/*
 * How many of the first `count` ready messages stand in front of the first dead letter
 * among them; count if there is none (or there are fewer messages). Its number in *seq.
 */
size_t dead_letter_scan(const struct dead_letter *dl, size_t count, uint64_t *seq);

/*
 * Moves a slice of the dead letters that stand in a row from number seq on; there is at
 * least one. Makes the target queue if needed. ST_NO_MEMORY: nothing was moved.
 */
enum status dead_letter_move(struct dead_letter *dl, uint64_t seq);

#endif
