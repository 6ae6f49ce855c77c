/*
 * queue: a name in a project, its metadata, its messages and claims (backlog.h), and its
 * feed.
 *
 * A deleted queue leaves the table and the directory at once. Its backlog lies on the
 * reclaim list until it is empty, and no operation finds it there.
 *
 *   Threads  the shard's lock; the bytes of metadata never change, and responses pin them
 */
#ifndef ENGINE_QUEUE_H
#define ENGINE_QUEUE_H

#include "engine/backlog.h"
#include "engine/core.h"

#include <stdatomic.h>

struct feed;
struct waitqueue;
struct shard;

/* A queue's metadata document and the settings in it; never changed, only replaced. */
struct metadata {
    _Atomic uint32_t pins;
    struct store_metadata document; /* texts point behind this structure */
    char text[];
};

/* Makes a copy with one pin; NULL: of the empty document. NULL without memory. */
struct metadata *metadata_new(struct mem *mem, const struct store_metadata *document);
struct metadata *metadata_pin(struct metadata *md);
void metadata_unpin(struct mem *mem, struct metadata *md);

struct queue {
    struct hashnode node; /* in the shard's queues; hash of the address */
    struct directory_entry entry;
    struct shard *shard;         /* NULL until it is linked */
    struct backlog *backlog;     /* owned */
    struct feed *feed;           /* owned; NULL: no subscriptions */
    struct waitqueue *waitqueue; /* NULL: no waiters */
    struct metadata *metadata;   /* owned pin */
    uint64_t version;            /* of the metadata; unique within the shard */
    uint64_t last_seq;           /* number of the newest message ever posted */
    uint64_t last_claim;         /* number of the newest claim ever made */
    uint64_t last_subscription;  /* number of the newest subscription */
    uint64_t fence_base;         /* a claim's fencing token is this plus its number */
    uint64_t reserved_seq,
        reserved_claim; /* transient: the log says that numbers up to these are used */
    uint64_t lsn;       /* in the log, of its last change; 0: none */
    struct list checkpoint_link; /* in the shard's list of all queues, see state_read.c */
    uint32_t checkpoint_no;      /* that has read it, or during which it was made */
    uint32_t tag;                /* of this incarnation, in message ids */
    uint32_t metrics_slot;       /* of metrics.h, from 1; 0: none */
    uint64_t counts[STORE_QUEUE_COUNTERS]; /* see queue_count() */
    struct store_expired expired;
    struct store_queue where; /* points behind this structure */
    char text[];
};

static inline const struct store_settings *
queue_settings(const struct queue *q)
{
    return &q->metadata->document.settings;
}

/* True if the contents of the queue need not survive a restart. */
static inline bool
queue_transient(const struct queue *q)
{
    return queue_settings(q)->transient;
}

static inline bool
queue_is_paused(const struct queue *q, enum store_pause what)
{
    return (queue_settings(q)->paused & what) != 0;
}

/* Ready messages, as far as claims may have them. */
static inline size_t
queue_ready_count(const struct queue *q)
{
    return queue_is_paused(q, STORE_PAUSE_CLAIMS) ? 0 : backlog_ready(q->backlog);
}

/* Reserves the next numbers (changelog.h), enough for a million messages or claims. */
static inline void
queue_reserve_numbers(struct queue *q)
{
    const uint64_t loan = 1 << 20;

    q->reserved_seq = q->last_seq + loan;
    q->reserved_claim = q->last_claim + loan;
}

/* Makes a queue that is not linked yet; metadata NULL: without. NULL without memory. */
struct queue *
queue_new(struct core *core, struct tally *tally, const struct store_queue *where,
          const struct store_metadata *metadata);

/* Frees a queue that is not linked, and its backlog, if any, which must be empty. */
void queue_free(struct mem *mem, struct queue *q);

#endif
