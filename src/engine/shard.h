/*
 * shard: one mutex with its queues, claims, timing wheels and wait queues.
 *
 * Two wheels: the claim wheel holds the ends of claims, the message wheel the ends of
 * delays and of lifetimes. What happens when they are due is above (housekeeping.h).
 */
#ifndef ENGINE_SHARD_H
#define ENGINE_SHARD_H

#include "claimd/base/lock.h"
#include "claimd/store/waitqueue.h"
#include "engine/figures.h"
#include "engine/queue.h"

/* How far the checkpoint of a shard has come (state_read.c). */
enum state_stage {
    STATE_QUEUE,
    STATE_MESSAGES,
    STATE_FEED,
    STATE_SUBSCRIPTIONS,
    STATE_END
};

struct checkpoint {
    uint32_t number;
    struct queue *queue; /* that is being read; NULL: none */
    enum state_stage stage;
    uint64_t at; /* the next number to look at, of a message or a subscription */
    uint64_t
        last_seq; /* of the queue, or its feed, when read: later ones are in the log */
};

struct shard {
    struct lock lock;
    struct core *core;            /* borrowed */
    struct hashmap queues;        /* by address; owned */
    struct hashmap waitqueues;    /* by address; owned */
    struct list dirty_waitqueues; /* those with waiters that may have to be woken */
    struct list ended; /* wait queues of deleted queues, not in `waitqueues`; owned */
    struct wheel *claim_wheel;        /* owned */
    struct wheel *message_wheel;      /* owned */
    struct wheel *subscription_wheel; /* owned; NULL: there never was a subscription */
    struct seqmap_pool pool;          /* for the messages and claims of all queues */
    struct entropy entropy;
    struct tally alive, reclaiming; /* messages of queues, and of the reclaim list */
    struct figures figures;
    struct list reclaim_list; /* oldest first; owned */
    struct list news;         /* feeds with due subscriptions, in turns */
    struct list stale_feeds;  /* with something to free; those without a queue owned */
    size_t subscriptions;     /* of queues */
    uint64_t feed_bytes;      /* of queues */
    bool tells;               /* a subscription became due since the lock was taken */
    _Atomic bool has_news;    /* there may be feeds in `news` */
    uint64_t last_number;     /* source of versions */
    uint64_t gone_lsn;        /* in the log, of the last deletion of a queue */
    uint64_t lsn;             /* in the log, of the last change of any queue */
    size_t room;              /* in the log, set aside for changes under way */
    struct list checkpoint_order; /* all queues: those that are not read yet first */
    struct checkpoint checkpoint;
    bool checkpointing; /* what is logged is of a checkpoint */
    const struct store_actor
        *actor;              /* of the operation that has the lock; NULL: not known */
    int64_t now_ms;          /* the latest time an operation brought */
    _Atomic int64_t next_ms; /* when housekeeping is next useful, or earlier */
};

enum status shard_init(struct shard *sh, struct core *core,
                       const struct engine_config *config, uint64_t seed);

/* Frees what a shard without queues, wait queues and dead backlogs has. */
void shard_fini(struct shard *sh);

/*
 * Takes the lock. Returns the time the operation takes place at: now_ms, or later if
 * another operation was ahead of its clock. Time never goes back within a shard.
 */
int64_t shard_enter(struct shard *sh, int64_t now_ms);

/* Wakes waiters, releases the lock, and fires the wake-ups. */
void shard_leave(struct shard *sh);

/* The queue with this address and hash; NULL if there is none. Needs the lock. */
struct queue *
shard_find(const struct shard *sh, const struct store_queue *where, uint64_t hash);

/* queue_new() with all that it is given once: version, tag, fencing base. Needs the lock. */
struct queue *shard_new_queue(struct shard *sh, const struct store_queue *where,
                              const struct store_metadata *metadata);

/*
 * Enters a new queue in the directory, and makes sure that shard_link() has what it needs.
 * (Should it be discarded again, a listing may have had its name for a moment.) Needs the
 * lock, until the queue is linked or discarded. ST_NO_MEMORY; ST_PROJECT_QUEUES: see
 * directory_add().
 */
enum status shard_enlist(struct shard *sh, struct queue *q, uint64_t most);

/* Enters an enlisted queue in the table; its wait queue is there already, perhaps. */
void shard_link(struct shard *sh, struct queue *q, uint64_t hash);

/* Frees a new queue that was not linked, enlisted or not. */
void shard_discard(struct shard *sh, struct queue *q);

/* Takes a queue out of table and directory, and ends its wait queue. O(log n). Needs the lock. */
void shard_unlink(struct shard *sh, struct queue *q);

/* Arm a deadline and make sure that housekeeping comes for it. Need the lock. */
void shard_arm_claim(struct shard *sh, struct deadline *d, int64_t due_ms);
void shard_arm_message(struct shard *sh, struct deadline *d, int64_t due_ms);

/* Makes sure that housekeeping comes at due_ms. Needs the lock. */
void shard_wake_at(struct shard *sh, int64_t due_ms);

/* The wait queue of an address; NULL if nobody waits. Needs the lock. */
struct waitqueue *
shard_waitqueue(const struct shard *sh, const struct store_queue *where, uint64_t hash);

/* Puts w at the end of the address's wait queue, or has it wait on there, for so many messages.
 * ST_NO_MEMORY. */
enum status shard_wait(struct shard *sh, const struct store_queue *where, uint64_t hash,
                       struct queue *q, struct store_waiter *w, size_t wants);

/* Takes w out of its wait queue; who is next may have to be called. Needs the lock. */
void shard_stop_waiting(struct shard *sh, struct store_waiter *w);

/* The queue has more messages that can be claimed. */
static inline void
queue_wake_waiters(const struct queue *q)
{
    if (q->waitqueue != NULL)
        waitqueue_mark_dirty(q->waitqueue);
}

#endif
