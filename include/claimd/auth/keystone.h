/*
 * keystone: checks tokens with OpenStack Keystone (v3), and caches the results. Keystone
 * is the service, `struct keystone` is the part of claimd that asks it.
 *
 * Only Keystone knows whether a token is valid, and it responds over the network. A
 * caller with a token that is not cached waits in its fiber (base/fiber.h) for a check,
 * which runs on a thread of an executor. Callers with the same token wait for the same
 * check.
 *
 *     accepted     cached for cache_ms from the start of the check, but not after the
 *                  token expires
 *     refused      cached for cache_ms from the start of the check, at most
 *                  KEYSTONE_REFUSED_MS
 *     no response  not cached. All waiting callers get ST_UNAVAILABLE
 *
 * Accepted and refused tokens have separate caches, so made-up tokens do not evict valid
 * ones. If Keystone accepted a token before, its check goes before the checks of other
 * tokens.
 *
 *   Cost     of a cached token: one SHA-256 and at most two lookups
 *   Bounds   cache_tokens accepted tokens; KEYSTONE_REFUSED_MAX refused ones; as many
 *            checks as the executor takes, each at most timeout_ms, including its time in
 *            the queue; KEYSTONE_WAITERS_MAX waiting callers, so that workers have fibers
 *            left
 *   Threads  any. A thread holds the lock during a lookup, or while it submits a check
 *   Secrets  a token is in memory during its check, and only its digest afterwards
 */
#ifndef CLAIMD_AUTH_KEYSTONE_H
#define CLAIMD_AUTH_KEYSTONE_H

#include "claimd/auth/policy.h"
#include "claimd/base/buf.h"
#include "claimd/base/executor.h"
#include "claimd/base/hash.h"

/* Tokens longer than KEYSTONE_TOKEN_MAX and responses longer than KEYSTONE_BODY_MAX are
 * invalid. */
enum {
    KEYSTONE_TOKEN_MAX = 8192,
    KEYSTONE_BODY_MAX = 1 << 20,
    KEYSTONE_REFUSED_MS = 10000,
    KEYSTONE_REFUSED_MAX = 1024,
    KEYSTONE_WAITERS_MAX = 1000
};

/* ------------------------------------------------------------ connection to Keystone */

/* Sends requests to Keystone. keystone_wire_open() makes the real one, a test a fake. */
struct keystone_wire {
    /*
     * Asks Keystone about a token and waits for the response, at most timeout_ms. ST_OK:
     * *code and the body (at most KEYSTONE_BODY_MAX bytes) are the response.
     * ST_UNAVAILABLE: no response, with a reason. ST_NO_MEMORY. Several threads may call
     * it at the same time.
     */
    enum status (*ask)(struct keystone_wire *wire, struct bytes token, int64_t timeout_ms,
                       int *code, struct buf *body, struct reason *why);
};

enum keystone_health {
    KEYSTONE_RESPONDING,  /* Keystone responds */
    KEYSTONE_UNAVAILABLE, /* Keystone does not respond, or the response is invalid */
    KEYSTONE_SERVICE_TOKEN_REFUSED /* Keystone refuses the service token */
};

/* ------------------------------------------------------------------ callers */

struct verdict;

/* The result for the token of a request. Initially zero. The owner of the request calls
 * access_proof_drop() when the request ends. */
struct access_proof {
    struct verdict *verdict; /* private; NULL: not known yet */
    bool asking; /* the fiber is parked until Keystone has responded. Its thread only */
};

/* A user of Keystone. The texts are borrowed from the proof. */
struct keystone_caller {
    struct bytes name;    /* id of the user */
    struct bytes project; /* id of the project; absent: none */
    role_set roles;       /* roles of claimd, mapped from those of Keystone */
    int64_t expires_ms;
};

/* Releases the result. No fiber may wait with this proof. */
void access_proof_drop(struct access_proof *proof);

/* ------------------------------------------------------------------ the keystone */

struct keystone_config {
    struct mem *mem; /* borrowed for the life of the keystone, as all pointers here */
    struct keystone_wire *wire;
    struct executor *executor; /* runs the checks; NULL: the calling thread does */
    /* Maps roles of Keystone to roles of claimd; borrows its texts. */
    struct role_map roles;
    struct hash_key key; /* hash key of the tables of cached tokens */
    int64_t cache_ms, timeout_ms;
    size_t cache_tokens;
    /* Called by any thread when the health changes, at most once a second; or NULL. */
    void (*health)(void *ctx, enum keystone_health health, const char *why);
    void *ctx;
};

struct keystone; /* opaque */

/* Makes a keystone, which the caller owns. ST_NO_MEMORY. */
enum status keystone_new(const struct keystone_config *config, struct keystone **out);

/* Before the call, the executor must have ended and no caller may wait. NULL is fine. */
void keystone_free(struct keystone *k);

/*
 * Finds the user of a token. If the token is not cached, the running fiber parks until
 * Keystone has responded. ST_UNAUTHORIZED: the token is unknown or has expired.
 * ST_UNAVAILABLE: Keystone has not responded, too many checks or callers wait, or the
 * token is not cached and the caller is not a fiber. ST_NO_MEMORY. A proof keeps its
 * result until the token expires.
 */
enum status
keystone_ask(struct keystone *k, struct bytes token, int64_t now_ms,
             struct access_proof *proof, struct keystone_caller *out, struct reason *why);

/* Clears the caches. Results of checks in progress are not cached. */
void keystone_clear_cache(struct keystone *k);

/* The number of cached tokens, accepted ones and refused ones; for tests. */
size_t keystone_count(struct keystone *k);

/* ------------------------------------------------------------------ over HTTP */

/*
 * Reaches Keystone over HTTP with libcurl: `GET URL/auth/tokens?nocatalog`, with the
 * service token in X-Auth-Token and the token of the client in X-Subject-Token. libcurl
 * follows no redirects and uses no proxies of the environment, because they would reveal
 * tokens. It verifies certificates. Each thread that waits at the same time has its own
 * connection.
 */
struct keystone_wire_config {
    struct mem *mem; /* borrowed for the life of the wire, as all pointers here */
    const char *url; /* ends with "/v3"; the caller has called keystone_url_check() */
    /* File of trusted certificates; NULL: the certificates of the system. */
    const char *ca;
    /*
     * Writes the current service token and a NUL. The wire calls it for each check, so
     * that the owner can renew the token. ST_UNAVAILABLE: there is no service token, with
     * a reason.
     */
    enum status (*service_token)(void *ctx, char out[KEYSTONE_TOKEN_MAX + 1],
                                 struct reason *why);
    void *ctx;
};

/* True if the URL has http or https, a host, and a path that ends with /v3. */
bool keystone_url_check(struct bytes url);

/* Loads libcurl and makes a wire, which the caller owns. ST_UNAVAILABLE: libcurl is
 * missing, with advice. ST_NO_MEMORY. */
enum status keystone_wire_open(const struct keystone_wire_config *config,
                               struct keystone_wire **out, struct reason *why);

/* No check may be in progress. NULL is fine. */
void keystone_wire_close(struct keystone_wire *wire);

#endif
