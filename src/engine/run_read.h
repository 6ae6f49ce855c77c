/*
 * run_read: has unloaded messages read, and adds them to their backlog.
 *
 *   Threads  the lock of the shard. A read ends in a thread of the journal
 */
#ifndef ENGINE_RUN_READ_H
#define ENGINE_RUN_READ_H

#include "engine/run_ops.h"

/* Requests a run, unless it is requested already. ST_NO_MEMORY. */
enum status run_read(struct shard *sh, struct run *r);

/*
 * Has the messages of a run read, and then written again with others, or logged whole by
 * a checkpoint. So its body file does not need it any more. Does nothing if this
 * checkpoint has moved enough.
 */
void run_move(struct shard *sh, struct run *r);

#endif
