/*
 * visit: one operation's stay in the shard of its queue.
 *
 *     visit_enter()     finds the shard, expires what is due, takes its lock, finds the queue
 *       reserve         whatever can fail, visit_reserve() last
 *       commit          what cannot fail; changes are logged (changelog.h)
 *     visit_leave()     notes the position in the log, calls waiters, lets go
 *
 * An operation has one place where it reserves and one where it commits.
 */
#ifndef ENGINE_VISIT_H
#define ENGINE_VISIT_H

#include "engine/changelog.h"
#include "engine/housekeeping.h"
#include "engine/instance.h"

struct visit {
    struct engine *engine;
    struct store_visit *outer;       /* borrowed from the caller, as is where */
    const struct store_queue *where; /* the queue that it is about */
    uint64_t hash;                   /* of where */
    struct shard *shard;             /* locked between enter and leave */
    struct queue *queue;             /* NULL: there is none */
    bool made;                       /* the queue is new, and not linked yet */
    int64_t now_ms;                  /* when it takes place */
    uint64_t from_seq;               /* see visit_share() */
};

/* ST_AGAIN: see expire_enter(); the visit has not begun then. */
enum status visit_enter(struct visit *v, struct store *s, struct store_visit *outer,
                        const struct store_queue *where, enum expiry which);

/* Discards a queue that was made and not entered. */
void visit_leave(struct visit *v);

/*
 * The visit makes its queue (NULL: without metadata), reserves what a new one needs besides its
 * contents, and enters it in its shard. The latter two do nothing for a queue that was there. The
 * caller logs a queue for which visit_link_queue() returns true. ST_NO_MEMORY; ST_PROJECT_QUEUES;
 * statuses of the log.
 */
enum status visit_make_queue(struct visit *v, const struct store_metadata *metadata);
enum status visit_reserve_queue(const struct visit *v);
bool visit_link_queue(struct visit *v);

/* Asks the log, if there is one, for a change of `count` messages. */
static inline enum status
visit_reserve(const struct visit *v, enum store_change_kind kind, size_t count,
              size_t bytes)
{
    return __builtin_expect(v->engine->core.log == NULL, 1)
               ? ST_OK
               : changelog_reserve(v->shard, kind, count, bytes);
}

/* The same for messages of the visit's queue, which need no room if it is transient. */
static inline enum status
visit_reserve_messages(const struct visit *v, enum store_change_kind kind, size_t count,
                       size_t bytes)
{
    return has_log(&v->engine->core) && queue_transient(v->queue)
               ? ST_OK
               : visit_reserve(v, kind, count, bytes);
}

/*
 * How many ready messages the operation may take: all, or those that are left for it if it has
 * a waiter. They are the first ones with numbers of v->from_seq or more.
 */
size_t visit_share(struct visit *v);

/*
 * Nothing was taken: the operation's waiter, if it has one, waits and asks for
 * `wants` messages. ST_NO_MEMORY.
 */
enum status visit_wait(struct visit *v, size_t wants);

/* Something was taken: its waiter is out of the wait queue. */
static inline void
visit_served(struct visit *v)
{
    struct store_waiter *w = v->outer->waiter;

    if (w != NULL && w->waitqueue != NULL)
        shard_stop_waiting(v->shard, w);
}

/* Makes an empty batch with room for `room` messages. ST_NO_MEMORY. */
enum status batch_open(struct engine *e, size_t room, struct store_batch *out);

/*
 * ST_NO_ROOM, and the bytes needed in out->room, if the first `count` messages that the visit
 * may take (visit_share) do not fit into a room that the caller set.
 */
enum status batch_fits(const struct visit *v, size_t count, struct store_batch *out);

/*
 * Shows one more message, for which there must be room; one that batch->claim_id holds, if
 * that is set. Needs the shard's lock.
 */
void
batch_add(struct store_batch *batch, struct message *m, uint32_t tag, int64_t now_ms);

/*
 * ST_SEALED, and a batch of the first `count` messages that the visit may take in *out, if any
 * of them is sealed and not in out->opened (see struct store_batch). ST_NO_MEMORY.
 */
enum status batch_opened(const struct visit *v, size_t count, struct store_batch *out);

#endif
