/*
 * verdict: what Keystone has said about a token, and the place where it is kept.
 *
 * A verdict has a count of those who look at it: requests, and the cache that it is in. It does
 * not change once it was given to anybody.
 *
 *   Cost     find, put O(1)
 *   Memory   a verdict has room for the longest texts, so that nothing can fail once there is
 *            one: some 450 bytes
 *   Threads  counts from any; a cache is under its owner's lock
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
    enum status status; /* ST_OK; ST_UNAUTHORIZED; anything else: nobody knows */
    int64_t until_ms;   /* believed until then; the cache's, once it is in one */
    /* Of one that is ST_OK: */
    int64_t expires_ms;
    unsigned roles; /* a bit each */
    size_t name_len, project_len;
    char name[VERDICT_NAME_MAX], project[VERDICT_PROJECT_MAX]; /* no project: none */
};

/* Makes one that says ST_UNAVAILABLE, with one pin; NULL without memory. */
struct verdict *verdict_new(struct mem *mem);

/*
 * Reads what Keystone returns about a token: name, project, roles, expires_ms. ST_BAD_BODY: it is none, *why
 * says why, and what was filled in means nothing.
 */
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

/* The verdict about this token, not pinned; NULL: none, or its time is over, for good. */
struct verdict *verdict_cache_find(struct verdict_cache *c,
                                   const struct token_digest *digest, int64_t now_ms);

/* True if there was one about a token that has not ended, though its own time may be over. */
bool verdict_cache_remembers(const struct verdict_cache *c,
                             const struct token_digest *digest, int64_t now_ms);

/* Keeps none about this token. */
void verdict_cache_drop(struct verdict_cache *c, const struct token_digest *digest);

/*
 * Keeps it, and pins it for that, in place of an older one about the same token or of the one
 * that was not used for longest. Without memory it does not.
 */
void verdict_cache_put(struct verdict_cache *c, struct verdict *v);

/* Keeps nothing any more. O(kept). */
void verdict_cache_clear(struct verdict_cache *c);

#endif
