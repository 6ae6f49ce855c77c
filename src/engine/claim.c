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
claim_set_client(struct mem *mem, struct claim *c, struct bytes client)
{
    char *copy;

    ENSURE(client.len <= STORE_CLIENT_MAX);
    if (client.len == 0 || bytes_equal(client, claim_client(c)))
        return;
    copy = mem_alloc(mem, client.len);
    if (copy == NULL)
        return;
    mem_free(mem, c->client);
    c->client = memcpy(copy, client.data, client.len);
    c->client_len = (uint8_t)client.len;
}

static void
free_claim(struct mem *mem, struct claim *c)
{
    mem_free(mem, c->client);
    mem_free(mem, c);
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
claim_enter(struct shard *sh, struct claim *c, struct backlog *b, struct ident id,
            int64_t made_ms)
{
    lock_assert_held(&sh->lock);
    ENSURE(c->held == 0);
    c->backlog = b;
    c->made_ms = made_ms;
    c->id_high = id.high;
    c->id_low = id.low;
    backlog_add_claim(b, &sh->pool, ident_claim_number(id), c);
}

struct message *
claim_next(const struct claim *c, uint64_t *i)
{
    while (*i < c->count) {
        struct message *m = seqmap_find(&c->backlog->messages, c->seqs[(*i)++]);

        if (m != NULL && m->claim == c)
            return m;
    }
    return NULL;
}

void
claim_end(struct shard *sh, struct claim *c)
{
    lock_assert_held(&sh->lock);
    if (c->held > 0 && c->backlog->queue != NULL) {
        queue_wake_waiters(c->backlog->queue);
        shard_consider_unload(sh, c->backlog);
    }
    for (uint64_t i = 0; c->held > 0; c->held--) {
        struct message *m = claim_next(c, &i);

        ENSURE(m != NULL);
        backlog_release(c->backlog, m);
    }
    wheel_disarm(sh->claim_wheel, &c->due);
    backlog_remove_claim(c->backlog, &sh->pool, ident_claim_number(claim_ident(c)));
    seqmap_pool_trim(&sh->pool);
    free_claim(sh->core->mem, c);
}

void
claim_replace(struct shard *sh, struct claim *c, struct claim *fresh)
{
    const uint64_t number = ident_claim_number(claim_ident(c));
    struct message *m;

    lock_assert_held(&sh->lock);
    *fresh = (struct claim){.due.due_ms = c->due.due_ms,
                            .backlog = c->backlog,
                            .made_ms = c->made_ms,
                            .started_ms = c->started_ms,
                            .id_low = c->id_low,
                            .id_high = c->id_high,
                            .count = c->count,
                            .capacity = fresh->capacity,
                            .held = c->held,
                            .client_len = c->client_len,
                            .client = c->client};
    c->client = NULL;
    memcpy(fresh->seqs, c->seqs, c->count * sizeof(c->seqs[0]));
    for (uint64_t i = 0; (m = claim_next(c, &i)) != NULL;)
        m->claim = fresh;
    wheel_disarm(sh->claim_wheel, &c->due);
    backlog_remove_claim(c->backlog, &sh->pool, number);
    backlog_add_claim(c->backlog, &sh->pool, number, fresh);
    free_claim(sh->core->mem, c);
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
    const struct message *m;
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
    for (uint64_t i = 0; (m = claim_next(c, &i)) != NULL;)
        if (message_live(m, now_ms))
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
    uint64_t at = 0;
    size_t held = 0;

    if (!deadline_armed(&c->due) || c->due.due_ms < c->started_ms || c->marked)
        return false;
    for (size_t i = 1; i < c->count; i++)
        if (c->seqs[i - 1] >= c->seqs[i])
            return false;
    while (claim_next(c, &at) != NULL)
        held++;
    return held > 0 && held == c->held;
}

bool
limits_claims(const struct queue *q)
{
    const struct store_settings *set = queue_settings(q);

    return set->max_claim_count != STORE_UNSET && bytes_present(set->dead_letter);
}

bool
is_exhausted(const struct queue *q, const struct message *m)
{
    return limits_claims(q) &&
           (int64_t)m->claim_count >= queue_settings(q)->max_claim_count;
}

bool
dies_with_claim(const struct claim *c, const struct message *m)
{
    return message_live(m, c->due.due_ms) && is_exhausted(c->backlog->queue, m);
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
