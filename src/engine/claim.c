#include "engine/claim.h"
#include "engine/queue.h"
#include "engine/shard.h"

#include <assert.h>

struct claim *
claim_new(struct mem *mem, size_t count)
{
    struct claim *c;

    if (count > (SIZE_MAX - sizeof(*c)) / sizeof(c->seqs[0]))
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
    c->ttl_ms = terms->ttl_s * 1000;
    shard_arm_claim(sh, c, now_ms + c->ttl_ms);
}

void
claim_link(struct shard *sh, struct claim *c)
{
    lock_assert_held(&sh->lock);
    c->generation = c->queue->backlog->generation;
    hashmap_insert(&sh->claims, &c->node, c->id.low);
    list_add_before(&c->queue->claims, &c->link);
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
}

/* The message of the i-th number if c holds it, live or not. */
static struct message *
held_message(const struct claim *c, size_t i)
{
    const struct queue *q = c->queue;
    struct message *m;

    if (q->dead || q->backlog->generation != c->generation)
        return NULL;
    m = seqmap_find(&q->backlog->messages, c->seqs[i]);
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
    for (size_t i = 0; i < c->count; i++) {
        struct message *m = held_message(c, i);

        if (m != NULL)
            backlog_give_back(m->backlog, m);
    }
    wheel_disarm(sh->claim_wheel, &c->due);
    hashmap_remove(&sh->claims, &c->node);
    list_remove(&c->link);
    mem_free(sh->engine->mem, c);
}

static bool
claim_equal(const struct hashnode *node, const void *key)
{
    const struct claim *c = container_of(node, const struct claim, node);

    return ident_equal(c->id, *(const struct ident *)key);
}

struct claim *
claim_find(const struct shard *sh, const struct queue *q, struct bytes id)
{
    struct ident key;
    struct hashnode *node;
    struct claim *c;

    if (!ident_read(id, &key))
        return NULL;
    node = hashmap_find(&sh->claims, key.low, claim_equal, &key);
    if (node == NULL)
        return NULL;
    c = container_of(node, struct claim, node);
    return c->queue == q ? c : NULL;
}

bool
claim_audit(const struct shard *sh, const struct claim *c)
{
    if (!deadline_armed(&c->due) || c->due.due_ms != c->started_ms + c->ttl_ms ||
        c->queue->shard != sh)
        return false;
    for (size_t i = 1; i < c->count; i++)
        if (c->seqs[i - 1] >= c->seqs[i])
            return false;
    return true;
}
