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
    struct deadline due; /* in the claim wheel: when it ends */
    struct queue *queue; /* which has it by its number; may lie in the graveyard */
    uint64_t generation; /* of the backlog its messages are in */
    int64_t started_ms;  /* made, or last renewed */
    uint64_t id_low;     /* of the id */
    uint32_t id_high;
    uint32_t count;  /* of the numbers, including those it no longer holds */
    uint64_t seqs[]; /* ascending */
};

static inline struct ident
claim_ident(const struct claim *c)
{
    return (struct ident){c->id_high, c->id_low};
}

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

/* How many nodes of the shard's pool the next claim of q takes at most. */
size_t claim_nodes(const struct queue *q);

/* Makes sure that claim_link() has what it needs. Holds until the lock is let go. */
enum status claim_reserve(struct shard *sh, const struct queue *q);

/* Gives a started claim an id and enters it among those of its queue. */
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

/* The claim of q with this id; NULL if there is none. */
struct claim *claim_find(const struct queue *q, struct bytes id);

bool claim_audit(const struct shard *sh, const struct claim *c);

#endif
