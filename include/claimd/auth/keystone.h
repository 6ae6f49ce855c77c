/*
 * keystone: tokens that another server knows, by the protocol of OpenStack's Keystone v3.
 *
 * Whether a token is good only Keystone can say, and its answer takes a network. So answers
 * are kept for a while, and whoever asks about a token of which nothing is known is told
 * later: one question a token goes to Keystone at a time, in a thread of an executor, however
 * many wait for its answer.
 *
 *     accepted   cache_ms from the question on, and never beyond the token's own end
 *     refused    the same, KEYSTONE_REFUSED_MS at most
 *     no answer  not kept: whoever waits for it is told ST_UNAVAILABLE, and nobody comes in
 *
 * Good and bad tokens are kept apart, so that made-up ones push nobody out. A token that was
 * good when it was last asked about is asked about before all that are not known.
 *
 *   Cost     what is known: one SHA-256 and one look-up
 *   Bounds   cache_tokens accepted, KEYSTONE_REFUSED_MOST refused; as many questions as the
 *            executor takes; each ends timeout_ms after it was put, its time in line included
 *   Threads  any. Its lock is held for a look-up, or to put a question in line
 *   Secrets  a token is kept while it is asked about; of those that are kept longer only the
 *            digest
 */
#ifndef CLAIMD_AUTH_KEYSTONE_H
#define CLAIMD_AUTH_KEYSTONE_H

#include "claimd/auth/role_map.h"
#include "claimd/base/buf.h"
#include "claimd/base/executor.h"
#include "claimd/base/hash.h"

/*
 * KEYSTONE_TOKEN_MAX: a longer token is none. KEYSTONE_BODY_MAX: a longer answer is none that
 * Keystone gives; a catalog is left out.
 */
enum {
    KEYSTONE_TOKEN_MAX = 8192,
    KEYSTONE_BODY_MAX = 1 << 20,
    KEYSTONE_REFUSED_MS = 10000,
    KEYSTONE_REFUSED_MOST = 1024
};

/* ------------------------------------------------------------------ asking Keystone */

/* How Keystone is reached: keystone_wire.h, or a test's own. */
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

/* ------------------------------------------------------------------ one who wants in */

struct verdict;

/*
 * What is known of a request's token; zero before the first question, and dropped in the end.
 * Whoever can wait sets `tell`: it is called, in any thread, when keystone_ask() has to be
 * called again, once after each ST_ADMIT.
 */
struct access_proof {
    void (*tell)(struct access_proof *proof); /* NULL: it cannot wait */
    struct access_proof *next;                /* private */
    struct verdict *verdict;                  /* private; NULL: nothing is known */
};

/* Somebody Keystone knows. The texts are borrowed from the proof. */
struct keystone_caller {
    struct bytes name;    /* the user's id */
    struct bytes project; /* its id; absent: the token is for none */
    role_set roles;       /* what its roles mean here; empty: nothing */
    int64_t expires_ms;
};

/* Forgets it. One of which nothing is known is fine; one that waits is not. */
void access_proof_drop(struct access_proof *proof);

/* ------------------------------------------------------------------ the keystone */

struct keystone_config {
    struct mem *mem; /* borrowed for the keystone's life, as all pointers here */
    struct keystone_wire *wire; /* likewise */
    struct executor *executor;  /* likewise; NULL: questions are asked by who has them */
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

/* Nobody waits any more, and the executor has ended. NULL is fine. */
void keystone_free(struct keystone *k);

/*
 * Finds out who has this token. ST_OK: *out. ST_UNAUTHORIZED: nobody, or the token has
 * expired. ST_ADMIT: Keystone is being asked, and `tell` will be called; with nobody to tell,
 * and when Keystone has not answered, or too many are asked about: ST_UNAVAILABLE.
 * ST_NO_MEMORY. What a proof has once been given stays good for it until the token ends.
 */
enum status
keystone_ask(struct keystone *k, struct bytes token, int64_t now_ms,
             struct access_proof *proof, struct keystone_caller *out, struct reason *why);

/* Nothing is known any more of any token; nor of those that are being asked about. */
void keystone_forget(struct keystone *k);

/* How many tokens are kept: accepted and refused. */
size_t keystone_count(struct keystone *k);

#endif
