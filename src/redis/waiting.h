/*
 * waiting: who waits in this process for messages of queues on Redis (store/waiter.h).
 *
 * Each process has wait queues of its own (store/waitqueue.h), so first come, first served holds among those who
 * ask it. Whatever it does to a queue that somebody waits for makes it look how many messages are
 * ready there, and call so many. What others do it hears (ear.h), and calls the first in the wait queue, who looks
 * and so calls more; so it does when the queue's next deadline has come, and now and then anyhow, since
 * something may not have been heard.
 *
 *   Threads   any; one lock, which nobody holds while Redis is asked
 *   Cost      nothing while nobody waits; else a script more for what changes such a queue
 */
#ifndef REDIS_WAITING_H
#define REDIS_WAITING_H

#include "claimd/base/buf.h"
#include "claimd/base/hash.h"
#include "claimd/base/lock.h"
#include "claimd/ds/hashmap.h"
#include "claimd/store/waitqueue.h"

struct redis_store;
struct store_visit;

struct waiting {
    struct lock lock;
    struct hashmap waitqueues;
    struct list dirty_list; /* wait queues that the keeper has not heard of yet */
    struct wheel *wheel; /* when to look after a wait queue; NULL: there was none yet */
    bool kept;           /* there is a keeper: see waiting_keep() */
    void (*wake)(void *arg); /* the keeper */
    void *arg;
    struct hash_key key;
    _Atomic size_t count; /* of wait queues */
};

void waiting_init(struct waiting *w, struct mem *mem, const struct hash_key *key);

/* Nobody is in the wait queue. */
void waiting_fini(struct waiting *w);

/* How many ready messages are reserved for those in front of the waiter of a visit; 0: it does
 * not wait. If they are STORE_RESERVED or more, it gets nothing: *limit becomes 0. */
size_t waiting_reserved(struct redis_store *s, const struct store_visit *visit,
                        const struct store_queue *where, size_t *limit);

/*
 * An operation with a waiter has found nothing: it waits for `wants` messages from now on
 * (visit->waits), and is called if something has come meanwhile. ST_NO_MEMORY: it does not.
 */
enum status waiting_found_nothing(struct redis_store *s, struct store_visit *visit,
                                  const struct store_queue *where, size_t wants);

/* It has found something: it leaves the wait queue, if it was in it, and the others are looked after. */
void waiting_served(struct redis_store *s, const struct store_visit *visit,
                    const struct store_queue *where);

/* Something may have become ready: calls those who have to be. */
void waiting_stir(struct redis_store *s, const struct store_visit *visit,
                  const struct store_queue *where);

/* The queue was deleted: tells all who wait for it. */
void waiting_dismiss(struct redis_store *s, const struct store_queue *where);

/* For tests, where no keeper is: looks after some of those wait queues whose time has come; the next time,
 * INT64_MAX: never. */
int64_t waiting_housekeep(struct redis_store *s, int64_t now_ms);
int64_t waiting_next_ms(struct redis_store *s);

/*
 * The keeper's, in ms of the stopwatch. From waiting_keep() on it is woken when a wait queue comes to be; it
 * takes each that it has not heard of (false: there is none), into `text`, which the address points to.
 */
void waiting_keep(struct redis_store *s, void (*wake)(void *arg), void *arg);
bool
waiting_take_fresh(struct redis_store *s, struct buf *text, struct store_queue *where);

/* Calls the first in each wait queue whose time has come, some of them; the next time. */
int64_t waiting_call_due(struct redis_store *s, int64_t now_ms);

/* Something has happened to the queue; gone: it was deleted. */
void waiting_heard(struct redis_store *s, const struct store_queue *where, bool gone);

#endif
