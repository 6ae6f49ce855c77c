/*
 * waiting: the wait queues of this process, for messages of queues on Redis (store/waitqueue.h).
 *
 * First come, first served holds among the waiters of one process. When the process changes a queue that has
 * waiters, it asks how many messages are ready there, and wakes as many waiters. When another process changes
 * it, the first waiter is woken (maintenance.c), looks, and so wakes more. The same happens when the
 * queue's next deadline has come, and from time to time, because notifications can be lost.
 *
 *   Threads   any; one lock, which no thread holds while it asks Redis
 *   Cost      nothing without waiters; else one more script for each change of a queue with waiters
 */
#ifndef REDIS_WAITING_H
#define REDIS_WAITING_H

#include "claimd/base/buf.h"
#include "claimd/store/store.h"

struct redis_store;

/* Makes s->waiting. ST_NO_MEMORY. */
enum status waiting_open(struct redis_store *s);

/* There is no waiter. Fine if it is not open. */
void waiting_close(struct redis_store *s);

/* How many ready messages are reserved for waiters in front of the operation's own. If that is too many to
 * count, *limit becomes 0. */
size_t waiting_reserved(struct redis_store *s, const struct store_op *op,
                        const struct store_queue *where, size_t *limit);

/*
 * An operation with a waiter has found nothing: the waiter waits for `wants` messages from now on
 * (op->waits), and is woken if some have come meanwhile. ST_NO_MEMORY: it does not wait.
 */
enum status waiting_found_nothing(struct redis_store *s, struct store_op *op,
                                  const struct store_queue *where, size_t wants);

/* It has found something: its waiter leaves the wait queue, and others are woken if messages are left. */
void waiting_served(struct redis_store *s, const struct store_op *op,
                    const struct store_queue *where);

/* Messages may have become ready: wakes the waiters that can have them. */
void waiting_wake(struct redis_store *s, const struct store_op *op,
                  const struct store_queue *where);

/* The queue has changed elsewhere, or (gone) was deleted, here or elsewhere: wakes the first waiter, or all. */
void waiting_notify(struct redis_store *s, const struct store_queue *where, bool gone);

/* For tests, which have no maintenance thread: does its work for some wait queues whose time has come. Returns
 * the next time; INT64_MAX: never. */
int64_t waiting_housekeep(struct redis_store *s, int64_t now_ms);
int64_t waiting_next_ms(struct redis_store *s);

/*
 * For the maintenance thread, in ms of the stopwatch. After waiting_keep() it is woken when a wait queue is
 * made. It takes the address of each new one (false: there is none) into `text`, to which `where` points.
 */
void waiting_keep(struct redis_store *s, void (*wake)(void *arg), void *arg);
bool
waiting_take_fresh(struct redis_store *s, struct buf *text, struct store_queue *where);

/* Wakes the first waiter of each wait queue whose time has come, of some of them. Returns the next time. */
int64_t waiting_wake_due(struct redis_store *s, int64_t now_ms);

#endif
