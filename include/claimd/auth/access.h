/*
 * access: identifies clients, and checks what they may do (docs/api.md 15).
 *
 * A client sends a bearer token or uses a certificate, but not both. Lists contain the
 * tokens and certificates (token_line.h). access_replace() replaces the list of tokens
 * and the policy (policy.h), both at once, while requests continue. With Keystone
 * (keystone.h), the list of tokens is not used.
 *
 *   Cost     of a request: one SHA-256 and one lookup, for any number of tokens
 *   Threads  any. The lock is held for a lookup and a copy of a name and a project
 *   Memory   the lists
 *   Secrets  only the digests of tokens are kept. The time of a lookup does not reveal
 *            how much of a token is right
 */
#ifndef CLAIMD_AUTH_ACCESS_H
#define CLAIMD_AUTH_ACCESS_H

#include "claimd/auth/keystone.h"
#include "claimd/auth/policy.h"
#include "claimd/auth/token_line.h"
#include "claimd/base/arena.h"

struct access; /* opaque */

/* Makes an access without tokens and certificates, owned. ST_NO_MEMORY. */
enum status access_new(struct mem *mem, struct access **out);
void access_free(struct access *a);

/* Uses Keystone for tokens from now on; borrowed for the life of the access. To be called
 * before other threads use the access. */
void access_use_keystone(struct access *a, struct keystone *keystone);

/* True if access_ask() may park the running fiber. */
bool access_may_block(const struct access *a);

/* The scheme for WWW-Authenticate in responses that refuse a token; a literal. */
const char *access_challenge(const struct access *a);

/*
 * Replaces the list of tokens (a text of lines) and the policy. ST_BAD_VALUE: *bad_line
 * is invalid, with a reason; names and tokens must be unique. ST_NO_MEMORY. With an error
 * nothing changes.
 */
enum status
access_replace(struct access *a, struct bytes list, const struct policy *policy,
               size_t *bad_line, struct reason *why);

/* Copies the current policy. */
void access_policy(struct access *a, struct policy *out);

/* Replaces the list of certificates, which the access owns then. NULL: certificates are
 * not used. */
void access_use_certificates(struct access *a, struct token_list *list);

/* True if a certificate can identify a client. */
bool access_has_certificates(struct access *a);

/* The number of tokens. */
size_t access_count(struct access *a);

/* The credentials of a client and the action that it requests. */
struct access_request {
    struct bytes token;                    /* absent or empty: none */
    const struct certificate *certificate; /* NULL: none */
    struct bytes project;       /* that the request names; absent or empty: none */
    enum action action;         /* ACTION_COUNT: the resource lacks the method */
    bool everywhere;            /* the request is about all projects */
    int64_t now_ms;             /* real time, not the clock of the store */
    struct access_proof *proof; /* of the request. Only used with Keystone */
};

/* An identified client. The texts belong to the arena. */
struct access_caller {
    struct bytes name;    /* of the token, the certificate or the user */
    enum role role;       /* the greatest one of several */
    struct bytes project; /* absent: the one that the request names */
};

/*
 * Identifies the client and checks its request. Errors, with a reason for people:
 *
 *     ST_UNAUTHORIZED      the token is unknown or has expired, there is neither a token
 *                          nor a known certificate, or there are both
 *     ST_FORBIDDEN         the token or certificate is for other projects, or its role
 *                          does not allow the action
 *     ST_MISSING_PROJECT   it is for several projects, and the request names none
 *     ST_UNAVAILABLE       with Keystone only
 *     ST_NO_MEMORY
 *
 * With Keystone, the running fiber may park (keystone.h).
 */
enum status
access_ask(struct access *a, const struct access_request *request, struct arena *arena,
           struct access_caller *out, struct reason *why);

#endif
