/*
 * claim: a lease of some messages of one queue for a limited time.
 *
 * A claim remembers the numbers of its messages; a message remembers its claim. The claim
 * holds exactly those of its numbers whose message is in the same backlog and points
 * back: deleting a message, or purging the queue, needs to tell the claim nothing.
 *
 * All functions need the shard's lock.
 */
#ifndef ENGINE_CLAIM_H
#define ENGINE_CLAIM_H

#include "engine/backlog.h"

struct claim {
    struct hashnode node; /* in the shard's claims, by id */
    struct list link;     /* in the queue's claims */
    struct deadline due;  /* in the claim wheel: started_ms + ttl_ms */
    struct ident id;
    struct queue *queue; /* may lie in the graveyard */
    uint64_t generation; /* of the backlog its messages are in */
    int64_t started_ms;  /* made, or last renewed */
    int64_t ttl_ms;
    size_t count;    /* numbers, including those it no longer holds */
    uint64_t seqs[]; /* ascending */
};

/* Makes a claim with room for count messages; NULL without memory. */
struct claim *claim_new(struct mem *mem, size_t count);

static inline struct claim *
claim_of(struct deadline *d)
{
    return container_of(d, struct claim, due);
}

/* Starts (again) at now_ms for terms->ttl_s. */
void claim_start(struct shard *sh, struct claim *c, const struct store_terms *terms,
                 int64_t now_ms);

/* Enters a started claim among those of its queue and shard; room must be reserved. */
void claim_link(struct shard *sh, struct claim *c);

/* Takes a free message: counts, holds, and lengthens its life (promise "grace"). */
void claim_take(struct shard *sh, struct claim *c, struct message *m,
                const struct store_terms *terms, int64_t now_ms);

/* Lengthens the life of a message that c holds. Never shortens it. */
void claim_lengthen(struct shard *sh, struct message *m, const struct store_terms *terms,
                    int64_t now_ms);

/* The message of the i-th number if c still holds it and it is live, else NULL. */
struct message *claim_message(const struct claim *c, size_t i, int64_t now_ms);

/* Ends a claim: what it holds is free at its old place. Frees it. */
void claim_end(struct shard *sh, struct claim *c);

/* The live claim with this id if it is one of q's; NULL otherwise. */
struct claim *claim_find(const struct shard *sh, const struct queue *q, struct bytes id);

bool claim_audit(const struct shard *sh, const struct claim *c);

#endif
