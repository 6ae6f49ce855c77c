/*
 * replay: the queues of a log while it is replayed. state_replay.c applies the records,
 * and replay_end.c moves the queues to their shards.
 *
 *   Threads  one, before the store serves
 */
#ifndef ENGINE_REPLAY_H
#define ENGINE_REPLAY_H

#include "engine/txn.h"

/* A queue of the log. */
struct replayed_queue {
    struct hashnode node; /* in replay.queues, by its tag */
    uint32_t tag;
    struct queue *queue;     /* owned; NULL: it has no name yet */
    struct backlog *backlog; /* owned */
    struct feed *feed;       /* owned; NULL: none */
    uint64_t last_seq, last_claim;
};

struct replay {
    struct core *core;
    struct shard shard;    /* the replay shard */
    struct hashmap queues; /* struct replayed_queue, owned */
};

/* The queue of the log with this tag; NULL: there is none. */
struct replayed_queue *replayed_find(const struct replay *r, uint32_t tag);

/* Removes messages of a run that a record does not have. */
void replay_drop_stored(struct replay *r, struct backlog *b, const struct run *run,
                        uint64_t bits);

#endif
