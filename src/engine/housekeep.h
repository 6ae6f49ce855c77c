/*
 * housekeep: slices of what nobody asks for: settling, freeing what is dead.
 */
#ifndef ENGINE_HOUSEKEEP_H
#define ENGINE_HOUSEKEEP_H

#include "engine/instance.h"
#include "engine/shard.h"

/*
 * A slice of each chore of a shard: ends up to *budget messages and claims, but no more
 * than fit into a slice, and takes them off the budget. Returns when the next is useful;
 * <= now_ms: at once.
 */
int64_t housekeep_shard(struct shard *sh, int64_t now_ms, size_t *budget);

/*
 * Who is going to add `bytes` in `count` pieces frees twice as much first, if so much of
 * what expired, was purged or was deleted is left anywhere. So garbage never grows faster
 * than it is freed, however busy the event loops are, and what it costs is paid by who
 * makes it. One load when there is nothing to free. Needs no lock, takes those of shards.
 */
void housekeep_pay(struct engine *e, int64_t now_ms, size_t count, size_t bytes);

#endif
