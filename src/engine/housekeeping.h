/*
 * housekeeping: expiry of what is due in a shard, and deferred frees.
 *
 * Expiry: an operation expires what is due in the wheels that it depends on, up to its
 * own time, before it reads the queue. It does so in slices, between which it releases
 * the lock. So no client can see that something due has not happened yet, however late
 * the housekeeping is. If more than a few slices are due, the operation returns ST_AGAIN.
 *
 *   operation                          expires
 *   post, queue create/show/change     nothing: nothing due can change the response
 *   one message or claim by its id     claims; lifetimes are compared with now
 *   claim, pop, list, stats            claims, delays and lifetimes
 *
 * Reclaiming: a purge or a deletion detaches a backlog in O(1). Housekeeping frees it in
 * slices: the messages, and each claim with the last message that it holds. No operation
 * finds them.
 */
#ifndef ENGINE_HOUSEKEEPING_H
#define ENGINE_HOUSEKEEPING_H

#include "engine/shard.h"

enum expiry { EXPIRE_NOTHING, EXPIRE_CLAIMS, EXPIRE_ALL };

/* Messages and claims per slice: some tens of microseconds under the lock. */
enum { EXPIRE_SLICE = 256 };

/* Takes the lock and expires what is due. *now_ms becomes the time at which the operation
 * takes place. ST_AGAIN: a few slices were not enough, and the lock is not held. */
enum status expire_enter(struct shard *sh, int64_t *now_ms, enum expiry which);

/* Removes a message from its backlog, its claim (which ends with its last message) and
 * the wheel. The caller owns the backlog's pin. Needs the lock. */
void message_detach(struct shard *sh, struct message *m);

/* Removes a queue from its shard, frees it, and moves its backlog to the reclaim list.
 * O(log n). Needs the lock. */
void reclaim_queue(struct shard *sh, struct queue *q);

/* Replaces the queue's backlog by `fresh`, which is empty (NULL: none), and moves the old
 * one to the reclaim list. Needs the lock. */
void reclaim_backlog(struct shard *sh, struct queue *q, struct backlog *fresh);

/* Frees messages and backlogs of the reclaim list, as far as the budget goes. True: the
 * list is empty. Needs the lock. */
bool reclaim_slice(struct shard *sh, int64_t now_ms, size_t *budget);

bool reclaim_audit(const struct shard *sh);

/*
 * Runs a slice of each task of a shard's housekeeping, which handles up to *budget
 * messages and claims, and subtracts them. Returns when the next slice is useful; <=
 * now_ms: at once.
 */
int64_t housekeep_shard(struct shard *sh, int64_t now_ms, size_t *budget);

#endif
