/*
 * The identity stub below /identity, the part of Keystone that SDKs need to find this
 * server (docs/api.md 15). The forms are those of Keystone v3 and v2.0, and of Rackspace.
 *
 * The response to a login has a token (claimd/auth/auth.h), and a catalog in which every
 * service is this server, at the address that the client has used. openstacksdk and
 * keystoneauth search for the service "message", zaqarclient and gophercloud for
 * "messaging". They append the version to the endpoint. SDKs for Rackspace use the
 * endpoint as it is.
 */
#include "api/caller.h"
#include "api/handlers/handlers.h"
#include "api/response.h"
#include "claimd/base/clock.h"
#include "claimd/json/tree.h"

#include <identity_json.h> /* scripts/cmake/openapi.cmake makes it */

/* The content of a login. The texts point into its document. */
struct login {
    struct bytes user, password; /* absent: not in the document */
    struct bytes token;          /* present: replaces user and password */
    struct bytes project;        /* absent: any */
    bool trust;                  /* asks for the rights of another user */
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
        .trust = json_object_get(scope, "OS-TRUST:trust") != NULL,
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
        .trust = json_object_get(auth, "trust_id") != NULL,
    };
}

/* The token is in a header of the response, and takes two characters for each of the
 * name. */
enum { USER_MAX = 200 };

/* Finds the user, the expiry and the wanted project of a login. */
static enum status
login_identify(struct context *ctx, const struct login *login, struct auth_caller *out)
{
    struct auth_caller earlier;
    enum status st;

    /* Without its trust, the caller would work in another project. */
    if (login->trust)
        return context_refuse(
            ctx, ST_BAD_BODY,
            "the identity stub has no trusts. Log in with a project, or use a Keystone");
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
    st = auth_token_read(ctx->config->auth, context_wall_ms(ctx), login->token,
                         ctx->req->arena, &earlier);
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
        st = auth_admit(ctx->config->auth, caller->user,
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
        st = auth_token_write(ctx->config->auth, context_wall_ms(ctx), caller,
                              ctx->req->arena, token);
    return st;
}

/* ------------------------------------------------------------------ responses */

/* True if a Host header may appear in links. */
static bool
is_host(struct bytes host)
{
    static const char marks[] = "-.:[]_";

    for (size_t i = 0; i < host.len; i++) {
        char c = host.data[i];
        bool plain =
            (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

        if (!plain && memchr(marks, c, sizeof(marks) - 1) == NULL)
            return false;
    }
    return host.len > 0;
}

/* The parts of openapi/identity.json. Those up to ENDPOINTS have links. */
enum part {
    VERSIONS,
    V3,
    V2,
    TOKEN,
    ACCESS,
    CATALOG,
    SERVICES,
    ENDPOINTS,
    PROJECTS,
    TENANTS
};

static bool
request_is_secure(const struct request *req)
{
    return req->tls ||
           (req->from_proxy &&
            bytes_equal_str(req->headers[API_HEADER_FORWARDED_PROTO], "https"));
}

/* The address of this server, for links: that of the Host header, and the prefix of a
 * proxy. */
static enum status
identity_origin(struct context *ctx, struct bytes *out)
{
    struct bytes host = ctx->req->headers[API_HEADER_HOST];

    if (!is_host(host))
        return context_refuse(ctx, ST_BAD_VALUE,
                              "the header Host is \"%s\". It must name this server",
                              received(host).text);
    *out = arena_printf(ctx->req->arena, "%s://%.*s%.*s",
                        request_is_secure(ctx->req) ? "https" : "http", (int)host.len,
                        host.data, (int)ctx->prefix.len, ctx->prefix.data);
    return bytes_present(*out) ? ST_OK : ST_NO_MEMORY;
}

/* True unless a parameter of the query names another one. */
static bool
is_selected(const struct context *ctx, const char *parameter, const char *name)
{
    struct bytes wanted = query_get(&ctx->query, parameter);

    return !bytes_present(wanted) || bytes_equal_str(wanted, name);
}

/* The id of a service is its type. */
static bool
shows_service(const struct context *ctx, enum part part, const char *type)
{
    if (part == SERVICES)
        return is_selected(ctx, "type", type);
    return part != ENDPOINTS || is_selected(ctx, "service_id", type);
}

static bool
shows_interface(const struct context *ctx, enum part part, const char *name)
{
    return part != ENDPOINTS || is_selected(ctx, "interface", name);
}

static enum status
identity_respond(struct context *ctx, int code, enum part part,
                 const struct auth_caller *caller, struct bytes token)
{
    char issued[CLOCK_TEXT_CAP], expires[CLOCK_TEXT_CAP];
    struct bytes origin = BYTES_NONE, path;
    enum status st = part <= ENDPOINTS ? identity_origin(ctx, &origin) : ST_OK;

    if (st == ST_OK)
        st = uri_segment(ctx->req->arena, caller->project, &path);
    if (st != ST_OK)
        return st;
    clock_text(context_wall_ms(ctx), issued);
    clock_text(caller->expires_ms, expires);
    {
        const struct document_word words[] = {
            {"versions", .holds = part == VERSIONS},
            {"v3", .holds = part == V3},
            {"v2", .holds = part == V2},
            {"token", .holds = part == TOKEN, .text = token},
            {"access", .holds = part == ACCESS},
            {"catalog", .holds = part == CATALOG},
            {"services", .holds = part == SERVICES},
            {"endpoints", .holds = part == ENDPOINTS},
            {"identity", .holds = shows_service(ctx, part, "identity")},
            {"messaging", .holds = shows_service(ctx, part, "messaging")},
            {"message", .holds = shows_service(ctx, part, "message")},
            {"rax:queues", .holds = shows_service(ctx, part, "rax:queues")},
            {"public", .holds = shows_interface(ctx, part, "public")},
            {"internal", .holds = shows_interface(ctx, part, "internal")},
            {"admin", .holds = shows_interface(ctx, part, "admin")},
            {"projects", .holds = part == PROJECTS},
            {"tenants", .holds = part == TENANTS},
            {"v1", .holds = ctx->limits->enable_v1},
            {"origin", .text = origin},
            {"region", .text = bytes_str(auth_region(ctx->config->auth))},
            {"user", .text = caller->user},
            {"project", .text = caller->project},
            {"project_path", .text = path},
            {"issued", .text = bytes_str(issued)},
            {"expires", .text = bytes_str(expires)},
            {.name = NULL},
        };

        document_write(ctx, identity_json, words);
    }
    return response_json(ctx, code);
}

/* ------------------------------------------------------------------ logins */

typedef void read_fn(const json_t *auth, struct login *out);

/* part: TOKEN or ACCESS. */
static enum status
log_in(struct context *ctx, read_fn *read, enum part part)
{
    struct auth_caller caller;
    struct login login;
    struct bytes token;
    json_t *document;
    enum status st = json_tree_read(ctx->req->body, &document);

    if (st == ST_BAD_BODY)
        return json_tree_refuse(ctx->req->body, ctx->why);
    if (st != ST_OK)
        return st;
    read(json_object_get(document, "auth"), &login);
    st = login_admit(ctx, &login, &caller, &token);
    if (st == ST_OK && part == TOKEN) {
        st = response_copy_header(ctx, "X-Subject-Token", token);
        response_add_header(ctx, "Vary", "X-Auth-Token");
    }
    if (st == ST_OK)
        st = identity_respond(ctx, part == TOKEN ? 201 : 200, part, &caller, token);
    json_decref(document);
    return st;
}

static enum status
identity_login_v3(struct context *ctx)
{
    return log_in(ctx, login_read_v3, TOKEN);
}

static enum status
identity_login_v2(struct context *ctx)
{
    return log_in(ctx, login_read_v2, ACCESS);
}

/* ------------------------------------------------------------------ tokens */

/* Reads the token of a header. ST_UNAUTHORIZED, ST_NO_MEMORY. */
static enum status
identity_caller(struct context *ctx, enum api_header header, struct auth_caller *out)
{
    return auth_token_read(ctx->config->auth, context_wall_ms(ctx),
                           ctx->req->headers[header], ctx->req->arena, out);
}

/* The token in X-Subject-Token. */
static enum status
identity_show_token(struct context *ctx)
{
    const struct bytes token = ctx->req->headers[API_HEADER_SUBJECT_TOKEN];
    struct auth_caller caller;
    enum status st = identity_caller(ctx, API_HEADER_SUBJECT_TOKEN, &caller);

    if (st == ST_OK)
        st = response_copy_header(ctx, "X-Subject-Token", token);
    return st == ST_OK ? identity_respond(ctx, 200, TOKEN, &caller, token) : st;
}

/* A token without state cannot be revoked. */
static enum status
identity_revoke_token(struct context *ctx)
{
    struct auth_caller caller;
    enum status st = identity_caller(ctx, API_HEADER_SUBJECT_TOKEN, &caller);

    return st == ST_OK ? response_empty(ctx, 204) : st;
}

/* Responds for the caller whose token is in X-Auth-Token. */
static enum status
respond_to_caller(struct context *ctx, enum part part)
{
    struct auth_caller caller;
    enum status st = identity_caller(ctx, API_HEADER_AUTH_TOKEN, &caller);

    return st == ST_OK ? identity_respond(ctx, 200, part, &caller, BYTES_NONE) : st;
}

/* Only the project of the token. */
static enum status
identity_list_projects(struct context *ctx)
{
    return respond_to_caller(ctx, PROJECTS);
}

static enum status
identity_list_tenants(struct context *ctx)
{
    return respond_to_caller(ctx, TENANTS);
}

static enum status
identity_show_catalog(struct context *ctx)
{
    return respond_to_caller(ctx, CATALOG);
}

/* aodh finds Zaqar by these two, with the parameters type, service_id and interface. */
static enum status
identity_list_services(struct context *ctx)
{
    return respond_to_caller(ctx, SERVICES);
}

static enum status
identity_list_endpoints(struct context *ctx)
{
    return respond_to_caller(ctx, ENDPOINTS);
}

/* ------------------------------------------------------------------ versions, routes */

static const struct auth_caller no_caller = {.expires_ms = 0};

static enum status
identity_list_versions(struct context *ctx)
{
    return identity_respond(ctx, 300, VERSIONS, &no_caller, BYTES_NONE);
}

static enum status
identity_show_v3(struct context *ctx)
{
    return identity_respond(ctx, 200, V3, &no_caller, BYTES_NONE);
}

static enum status
identity_show_v2(struct context *ctx)
{
    return identity_respond(ctx, 200, V2, &no_caller, BYTES_NONE);
}

#define ROOT    "/identity"
#define PATH_V3 ROOT "/v3"
#define PATH_V2 ROOT "/v2.0"

static const struct route routes[] = {
    ROUTE(PATH_V3 "/auth/tokens", POST, identity_login_v3, OPEN, 0, "logIn"),
    ROUTE(PATH_V3 "/auth/tokens", GET, identity_show_token, OPEN, 0, "showToken"),
    ROUTE(PATH_V3 "/auth/tokens", HEAD, identity_show_token, OPEN, 0, "showTokenBriefly"),
    ROUTE(PATH_V3 "/auth/tokens", DELETE, identity_revoke_token, OPEN, 0, "revokeToken"),
    ROUTE(PATH_V3 "/auth/projects", GET, identity_list_projects, OPEN, 0, "listProjects"),
    ROUTE(PATH_V3 "/auth/catalog", GET, identity_show_catalog, OPEN, 0, "showCatalog"),
    ROUTE(PATH_V3 "/services", GET, identity_list_services, OPEN, 0, "listServices"),
    ROUTE(PATH_V3 "/endpoints", GET, identity_list_endpoints, OPEN, 0, "listEndpoints"),
    ROUTE(PATH_V2 "/tokens", POST, identity_login_v2, OPEN, 0, "logInV2"),
    ROUTE(PATH_V2 "/tenants", GET, identity_list_tenants, OPEN, 0, "listTenants"),
    ROUTE(ROOT, GET, identity_list_versions, OPEN, 0, "listIdentityVersions"),
    ROUTE(ROOT "/", GET, identity_list_versions, OPEN, 0, "listIdentityVersions"),
    ROUTE(PATH_V3, GET, identity_show_v3, OPEN, 0, "showIdentityV3"),
    ROUTE(PATH_V3 "/", GET, identity_show_v3, OPEN, 0, "showIdentityV3"),
    ROUTE(PATH_V2, GET, identity_show_v2, OPEN, 0, "showIdentityV2"),
    ROUTE(PATH_V2 "/", GET, identity_show_v2, OPEN, 0, "showIdentityV2"),
    ROUTE_END,
};

const struct version version_identity = {
    .name = BYTES_LIT("identity"),
    .base = BYTES_LIT(ROOT),
    .routes = routes,
    .open = true,
};
