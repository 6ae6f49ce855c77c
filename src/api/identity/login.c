/* Logins with credentials in the forms of Keystone v3 and v2.0 and of Rackspace, and tokens. */
#include "api/caller.h"
#include "api/identity/identity.h"
#include "claimd/base/clock.h"
#include "claimd/json/tree.h"

/* The content of a login. The texts point into its document. */
struct login {
    struct bytes user, password; /* absent: not in the document */
    struct bytes token;          /* present: replaces user and password */
    struct bytes project;        /* absent: any */
};

/* A JSON string as bytes. Absent for another value. */
static struct bytes
identity_text(const json_t *value)
{
    return json_is_string(value)
               ? bytes_of(json_string_value(value), json_string_length(value))
               : BYTES_NONE;
}

/* The first of two members that is a text. */
static struct bytes
either(const json_t *object, const char *first, const char *second)
{
    struct bytes text = identity_text(json_object_get(object, first));

    return bytes_present(text) ? text : identity_text(json_object_get(object, second));
}

static void
login_read_v3(const json_t *auth, struct login *out)
{
    const json_t *identity = json_object_get(auth, "identity");
    const json_t *user = json_object_get(json_object_get(identity, "password"), "user");
    const json_t *app = json_object_get(identity, "application_credential");
    const json_t *token = json_object_get(identity, "token");
    const json_t *scope = json_object_get(auth, "scope");

    *out = (struct login){
        .user = either(user, "name", "id"),
        .password = identity_text(json_object_get(user, "password")),
        .token = identity_text(json_object_get(token, "id")),
        .project = either(json_object_get(scope, "project"), "id", "name"),
    };
    if (app != NULL) {
        out->user = either(app, "name", "id");
        out->password = identity_text(json_object_get(app, "secret"));
    }
}

static void
login_read_v2(const json_t *auth, struct login *out)
{
    const json_t *user = json_object_get(auth, "passwordCredentials");
    const json_t *key = json_object_get(auth, "RAX-KSKEY:apiKeyCredentials");
    const json_t *token = json_object_get(auth, "token");

    *out = (struct login){
        .user = either(user != NULL ? user : key, "username", "userId"),
        .password = either(user != NULL ? user : key, "password", "apiKey"),
        .token = identity_text(json_object_get(token, "id")),
        .project = either(auth, "tenantId", "tenantName"),
    };
}

/* The token is in a header of the response, and takes two characters for each of the name. */
enum { USER_MAX = 200 };

/* Finds the user, the expiry and the wanted project of a login. */
static enum status
login_identify(struct context *ctx, const struct login *login, struct auth_caller *out)
{
    struct auth_caller earlier;
    enum status st;

    if (!bytes_present(login->token)) {
        out->user = login->user;
        out->project = login->project;
        out->expires_ms = AUTH_NEVER;
        return bytes_present(login->user) && bytes_present(login->password)
                   ? ST_OK
                   : context_refuse(
                         ctx, ST_BAD_BODY,
                         "the body must have a user and a password, or a token");
    }
    st = auth_token_read(ctx->auth, context_real_ms(ctx), login->token, ctx->req->arena,
                         &earlier);
    if (st != ST_OK)
        return st;
    out->user = earlier.user;
    out->project = login->project.len > 0 ? login->project : earlier.project;
    /* Otherwise a token could be renewed for ever. */
    out->expires_ms = earlier.expires_ms;
    return ST_OK;
}

static enum status
login_admit(struct context *ctx, const struct login *login, struct auth_caller *caller,
            struct bytes *token)
{
    enum status st = login_identify(ctx, login, caller);

    if (st == ST_OK)
        st = auth_admit(ctx->auth, caller->user,
                        bytes_present(login->token) ? BYTES_NONE : login->password,
                        caller->project, &caller->project);
    if (st == ST_OK && caller->user.len > USER_MAX)
        st = context_refuse(
            ctx, ST_BAD_VALUE,
            "the name of the user is %zu bytes long. The maximum is %d bytes",
            caller->user.len, USER_MAX);
    if (st == ST_OK)
        st = caller_project(caller->project, false);
    if (st == ST_OK)
        st = auth_token_write(ctx->auth, context_real_ms(ctx), caller, ctx->req->arena,
                              token);
    return st;
}

/* ------------------------------------------------------------------ responses */

/* A user or a project: its name is its id. */
static json_t *
named_object(struct bytes name)
{
    return json_pack("{s:s%, s:s%, s:{s:s, s:s}}", "id", name.data, name.len, "name",
                     name.data, name.len, "domain", "id", "default", "name", "Default");
}

/* Makes {"token": ...} of v3, an owned tree. ST_NO_MEMORY, ST_BAD_VALUE. */
static enum status
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
                     "token", "methods", "password", "user", named_object(caller->user),
                     "project", named_object(caller->project), "is_domain", 0,
                     "issued_at", issued, "expires_at", expires, "roles", "id", "member",
                     "name", "member", "audit_ids", "catalog", catalog);
    return *out == NULL ? ST_NO_MEMORY : ST_OK;
}

static enum status
respond_v3(struct context *ctx, const struct auth_caller *caller, struct bytes token)
{
    json_t *tree;
    enum status st = response_copy_header(ctx, "X-Subject-Token", token);

    if (st == ST_OK)
        st = identity_describe(ctx, caller, &tree);
    if (st != ST_OK)
        return st;
    response_add_header(ctx, "Vary", "X-Auth-Token");
    return identity_respond(ctx, 201, tree);
}

static json_t *
access_token(const struct context *ctx, const struct auth_caller *caller,
             struct bytes token)
{
    char issued[CLOCK_TEXT_CAP], expires[CLOCK_TEXT_CAP];

    clock_text(context_real_ms(ctx), issued);
    clock_text(caller->expires_ms, expires);
    return json_pack("{s:s, s:s, s:s, s:{s:s%, s:s%, s:b}}", "id", token.data,
                     "issued_at", issued, "expires", expires, "tenant", "id",
                     caller->project.data, caller->project.len, "name",
                     caller->project.data, caller->project.len, "enabled", 1);
}

static json_t *
access_user(const struct context *ctx, const struct auth_caller *caller)
{
    return json_pack("{s:s%, s:s%, s:s%, s:s, s:[{s:s, s:s}], s:[]}", "id",
                     caller->user.data, caller->user.len, "name", caller->user.data,
                     caller->user.len, "username", caller->user.data, caller->user.len,
                     "RAX-AUTH:defaultRegion", auth_region(ctx->auth), "roles", "id",
                     "member", "name", "member", "roles_links");
}

static enum status
respond_v2(struct context *ctx, const struct auth_caller *caller, struct bytes token)
{
    json_t *catalog;
    enum status st = identity_catalog_v2(ctx, caller->project, &catalog);

    if (st != ST_OK)
        return st;
    return identity_respond(ctx, 200,
                            json_pack("{s:{s:o, s:o, s:o}}", "access", "token",
                                      access_token(ctx, caller, token), "user",
                                      access_user(ctx, caller), "serviceCatalog",
                                      catalog));
}

/* ------------------------------------------------------------------ handlers */

typedef void read_fn(const json_t *auth, struct login *out);
typedef enum status
respond_fn(struct context *ctx, const struct auth_caller *caller, struct bytes token);

static enum status
log_in(struct context *ctx, read_fn *read, respond_fn *respond)
{
    struct auth_caller caller;
    struct login login;
    struct bytes token;
    json_t *document;
    enum status st = json_tree_read(ctx->req->body, &document);

    if (st == ST_BAD_BODY)
        return json_tree_refuse(ctx->req->body, &ctx->why);
    if (st != ST_OK)
        return st;
    read(json_object_get(document, "auth"), &login);
    st = login_admit(ctx, &login, &caller, &token);
    if (st == ST_OK)
        st = respond(ctx, &caller, token);
    json_decref(document);
    return st;
}

/* POST /identity/v3/auth/tokens */
enum status
identity_login_v3(struct context *ctx)
{
    return log_in(ctx, login_read_v3, respond_v3);
}

/* POST /identity/v2.0/tokens */
enum status
identity_login_v2(struct context *ctx)
{
    return log_in(ctx, login_read_v2, respond_v2);
}

/* ------------------------------------------------------------------ tokens */

/* Reads the token of a header. ST_UNAUTHORIZED, ST_NO_MEMORY. */
static enum status
identity_caller(struct context *ctx, enum api_header header, struct auth_caller *out)
{
    return auth_token_read(ctx->auth, context_real_ms(ctx), ctx->req->headers[header],
                           ctx->req->arena, out);
}

/* GET /identity/v3/auth/tokens: of the token in X-Subject-Token */
enum status
identity_show_token(struct context *ctx)
{
    struct auth_caller caller;
    json_t *tree;
    enum status st = identity_caller(ctx, API_HEADER_SUBJECT_TOKEN, &caller);

    if (st == ST_OK)
        st = response_copy_header(ctx, "X-Subject-Token",
                                  ctx->req->headers[API_HEADER_SUBJECT_TOKEN]);
    if (st == ST_OK)
        st = identity_describe(ctx, &caller, &tree);
    if (st != ST_OK)
        return st;
    return identity_respond(ctx, 200, tree);
}

/* DELETE /identity/v3/auth/tokens: a token without state cannot be taken back. */
enum status
identity_revoke_token(struct context *ctx)
{
    struct auth_caller caller;
    enum status st = identity_caller(ctx, API_HEADER_SUBJECT_TOKEN, &caller);

    return st == ST_OK ? response_empty(ctx, 204) : st;
}

/* ------------------------------------------------------------------ the projects */

/* GET /identity/v3/auth/projects: only the project of the token. */
enum status
identity_list_projects(struct context *ctx)
{
    struct auth_caller caller;
    enum status st = identity_caller(ctx, API_HEADER_AUTH_TOKEN, &caller);

    if (st != ST_OK)
        return st;
    return identity_respond(
        ctx, 200,
        json_pack("{s:[{s:s%, s:s%, s:s, s:b, s:{}}], s:{s:n, s:n}}", "projects", "id",
                  caller.project.data, caller.project.len, "name", caller.project.data,
                  caller.project.len, "domain_id", "default", "enabled", 1, "links",
                  "links", "next", "previous"));
}

/* GET /identity/v2.0/tenants */
enum status
identity_list_tenants(struct context *ctx)
{
    struct auth_caller caller;
    enum status st = identity_caller(ctx, API_HEADER_AUTH_TOKEN, &caller);

    if (st != ST_OK)
        return st;
    return identity_respond(ctx, 200,
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
    return identity_respond(
        ctx, 200, json_pack("{s:o, s:{s:n}}", "catalog", catalog, "links", "next"));
}
