/* claim_ops: what operations on claims share. */
#ifndef ENGINE_CLAIM_OPS_H
#define ENGINE_CLAIM_OPS_H

#include "engine/claim.h"
#include "engine/txn.h"

/* The fencing token (docs/worker.md). */
static inline uint64_t
claim_fence(const struct queue *q, const struct claim *c)
{
    return q->fence_base + ident_claim_number(claim_ident(c));
}

/* Restarts a claim with these terms, and logs it. */
void claim_commit_renewal(struct txn *t, struct claim *c, const struct store_terms *own);

#endif
