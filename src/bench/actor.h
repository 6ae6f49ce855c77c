/*
 * actor: what one connection remembers between requests: its queue, and the messages it
 * has claimed and not yet given back.
 */
#ifndef BENCH_ACTOR_H
#define BENCH_ACTOR_H

#include "bench/plan.h"

/* An id as the server wrote it. */
struct token {
    uint8_t len; /* 0: none */
    char text[63];
};

struct actor {
    uint64_t random; /* state of a small generator, never 0 */
    uint64_t serial; /* of the next body; its high bits are the connection's number */
    unsigned queue;
    bool posted;   /* CYCLE: the claim comes next */
    bool created;  /* PREPARE: the queue was dropped, its creation comes next */
    bool dry;      /* HOLD: nothing left to claim */
    bool worker;   /* DELIVERY: claims and deletes; the others post */
    unsigned held; /* messages in hand are ids[next .. held) */
    unsigned next;
    struct token claim;
    struct token ids[BATCH_MAX];
    int64_t due_ns; /* DELIVERY: when the present post was due; its bodies say so */
    unsigned arrived;
    int64_t arrived_due_ns[BATCH_MAX]; /* DELIVERY: what the bodies in hand say */
};

/* Keeps text as a token; false if it is too long. */
static inline bool
token_set(struct token *t, const char *text, size_t len)
{
    if (len == 0 || len > sizeof t->text)
        return false;
    memcpy(t->text, text, len);
    t->len = (uint8_t)len;
    return true;
}

static inline struct bytes
token_view(const struct token *t)
{
    return bytes_of(t->text, t->len);
}

static inline void
actor_drop_held(struct actor *a)
{
    a->held = 0;
    a->next = 0;
}

/* xorshift64 (Marsaglia 2003): good enough to pick scenarios. */
static inline uint64_t
actor_random(struct actor *a)
{
    a->random ^= a->random << 13;
    a->random ^= a->random >> 7;
    a->random ^= a->random << 17;
    return a->random;
}

#endif
