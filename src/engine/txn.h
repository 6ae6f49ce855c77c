/*
 * txn: a transaction, the work of one operation on one queue under the lock of its shard.
 *
 *     txn_begin()     expires what is due, locks the shard, finds the queue
 *       reserve       does everything that can fail, txn_reserve() last
 *       commit        cannot fail; changes are logged (changelog.h)
 *     txn_end()       sets op->lsn, notifies waiters, releases the lock
 *
 * An operation has one place where it reserves and one where it commits.
 */
#ifndef ENGINE_TXN_H
#define ENGINE_TXN_H

#include "engine/changelog.h"
#include "engine/housekeeping.h"

/* An engine, its shards and its operations. */
struct engine {
    struct store store; /* first: the handle of the store interface */
    struct core core;
    size_t shard_mask;             /* number of shards of queues and topics - 1 */
    size_t shard_count;            /* with the last shard, which has all schedules */
    struct shard *shards;          /* owned */
    struct replay *replay;         /* owned; NULL: nothing is being replayed */
    uint32_t checkpoint_no;        /* number of the latest checkpoint */
    size_t checkpoint_shard;       /* the shard that the checkpoint reads */
    _Atomic size_t delivery_shard; /* where the search for due deliveries starts */
};

static inline struct engine *
engine_of(struct store *s)
{
    return (struct engine *)s;
}

/* The shard of a hash. It depends on other bits than the position in the shard's table
 * does. */
struct shard *engine_shard(const struct engine *e, uint64_t hash);

/* The operations of the store, in *_ops.c, post.c, claim_finish.c, redrive.c, state_*.c,
 * txn.c (batch_release) and instance.c (all shards). */
#define ENGINE_OPERATION(name) store_##name##_fn engine_##name;
STORE_OPERATIONS(ENGINE_OPERATION)
STORE_STATE_OPERATIONS(ENGINE_OPERATION)
#undef ENGINE_OPERATION

/* Frees what a replay needed. engine_replay_end() does so, too. */
void engine_replay_drop(struct engine *e);

/*
 * Makes a post pay for garbage: before it adds `bytes` in `count` pieces, frees twice as
 * much of what expired, was purged or was deleted, if there is so much. So garbage never
 * grows faster than it is freed, however busy the event loops are. Costs one load if
 * nothing is due. Takes locks of shards.
 */
void housekeep_pay(struct engine *e, int64_t now_ms, size_t count, size_t bytes);

struct txn {
    struct engine *engine;
    struct store_op *op;             /* borrowed from the caller, like `where` */
    const struct store_queue *where; /* the address of the queue */
    uint64_t hash;                   /* of where */
    struct shard *shard;             /* locked until txn_end() */
    struct queue *queue;             /* NULL: it does not exist */
    bool queue_is_new;               /* the queue is new and not linked yet */
    int64_t now_ms;                  /* the time at which the operation takes place */
    uint64_t from_seq;               /* see txn_available() */
    size_t checked_bytes;            /* with a key: see batch_check() */
};

/* Begins. ST_AGAIN: see expire_enter(); the transaction has not begun. */
enum status txn_begin(struct txn *t, struct store *s, struct store_op *op,
                      const struct store_queue *where, enum expiry which);

/* The same while the caller holds locks of other shards. ST_CHANGED: see
 * expire_enter_locked(). */
enum status txn_begin_locked(struct txn *t, struct store *s, struct store_op *op,
                             const struct store_queue *where, enum expiry which);

/* Ends. Discards a queue that was made and not linked. */
void txn_end(struct txn *t);

/*
 * Make the queue (metadata NULL: without), reserve what a new queue needs besides its
 * contents, and link it in its shard. The latter two have no effect on a queue that
 * existed. The caller logs a queue for which txn_link_queue() returns true. ST_NO_MEMORY;
 * ST_PROJECT_QUEUES; statuses of the log.
 */
enum status txn_make_queue(struct txn *t, const struct store_metadata *metadata);
enum status txn_reserve_queue(const struct txn *t);
bool txn_link_queue(struct txn *t);

/* Reserves space in the log, if there is one, for a change of `count` messages. */
static inline enum status
txn_reserve(const struct txn *t, enum store_change_kind kind, size_t count, size_t bytes)
{
    return __builtin_expect(t->engine->core.log == NULL, 1)
               ? ST_OK
               : changelog_reserve(t->shard, kind, count, bytes);
}

/* The same for messages of the transaction's queue, which are not logged if it is
 * transient. */
static inline enum status
txn_reserve_messages(const struct txn *t, enum store_change_kind kind, size_t count,
                     size_t bytes)
{
    return has_log(&t->engine->core) && queue_transient(t->queue)
               ? ST_OK
               : txn_reserve(t, kind, count, bytes);
}

/*
 * Number of ready messages that the operation may take: all, or, if it has a waiter,
 * those that are not reserved for earlier waiters. They are the first ones with numbers
 * from t->from_seq on.
 */
size_t txn_available(struct txn *t);

/* Adds the operation's waiter, if it has one, to the wait queue, for `wants` messages.
 * ST_NO_MEMORY. */
enum status txn_wait(struct txn *t, size_t wants);

/* Removes the operation's waiter, if it has one, from the wait queue: the operation took
 * messages. */
static inline void
txn_stop_waiting(struct txn *t)
{
    struct store_waiter *w = t->op->waiter;

    if (w != NULL && w->waitqueue != NULL)
        shard_stop_waiting(t->shard, w);
}

/*
 * The live message in memory with this id in the queue, which exists. NULL: there is
 * none. txn_load_ids() first, unless it must be claimed: no claimed message is
 * unloaded.
 */
struct message *txn_find_message(const struct txn *t, struct bytes text);

/* Messages that were removed. Their pins are dropped without the lock. */
struct discarded {
    struct list messages; /* by due.link */
    size_t count;
};

/* Removes a message from its queue and from its claim, which ends with its last
 * message. */
void txn_remove_message(struct txn *t, struct message *m, struct discarded *d);

/* Makes an empty batch that can hold `capacity` messages. ST_NO_MEMORY. */
enum status batch_open(struct engine *e, size_t capacity, struct store_batch *out);

/* Adds a message to a batch that can hold it. A message in the batch of a claim is
 * held by that claim. Needs the shard's lock. */
void
batch_add(struct store_batch *batch, struct message *m, uint32_t tag, int64_t now_ms);

/*
 * Checks that the caller can pass on the first `count` messages that the operation may
 * take (see struct store_batch). ST_OVER_CAPACITY: their bodies have out->capacity bytes,
 * which is more than before. ST_SEALED: out->opened lacks sealed ones, and *out is a
 * batch of these messages. ST_NO_MEMORY. If the operation has a key, t->checked_bytes is
 * the size of the bodies.
 */
enum status batch_check(struct txn *t, size_t count, struct store_batch *out);

#endif
