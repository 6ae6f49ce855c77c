/*
 * housekeeping: what happens in a shard when its time comes, and what is freed later.
 *
 * Expiry: operations expire what is due in the wheels that they depend on, up to their `now`, before
 * they look. They do so in slices between which they release the lock, so nobody can see that
 * something due has not happened yet, however late the housekeeping is. An operation that would have
 * to expire too much asks again.
 *
 *   operation                          expires
 *   post, queue create/show/change     nothing: nothing due can change the response
 *   one message or claim by its id     claims; lifetimes are compared with now
 *   claim, pop, list, stats            claims, delays and lifetimes
 *
 * Reclaiming: purge and deletion take a backlog away in O(1). It is freed a little at a time:
 * messages first, with the last one of each their claims. Nobody can find what is in it.
 */
#ifndef ENGINE_HOUSEKEEPING_H
#define ENGINE_HOUSEKEEPING_H

#include "engine/shard.h"

enum expiry { EXPIRE_NOTHING, EXPIRE_CLAIMS, EXPIRE_ALL };

/* How much is done before the lock is let go: some tens of microseconds' worth. */
enum { EXPIRE_SLICE = 256 };

/*
 * Expires what is due and takes the lock; *now_ms becomes the time the operation takes place at.
 * ST_AGAIN: more is due than a few slices, and the lock is not held.
 */
enum status expire_enter(struct shard *sh, int64_t *now_ms, enum expiry which);

/* Parts of housekeeping, as far as the budget goes. True when nothing of it is left. */
bool expire_claims(struct shard *sh, int64_t now_ms, size_t *budget);
bool expire_messages(struct shard *sh, int64_t now_ms, size_t *budget);

/*
 * Takes a message out of its backlog, its claim (which may be over then) and the wheel; the
 * caller owns the backlog's pin. Needs the lock.
 */
void message_detach(struct shard *sh, struct message *m);

/* All of these need the lock. */

/* Takes a queue out of its shard and frees it; its backlog is dead. O(log n). */
void reclaim_queue(struct shard *sh, struct queue *q);

/* Gives the queue this empty backlog; the old one is dead. */
void reclaim_backlog(struct shard *sh, struct queue *q, struct backlog *fresh);

/* Frees messages and backlogs as far as the budget goes. True when nothing is left. */
bool reclaim_slice(struct shard *sh, int64_t now_ms, size_t *budget);

bool reclaim_audit(const struct shard *sh);

/*
 * A slice of each chore of a shard: ends up to *budget messages and claims, but no more
 * than fit into a slice, and takes them off the budget. Returns when the next is useful;
 * <= now_ms: at once.
 */
int64_t housekeep_shard(struct shard *sh, int64_t now_ms, size_t *budget);

#endif
