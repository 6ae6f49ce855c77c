/*
 * claim: a lease of some messages of one queue for a limited time.
 *
 * A claim stores the numbers of its messages, and a message points to its claim. A claim
 * holds exactly those of its numbers whose message is in its backlog and points back, and
 * counts them. A claim that holds no message ends at once. So there are never more claims
 * than messages, however long claims last.
 *
 *   Threads  the shard's lock
 */
#ifndef ENGINE_CLAIM_H
#define ENGINE_CLAIM_H

#include "engine/shard.h"

struct claim {
    struct deadline due;     /* in the claim wheel: when it ends */
    struct backlog *backlog; /* of its messages; its `claims` has this claim */
    int64_t made_ms;    /* after a restart: the started_ms of the first record of it */
    int64_t started_ms; /* made, or last renewed */
    uint64_t id_low;    /* of the id */
    uint32_t id_high;
    uint32_t count;     /* of seqs, including messages that it no longer holds */
    uint32_t capacity;  /* for numbers */
    uint32_t held;      /* messages that it holds; at least 1 when it is linked */
    bool marked : 1;    /* by the operation under way, see claims_mark() */
    bool over : 1;      /* its end was logged, and its dead letters move next */
    uint8_t client_len; /* 0: not known, as after a restart */
    char *client;       /* owned: the client that created or last renewed it */
    uint64_t seqs[];    /* ascending */
};

static inline struct ident
claim_ident(const struct claim *c)
{
    return (struct ident){c->id_high, c->id_low};
}

/* Makes a claim with capacity for `count` messages. NULL without memory. */
struct claim *claim_new(struct mem *mem, size_t count);

/* Notes the client that creates or renews the claim. Absent, or without memory: it stays
 * as it is. */
void claim_set_client(struct mem *mem, struct claim *c, struct bytes client);

static inline struct bytes
claim_client(const struct claim *c)
{
    return bytes_of(c->client, c->client_len);
}

/* Nodes of the shard's pool that the next claim of q takes at most. */
size_t claim_nodes(const struct queue *q);

/* Reserves memory and entropy for the next claim. Valid until the lock is released. */
enum status claim_reserve(struct shard *sh, const struct queue *q);

/* Adds a claim without messages to a backlog, under this id. The caller has reserved the
 * nodes, and arms the deadline. */
void claim_enter(struct shard *sh, struct claim *c, struct backlog *b, struct ident id,
                 int64_t made_ms);

/* Adds a ready message, with a larger number than those of the claim. */
static inline void
claim_hold(struct claim *c, struct message *m)
{
    backlog_claim_message(m->backlog, m, c);
    c->seqs[c->count++] = m->seq;
    c->held++;
}

/* The next message that c holds, even if it has expired, from the *i-th number on; *i
 * moves behind it. NULL: there is none. */
struct message *claim_next(const struct claim *c, uint64_t *i);

/* Replaces c by `fresh`, which has capacity for more numbers, and frees c. The caller
 * arms the deadline of fresh. */
void claim_replace(struct shard *sh, struct claim *c, struct claim *fresh);

/* Ends and frees a claim. The messages that it holds are ready at their old places. */
void claim_end(struct shard *sh, struct claim *c);

/* Counts one message less, which was removed from its backlog. Ends the claim with the
 * last one. */
void claim_drop_message(struct shard *sh, struct claim *c);

/* The claim of q with this id; NULL if there is none, or if all its messages have
 * expired. O(1) unless claims may last longer than messages. */
struct claim *claim_find(const struct queue *q, struct bytes id, int64_t now_ms);

/* Sets `marked` of the live claims of q with these ids, and returns their number. */
size_t claims_mark(const struct queue *q, const struct bytes *ids, size_t count,
                   bool marked, int64_t now_ms);

/* True if the queue dead-letters messages that were claimed too often. */
bool limits_claims(const struct queue *q);

/* True if m has been claimed as often as its queue allows, and the queue has a
 * dead-letter queue. */
bool is_exhausted(const struct queue *q, const struct message *m);

/* True if m is a dead letter when its claim expires. One that expired before its claim is
 * none. */
bool dies_with_claim(const struct claim *c, const struct message *m);

/* True if every invariant of a backlog's claims holds. */
bool claims_audit(const struct backlog *b);

#endif
