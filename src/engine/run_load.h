/*
 * run_load: reads unloaded messages into memory, when an operation needs them or before.
 *
 * No thread waits for the disk. An operation that needs messages requests them, returns
 * ST_AGAIN with op->loads, and is repeated when they are there.
 *
 *   Threads  the lock of the shard. A load ends in a thread of the journal
 */
#ifndef ENGINE_RUN_LOAD_H
#define ENGINE_RUN_LOAD_H

#include "engine/run_ops.h"
#include "engine/txn.h"

/* The parts of the functions below for a queue that has unloaded messages. */
enum status load_ready(struct txn *t, size_t count);
enum status load_ids(struct txn *t, const struct bytes *ids, size_t count);
void load_next(struct shard *sh, struct backlog *b);

/* Requests those that are not in memory of the first `count` ready messages that the
 * operation may take (txn_available()). ST_OK: all are in memory. ST_AGAIN,
 * ST_NO_MEMORY. */
static inline enum status
txn_load_ready(struct txn *t, size_t count)
{
    return t->queue->backlog->unloaded == 0 ? ST_OK : load_ready(t, count);
}

/* The same for the messages with these ids, if the queue exists. */
static inline enum status
txn_load_ids(struct txn *t, const struct bytes *ids, size_t count)
{
    return t->queue == NULL || t->queue->backlog->unloaded == 0 ? ST_OK
                                                                : load_ids(t, ids, count);
}

/* The same for `count` live messages from number seq on. */
enum status txn_load_from(struct txn *t, uint64_t seq, size_t count);

/* Requests the messages behind those at the head, if only a few of these are left. */
static inline void
load_ahead(struct shard *sh, struct backlog *b)
{
    if (b->unloaded > 0)
        load_next(sh, b);
}

#endif
