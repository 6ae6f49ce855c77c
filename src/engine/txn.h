/*
 * txn: a transaction, which is the work of one operation on one queue, under the lock of its shard.
 *
 *     txn_begin()     finds the shard, expires what is due, takes its lock, finds the queue
 *       reserve         whatever can fail, txn_reserve() last
 *       commit          what cannot fail; changes are logged (changelog.h)
 *     txn_end()     notes the LSN in the log, calls waiters, lets go
 *
 * An operation has one place where it reserves and one where it commits.
 */
#ifndef ENGINE_TXN_H
#define ENGINE_TXN_H

#include "engine/changelog.h"
#include "engine/housekeeping.h"
#include "engine/instance.h"

struct txn {
    struct engine *engine;
    struct store_op *op;             /* borrowed from the caller, as is where */
    const struct store_queue *where; /* the queue that it is about */
    uint64_t hash;                   /* of where */
    struct shard *shard;             /* locked between enter and leave */
    struct queue *queue;             /* NULL: there is none */
    bool made;                       /* the queue is new, and not linked yet */
    int64_t now_ms;                  /* when it takes place */
    uint64_t from_seq;               /* see txn_available() */
};

/* ST_AGAIN: see expire_enter(); the transaction has not begun then. */
enum status txn_begin(struct txn *t, struct store *s, struct store_op *op,
                      const struct store_queue *where, enum expiry which);

/* Discards a queue that was made and not entered. */
void txn_end(struct txn *t);

/*
 * Makes the queue (NULL: without metadata), reserves what a new one needs besides its
 * contents, and enters it in its shard. The latter two do nothing for a queue that was there. The
 * caller logs a queue for which txn_link_queue() returns true. ST_NO_MEMORY; ST_PROJECT_QUEUES;
 * statuses of the log.
 */
enum status txn_make_queue(struct txn *t, const struct store_metadata *metadata);
enum status txn_reserve_queue(const struct txn *t);
bool txn_link_queue(struct txn *t);

/* Asks the log, if there is one, for a change of `count` messages. */
static inline enum status
txn_reserve(const struct txn *t, enum store_change_kind kind, size_t count, size_t bytes)
{
    return __builtin_expect(t->engine->core.log == NULL, 1)
               ? ST_OK
               : changelog_reserve(t->shard, kind, count, bytes);
}

/* The same for messages of the transaction's queue, which need no room if it is transient. */
static inline enum status
txn_reserve_messages(const struct txn *t, enum store_change_kind kind, size_t count,
                     size_t bytes)
{
    return has_log(&t->engine->core) && queue_transient(t->queue)
               ? ST_OK
               : txn_reserve(t, kind, count, bytes);
}

/*
 * How many ready messages the operation may take: all, or those that are left for it if it has
 * a waiter. They are the first ones with numbers of v->from_seq or more.
 */
size_t txn_available(struct txn *t);

/*
 * Nothing was taken: the operation's waiter, if it has one, waits and asks for
 * `wants` messages. ST_NO_MEMORY.
 */
enum status txn_wait(struct txn *t, size_t wants);

/* Something was taken: its waiter is out of the wait queue. */
static inline void
txn_stop_waiting(struct txn *t)
{
    struct store_waiter *w = t->op->waiter;

    if (w != NULL && w->waitqueue != NULL)
        shard_stop_waiting(t->shard, w);
}

/* Makes an empty batch with room for `room` messages. ST_NO_MEMORY. */
enum status batch_open(struct engine *e, size_t room, struct store_batch *out);

/*
 * ST_NO_ROOM, and the bytes needed in out->room, if the first `count` messages that the operation
 * may take (txn_available) do not fit into a room that the caller set.
 */
enum status batch_fits(const struct txn *t, size_t count, struct store_batch *out);

/*
 * Shows one more message, for which there must be room; one that batch->claim_id holds, if
 * that is set. Needs the shard's lock.
 */
void
batch_add(struct store_batch *batch, struct message *m, uint32_t tag, int64_t now_ms);

/*
 * ST_SEALED, and a batch of the first `count` messages that the operation may take in *out, if any
 * of them is sealed and not in out->opened (see struct store_batch). ST_NO_MEMORY.
 */
enum status batch_opened(const struct txn *t, size_t count, struct store_batch *out);

#endif
