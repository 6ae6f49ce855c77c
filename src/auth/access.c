#include "claimd/auth/access.h"

#include "claimd/base/lock.h"

#include <string.h>

struct access {
    struct mem *mem;
    struct keystone *keystone;       /* borrowed; NULL: tokens are those of the list */
    struct lock lock;                /* guards what follows */
    struct token_list *tokens;       /* owned; NULL: none */
    struct token_list *certificates; /* owned; NULL: certificates are not used */
    struct policy policy;
};

/* ------------------------------------------------------------------ life */

enum status
access_new(struct mem *mem, struct access **out)
{
    struct access *a = mem_calloc(mem, 1, sizeof(*a));

    if (a == NULL)
        return ST_NO_MEMORY;
    a->mem = mem;
    a->policy = policy_default;
    lock_init(&a->lock);
    *out = a;
    return ST_OK;
}

void
access_free(struct access *a)
{
    if (a == NULL)
        return;
    token_list_free(a->tokens);
    token_list_free(a->certificates);
    lock_fini(&a->lock);
    mem_free(a->mem, a);
}

void
access_use_keystone(struct access *a, struct keystone *keystone)
{
    a->keystone = keystone;
}

bool
access_may_block(const struct access *a)
{
    return a->keystone != NULL;
}

const char *
access_challenge(const struct access *a)
{
    return a->keystone != NULL ? "Keystone" : "Bearer";
}

enum status
access_replace(struct access *a, struct bytes list, const struct policy *policy,
               size_t *bad_line, struct reason *why)
{
    struct token_list *next, *before;
    enum status st = token_list_read(a->mem, list, token_line_read, &next, bad_line, why);

    if (st != ST_OK)
        return st;
    lock_acquire(&a->lock);
    before = a->tokens;
    a->tokens = next;
    a->policy = *policy;
    lock_release(&a->lock);
    token_list_free(before);
    return ST_OK;
}

void
access_policy(struct access *a, struct policy *out)
{
    lock_acquire(&a->lock);
    *out = a->policy;
    lock_release(&a->lock);
}

void
access_use_certificates(struct access *a, struct token_list *list)
{
    struct token_list *before;

    lock_acquire(&a->lock);
    before = a->certificates;
    a->certificates = list;
    lock_release(&a->lock);
    token_list_free(before);
}

bool
access_has_certificates(struct access *a)
{
    bool has;

    lock_acquire(&a->lock);
    has = a->certificates != NULL;
    lock_release(&a->lock);
    return has;
}

size_t
access_count(struct access *a)
{
    size_t count;

    lock_acquire(&a->lock);
    count = token_list_count(a->tokens);
    lock_release(&a->lock);
    return count;
}

/* ------------------------------------------------------------------ asking */

static enum status
check_project(const struct token_line *line, const char *what,
              const struct access_request *r, struct bytes *project, struct reason *why)
{
    *project = BYTES_NONE;
    if (r->everywhere)
        return token_line_has(line->projects, BYTES_NONE)
                   ? ST_OK
                   : reason_give(why, ST_FORBIDDEN,
                                 "the request affects all projects, but the %s is not "
                                 "for all projects",
                                 what);
    if (r->project.len > 0)
        return token_line_has(line->projects, r->project)
                   ? ST_OK
                   : reason_give(why, ST_FORBIDDEN,
                                 "the %s is not for the project \"%s\"", what,
                                 received(r->project).text);
    *project = token_line_project(line->projects);
    if (bytes_present(*project) || token_line_has(line->projects, BYTES_NONE))
        return ST_OK;
    return reason_give(why, ST_MISSING_PROJECT,
                       "the %s is for several projects. Name one of them in X-Project-ID",
                       what);
}

/* The line of the certificate of a request; NULL: none. */
static const struct token_line *
certificate_line_find(const struct access *a, const struct access_request *r)
{
    lock_assert_held(&a->lock);
    return a->certificates != NULL && r->certificate != NULL && r->certificate->good
               ? token_list_find_certificate(a->certificates, r->certificate)
               : NULL;
}

/* Refuses a request without a token and without a known certificate. */
static enum status
refuse_unidentified(const struct access *a, const struct access_request *r,
                    struct reason *why)
{
    if (a->certificates == NULL)
        return reason_give(why, ST_UNAUTHORIZED,
                           "a token is required. Send it in X-Auth-Token or as "
                           "Authorization: Bearer TOKEN");
    if (r->certificate == NULL)
        return reason_give(why, ST_UNAUTHORIZED, "a certificate or a token is required");
    if (!r->certificate->good)
        return reason_give(why, ST_UNAUTHORIZED,
                           "the certificate is not valid. Its authority is unknown, it "
                           "has expired, or it is not for clients");
    return reason_give(why, ST_UNAUTHORIZED,
                       "no entry of the file of certificates matches this certificate");
}

static enum status
refuse_two_identities(struct reason *why)
{
    return reason_give(why, ST_UNAUTHORIZED,
                       "the request has both a certificate and a token. Send only one");
}

/* Finds the line of the token (digest; NULL: there is none) or the certificate of a
 * request. */
static enum status
identify_line(const struct access *a, const struct token_digest *digest,
              const struct access_request *r, const struct token_line **out,
              struct reason *why)
{
    const struct token_line *line = certificate_line_find(a, r);

    if (line != NULL && digest != NULL)
        return refuse_two_identities(why);
    if (line == NULL && digest == NULL)
        return refuse_unidentified(a, r, why);
    if (digest != NULL)
        line = token_list_find(a->tokens, digest);
    if (line == NULL)
        return reason_give(why, ST_UNAUTHORIZED, "the token is unknown");
    if (r->now_ms >= line->expires_ms)
        return reason_give(why, ST_UNAUTHORIZED, "the token has expired");
    *out = line;
    return ST_OK;
}

/* Identifies and checks the caller. The texts of *out are valid until the lock is
 * released. */
static enum status
check_local_caller(const struct access *a, const struct token_digest *digest,
                   const struct access_request *r, struct access_caller *out,
                   struct reason *why)
{
    const char *what = digest != NULL ? "token" : "certificate";
    const struct token_line *line = NULL;
    enum status st = identify_line(a, digest, r, &line, why);

    if (st != ST_OK)
        return st;
    *out = (struct access_caller){.name = line->name, .role = line->role};
    st = check_project(line, what, r, &out->project, why);
    if (st == ST_OK && r->action != ACTION_COUNT &&
        !policy_allows(&a->policy, line->role, r->action))
        st = policy_refuse(&a->policy, line->role, r->action, why);
    return st;
}

/* Copies the texts into the arena. */
static enum status
copy_caller(struct arena *arena, struct access_caller caller, struct access_caller *out)
{
    caller.name = arena_copy(arena, caller.name);
    if (bytes_present(caller.project)) {
        caller.project = arena_copy(arena, caller.project);
        if (!bytes_present(caller.project))
            return ST_NO_MEMORY;
    }
    *out = caller;
    return bytes_present(caller.name) ? ST_OK : ST_NO_MEMORY;
}

/* ------------------------------------------------------------------ asking Keystone */

static enum role
greatest_role(role_set roles)
{
    unsigned role = ROLE_COUNT;

    while (role > 0 && (roles >> (role - 1) & 1) == 0)
        role--;
    return role == 0 ? ROLE_COUNT : (enum role)(role - 1);
}

static enum status
check_keystone_caller(struct access *a, const struct keystone_caller *known,
                      const struct access_request *r, struct reason *why)
{
    enum status st = ST_OK;
    bool allowed = false;

    if (r->everywhere)
        return reason_give(
            why, ST_FORBIDDEN,
            "the request affects all projects, but the token is not for all projects");
    if (!bytes_present(known->project))
        return reason_give(why, ST_FORBIDDEN, "the token is not for a project");
    if (r->project.len > 0 && !bytes_equal(r->project, known->project))
        return reason_give(why, ST_FORBIDDEN, "the token is not for the project \"%s\"",
                           received(r->project).text);
    if (known->roles == 0)
        return reason_give(why, ST_FORBIDDEN,
                           "none of the roles of the token is known to this server");
    if (r->action == ACTION_COUNT)
        return ST_OK;
    lock_acquire(&a->lock);
    for (unsigned role = 0; role < ROLE_COUNT; role++)
        allowed |= (known->roles >> role & 1) != 0 &&
                   policy_allows(&a->policy, (enum role)role, r->action);
    if (!allowed)
        st = policy_refuse(&a->policy, greatest_role(known->roles), r->action, why);
    lock_release(&a->lock);
    return st;
}

static enum status
ask_keystone(struct access *a, const struct access_request *r, struct arena *arena,
             struct access_caller *out, struct reason *why)
{
    struct keystone_caller known;
    enum status st =
        keystone_ask(a->keystone, r->token, r->now_ms, r->proof, &known, why);

    if (st == ST_OK)
        st = check_keystone_caller(a, &known, r, why);
    if (st != ST_OK)
        return st;
    return copy_caller(
        arena,
        (struct access_caller){known.name, greatest_role(known.roles), known.project},
        out);
}

enum status
access_ask(struct access *a, const struct access_request *request, struct arena *arena,
           struct access_caller *out, struct reason *why)
{
    struct access_caller caller;
    struct token_digest digest;
    enum status st;
    bool known;

    if (request->token.len > 0 && a->keystone != NULL) {
        lock_acquire(&a->lock);
        known = certificate_line_find(a, request) != NULL;
        lock_release(&a->lock);
        return known ? refuse_two_identities(why)
                     : ask_keystone(a, request, arena, out, why);
    }
    if (request->token.len > 0)
        token_digest_of(request->token, &digest);
    lock_acquire(&a->lock);
    st = check_local_caller(a, request->token.len > 0 ? &digest : NULL, request, &caller,
                            why);
    if (st == ST_OK)
        st = copy_caller(arena, caller, out);
    lock_release(&a->lock);
    return st;
}
