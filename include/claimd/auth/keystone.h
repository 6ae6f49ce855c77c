/*
 * keystone: tokens that another server knows, by the protocol of OpenStack's Keystone v3.
 *
 * Only Keystone can say whether a token is good, and its response takes a network. So claimd
 * caches responses. A caller with an unknown token waits in its fiber (base/fiber.h). One
 * question per token goes to Keystone at a time, in a thread of an executor, however many
 * callers wait for its response.
 *
 *     accepted     cached for cache_ms from the question on, and never beyond the token's end
 *     refused      the same, KEYSTONE_REFUSED_MS at most
 *     no response  not cached: all callers that wait get ST_UNAVAILABLE
 *
 * Accepted and refused tokens have a cache each, so invented tokens displace no good one. A token
 * that was good at its last question goes before all unknown ones.
 *
 *   Cost     of a known token: one SHA-256 and one lookup
 *   Bounds   cache_tokens accepted, KEYSTONE_REFUSED_MOST refused; as many questions as the
 *            executor takes; each ends timeout_ms after it was put, its time in the queue included;
 *            KEYSTONE_WAITERS_MOST callers that wait, so that a worker has fibers left
 *   Threads  any. Its lock is held for a lookup, or to queue a question
 *   Secrets  a token is kept while it is asked about; of those that are kept longer only the
 *            digest
 */
#ifndef CLAIMD_AUTH_KEYSTONE_H
#define CLAIMD_AUTH_KEYSTONE_H

#include "claimd/auth/policy.h"
#include "claimd/base/buf.h"
#include "claimd/base/executor.h"
#include "claimd/base/hash.h"

/*
 * KEYSTONE_TOKEN_MAX: longer tokens are invalid. KEYSTONE_BODY_MAX: longer responses are, too;
 * Keystone leaves out the catalog.
 */
enum {
    KEYSTONE_TOKEN_MAX = 8192,
    KEYSTONE_BODY_MAX = 1 << 20,
    KEYSTONE_REFUSED_MS = 10000,
    KEYSTONE_REFUSED_MOST = 1024,
    KEYSTONE_WAITERS_MOST = 1000
};

/* ------------------------------------------------------------------ asking Keystone */

/* How Keystone is reached: keystone_wire_open(), or a test's own. */
struct keystone_wire {
    /*
     * Asks about a token and waits for the answer, for timeout_ms at most. ST_OK: *code and
     * the body, of KEYSTONE_BODY_MAX bytes at most, are what it has said; ST_UNAVAILABLE: it
     * has not, and *why says why; ST_NO_MEMORY. Called by several threads at a time.
     */
    enum status (*ask)(struct keystone_wire *wire, struct bytes token, int64_t timeout_ms,
                       int *code, struct buf *body, struct reason *why);
};

/* How things stand with Keystone. */
enum keystone_health {
    KEYSTONE_WELL,   /* it answers */
    KEYSTONE_AWAY,   /* it does not, or not what Keystone says */
    KEYSTONE_REFUSES /* it does not take our own token */
};

/* ------------------------------------------------------------------ callers */

struct verdict;

/* The result for the token of a request; zero before the first question, and dropped at the end. */
struct access_proof {
    struct verdict *verdict; /* private; NULL: not known yet */
    bool asking; /* its fiber is parked until Keystone responds; for the fiber's thread */
};

/* A user that Keystone knows. The texts are borrowed from the proof. */
struct keystone_caller {
    struct bytes name;    /* the user's id */
    struct bytes project; /* its id; absent: the token is for none */
    role_set roles;       /* what its roles mean here; empty: nothing */
    int64_t expires_ms;
};

/* Forgets it. No caller may be waiting with it. */
void access_proof_drop(struct access_proof *proof);

/* ------------------------------------------------------------------ the keystone */

struct keystone_config {
    struct mem *mem; /* borrowed for the keystone's life, as all pointers here */
    struct keystone_wire *wire; /* likewise */
    struct executor *executor;  /* likewise; NULL: the calling thread asks Keystone */
    struct role_map roles;      /* its texts are borrowed likewise */
    struct hash_key key;        /* of the tables of what is known */
    int64_t cache_ms, timeout_ms;
    size_t cache_tokens;
    /* Told, by any thread, when the health changes, once a second at most; may be NULL. */
    void (*health)(void *ctx, enum keystone_health health, const char *why);
    void *ctx;
};

struct keystone; /* opaque */

/* Makes one, owned. ST_NO_MEMORY. */
enum status keystone_new(const struct keystone_config *config, struct keystone **out);

/* No caller may be waiting, and the executor has ended. NULL is fine. */
void keystone_free(struct keystone *k);

/*
 * Finds the user of this token. If the token is unknown, the fiber that runs parks until Keystone
 * has responded. ST_OK: *out. ST_UNAUTHORIZED: the token is unknown or has expired. ST_UNAVAILABLE:
 * Keystone has not responded, too many questions or callers wait, or an unknown token comes outside
 * of a fiber. ST_NO_MEMORY. A result that a proof has stays valid until the token ends.
 */
enum status
keystone_ask(struct keystone *k, struct bytes token, int64_t now_ms,
             struct access_proof *proof, struct keystone_caller *out, struct reason *why);

/* Nothing is known any more of any token; nor of those that are being asked about. */
void keystone_forget(struct keystone *k);

/* How many tokens are kept: accepted and refused. */
size_t keystone_count(struct keystone *k);

/* ------------------------------------------------------------------ over HTTP */

/*
 * Reaches Keystone over HTTP, with libcurl: `GET URL/auth/tokens?nocatalog` with the service token in
 * X-Auth-Token and the client's in X-Subject-Token. Redirects and proxies of the environment are not
 * used, because both would give tokens to others. Certificates are verified. A question costs a round
 * trip; each thread that asks at a time keeps a connection.
 */
struct keystone_wire_config {
    struct mem *mem; /* borrowed for the wire's life, as all pointers here */
    const char *url; /* with "/v3"; keystone_url_check() has seen it */
    const char *ca;  /* file of certificates to trust; NULL: those of the system */
    /*
     * Writes the service token as it is now, with a NUL behind it; called for each question, so
     * that it can be renewed. ST_UNAVAILABLE: there is none, and *why says why.
     */
    enum status (*service_token)(void *ctx, char out[KEYSTONE_TOKEN_MAX + 1],
                                 struct reason *why);
    void *ctx;
};

/* True if it is http or https, a host, and a path that ends with /v3. */
bool keystone_url_check(struct bytes url);

/*
 * Loads libcurl. ST_UNAVAILABLE: it is not there, and *why says what to do; ST_NO_MEMORY.
 * Owned.
 */
enum status keystone_wire_open(const struct keystone_wire_config *config,
                               struct keystone_wire **out, struct reason *why);

/* No thread may be asking. NULL is fine. */
void keystone_wire_close(struct keystone_wire *wire);

#endif
