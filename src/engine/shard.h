/*
 * shard: one mutex with its queues, claims and timing wheels.
 *
 * Two wheels: the claim wheel holds the ends of claims, the message wheel the ends of
 * delays and of lifetimes. Operations settle the wheels they depend on up to their `now`
 * before they look, in slices between which the lock is let go; so "due" has always
 * happened before anybody can see otherwise, however late the housekeeping is. Who would
 * have to settle too much asks again.
 *
 *   operation                          settles
 *   post, queue create/show/change     nothing: nothing due can change the answer
 *   one message or claim by its id     claims; lifetimes are compared with now
 *   claim, pop, list, stats            claims, delays and lifetimes
 */
#ifndef ENGINE_SHARD_H
#define ENGINE_SHARD_H

#include "claimd/base/lock.h"
#include "engine/directory.h"
#include "engine/engine_private.h"
#include "engine/queue.h"

enum settle { SETTLE_CLAIMS, SETTLE_ALL };

struct shard {
    struct lock lock;
    struct engine *engine;
    struct hashmap queues;       /* by (project, name); owned */
    struct wheel *claim_wheel;   /* owned */
    struct wheel *message_wheel; /* owned */
    struct seqmap_pool pool;     /* for the messages and claims of all queues */
    struct entropy entropy;
    struct tally alive, buried; /* messages of queues, and of the graveyard */
    struct list dead_backlogs;  /* the graveyard, oldest first; owned */
    uint64_t last_number;       /* source of versions */
    int64_t now_ms;             /* the latest time an operation brought */
    _Atomic int64_t next_ms;    /* when housekeeping is next useful, or earlier */
};

enum status shard_init(struct shard *sh, struct engine *e,
                       const struct engine_config *config, uint64_t seed);

/* Frees everything the shard has. */
void shard_fini(struct shard *sh);

/*
 * Takes the lock. Returns the time the operation takes place at: now_ms, or later if
 * another operation was ahead of its clock. Time never goes back within a shard.
 */
int64_t shard_enter(struct shard *sh, int64_t now_ms);

/*
 * Settles and takes the lock; *now_ms becomes the time the operation takes place at.
 * ST_AGAIN: some slices are settled, more is due, and the lock is not held.
 */
enum status shard_settle(struct shard *sh, int64_t *now_ms, enum settle settle);
void shard_leave(struct shard *sh);

/* The queue with this address and hash; NULL if there is none. Needs the lock. */
struct queue *
shard_find(const struct shard *sh, const struct store_queue *where, uint64_t hash);

/* A number no other call on this shard has returned. Needs the lock. */
uint64_t shard_number(struct shard *sh);

/* Arm a deadline and make sure that housekeeping comes for it. Need the lock. */
void shard_arm_claim(struct shard *sh, struct claim *c, int64_t due_ms);
void shard_arm_message(struct shard *sh, struct message *m, int64_t due_ms);

/* Makes sure that housekeeping comes at due_ms. Needs the lock. */
void shard_wake_at(struct shard *sh, int64_t due_ms);

/*
 * Takes a message out of its backlog, its claim (which may be over then) and the wheel; the
 * caller owns the backlog's pin.
 */
void shard_remove_message(struct shard *sh, struct message *m);

/*
 * A slice of each chore of housekeeping: ends up to *budget messages and claims, but no more
 * than fit into a slice, and takes them off the budget. Returns when the next is useful;
 * <= now_ms: at once.
 */
int64_t shard_housekeep(struct shard *sh, int64_t now_ms, size_t *budget);

/* Adds what the shard has. ST_AGAIN: too much is due. */
enum status shard_count(struct shard *sh, int64_t now_ms, struct store_totals *totals);

bool shard_audit(struct shard *sh, size_t *queues);

#endif
