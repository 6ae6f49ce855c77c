/*
 * due: lists of queues in which something is to be done at a time, in Redis. There are
 * some lists for deliveries (subscription_ops.h), and some for ends of claims
 * (claim_ends.h).
 *
 * A process leases the first queue of a list whose time has come, does some of the work,
 * and sets the next time of the queue. If the process ends, the lease ends, and another
 * process leases the queue.
 *
 *     due_add()  -> script due_add
 *     due_poll() -> due_lease, the work, due_set
 *
 *   Threads  any; due_poll() of the same lists: one at a time
 *   Memory   none that grows
 */
#ifndef REDIS_DUE_H
#define REDIS_DUE_H

#include "redis/call.h"

enum {
    DUE_LISTS = 8,
    DUE_LEASE_MS = 30000, /* of a queue in a list */
    DUE_RETRY_MS = 1000   /* after a list could not be read */
};

/* The number of nodes, and the place for slots that no node has. */
enum { DUE_NODES = MAP_NODES + 1 };

/* The uses for which a node is avoided. A node without a replica can lease queues of a
 * list, but confirms no change of a queue. */
enum due_use { DUE_LIST, DUE_QUEUE, DUE_USES };

/* Times are those of redis_clock_ms(). */
struct due_lists {
    enum due_kind kind;
    int64_t pause_ms; /* maximum time between two polls of a list */
    int64_t avoid_ms; /* how long to avoid a node after a failure; 0: not at all */
    struct lock lock;
    int64_t poll_ms[DUE_LISTS]; /* when to poll a list */
    /* Until then, avoid a node (its index in the map): */
    int64_t avoided_ms[DUE_USES][DUE_NODES];
};

/*
 * Does some of the work in a queue. *next_ms: when there is more, in ms of Redis;
 * negative: there is none. With another status than ST_OK, another process tries it when
 * the lease has ended.
 */
typedef enum status due_work_fn(struct redis_store *s, const struct store_op *op,
                                const struct store_queue *where, int64_t *next_ms);

void
due_init(struct due_lists *lists, enum due_kind kind, int64_t pause_ms, int64_t avoid_ms);
void due_fini(struct due_lists *lists);

/* Notes that there is something to do in the queue at this time of Redis (0: now). With
 * another status than ST_OK, the list may lack the queue. */
enum status
due_add(struct redis_store *s, struct due_lists *lists, const struct store_op *op,
        const struct store_queue *where, int64_t ms);

/* The list to poll next, and when. */
unsigned due_next_list(struct due_lists *lists, int64_t *poll_ms);

/*
 * Leases the first queue of a list and does the work. ST_NOT_FOUND: no queue is due.
 * Otherwise the status of the work; ST_UNAVAILABLE if the node of the list or of the
 * queue is avoided.
 */
enum status due_poll(struct redis_store *s, struct due_lists *lists,
                     const struct store_op *op, unsigned list_no, due_work_fn *work);

#endif
