/* What a token is good for: showing it, its projects, its catalog. */
#include "api/identity/identity.h"

#include "claimd/base/clock.h"

enum status
identity_caller(struct context *ctx, enum api_header header, struct auth_caller *out)
{
    return auth_token_read(ctx->auth, context_real_ms(ctx), ctx->req->headers[header],
                           ctx->req->arena, out);
}

/* ------------------------------------------------------------------ the token */

static json_t *
default_domain(void)
{
    return json_pack("{s:s, s:s}", "id", "default", "name", "Default");
}

/* A user or a project: its name is its id. */
static json_t *
named(struct bytes name)
{
    return json_pack("{s:s%, s:s%, s:o}", "id", name.data, name.len, "name", name.data,
                     name.len, "domain", default_domain());
}

enum status
identity_describe(struct context *ctx, const struct auth_caller *caller, json_t **out)
{
    char issued[CLOCK_TEXT_CAP], expires[CLOCK_TEXT_CAP];
    json_t *catalog;
    enum status st = identity_catalog_v3(ctx, caller->project, &catalog);

    if (st != ST_OK)
        return st;
    clock_text(context_real_ms(ctx), issued);
    clock_text(caller->expires_ms, expires);
    *out = json_pack("{s:{s:[s], s:o, s:o, s:b, s:s, s:s, s:[{s:s, s:s}], s:[], s:o}}",
                     "token", "methods", "password", "user", named(caller->user),
                     "project", named(caller->project), "is_domain", 0, "issued_at",
                     issued, "expires_at", expires, "roles", "id", "member", "name",
                     "member", "audit_ids", "catalog", catalog);
    return *out == NULL ? ST_NO_MEMORY : ST_OK;
}

/* GET /identity/v3/auth/tokens: of the token in X-Subject-Token */
enum status
identity_show_token(struct context *ctx)
{
    struct auth_caller caller;
    json_t *tree;
    enum status st = identity_caller(ctx, API_HEADER_SUBJECT_TOKEN, &caller);

    if (st == ST_OK)
        st = answer_header_copy(ctx, "X-Subject-Token",
                                ctx->req->headers[API_HEADER_SUBJECT_TOKEN]);
    if (st == ST_OK)
        st = identity_describe(ctx, &caller, &tree);
    if (st != ST_OK)
        return st;
    return identity_answer(ctx, 200, tree);
}

/* DELETE /identity/v3/auth/tokens: a token without state cannot be taken back. */
enum status
identity_revoke_token(struct context *ctx)
{
    struct auth_caller caller;
    enum status st = identity_caller(ctx, API_HEADER_SUBJECT_TOKEN, &caller);

    return st == ST_OK ? answer_empty(ctx, 204) : st;
}

/* ------------------------------------------------------------------ the projects */

/* GET /identity/v3/auth/projects: the one the token is for; the stub knows no others. */
enum status
identity_list_projects(struct context *ctx)
{
    struct auth_caller caller;
    enum status st = identity_caller(ctx, API_HEADER_AUTH_TOKEN, &caller);

    if (st != ST_OK)
        return st;
    return identity_answer(ctx, 200,
                           json_pack("{s:[{s:s%, s:s%, s:s, s:b, s:{}}], s:{s:n, s:n}}",
                                     "projects", "id", caller.project.data,
                                     caller.project.len, "name", caller.project.data,
                                     caller.project.len, "domain_id", "default",
                                     "enabled", 1, "links", "links", "next", "previous"));
}

/* GET /identity/v2.0/tenants */
enum status
identity_list_tenants(struct context *ctx)
{
    struct auth_caller caller;
    enum status st = identity_caller(ctx, API_HEADER_AUTH_TOKEN, &caller);

    if (st != ST_OK)
        return st;
    return identity_answer(ctx, 200,
                           json_pack("{s:[{s:s%, s:s%, s:b}], s:[]}", "tenants", "id",
                                     caller.project.data, caller.project.len, "name",
                                     caller.project.data, caller.project.len, "enabled",
                                     1, "tenants_links"));
}

/* GET /identity/v3/auth/catalog */
enum status
identity_show_catalog(struct context *ctx)
{
    struct auth_caller caller;
    json_t *catalog;
    enum status st = identity_caller(ctx, API_HEADER_AUTH_TOKEN, &caller);

    if (st == ST_OK)
        st = identity_catalog_v3(ctx, caller.project, &catalog);
    if (st != ST_OK)
        return st;
    return identity_answer(
        ctx, 200, json_pack("{s:o, s:{s:n}}", "catalog", catalog, "links", "next"));
}
