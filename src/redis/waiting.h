/*
 * waiting: who waits in this process for messages of queues on Redis (store/waiter.h).
 *
 * Each process has lines of its own (store/line.h), so first come, first served holds among those who
 * ask it. Whatever it does to a queue that somebody waits for makes it look how many messages are
 * ready there, and call so many; and so does the queue's next deadline, when housekeeping comes to it.
 *
 *   Threads   any; one lock, which nobody holds while Redis is asked
 *   Cost      nothing while nobody waits; else a script more for what changes such a queue
 */
#ifndef REDIS_WAITING_H
#define REDIS_WAITING_H

#include "claimd/base/hash.h"
#include "claimd/base/lock.h"
#include "claimd/ds/hashmap.h"
#include "claimd/store/line.h"

struct redis_store;
struct store_visit;

struct waiting {
    struct lock lock;
    struct hashmap lines;
    struct list stirred; /* not used here: a line is looked after at once */
    struct hash_key key;
    _Atomic size_t count; /* of lines */
};

void waiting_init(struct waiting *w, struct mem *mem, const struct hash_key *key);

/* Nobody is in line. */
void waiting_fini(struct waiting *w);

/* How many stand in front of the waiter of a visit; 0: it does not wait. With STORE_CALLED or more of
 * them it gets nothing: *limit becomes 0. */
size_t waiting_front(struct redis_store *s, const struct store_visit *visit,
                     const struct store_queue *where, size_t *limit);

/*
 * An operation with a waiter has found nothing: it stands in line from now on (visit->waits), and
 * is called if something has come meanwhile. ST_NO_MEMORY: it does not.
 */
enum status waiting_found_nothing(struct redis_store *s, struct store_visit *visit,
                                  const struct store_queue *where);

/* It has found something: it leaves the line, if it was in it, and the others are looked after. */
void waiting_served(struct redis_store *s, const struct store_visit *visit,
                    const struct store_queue *where);

/* Something may have become ready: calls those who have to be. */
void waiting_stir(struct redis_store *s, const struct store_visit *visit,
                  const struct store_queue *where);

/* The queue was deleted: tells all who wait for it. */
void waiting_dismiss(struct redis_store *s, const struct store_queue *where);

/* Looks after some of those lines whose time has come; the next time, INT64_MAX: never. */
int64_t waiting_housekeep(struct redis_store *s, int64_t now_ms);
int64_t waiting_next_ms(struct redis_store *s);

#endif
