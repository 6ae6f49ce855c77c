#include "auth/verdict.h"

#include "claimd/base/invariant.h"

/* ------------------------------------------------------------------ verdicts */

struct verdict *
verdict_new(struct mem *mem)
{
    struct verdict *v = mem_calloc(mem, 1, sizeof(*v));

    if (v == NULL)
        return NULL;
    v->mem = mem;
    v->status = ST_UNAVAILABLE;
    atomic_init(&v->pins, 1);
    return v;
}

struct verdict *
verdict_pin(struct verdict *v)
{
    (void)atomic_fetch_add_explicit(&v->pins, 1, memory_order_relaxed);
    return v;
}

void
verdict_unpin(struct verdict *v)
{
    if (v != NULL && atomic_fetch_sub_explicit(&v->pins, 1, memory_order_acq_rel) == 1)
        mem_free(v->mem, v);
}

/* ------------------------------------------------------------------ caches */

static struct verdict *
verdict_of_node(const struct hashnode *node)
{
    return container_of(node, struct verdict, node);
}

static bool
verdict_has_digest(const struct hashnode *node, const void *key)
{
    return token_digest_equal(&verdict_of_node(node)->digest, key);
}

void
verdict_cache_init(struct verdict_cache *c, struct mem *mem, const struct hash_key *key,
                   size_t most)
{
    hashmap_init(&c->map, mem);
    list_init(&c->uses);
    c->key = *key;
    c->most = most;
}

static void
cache_drop(struct verdict_cache *c, struct verdict *v)
{
    hashmap_remove(&c->map, &v->node);
    list_remove(&v->use);
    verdict_unpin(v);
}

void
verdict_cache_clear(struct verdict_cache *c)
{
    while (!list_empty(&c->uses))
        cache_drop(c, container_of(c->uses.next, struct verdict, use));
}

void
verdict_cache_fini(struct verdict_cache *c)
{
    verdict_cache_clear(c);
    hashmap_fini(&c->map);
}

static struct verdict *
cache_find(const struct verdict_cache *c, const struct token_digest *digest)
{
    struct hashnode *node = hashmap_find(&c->map, token_digest_hash(&c->key, digest),
                                         verdict_has_digest, digest);

    return node == NULL ? NULL : verdict_of_node(node);
}

/* Requests that run at the same time may have read the clock up to this long apart. */
enum { CLOCK_SET_MS = 1000 };

struct verdict *
verdict_cache_find(struct verdict_cache *c, const struct token_digest *digest,
                   int64_t now_ms)
{
    struct verdict *v = cache_find(c, digest);

    if (v == NULL)
        return NULL;
    /* If the clock was set back, it must not become valid for longer. */
    if (now_ms >= v->until_ms || now_ms < v->from_ms - CLOCK_SET_MS) {
        v->until_ms = INT64_MIN;
        return NULL;
    }
    list_remove(&v->use);
    list_add_before(&c->uses, &v->use);
    return v;
}

bool
verdict_cache_remembers(const struct verdict_cache *c, const struct token_digest *digest,
                        int64_t now_ms)
{
    const struct verdict *v = cache_find(c, digest);

    return v != NULL && now_ms < v->expires_ms;
}

void
verdict_cache_drop(struct verdict_cache *c, const struct token_digest *digest)
{
    struct verdict *v = cache_find(c, digest);

    if (v != NULL)
        cache_drop(c, v);
}

void
verdict_cache_put(struct verdict_cache *c, struct verdict *v)
{
    struct verdict *older = cache_find(c, &v->digest);

    ENSURE(!list_linked(&v->use));
    if (older != NULL)
        cache_drop(c, older);
    if (hashmap_reserve(&c->map, 1) != ST_OK)
        return;
    if (c->map.count == c->most)
        cache_drop(c, container_of(c->uses.next, struct verdict, use));
    hashmap_insert(&c->map, &v->node, token_digest_hash(&c->key, &v->digest));
    list_add_before(&c->uses, &v->use);
    (void)verdict_pin(v);
}
