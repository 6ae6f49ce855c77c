/*
 * shown: the queues whose figures are shown one by one (store/figures.h): the first that were
 * made, so many as there are places. A queue keeps its place until it is deleted; the next
 * one that is made takes it then. So a series of figures never changes its queue, and no
 * queue loses its own because another has grown.
 *
 *   Cost     O(1) without a free place; else a search through the places that is O(1) unless
 *            many come and go in another order
 *   Threads  any. A place belongs to the shard of its queue, whose lock guards the pointer to
 *            the queue and its counters; the lock in here is a leaf, for who takes a free place
 */
#ifndef ENGINE_SHOWN_H
#define ENGINE_SHOWN_H

#include "claimd/base/lock.h"
#include "claimd/base/mem.h"
#include "claimd/base/status.h"
#include "claimd/store/figures.h"

#include <stdatomic.h>
#include <stddef.h>

struct queue;
struct shard;

struct place {
    _Atomic(struct shard *) shard; /* of the queue; NULL: free */
    struct queue *queue;
    struct store_expired expired; /* of that queue, since it has the place */
};

struct shown {
    struct place *places; /* owned */
    size_t count;
    struct lock lock;    /* guards lowest, and the taking of free places */
    size_t lowest;       /* no place before this one is free */
    _Atomic size_t free; /* how many are */
};

/* ST_NO_MEMORY. */
enum status shown_init(struct shown *s, struct mem *mem, size_t count);
void shown_fini(struct shown *s, struct mem *mem);

/* Gives a queue that was linked a place if there is one; takes it back. Need its shard's lock. */
void shown_enter(struct shown *s, struct queue *q);
void shown_leave(struct shown *s, struct queue *q);

/* The shard of the first taken place from *at on, which becomes its number; NULL: none. */
struct shard *shown_next(const struct shown *s, size_t *at);

/* The counters of a queue with a place; NULL: it has none. Needs its shard's lock. */
struct store_expired *shown_expired(const struct shown *s, const struct queue *q);

/* The queue of that place if it is in this shard, whose lock is held; else NULL. */
struct queue *shown_queue(const struct shown *s, size_t at, const struct shard *sh);

#endif
