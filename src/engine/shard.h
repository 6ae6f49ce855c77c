/*
 * shard: a mutex, and the queues, claims, timing wheels and wait queues that it guards.
 *
 * The claim wheel holds the ends of claims. The message wheel holds the ends of delays
 * and of lifetimes. The subscription wheel holds the ends of subscriptions and their
 * retries. housekeeping.h handles deadlines that are due.
 *
 *   Threads  every member but the atomics is guarded by `lock`
 */
#ifndef ENGINE_SHARD_H
#define ENGINE_SHARD_H

#include "claimd/base/lock.h"
#include "claimd/store/waitqueue.h"
#include "engine/metrics.h"
#include "engine/queue.h"

/* The parts of a queue, in the order in which a checkpoint reads them (state_read.c). */
enum state_stage {
    STATE_QUEUE,
    STATE_RUNS,
    STATE_MESSAGES,
    STATE_FEED,
    STATE_SUBSCRIPTIONS,
    STATE_END
};

/* The rest that a slice of a checkpoint may read. */
struct allowance {
    size_t messages, bytes;
};

static inline void
allowance_spend(struct allowance *left, size_t messages, size_t bytes)
{
    left->messages -= messages < left->messages ? messages : left->messages;
    left->bytes -= bytes < left->bytes ? bytes : left->bytes;
}

struct checkpoint {
    uint32_t number;
    struct queue *queue; /* being read; NULL: none */
    enum state_stage stage;
    uint64_t at; /* the next number to look at, of a message or a subscription */
    /* Of the queue, or its feed, when read: later ones are in the log. */
    uint64_t last_seq;
    bool in_keys;     /* all queues were read; now come the keys: */
    struct list *key; /* the next one, in the shard's key_order */
    uint64_t moved;   /* bytes of runs that it has had loaded */
    size_t keys_left;
};

/* Changes of one operation that the log appends as one: a crash undoes all of them or
 * none. */
struct change_group {
    struct grouped_change *all; /* borrowed from the operation */
    size_t count, capacity;
    size_t *space; /* the shard that reserves for all of them: its log_reserved */
};

struct shard {
    struct lock lock;
    struct core *core;                /* borrowed */
    struct hashmap queues;            /* by address; owned */
    struct hashmap waitqueues;        /* by address; owned */
    struct list dirty_waitqueues;     /* with waiters that may have to be woken */
    struct list closed_waitqueues;    /* of deleted queues; owned */
    struct wheel *claim_wheel;        /* owned */
    struct wheel *message_wheel;      /* owned */
    struct wheel *subscription_wheel; /* owned; NULL: there never was a subscription */
    struct wheel *run_wheel;          /* owned; NULL: there never was a run */
    struct seqmap_pool pool;          /* for the messages and claims of all queues */
    struct entropy entropy;
    struct tally alive, reclaiming; /* messages of queues, and of the reclaim list */
    struct shard_metrics metrics;
    struct list reclaim_list;   /* oldest first; owned */
    struct list long_backlogs;  /* may have messages to unload (run_unload.c) */
    struct list writes;         /* struct run_write, oldest first; owned */
    struct list ended_runs;     /* to be released by shard_leave(); owned */
    uint64_t loaded_bytes;      /* of all loads since the start */
    int64_t unload_ms;          /* when unload_chore() is useful; WHEEL_NEVER: not */
    int64_t writer_busy_ms;     /* until then the writer is not asked again */
    struct list due_feeds;      /* feeds with due subscriptions, served in turns */
    struct list stale_feeds;    /* with something to free; owned if without a queue */
    struct hashmap keys;        /* struct key, owned; see keys.h */
    struct list key_order;      /* the same, oldest first */
    _Atomic int64_t key_end_ms; /* when the first one ends; INT64_MAX: there are none */
    size_t subscriptions;       /* of queues */
    uint64_t feed_bytes;        /* of queues */
    bool delivery_due;          /* a subscription became due under this lock */
    struct shard *letters_to; /* a claim that is due has dead letters for a queue of this
                                     shard; NULL: none was seen under this lock */
    _Atomic bool has_due_feeds;   /* false: due_feeds is empty */
    uint64_t last_number;         /* of the metadata versions that were given out */
    uint64_t gone_lsn;            /* in the log, of the last deletion of a queue */
    uint64_t lsn;                 /* in the log, of the last change of any queue */
    size_t log_reserved;          /* bytes of the log reserved for changes under way */
    struct change_group *group;   /* collects changes; NULL: each is appended at once */
    struct list checkpoint_order; /* all queues; those not read yet come first */
    struct checkpoint checkpoint;
    bool checkpointing; /* changes are logged as parts of a checkpoint */
    /* Of the operation that has the lock; NULL: not known. */
    const struct store_actor *actor;
    int64_t now_ms;          /* the latest time an operation brought */
    _Atomic int64_t next_ms; /* when housekeeping is next useful, or earlier */
};

enum status shard_init(struct shard *sh, struct core *core,
                       const struct engine_config *config, uint64_t seed);

/* Frees the memory of a shard, which must have no queues, no wait queues and an empty
 * reclaim list. */
void shard_fini(struct shard *sh);

/* Sets the time of a shard without queues, forward or back: before a replay ends. */
void shard_restart(struct shard *sh, int64_t now_ms);

/* Takes the lock. Returns the time at which the operation takes place: now_ms, or the
 * time of an earlier operation if that is later. Time never goes back within a shard. */
int64_t shard_enter(struct shard *sh, int64_t now_ms);

/* Notifies waiters, releases the lock, and fires the wake-ups. */
void shard_leave(struct shard *sh);

/* The queue with this address and hash; NULL if there is none. Needs the lock. */
struct queue *
shard_find(const struct shard *sh, const struct store_queue *where, uint64_t hash);

/* Makes a queue with its version, tag and fence base; not linked yet. NULL without
 * memory. Needs the lock. */
struct queue *shard_new_queue(struct shard *sh, const struct store_queue *where,
                              const struct store_metadata *metadata);

/*
 * Adds a new queue to the directory and reserves memory for shard_link(). If the caller
 * discards the queue, a listing may have shown its name for a moment. Needs the lock
 * until the queue is linked or discarded. ST_NO_MEMORY; ST_PROJECT_QUEUES: see
 * directory_add().
 */
enum status shard_enlist(struct shard *sh, struct queue *q, uint64_t most);

/* Adds an enlisted queue to the table, and connects it with its wait queue, if there is
 * one. Needs the lock. */
void shard_link(struct shard *sh, struct queue *q, uint64_t hash);

/* Frees a new queue that was not linked, enlisted or not. Needs the lock. */
void shard_discard(struct shard *sh, struct queue *q);

/* Removes a queue from the table and the directory, and closes its wait queue. O(log n).
 * Needs the lock. */
void shard_unlink(struct shard *sh, struct queue *q);

/* Arm a deadline, and schedule housekeeping for it. Need the lock. */
void shard_arm_claim(struct shard *sh, struct deadline *d, int64_t due_ms);
void shard_arm_message(struct shard *sh, struct deadline *d, int64_t due_ms);

/* Schedules housekeeping at due_ms or earlier. Needs the lock. */
void shard_wake_at(struct shard *sh, int64_t due_ms);

/* Adds w to the end of the address's wait queue, or keeps its place there. It asks for
 * `wants` messages. ST_NO_MEMORY. Needs the lock. */
enum status shard_wait(struct shard *sh, const struct store_queue *where, uint64_t hash,
                       struct queue *q, struct store_waiter *w, size_t wants);

/* Removes w from its wait queue. The next waiter may have to be woken. Needs the lock. */
void shard_stop_waiting(struct shard *sh, struct store_waiter *w);

/* Frees ended runs, and releases their body files. shard_leave() does so, when the
 * changes of the operation are in the log. Needs the lock. */
void shard_release_runs(struct shard *sh);

/* The backlog of a queue has more ready messages in memory: they may have to be unloaded
 * (run_unload.h), unless the queue is still being replayed. Needs the lock. */
static inline void
shard_consider_unload(struct shard *sh, struct backlog *b)
{
    if (b->messages.ready >= sh->core->unload.backlog_least &&
        sh->core->config.runs != NULL && !list_linked(&b->unload_link) &&
        b->queue->shard == sh)
        list_add_before(&sh->long_backlogs, &b->unload_link);
}

/* Counts messages of a linked queue. Needs the lock. */
static inline void
queue_count(struct queue *q, enum store_queue_counter which, uint64_t by)
{
    q->counts[which] += by;
    if (q->metrics_slot == 0)
        q->shard->metrics.rest_counts[which] += by;
}

static inline void
queue_count_expired(struct queue *q, bool unread, bool dead_letter)
{
    struct store_expired *const all[] = {&q->expired, &q->shard->metrics.rest};

    for (size_t i = 0; i < (q->metrics_slot == 0 ? 2 : 1); i++) {
        all[i]->messages++;
        all[i]->unread += unread;
        all[i]->dead_letters += dead_letter;
    }
}

/* The queue has got ready messages. Needs the lock. */
static inline void
queue_wake_waiters(const struct queue *q)
{
    if (q->waitqueue != NULL)
        waitqueue_mark_dirty(q->waitqueue);
}

#endif
