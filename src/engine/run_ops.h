/*
 * run_ops: makes, ends and expires runs.
 *
 *   Cost     O(levels) of the tree, or of the messages concerned
 *   Threads  the lock of the shard
 */
#ifndef ENGINE_RUN_OPS_H
#define ENGINE_RUN_OPS_H

#include "engine/shard.h"

/* Adds a run, in place of an older one. The pool has the nodes (run_nodes()). */
void run_link(struct shard *sh, struct backlog *b, struct run *r);
size_t run_nodes(const struct backlog *b, uint64_t first);

/* Adds a run, all of whose messages are unloaded and not counted yet. */
void run_add(struct shard *sh, struct backlog *b, struct run *r);

/* Removes these unloaded messages of a run from their backlog, and ends the run with its
 * last message. Returns the bytes of their bodies. */
uint64_t run_remove(struct shard *sh, struct run *r, uint64_t bits);

/* The message in memory with this number is gone, or the log has it whole. */
void run_forget_one(struct shard *sh, struct backlog *b, uint64_t seq);
static inline void
run_forget(struct shard *sh, struct backlog *b, uint64_t seq)
{
    if (b->runs.live > 0)
        run_forget_one(sh, b, seq);
}

/* Arms the next expiry of the unloaded messages. */
void run_arm(struct shard *sh, struct run *r);

/* Makes what the first run of a shard needs. ST_NO_MEMORY. */
enum status runs_prepare(struct shard *sh);

/* Expires unloaded messages, like expire_messages() in housekeeping.c. */
bool expire_runs(struct shard *sh, int64_t now_ms, size_t *budget);

#endif
