/*
 * housekeeping: expiry of what is due in a shard, and deferred frees.
 *
 * Expiry: an operation expires what is due in the wheels that it depends on, up to its
 * own time, before it reads the queue. It does so in slices, between which it releases
 * the lock. So no client can see that something due has not happened yet, however late
 * the housekeeping is. If more than a few slices are due, the operation returns ST_AGAIN.
 *
 *   operation                          expires
 *   post, queue create/show/purge      nothing: nothing due can change the response
 *   queue change                       claims: their dead letters go by the old settings
 *   one message or claim by its id     claims; lifetimes are compared with now
 *   claim, pop, list, stats            claims, delays and lifetimes
 *
 * Dead letters: a message whose last allowed claim ends moves to the dead-letter queue at
 * once (dead_letter.h). This needs the lock of a second shard, so the claim stays in the
 * wheel meanwhile, and the operation expires it before it goes on.
 *
 * Reclaiming: a purge or a deletion detaches a backlog in O(1). Housekeeping frees it in
 * slices: the messages, and each claim with the last message that it holds. No operation
 * finds them.
 */
#ifndef ENGINE_HOUSEKEEPING_H
#define ENGINE_HOUSEKEEPING_H

#include "engine/shard.h"

struct claim;

enum expiry { EXPIRE_NOTHING, EXPIRE_CLAIMS, EXPIRE_ALL };

/* Messages and claims per slice: some tens of microseconds under the lock. */
enum { EXPIRE_SLICE = 256 };

/* Takes the lock and expires what is due. *now_ms becomes the time at which the operation
 * takes place. ST_AGAIN: a few slices were not enough, and the lock is not held. */
enum status expire_enter(struct shard *sh, int64_t *now_ms, enum expiry which);

/*
 * The same while the caller holds locks of other shards. ST_CHANGED: dead letters have to
 * move first, and the lock is not held. The caller releases all locks and calls
 * expire_enter().
 */
enum status expire_enter_locked(struct shard *sh, int64_t *now_ms, enum expiry which);

/*
 * Defined in dead_letter.c, because a move is a transaction, which begins with expiry.
 *
 * The shard of the dead-letter queue to which messages of a claim have to move when it
 * ends now. NULL: none has to. Needs the lock. O(messages), or O(1) without a dead-letter
 * queue.
 */
struct shard *dead_letters_target(const struct claim *c);

/*
 * Expires due claims of `sh`, and moves their dead letters to queues of `target`. A
 * slice. A dead letter that cannot be moved is requeued, and the next claim moves it.
 * Without locks.
 */
void dead_letters_expire(struct shard *sh, struct shard *target, int64_t now_ms);

/* Expires all messages that are due, and no claims: at the end of a replay, messages
 * expire first. Takes the lock. */
void expire_messages_only(struct shard *sh, int64_t now_ms);

/* Ends a claim that was drained from the wheel, and requeues its messages. Needs the
 * lock. */
void claim_expire(struct shard *sh, struct claim *c, int64_t now_ms);

/* Removes a message from its backlog, its claim (which ends with its last message) and
 * the wheel. The caller gets the backlog's pin of the message. Needs the lock. */
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
