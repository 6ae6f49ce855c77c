#include "engine/claim.h"
#include "engine/queue.h"
#include "engine/shard.h"

#include <assert.h>

struct claim *
claim_new(struct mem *mem, size_t count)
{
    struct claim *c;

    if (count > UINT32_MAX || count > (SIZE_MAX - sizeof(*c)) / sizeof(c->seqs[0]))
        return NULL;
    c = mem_alloc(mem, sizeof(*c) + count * sizeof(c->seqs[0]));
    if (c != NULL)
        *c = (struct claim){.count = 0};
    return c;
}

void
claim_start(struct shard *sh, struct claim *c, const struct store_terms *terms,
            int64_t now_ms)
{
    c->started_ms = now_ms;
    shard_arm_claim(sh, c, now_ms + terms->ttl_s * 1000);
}

size_t
claim_nodes(const struct queue *q)
{
    return seqmap_nodes_for(&q->backlog->claims, q->last_claim + 1, 1);
}

enum status
claim_reserve(struct shard *sh, const struct queue *q)
{
    enum status st = entropy_reserve(&sh->entropy, IDENT_ENTROPY);

    return st == ST_OK ? seqmap_pool_stock(&sh->pool, claim_nodes(q)) : st;
}

void
claim_link(struct shard *sh, struct claim *c, struct queue *q)
{
    struct ident id = ident_claim(&sh->entropy, ++q->last_claim);

    lock_assert_held(&sh->lock);
    c->backlog = q->backlog;
    c->id_high = id.high;
    c->id_low = id.low;
    seqmap_insert(&q->backlog->claims, &sh->pool, q->last_claim, c, false);
}

void
claim_lengthen(struct shard *sh, struct message *m, const struct store_terms *terms,
               int64_t now_ms)
{
    int64_t life_s = terms->ttl_s + terms->grace_s;
    int64_t until_ms;

    if (life_s > sh->engine->max_message_ttl_s)
        life_s = sh->engine->max_message_ttl_s;
    until_ms = now_ms + life_s * 1000;
    if (until_ms <= m->expires_ms)
        return;
    m->expires_ms = until_ms;
    shard_arm_message(sh, m, until_ms);
}

void
claim_take(struct shard *sh, struct claim *c, struct message *m,
           const struct store_terms *terms, int64_t now_ms)
{
    lock_assert_held(&sh->lock);
    backlog_hold(m->backlog, m, c);
    if (m->claim_count < UINT32_MAX)
        m->claim_count++;
    claim_lengthen(sh, m, terms, now_ms);
    c->seqs[c->count++] = m->seq;
    c->held++;
}

/* The message of the i-th number if c holds it, live or not. */
static struct message *
held_message(const struct claim *c, size_t i)
{
    struct message *m = seqmap_find(&c->backlog->messages, c->seqs[i]);

    return m != NULL && m->claim == c ? m : NULL;
}

struct message *
claim_message(const struct claim *c, size_t i, int64_t now_ms)
{
    struct message *m = held_message(c, i);

    return m != NULL && message_live(m, now_ms) ? m : NULL;
}

void
claim_end(struct shard *sh, struct claim *c)
{
    lock_assert_held(&sh->lock);
    for (size_t i = 0; c->held > 0; i++) {
        struct message *m = held_message(c, i);

        if (m == NULL)
            continue;
        backlog_give_back(c->backlog, m);
        c->held--;
    }
    wheel_disarm(sh->claim_wheel, &c->due);
    (void)seqmap_remove(&c->backlog->claims, &sh->pool,
                        ident_claim_number(claim_ident(c)));
    seqmap_pool_trim(&sh->pool);
    mem_free(sh->engine->mem, c);
}

void
claim_lose(struct shard *sh, struct claim *c)
{
    if (--c->held == 0)
        claim_end(sh, c);
}

/*
 * True if all that c holds has expired, which settling claims alone does not show. A claim
 * keeps its messages alive to its end, unless it lasts longer than a message may live.
 */
static bool
outlived(const struct shard *sh, const struct claim *c, int64_t now_ms)
{
    if (c->due.due_ms - c->started_ms <= sh->engine->max_message_ttl_s * 1000)
        return false;
    for (size_t i = 0; i < c->count; i++)
        if (claim_message(c, i, now_ms) != NULL)
            return false;
    return true;
}

struct claim *
claim_find(const struct queue *q, struct bytes text, int64_t now_ms)
{
    struct ident id;
    struct claim *c;

    if (!ident_read(text, &id))
        return NULL;
    c = seqmap_find(&q->backlog->claims, ident_claim_number(id));
    if (c == NULL || !ident_equal(claim_ident(c), id) || outlived(q->shard, c, now_ms))
        return NULL;
    return c;
}

void
claim_name(const struct queue *q, const struct bytes *ids, size_t count, bool named,
           int64_t now_ms)
{
    for (size_t i = 0; i < count; i++) {
        struct claim *c = claim_find(q, ids[i], now_ms);

        if (c != NULL)
            c->named = named;
    }
}

static bool
claim_audit(const struct claim *c)
{
    size_t held = 0;

    if (!deadline_armed(&c->due) || c->due.due_ms < c->started_ms || c->named)
        return false;
    for (size_t i = 0; i < c->count; i++) {
        if (i > 0 && c->seqs[i - 1] >= c->seqs[i])
            return false;
        held += held_message(c, i) != NULL;
    }
    return held > 0 && held == c->held;
}

bool
claims_audit(const struct backlog *b)
{
    const struct claim *c;
    uint64_t number = 0;
    size_t held = 0;

    if (!seqmap_audit(&b->claims) || b->claims.ready != 0)
        return false;
    for (; (c = seqmap_next_live(&b->claims, &number)) != NULL; number++) {
        if (c->backlog != b || ident_claim_number(claim_ident(c)) != number ||
            !claim_audit(c))
            return false;
        held += c->held;
    }
    return held == b->claimed;
}
