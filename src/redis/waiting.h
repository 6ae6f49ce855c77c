/*
 * waiting: the wait queues of this process, for messages of queues on Redis
 * (store/waitqueue.h).
 *
 * The waiters of one process are served in the order of their arrival. If the process
 * changes a queue with waiters, it counts the ready messages there and wakes as many
 * waiters. If another process changes the queue, the first waiter is woken
 * (maintenance.c) and retries its operation. If it succeeds, the process counts again and
 * wakes more waiters. The same happens at the next deadline of the queue, and from time
 * to time, because notifications can be lost.
 *
 *   Threads   any. No thread holds the lock while it runs a script
 *   Cost      without waiters none. For each change of a queue with waiters, one more
 *             script
 *   Memory    a wait queue for each queue with waiters
 */
#ifndef REDIS_WAITING_H
#define REDIS_WAITING_H

#include "claimd/base/buf.h"
#include "claimd/store/store.h"

struct redis_store;

/* Makes s->waiting. ST_NO_MEMORY. */
enum status waiting_open(struct redis_store *s);

/* There must be no waiter. Does nothing if s->waiting is NULL. */
void waiting_close(struct redis_store *s);

/* The number of ready messages that are reserved for waiters before that of the
 * operation. If there are too many, *limit becomes 0. */
size_t waiting_reserved(struct redis_store *s, const struct store_op *op,
                        const struct store_queue *where, size_t *limit);

/*
 * An operation has found nothing. Its waiter, if there is one, waits for `wants` messages
 * from now on (op->waits). It is woken if messages have become ready meanwhile.
 * ST_NO_MEMORY: it does not wait.
 */
enum status waiting_found_nothing(struct redis_store *s, struct store_op *op,
                                  const struct store_queue *where, size_t wants);

/* An operation has found messages. Its waiter leaves the wait queue. If messages are
 * left, others are woken. */
void waiting_served(struct redis_store *s, const struct store_op *op,
                    const struct store_queue *where);

/* Messages may have become ready. Wakes as many waiters as there are ready messages. */
void waiting_wake(struct redis_store *s, const struct store_op *op,
                  const struct store_queue *where);

/* Another process has changed the queue: wakes the first waiter. `gone`: some process has
 * deleted the queue: wakes all waiters. */
void waiting_notify(struct redis_store *s, const struct store_queue *where, bool gone);

/* The number of waiters of this process for a queue. */
size_t waiting_count(struct redis_store *s, const struct store_queue *where);

/* For tests, without a maintenance thread: counts the ready messages of some queues whose
 * deadline has come, and wakes waiters. Returns the next deadline; INT64_MAX: none. */
int64_t waiting_housekeep(struct redis_store *s, int64_t now_ms);
int64_t waiting_next_ms(struct redis_store *s);

/*
 * For the maintenance thread; times are in ms of the stopwatch. After
 * waiting_set_maintenance(), `wake` is called for each new wait queue and each new
 * deadline. waiting_take_new() takes the address of a new wait queue (false: there is
 * none), with its texts in `text`. waiting_wake_due() wakes the first waiter of some wait
 * queues whose deadline has come, and returns the next deadline.
 */
void waiting_set_maintenance(struct redis_store *s, void (*wake)(void *arg), void *arg);
bool waiting_take_new(struct redis_store *s, struct buf *text, struct store_queue *where);
int64_t waiting_wake_due(struct redis_store *s, int64_t now_ms);

#endif
