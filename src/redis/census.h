/*
 * census: what there is in all queues on Redis, or in those that /metrics shows one by one: the first
 * ones in the order of projects and names. Redis has no sum of them; they are asked one after the other,
 * for whoever wants to know, but not more often than once a second.
 *
 *   Threads  any; one asks, the others wait for what it finds (fibers in a detour)
 *   Cost     a script for each queue, and two commands for each project
 */
#ifndef REDIS_CENSUS_H
#define REDIS_CENSUS_H

#include "claimd/base/lock.h"
#include "claimd/store/store.h"

struct redis_store;

/* What was counted. */
struct tally {
    uint64_t queues; /* of the first projects */
    uint64_t subscriptions, feed_bytes;
    int64_t
        outbox_ms; /* of the dead letters that are on their way for the longest time */
    struct store_population all;       /* of those that are shown */
    struct store_queue_figures *shown; /* owned */
    size_t count;
};

struct census {
    struct lock
        counting; /* held while Redis is asked: only for those who want the same; of: */
    struct tally next;
    int64_t taken_ms; /* redis_clock_ms() */
    bool taken;
    struct lock lock; /* of: */
    struct tally last;
};

void census_init(struct census *c);
void census_fini(struct redis_store *s);

/* Of the dead letters that are on their way, for how long those of the longest time. */
int64_t census_outbox_ms(struct census *c);

/* Is told of each queue; what is not ST_OK ends the walk. */
typedef enum status census_fn(void *arg, struct redis_store *s, struct store_visit *visit,
                              const struct store_queue *where);

/* Walks all queues, most of them: so many at most. Statuses of those who ask. */
enum status census_walk(struct redis_store *s, struct store_visit *visit, size_t most,
                        census_fn *tell, void *arg);

#endif
