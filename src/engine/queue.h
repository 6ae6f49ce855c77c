/*
 * queue: a name in a project, its metadata, and its backlog with the claims on it.
 *
 * Everything but the metadata's bytes (immutable, pinned by answers) is guarded by the
 * shard's lock. A deleted queue leaves the table and the directory at once; its backlog lies
 * in the graveyard until it is empty, and is never found again.
 */
#ifndef ENGINE_QUEUE_H
#define ENGINE_QUEUE_H

#include "claimd/ds/nameset.h"
#include "engine/backlog.h"
#include "engine/directory.h"

#include <stdatomic.h>

/* A queue's metadata document and its meaning; never changed, only replaced. */
struct metadata {
    _Atomic uint32_t pins;
    struct store_metadata document; /* texts point behind this structure */
    char text[];
};

/* Makes a copy with one pin, of an empty document for NULL; NULL without memory. */
struct metadata *metadata_new(struct mem *mem, const struct store_metadata *document);
struct metadata *metadata_pin(struct metadata *md);
void metadata_unpin(struct mem *mem, struct metadata *md);

struct queue {
    struct hashnode node;   /* in the shard's queues; hash of (project, name) */
    struct listing listing; /* in the directory */
    struct shard *shard;
    struct backlog *backlog;    /* owned */
    uint64_t last_claim;        /* number of the newest claim ever made */
    struct metadata *metadata;  /* owned pin */
    uint64_t version;           /* of the metadata; unique within the shard */
    uint64_t last_seq;          /* number of the newest message ever posted */
    uint32_t tag;               /* of this incarnation, in message ids */
    struct bytes project, name; /* point behind this structure */
    char text[];
};

static inline const struct store_settings *
queue_settings(const struct queue *q)
{
    return &q->metadata->document.settings;
}

/* True if claims move messages to a dead letter queue. */
static inline bool
queue_has_dead_letters(const struct queue *q)
{
    return queue_settings(q)->max_claim_count != STORE_UNSET &&
           bytes_present(queue_settings(q)->dead_letter);
}

/* Makes a queue that is not linked anywhere yet, for NULL without metadata; NULL without
 * memory. Needs the lock. */
struct queue *queue_new(struct shard *sh, const struct store_queue *where,
                        const struct store_metadata *metadata);

/* Frees a queue that is not linked, with its (empty) backlog. */
void queue_free(struct queue *q);

/* Enters a new queue in table and directory. On failure it is not linked. Needs the lock.
 */
enum status queue_link(struct queue *q, uint64_t hash);

/* Takes a queue out of table and directory and frees it; its backlog goes to the
 * graveyard. O(log n). */
void queue_bury(struct queue *q);

/* Gives the queue a fresh backlog; the old one goes to the graveyard. */
enum status queue_purge(struct queue *q);

bool queue_audit(const struct queue *q);

#endif
