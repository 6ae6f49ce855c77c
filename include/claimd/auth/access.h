/*
 * access: who may come in, and what they may do there (docs/api.md 15).
 *
 * Callers show a bearer token, or a certificate, but not both. Which there are stands in
 * lists (token_line.h) that are read again while requests go on:
 * access_replace() takes another list of tokens and another policy (policy.h), both at once. Or
 * another server knows tokens (keystone.h): then the list is not looked at.
 *
 *   Cost     a request: one SHA-256 and one look-up, however many tokens there are
 *   Threads  any, also while it is replaced. Its lock is held for a look-up and the copy of
 *            a name and a project
 *   Secrets  of a token only its digest is kept; looking it up takes no time that tells how much
 *            of it is right
 */
#ifndef CLAIMD_AUTH_ACCESS_H
#define CLAIMD_AUTH_ACCESS_H

#include "claimd/auth/keystone.h"
#include "claimd/auth/policy.h"
#include "claimd/auth/token_line.h"
#include "claimd/base/arena.h"

struct access; /* opaque */

/* Makes one that lets nobody in, owned. ST_NO_MEMORY. */
enum status access_new(struct mem *mem, struct access **out);
void access_free(struct access *a);

/*
 * From now on this one is asked who has a token; borrowed for the access's life. To be called
 * before anybody else uses it.
 */
void access_trust(struct access *a, struct keystone *keystone);

/* May access_ask() park the fiber that runs? */
bool access_may_block(const struct access *a);

/* The scheme of WWW-Authenticate, for those who show no good token; a literal. */
const char *access_challenge(const struct access *a);

/*
 * Takes another list of tokens, a text of lines, and another policy. ST_BAD_VALUE: *bad_line
 * cannot be taken, and *why says why (a name or a token that is there twice, too);
 * ST_NO_MEMORY. Then all is as before.
 */
enum status
access_replace(struct access *a, struct bytes list, const struct policy *policy,
               size_t *bad_line, struct reason *why);

/* Which policy is in force. */
void access_policy(struct access *a, struct policy *out);

/* Takes another list of certificates, which it owns then; NULL: they mean nothing. */
void access_use_certificates(struct access *a, struct token_list *list);

/* How many tokens there are. */
size_t access_count(struct access *a);

/* What somebody wants. */
struct access_request {
    struct bytes token;                    /* absent or empty: none was sent */
    const struct certificate *certificate; /* NULL: none was shown */
    struct bytes project;       /* that the request names; absent or empty: none */
    enum action action;         /* ACTION_COUNT: the resource lacks the method */
    bool everywhere;            /* it is about all projects, not about one */
    int64_t now_ms;             /* real time: not the store's */
    struct access_proof *proof; /* of the request, with a keystone; else not looked at */
};

/* What is known of a caller who was let in. The texts are of the arena. */
struct access_caller {
    struct bytes name;    /* of the token, the certificate or the user */
    enum role role;       /* the greatest of several */
    struct bytes project; /* that it is good for; absent: the one that was named */
};

/*
 * ST_OK; ST_UNAUTHORIZED: there is no such token, or it has expired, or it comes with a
 * certificate that stands for somebody, too; without a token, no certificate that stands
 * for anybody. ST_FORBIDDEN: it is for other
 * projects, or its role must not do this; ST_MISSING_PROJECT: it is for several, and none was
 * named. *why says more, for people. ST_NO_MEMORY. With a keystone also ST_UNAVAILABLE, and the
 * fiber that runs may park (keystone.h).
 */
enum status
access_ask(struct access *a, const struct access_request *request, struct arena *arena,
           struct access_caller *out, struct reason *why);

#endif
