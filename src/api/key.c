#include "api/key.h"
#include "claimd/base/entropy.h"
#include "claimd/base/hash.h"
#include "claimd/base/invariant.h"
#include "claimd/base/lock.h"
#include "claimd/ds/hashmap.h"
#include "claimd/schedule/definition.h"

#include <nettle/sha2.h>

enum { KEY_MIN = 8, KEY_MAX = STORE_UNIQUE_MAX };

struct running_keys {
    struct mem *mem; /* borrowed */
    struct hash_key hash_key;
    struct lock lock; /* guards `all` */
    struct hashmap all;
};

/* The key of a request that runs. */
struct running_key {
    struct hashnode node;
    struct store_key key;
};

enum status
running_keys_new(struct mem *mem, struct running_keys **out)
{
    struct running_keys *keys = mem_calloc(mem, 1, sizeof(*keys));
    enum status st = keys == NULL
                         ? ST_NO_MEMORY
                         : entropy_make_key(&keys->hash_key, sizeof(keys->hash_key));

    if (st != ST_OK) {
        mem_free(mem, keys);
        return st;
    }
    keys->mem = mem;
    lock_init(&keys->lock);
    hashmap_init(&keys->all, mem);
    *out = keys;
    return ST_OK;
}

void
running_keys_free(struct running_keys *keys)
{
    if (keys == NULL)
        return;
    ENSURE(keys->all.count == 0);
    hashmap_fini(&keys->all);
    lock_fini(&keys->lock);
    mem_free(keys->mem, keys);
}

/* ------------------------------------------------------------------ hashes */

/* Adds a text with its length, so that no two lists of texts are the same bytes. */
static void
hash_text(struct sha256_ctx *sha, struct bytes text)
{
    const uint64_t len = bytes_present(text) ? text.len : UINT64_MAX;

    sha256_update(sha, sizeof(len), (const uint8_t *)&len);
    if (text.len > 0)
        sha256_update(sha, text.len, (const uint8_t *)text.data);
}

static void
make_key(const struct context *ctx, struct bytes text, struct store_key *out)
{
    const struct request *req = ctx->req;
    struct sha256_ctx sha;

    sha256_init(&sha);
    hash_text(&sha, ctx->queue.project);
    hash_text(&sha, req->headers[API_HEADER_CLIENT_ID]);
    hash_text(&sha, bytes_str(api_method_name(req->method)));
    hash_text(&sha, req->path);
    hash_text(&sha, req->query);
    hash_text(&sha, text);
    sha256_digest(&sha, sizeof(out->hash), (uint8_t *)out->hash);
    hash_text(&sha, req->body.len > 0 ? req->body : BYTES_NONE);
    if ((ctx->route->flags & ROUTE_RAW) != 0) /* whose type gives the body its meaning */
        hash_text(&sha, req->headers[API_HEADER_CONTENT_TYPE]);
    sha256_digest(&sha, sizeof(out->digest), (uint8_t *)out->digest);
}

/* ------------------------------------------------------------------ the table */

static bool
is_key(const struct hashnode *node, const void *arg)
{
    const struct store_key *key = arg;

    return memcmp(container_of(node, const struct running_key, node)->key.hash, key->hash,
                  sizeof(key->hash)) == 0;
}

static uint64_t
table_hash(const struct running_keys *keys, const struct store_key *key)
{
    return hash_bytes(&keys->hash_key,
                      bytes_of((const char *)key->hash, sizeof(key->hash)));
}

/* Adds the key of a request. ST_KEY_RUNNING, ST_NO_MEMORY. */
static enum status
add_key(struct running_keys *keys, const struct store_key *key, struct running_key **out)
{
    const uint64_t hash = table_hash(keys, key);
    struct running_key *running = mem_alloc(keys->mem, sizeof(*running));
    enum status st;

    if (running == NULL)
        return ST_NO_MEMORY;
    running->key = *key;
    lock_acquire(&keys->lock);
    st = hashmap_find(&keys->all, hash, is_key, key) != NULL
             ? ST_KEY_RUNNING
             : hashmap_reserve(&keys->all, 1);
    if (st == ST_OK)
        hashmap_insert(&keys->all, &running->node, hash);
    lock_release(&keys->lock);
    if (st == ST_OK)
        *out = running;
    else
        mem_free(keys->mem, running);
    return st;
}

void
key_end(struct running_keys *keys, struct progress *progress)
{
    struct running_key *running = progress->key;

    progress->key = NULL;
    lock_acquire(&keys->lock);
    hashmap_remove(&keys->all, &running->node);
    lock_release(&keys->lock);
    mem_free(keys->mem, running);
}

/* ------------------------------------------------------------------ the header */

static bool
is_visible(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] <= ' ' || text.data[i] > '~')
            return false;
    return true;
}

/* Checks the length and the characters of an Idempotency-Key, or of the key of a unique
 * message. */
static enum status
key_check(struct context *ctx, const char *where, struct bytes text)
{
    if (text.len < KEY_MIN || text.len > KEY_MAX)
        return context_refuse(ctx, ST_BAD_VALUE,
                              "%s is %zu characters long. It must be %d to %d", where,
                              text.len, KEY_MIN, KEY_MAX);
    if (!is_visible(text))
        return context_refuse(ctx, ST_BAD_VALUE,
                              "%s has other characters than visible ASCII", where);
    return ST_OK;
}

enum status
unique_key_check(struct context *ctx, const char *where, struct bytes text)
{
    const enum status st = key_check(ctx, where, text);

    if (st != ST_OK)
        return st;
    if (memchr(text.data, ';', text.len) != NULL ||
        memchr(text.data, ',', text.len) != NULL)
        return context_refuse(ctx, ST_BAD_VALUE, "%s has a comma or a semicolon", where);
    if (bytes_begin_with(text, bytes_str(SCHEDULE_KEYS)))
        return context_refuse(
            ctx, ST_BAD_VALUE,
            "%s begins with " SCHEDULE_KEYS ", as those of schedules do", where);
    return ST_OK;
}

enum status
key_read(struct context *ctx)
{
    const struct bytes text = ctx->req->headers[API_HEADER_IDEMPOTENCY_KEY];
    struct store_key key;
    enum status st = ST_OK;

    if (ctx->progress->key == NULL) { /* else it is a later slice */
        if (ctx->limits->idempotency_window == 0)
            return context_refuse(ctx, ST_BAD_VALUE,
                                  "the server accepts no Idempotency-Key "
                                  "(idempotency_window is 0)");
        st = key_check(ctx, "the header Idempotency-Key", text);
        if (st != ST_OK)
            return st;
        make_key(ctx, text, &key);
        st = add_key(ctx->api->keys, &key, &ctx->progress->key);
        if (st != ST_OK)
            return st;
    }
    ctx->op.key = &ctx->progress->key->key;
    return ST_OK;
}
