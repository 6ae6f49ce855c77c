#include "claimd/auth/access.h"

#include "claimd/base/hash.h"
#include "claimd/base/lock.h"
#include "claimd/json/line_list.h"

#include <string.h>

/* The list as it is: made once, and then replaced as a whole. */
struct table {
    char *text;               /* owned: what the lines point into */
    struct token_line *lines; /* owned */
    size_t count;
    uint32_t
        *slots; /* owned: indexes of lines by their digest, or FREE_SLOT; 2^n of them */
    uint32_t *names; /* owned: the same by their names */
    size_t mask;
};

#define FREE_SLOT UINT32_MAX

struct access {
    struct mem *mem;
    struct keystone *keystone; /* borrowed; NULL: the list says who may come in */
    struct lock lock;          /* guards what follows */
    struct table table;
    struct certificates *certificates; /* owned; NULL: they mean nothing */
    struct policy policy;
};

/* ------------------------------------------------------------------ tables */

static void
table_free(struct mem *mem, struct table *t)
{
    mem_free(mem, t->text);
    mem_free(mem, t->lines);
    mem_free(mem, t->slots);
    mem_free(mem, t->names);
    *t = (struct table){0};
}

/* At most half of the slots are used. */
static enum status
table_init(struct mem *mem, struct table *t, struct bytes list)
{
    size_t lines = line_list_count(list), slots = 4;

    while (slots < 2 * lines)
        slots *= 2;
    *t = (struct table){.mask = slots - 1};
    t->text = mem_alloc(mem, list.len + 1);
    t->lines = mem_calloc(mem, lines, sizeof(*t->lines));
    t->slots = mem_calloc(mem, slots, sizeof(*t->slots));
    t->names = mem_calloc(mem, slots, sizeof(*t->names));
    if (t->text == NULL || t->lines == NULL || t->slots == NULL || t->names == NULL)
        return ST_NO_MEMORY;
    if (list.len > 0)
        memcpy(t->text, list.data, list.len);
    for (size_t i = 0; i < slots; i++)
        t->slots[i] = t->names[i] = FREE_SLOT;
    return ST_OK;
}

/* The slot with this digest, or the free one where it would be. */
static uint32_t *
table_find(const struct table *t, const struct token_digest *digest)
{
    size_t at;

    memcpy(&at, digest->bytes, sizeof(at)); /* random enough to be its own hash */
    at &= t->mask;
    while (t->slots[at] != FREE_SLOT &&
           !token_digest_equal(&t->lines[t->slots[at]].digest, digest))
        at = (at + 1) & t->mask;
    return &t->slots[at];
}

static enum status
table_add(void *ctx, struct bytes line, struct reason *why)
{
    static const struct hash_key key = {0x6e616d65206f6620, 0x6120746f6b656e2e};
    struct table *t = ctx;
    struct token_line *next = &t->lines[t->count];
    enum status st = token_line_read(line, next, why);
    uint32_t *slot, *name;
    size_t at;

    if (st != ST_OK)
        return st;
    /* A name is no secret and need not be hashed with one. */
    at = (size_t)hash_bytes(&key, next->name) & t->mask;
    while (t->names[at] != FREE_SLOT &&
           !bytes_equal(t->lines[t->names[at]].name, next->name))
        at = (at + 1) & t->mask;
    name = &t->names[at];
    if (*name != FREE_SLOT)
        return reason_give(why, ST_BAD_VALUE, "the name %.*s is used twice",
                           (int)next->name.len, next->name.data);
    slot = table_find(t, &next->digest);
    if (*slot != FREE_SLOT)
        return reason_give(why, ST_BAD_VALUE, "the token of %.*s is also on another line",
                           (int)next->name.len, next->name.data);
    *slot = *name = (uint32_t)t->count++;
    return ST_OK;
}

/* ------------------------------------------------------------------ life */

enum status
access_new(struct mem *mem, struct access **out)
{
    struct access *a = mem_calloc(mem, 1, sizeof(*a));
    enum status st;

    if (a == NULL)
        return ST_NO_MEMORY;
    a->mem = mem;
    a->policy = policy_default;
    lock_init(&a->lock);
    st = table_init(mem, &a->table, BYTES_NONE);
    if (st != ST_OK) {
        access_free(a);
        return st;
    }
    *out = a;
    return ST_OK;
}

void
access_free(struct access *a)
{
    if (a == NULL)
        return;
    table_free(a->mem, &a->table);
    certificates_free(a->certificates);
    lock_fini(&a->lock);
    mem_free(a->mem, a);
}

void
access_trust(struct access *a, struct keystone *keystone)
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
    struct table next, before;
    enum status st = table_init(a->mem, &next, list);

    if (st == ST_OK)
        st = line_list_read(bytes_of(next.text, list.len), table_add, &next, bad_line,
                            why);
    if (st != ST_OK) {
        table_free(a->mem, &next);
        return st;
    }
    lock_acquire(&a->lock);
    before = a->table;
    a->table = next;
    a->policy = *policy;
    lock_release(&a->lock);
    table_free(a->mem, &before);
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
access_use_certificates(struct access *a, struct certificates *list)
{
    struct certificates *before;

    lock_acquire(&a->lock);
    before = a->certificates;
    a->certificates = list;
    lock_release(&a->lock);
    certificates_free(before);
}

size_t
access_count(struct access *a)
{
    size_t count;

    lock_acquire(&a->lock);
    count = a->table.count;
    lock_release(&a->lock);
    return count;
}

/* ------------------------------------------------------------------ asking */

/* Whom a token or a certificate stands for. */
struct grant {
    const char *what; /* "token", "certificate" */
    struct bytes name, projects;
    enum role role;
};

static enum status
judge_project(const struct grant *g, const struct access_request *r,
              struct bytes *project, struct reason *why)
{
    *project = BYTES_NONE;
    if (r->everywhere)
        return token_line_has(g->projects, BYTES_NONE)
                   ? ST_OK
                   : reason_give(why, ST_FORBIDDEN,
                                 "the request affects all projects, but the %s is not "
                                 "for all projects",
                                 g->what);
    if (r->project.len > 0)
        return token_line_has(g->projects, r->project)
                   ? ST_OK
                   : reason_give(why, ST_FORBIDDEN,
                                 "the %s is not for the project \"%s\"", g->what,
                                 received(r->project).text);
    *project = token_line_project(g->projects);
    if (bytes_present(*project) || token_line_has(g->projects, BYTES_NONE))
        return ST_OK;
    return reason_give(why, ST_MISSING_PROJECT,
                       "the %s is for several projects. Name one of them in X-Project-ID",
                       g->what);
}

static enum status
find_token(const struct access *a, const struct token_digest *digest,
           const struct access_request *r, struct grant *out, struct reason *why)
{
    uint32_t slot = *table_find(&a->table, digest);
    const struct token_line *line;

    if (slot == FREE_SLOT)
        return reason_give(why, ST_UNAUTHORIZED, "the token is unknown");
    line = &a->table.lines[slot];
    if (r->now_ms >= line->expires_ms)
        return reason_give(why, ST_UNAUTHORIZED, "the token has expired");
    *out = (struct grant){"token", line->name, line->projects, line->role};
    return ST_OK;
}

/* The line that a certificate stands for; NULL: none. */
static const struct certificate_line *
find_certificate(const struct access *a, const struct access_request *r)
{
    return a->certificates != NULL && r->certificate != NULL && r->certificate->good
               ? certificates_find(a->certificates, r->certificate)
               : NULL;
}

/* Why nobody is known who shows neither a token nor a certificate that is worth anything. */
static enum status
refuse_nobody(const struct access *a, const struct access_request *r, struct reason *why)
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
refuse_two(struct reason *why)
{
    return reason_give(why, ST_UNAUTHORIZED,
                       "the request has both a certificate and a token. Send only one");
}

/* digest: of the token, NULL if there is none. */
static enum status
find_grant(const struct access *a, const struct token_digest *digest,
           const struct access_request *r, struct grant *out, struct reason *why)
{
    const struct certificate_line *line = find_certificate(a, r);

    if (line != NULL && digest != NULL)
        return refuse_two(why);
    if (digest != NULL)
        return find_token(a, digest, r, out, why);
    if (line == NULL)
        return refuse_nobody(a, r, why);
    *out = (struct grant){"certificate", line->name, line->projects, line->role};
    return ST_OK;
}

/* What *out points to must be copied before the lock is let go. */
static enum status
judge(const struct access *a, const struct token_digest *digest,
      const struct access_request *r, struct access_caller *out, struct reason *why)
{
    struct grant grant = {.role = ROLE_COUNT};
    enum status st = find_grant(a, digest, r, &grant, why);

    if (st != ST_OK)
        return st;
    st = judge_project(&grant, r, &out->project, why);
    if (st == ST_OK && r->action != ACTION_COUNT &&
        !policy_allows(&a->policy, grant.role, r->action))
        st = policy_refuse(&a->policy, grant.role, r->action, why);
    out->name = grant.name;
    out->role = grant.role;
    return st;
}

/* ST_NO_MEMORY. */
static enum status
copy_text(struct arena *arena, struct bytes *text)
{
    if (!bytes_present(*text))
        return ST_OK;
    *text = arena_copy(arena, *text);
    return bytes_present(*text) ? ST_OK : ST_NO_MEMORY;
}

/* ------------------------------------------------------------------ asking Keystone */

static enum role
greatest(role_set roles)
{
    unsigned role = ROLE_COUNT;

    while (role > 0 && (roles >> (role - 1) & 1) == 0)
        role--;
    return role == 0 ? ROLE_COUNT : (enum role)(role - 1);
}

static enum status
judge_stranger(struct access *a, const struct keystone_caller *known,
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
        st = policy_refuse(&a->policy, greatest(known->roles), r->action, why);
    lock_release(&a->lock);
    return st;
}

static enum status
ask_keystone(struct access *a, const struct access_request *r, struct arena *arena,
             struct access_caller *out, struct reason *why)
{
    struct keystone_caller known;
    struct access_caller caller;
    enum status st =
        keystone_ask(a->keystone, r->token, r->now_ms, r->proof, &known, why);

    if (st == ST_OK)
        st = judge_stranger(a, &known, r, why);
    if (st != ST_OK)
        return st;
    caller = (struct access_caller){
        .name = known.name, .role = greatest(known.roles), .project = known.project};
    st = copy_text(arena, &caller.name);
    if (st == ST_OK)
        st = copy_text(arena, &caller.project);
    if (st == ST_OK)
        *out = caller;
    return st;
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
        known = find_certificate(a, request) != NULL;
        lock_release(&a->lock);
        return known ? refuse_two(why) : ask_keystone(a, request, arena, out, why);
    }
    if (request->token.len > 0)
        token_digest_of(request->token, &digest);
    lock_acquire(&a->lock);
    st = judge(a, request->token.len > 0 ? &digest : NULL, request, &caller, why);
    if (st == ST_OK)
        st = copy_text(arena, &caller.name);
    if (st == ST_OK)
        st = copy_text(arena, &caller.project);
    lock_release(&a->lock);
    if (st == ST_OK)
        *out = caller;
    return st;
}
