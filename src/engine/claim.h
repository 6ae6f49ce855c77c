/*
 * claim: a lease of some messages of one queue for a limited time.
 *
 * A claim remembers the numbers of its messages; a message remembers its claim. The claim
 * holds exactly those of its numbers whose message is in its backlog and points back, and
 * counts them: one that holds nothing any more is over at once. So there are never more
 * claims than messages, whatever their terms.
 *
 * All functions need the shard's lock.
 */
#ifndef ENGINE_CLAIM_H
#define ENGINE_CLAIM_H

#include "engine/shard.h"

struct claim {
    struct deadline due;     /* in the claim wheel: when it ends */
    struct backlog *backlog; /* of its messages, which has it by its number */
    int64_t made_ms;         /* after a restart: as started_ms was when it was replayed */
    int64_t started_ms;      /* made, or last renewed */
    uint64_t id_low;         /* of the id */
    uint32_t id_high;
    uint32_t count;  /* of the numbers, including those it no longer holds */
    uint32_t room;   /* for numbers */
    uint32_t held;   /* messages it holds; at least 1 once it is filled */
    bool named;      /* by the request under way: claim_name() */
    uint64_t seqs[]; /* ascending */
};

static inline struct ident
claim_ident(const struct claim *c)
{
    return (struct ident){c->id_high, c->id_low};
}

/* Makes a claim with room for count messages; NULL without memory. */
struct claim *claim_new(struct mem *mem, size_t count);

/* Starts (again) at now_ms for terms->ttl_s. */
void claim_start(struct shard *sh, struct claim *c, const struct store_terms *terms,
                 int64_t now_ms);

/* How many nodes of the shard's pool the next claim of q takes at most. */
size_t claim_nodes(const struct queue *q);

/* Makes sure that claim_link() has what it needs. Holds until the lock is let go. */
enum status claim_reserve(struct shard *sh, const struct queue *q);

/* Gives a started claim an id and enters it in the backlog of its queue. */
void claim_link(struct shard *sh, struct claim *c, struct queue *q);

/* Takes a free message: counts, holds, and lengthens its life (promise "grace"). */
void claim_take(struct shard *sh, struct claim *c, struct message *m,
                const struct store_terms *terms, int64_t now_ms);

/* Lengthens the life of a message that c holds. Never shortens it. */
void claim_lengthen(struct shard *sh, struct message *m, const struct store_terms *terms,
                    int64_t now_ms);

/* The message of the i-th number if c still holds it, live or not, else NULL. */
struct message *claim_held(const struct claim *c, size_t i);

/* The same if it is live. */
struct message *claim_message(const struct claim *c, size_t i, int64_t now_ms);

/* Its fencing number (docs/worker.md). */
uint64_t claim_fence(const struct queue *q, const struct claim *c);

/*
 * Puts `fresh`, which has room for more numbers, in the place of c, and frees that. It holds what
 * c did; its end is left to be armed.
 */
void claim_replace(struct shard *sh, struct claim *c, struct claim *fresh);

/* Ends a claim: what it holds is free at its old place. Frees it. */
void claim_end(struct shard *sh, struct claim *c);

/* A message that c held was taken out of its backlog. Ends a claim whose last one it was. */
void claim_lose(struct shard *sh, struct claim *c);

/*
 * The claim of q with this id; NULL if there is none, or all that it holds has expired.
 * O(1) unless claims may last longer than messages.
 */
struct claim *claim_find(const struct queue *q, struct bytes id, int64_t now_ms);

/* Marks the live claims of q with these ids, or takes the marks off again; returns their number. */
size_t claim_name(const struct queue *q, const struct bytes *ids, size_t count,
                  bool named, int64_t now_ms);

/* True if every invariant of a backlog's claims holds. */
bool claims_audit(const struct backlog *b);

#endif
