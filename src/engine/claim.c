#include "engine/claim.h"
#include "claimd/base/invariant.h"

struct claim *
claim_new(struct mem *mem, size_t count)
{
    struct claim *c;

    if (count > UINT32_MAX || count > (SIZE_MAX - sizeof(*c)) / sizeof(c->seqs[0]))
        return NULL;
    c = mem_alloc(mem, sizeof(*c) + count * sizeof(c->seqs[0]));
    if (c != NULL)
        *c = (struct claim){.capacity = (uint32_t)count};
    return c;
}

void
claim_start(struct shard *sh, struct claim *c, const struct store_terms *terms,
            int64_t now_ms)
{
    ENSURE(terms->ttl_s > 0);
    c->started_ms = now_ms;
    shard_arm_claim(sh, &c->due, core_deadline_ms(sh->core, now_ms, terms->ttl_s));
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
    ENSURE(c->held == 0 && deadline_armed(&c->due));
    c->backlog = q->backlog;
    c->made_ms = c->started_ms;
    c->id_high = id.high;
    c->id_low = id.low;
    backlog_add_claim(q->backlog, &sh->pool, q->last_claim, c);
}

void
claim_extend_message(struct shard *sh, struct message *m, const struct store_terms *terms,
                     int64_t now_ms)
{
    int64_t life_s = terms->ttl_s + terms->grace_s;
    int64_t until_ms;

    if (life_s > sh->core->config.max_message_ttl_s)
        life_s = sh->core->config.max_message_ttl_s;
    until_ms = core_deadline_ms(sh->core, now_ms, life_s);
    if (until_ms <= m->expires_ms)
        return;
    m->expires_ms = until_ms;
    shard_arm_message(sh, &m->due, until_ms);
}

void
claim_add_message(struct shard *sh, struct claim *c, struct message *m,
                  const struct store_terms *terms, int64_t now_ms)
{
    lock_assert_held(&sh->lock);
    ENSURE(c->count == 0 || c->seqs[c->count - 1] < m->seq);
    backlog_claim_message(m->backlog, m, c);
    if (m->claim_count == 0)
        metrics_span(&sh->metrics, STORE_SPAN_WAITED, m->posted_ms, now_ms);
    if (m->claim_count < UINT32_MAX)
        m->claim_count++;
    claim_extend_message(sh, m, terms, now_ms);
    c->seqs[c->count++] = m->seq;
    c->held++;
}

struct message *
claim_held(const struct claim *c, size_t i)
{
    struct message *m = seqmap_find(&c->backlog->messages, c->seqs[i]);

    return m != NULL && m->claim == c ? m : NULL;
}

struct message *
claim_message(const struct claim *c, size_t i, int64_t now_ms)
{
    struct message *m = claim_held(c, i);

    return m != NULL && message_live(m, now_ms) ? m : NULL;
}

void
claim_end(struct shard *sh, struct claim *c)
{
    lock_assert_held(&sh->lock);
    if (c->held > 0 && c->backlog->queue != NULL)
        queue_wake_waiters(c->backlog->queue);
    for (size_t i = 0; c->held > 0; i++) {
        struct message *m;

        ENSURE(i < c->count);
        m = claim_held(c, i);
        if (m == NULL)
            continue;
        backlog_release(c->backlog, m);
        c->held--;
    }
    wheel_disarm(sh->claim_wheel, &c->due);
    backlog_remove_claim(c->backlog, &sh->pool, ident_claim_number(claim_ident(c)));
    seqmap_pool_trim(&sh->pool);
    mem_free(sh->core->mem, c);
}

void
claim_replace(struct shard *sh, struct claim *c, struct claim *fresh)
{
    const uint64_t number = ident_claim_number(claim_ident(c));

    lock_assert_held(&sh->lock);
    *fresh = (struct claim){.due.due_ms = c->due.due_ms,
                            .backlog = c->backlog,
                            .made_ms = c->made_ms,
                            .started_ms = c->started_ms,
                            .id_low = c->id_low,
                            .id_high = c->id_high,
                            .count = c->count,
                            .capacity = fresh->capacity,
                            .held = c->held};
    for (size_t i = 0; i < c->count; i++) {
        struct message *m = claim_held(c, i);

        fresh->seqs[i] = c->seqs[i];
        if (m != NULL)
            m->claim = fresh;
    }
    wheel_disarm(sh->claim_wheel, &c->due);
    backlog_remove_claim(c->backlog, &sh->pool, number);
    backlog_add_claim(c->backlog, &sh->pool, number, fresh);
    mem_free(sh->core->mem, c);
}

uint64_t
claim_fence(const struct queue *q, const struct claim *c)
{
    return q->fence_base + ident_claim_number(claim_ident(c));
}

void
claim_drop_message(struct shard *sh, struct claim *c)
{
    lock_assert_held(&sh->lock);
    ENSURE(c->held > 0);
    if (--c->held == 0)
        claim_end(sh, c);
}

struct claim *
claim_find(const struct queue *q, struct bytes text, int64_t now_ms)
{
    const struct core *core = q->shard->core;
    struct ident id;
    struct claim *c;

    if (!ident_read(text, &id))
        return NULL;
    c = seqmap_find(&q->backlog->claims, ident_claim_number(id));
    if (c == NULL || !ident_equal(claim_ident(c), id))
        return NULL;
    /* A claim extends the lives of its messages to its end, unless it lasts longer than a
     * message may live. */
    if (c->due.due_ms <=
        core_deadline_ms(core, c->started_ms, core->config.max_message_ttl_s))
        return c;
    for (size_t i = 0; i < c->count; i++)
        if (claim_message(c, i, now_ms) != NULL)
            return c;
    return NULL;
}

size_t
claims_mark(const struct queue *q, const struct bytes *ids, size_t count, bool marked,
            int64_t now_ms)
{
    size_t live = 0;

    for (size_t i = 0; i < count; i++) {
        struct claim *c = claim_find(q, ids[i], now_ms);

        if (c == NULL)
            continue;
        c->marked = marked;
        live++;
    }
    return live;
}

static bool
claim_audit(const struct claim *c)
{
    size_t held = 0;

    if (!deadline_armed(&c->due) || c->due.due_ms < c->started_ms || c->marked)
        return false;
    for (size_t i = 0; i < c->count; i++) {
        if (i > 0 && c->seqs[i - 1] >= c->seqs[i])
            return false;
        held += claim_held(c, i) != NULL;
    }
    return held > 0 && held == c->held;
}

bool
claims_audit(const struct backlog *b)
{
    const struct claim *c;
    uint64_t number = 0;
    size_t held = 0;

    for (; (c = seqmap_next_live(&b->claims, &number)) != NULL; number++) {
        if (c->backlog != b || ident_claim_number(claim_ident(c)) != number ||
            !claim_audit(c))
            return false;
        held += c->held;
    }
    return held == b->claimed;
}
