/*
 * run_unload: writes ready messages far behind the head of a queue to body files, and
 * frees them, while more memory than backlog_memory is in use.
 *
 *   Cost     a block of 64 numbers: copying the bodies to the buffer of the writer.
 *            Freeing 64 messages
 *   Threads  the lock of the shard
 */
#ifndef ENGINE_RUN_UNLOAD_H
#define ENGINE_RUN_UNLOAD_H

#include "engine/run_ops.h"

/* Unloads at most so many blocks of 64 messages, as far as memory is needed. */
void unload_blocks(struct shard *sh, size_t blocks);

/* The same, as a post pays for the messages that it adds. */
static inline void
unload_pay(struct shard *sh, size_t messages)
{
    if (!list_empty(&sh->long_backlogs) || !list_empty(&sh->writes))
        unload_blocks(sh, 2 + 2 * messages / RUN_MESSAGES);
}

/* A task of housekeeping.c. */
bool unload_chore(struct shard *sh, int64_t now_ms, size_t *budget);

/* Before a backlog is detached: forgets what is being written. */
void unload_forget(struct shard *sh, const struct backlog *b);

/* Before the store is closed: frees what is being written. */
void unload_drop_all(struct shard *sh);

#endif
