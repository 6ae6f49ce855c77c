/*
 * verdict: the result of checking a token with Keystone, and caches of such results.
 *
 * Requests and a cache share a verdict by a reference count (pins). A shared verdict does
 * not change.
 *
 *   Cost     verdict_cache_find(), verdict_cache_put(): O(1)
 *   Memory   450 bytes a verdict. It has space for the longest texts, so that filling it
 *            cannot fail
 *   Threads  verdict_pin(), verdict_unpin(): any. A cache: under the lock of its owner
 */
#ifndef AUTH_VERDICT_H
#define AUTH_VERDICT_H

#include "claimd/auth/policy.h"
#include "claimd/auth/token_line.h"
#include "claimd/base/hash.h"
#include "claimd/ds/hashmap.h"
#include "claimd/ds/list.h"

#include <stdatomic.h>

enum { VERDICT_NAME_MAX = 64, VERDICT_PROJECT_MAX = 256 };

struct verdict {
    struct hashnode node; /* in a cache, by digest */
    struct list use;      /* in a cache, latest use last */
    struct mem *mem;
    _Atomic size_t pins;
    struct token_digest digest;
    enum status status; /* ST_OK: accepted; ST_UNAUTHORIZED: refused; else: unknown */
    int64_t from_ms,
        until_ms; /* valid between these times. Guarded by the lock of the cache */
    /* With ST_OK: */
    int64_t expires_ms;           /* end of the token */
    unsigned roles;               /* a bit each */
    size_t name_len, project_len; /* no project: 0 */
    char name[VERDICT_NAME_MAX], project[VERDICT_PROJECT_MAX];
};

static inline uint64_t
token_digest_hash(const struct hash_key *key, const struct token_digest *digest)
{
    return hash_bytes(key, bytes_of((const char *)digest->bytes, sizeof(digest->bytes)));
}

/* Makes a verdict with ST_UNAVAILABLE and one pin. NULL: no memory. */
struct verdict *verdict_new(struct mem *mem);

/* Reads the document about a token: name, project, roles, expires_ms. ST_BAD_BODY with a
 * reason. *out has undefined content then. */
enum status keystone_token_read(struct bytes text, const struct role_map *roles,
                                struct verdict *out, struct reason *why);

struct verdict *verdict_pin(struct verdict *v);
void verdict_unpin(struct verdict *v); /* NULL is fine */

struct verdict_cache {
    struct hashmap map;
    struct hash_key key;
    struct list uses;
    size_t most;
};

void verdict_cache_init(struct verdict_cache *c, struct mem *mem,
                        const struct hash_key *key, size_t most);
void verdict_cache_fini(struct verdict_cache *c);

/* The verdict about this token, not pinned; NULL: there is none, or it is no longer
 * valid. */
struct verdict *verdict_cache_find(struct verdict_cache *c,
                                   const struct token_digest *digest, int64_t now_ms);

/* True if the cache has a verdict about this token, valid or not, and the token has not
 * expired. */
bool verdict_cache_remembers(const struct verdict_cache *c,
                             const struct token_digest *digest, int64_t now_ms);

/* Removes the verdict about this token. */
void verdict_cache_drop(struct verdict_cache *c, const struct token_digest *digest);

/* Adds and pins a verdict. It replaces one about the same token, or if the cache is full,
 * the least recently used one. Does nothing without memory. */
void verdict_cache_put(struct verdict_cache *c, struct verdict *v);

/* Removes all verdicts. O(verdicts). */
void verdict_cache_clear(struct verdict_cache *c);

#endif
