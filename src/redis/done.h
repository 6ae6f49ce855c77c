/*
 * done: what this process has done to queues on Redis (store/figures.h). What time does is done by
 * scripts, whoever runs them, and is not counted.
 *
 *   Threads  any
 */
#ifndef REDIS_DONE_H
#define REDIS_DONE_H

#include "claimd/base/lock.h"
#include "claimd/store/figures.h"

struct done {
    struct lock lock; /* of who writes */
    struct counter counts[STORE_COUNTERS];
    struct buckets spans[STORE_SPANS];
};

void done_init(struct done *d);
void done_fini(struct done *d);

void done_count(struct done *d, enum store_counter which, uint64_t by);
void done_span(struct done *d, enum store_span which, int64_t value);

/* Adds it to what is shown. */
void done_read(const struct done *d, struct store_figures *out);

#endif
