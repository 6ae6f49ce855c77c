/*
 * settle: what happens in a shard when its time comes.
 *
 * Operations settle the wheels they depend on up to their `now` before they look, in slices
 * between which the lock is let go; so "due" has always happened before anybody can see
 * otherwise, however late the housekeeping is. Who would have to settle too much asks again.
 *
 *   operation                          settles
 *   post, queue create/show/change     nothing: nothing due can change the answer
 *   one message or claim by its id     claims; lifetimes are compared with now
 *   claim, pop, list, stats            claims, delays and lifetimes
 */
#ifndef ENGINE_SETTLE_H
#define ENGINE_SETTLE_H

#include "engine/shard.h"

enum settle { SETTLE_NOTHING, SETTLE_CLAIMS, SETTLE_ALL };

/* How much is done before the lock is let go: some tens of microseconds' worth. */
enum { SETTLE_SLICE = 256 };

/*
 * Settles and takes the lock; *now_ms becomes the time the operation takes place at.
 * ST_AGAIN: some slices are settled, more is due, and the lock is not held.
 */
enum status settle_enter(struct shard *sh, int64_t *now_ms, enum settle settle);

/* Parts of housekeeping, as far as the budget goes. True when nothing of it is left. */
bool settle_claims(struct shard *sh, int64_t now_ms, size_t *budget);
bool settle_messages(struct shard *sh, int64_t now_ms, size_t *budget);

/*
 * Takes a message out of its backlog, its claim (which may be over then) and the wheel; the
 * caller owns the backlog's pin. Needs the lock.
 */
void settle_remove(struct shard *sh, struct message *m);

#endif
