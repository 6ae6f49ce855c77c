/* The catalog of services, all of which are this server, and the discovery of versions. */
#include "api/identity/identity.h"
#include "api/wire/query.h"
#include "claimd/json/tree.h"

struct service {
    const char *type, *name;
    const char *v3_path, *v2_path; /* behind the origin */
    bool with_project;             /* the path ends with the project */
};

/*
 * openstacksdk and keystoneauth search for the service "message", zaqarclient and gophercloud for
 * "messaging". They append the version to the endpoint. SDKs for Rackspace use the endpoint as it
 * is.
 */
static const struct service services[] = {
    {"identity", "keystone", "/identity", "/identity/v2.0", false},
    {"messaging", "zaqar", "", "", false},
    {"message", "zaqar", "", "", false},
    {"rax:queues", "cloudQueues", "/v1/", "/v1/", true},
};

#define SERVICES (sizeof(services) / sizeof(services[0]))

/* The parts of an endpoint that both versions write. */
struct endpoint_place {
    struct bytes origin, project; /* the project as a segment of a path */
    const char *region;
};

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

static enum status
identity_origin(struct context *ctx, struct bytes *out)
{
    struct bytes host = ctx->req->headers[API_HEADER_HOST];

    if (!is_host(host))
        return context_refuse(ctx, ST_BAD_VALUE,
                              "the header Host is \"%s\". It must name this server",
                              received(host).text);
    *out = arena_printf(ctx->req->arena, "%s://%.*s", ctx->req->tls ? "https" : "http",
                        (int)host.len, host.data);
    return bytes_present(*out) ? ST_OK : ST_NO_MEMORY;
}

static json_t *
endpoint_url(const struct endpoint_place *at, const struct service *s, const char *path)
{
    return json_pack("s++", at->origin.data, path,
                     s->with_project ? at->project.data : "");
}

static json_t *
endpoint_v3(const struct endpoint_place *at, const struct service *s,
            const char *interface)
{
    return json_pack("{s:s++, s:s, s:s, s:s, s:o}", "id", s->type, "-", interface,
                     "interface", interface, "region", at->region, "region_id",
                     at->region, "url", endpoint_url(at, s, s->v3_path));
}

static json_t *
service_v3(const struct endpoint_place *at, const struct service *s)
{
    return json_pack("{s:s, s:s, s:s, s:[o,o,o]}", "id", s->type, "type", s->type, "name",
                     s->name, "endpoints", endpoint_v3(at, s, "public"),
                     endpoint_v3(at, s, "internal"), endpoint_v3(at, s, "admin"));
}

static json_t *
service_v2(const struct endpoint_place *at, const struct service *s)
{
    return json_pack("{s:s, s:s, s:[{s:s, s:s, s:s, s:o, s:o, s:o}], s:[]}", "type",
                     s->type, "name", s->name, "endpoints", "id", s->type, "region",
                     at->region, "tenantId", at->project.data, "publicURL",
                     endpoint_url(at, s, s->v2_path), "internalURL",
                     endpoint_url(at, s, s->v2_path), "adminURL",
                     endpoint_url(at, s, s->v2_path), "endpoints_links");
}

static enum status
build_catalog(struct context *ctx, struct bytes project,
              json_t *(*describe)(const struct endpoint_place *, const struct service *),
              json_t **out)
{
    struct endpoint_place at = {.region = auth_region(ctx->auth)};
    enum status st = identity_origin(ctx, &at.origin);
    json_t *list;

    if (st == ST_OK)
        st = uri_segment(ctx->req->arena, project, &at.project);
    if (st != ST_OK)
        return st;
    list = json_array();
    for (size_t i = 0; i < SERVICES; i++)
        if ((!services[i].with_project || ctx->limits->enable_v1) &&
            json_array_append_new(list, describe(&at, &services[i])) != 0) {
            json_decref(list);
            return ST_NO_MEMORY;
        }
    *out = list;
    return list == NULL ? ST_NO_MEMORY : ST_OK;
}

enum status
identity_catalog_v3(struct context *ctx, struct bytes project, json_t **out)
{
    return build_catalog(ctx, project, service_v3, out);
}

enum status
identity_catalog_v2(struct context *ctx, struct bytes project, json_t **out)
{
    return build_catalog(ctx, project, service_v2, out);
}

/* ------------------------------------------------------------------ versions of Keystone */

struct keystone_version {
    const char *id, *updated, *path;
};

static const struct keystone_version v3 = {"v3.14", "2020-04-07T00:00:00Z",
                                           "/identity/v3/"};
static const struct keystone_version v2 = {"v2.0", "2014-04-17T00:00:00Z",
                                           "/identity/v2.0/"};

enum status
identity_respond(struct context *ctx, int code, json_t *tree)
{
    if (tree == NULL)
        return ST_NO_MEMORY;
    json_tree_write(&ctx->res->body, tree);
    json_decref(tree);
    return response_json(ctx, code);
}

static json_t *
describe_version(const struct keystone_version *k, struct bytes origin)
{
    return json_pack("{s:s, s:s, s:s, s:[{s:s, s:s+}], s:[{s:s, s:s}]}", "id", k->id,
                     "status", "stable", "updated", k->updated, "links", "rel", "self",
                     "href", origin.data, k->path, "media-types", "base",
                     "application/json", "type",
                     "application/vnd.openstack.identity+json");
}

static enum status
identity_list_versions(struct context *ctx)
{
    struct bytes origin;
    enum status st = identity_origin(ctx, &origin);

    if (st != ST_OK)
        return st;
    return identity_respond(ctx, 300,
                            json_pack("{s:{s:[o,o]}}", "versions", "values",
                                      describe_version(&v3, origin),
                                      describe_version(&v2, origin)));
}

static enum status
show_version(struct context *ctx, const struct keystone_version *k)
{
    struct bytes origin;
    enum status st = identity_origin(ctx, &origin);

    if (st != ST_OK)
        return st;
    return identity_respond(ctx, 200,
                            json_pack("{s:o}", "version", describe_version(k, origin)));
}

static enum status
identity_show_v3(struct context *ctx)
{
    return show_version(ctx, &v3);
}

static enum status
identity_show_v2(struct context *ctx)
{
    return show_version(ctx, &v2);
}

/* ------------------------------------------------------------------ routes */

#define ROOT "/identity"
#define V3   ROOT "/v3"
#define V2   ROOT "/v2.0"

static const struct route routes[] = {
    ROUTE(V3 "/auth/tokens", POST, identity_login_v3, OPEN, 0, "logIn"),
    ROUTE(V3 "/auth/tokens", GET, identity_show_token, OPEN, 0, "showToken"),
    ROUTE(V3 "/auth/tokens", HEAD, identity_show_token, OPEN, 0, "showTokenBriefly"),
    ROUTE(V3 "/auth/tokens", DELETE, identity_revoke_token, OPEN, 0, "revokeToken"),
    ROUTE(V3 "/auth/projects", GET, identity_list_projects, OPEN, 0, "listProjects"),
    ROUTE(V3 "/auth/catalog", GET, identity_show_catalog, OPEN, 0, "showCatalog"),
    ROUTE(V2 "/tokens", POST, identity_login_v2, OPEN, 0, "logInV2"),
    ROUTE(V2 "/tenants", GET, identity_list_tenants, OPEN, 0, "listTenants"),
    ROUTE(ROOT, GET, identity_list_versions, OPEN, 0, "listIdentityVersions"),
    ROUTE(ROOT "/", GET, identity_list_versions, OPEN, 0, "listIdentityVersions"),
    ROUTE(V3, GET, identity_show_v3, OPEN, 0, "showIdentityV3"),
    ROUTE(V3 "/", GET, identity_show_v3, OPEN, 0, "showIdentityV3"),
    ROUTE(V2, GET, identity_show_v2, OPEN, 0, "showIdentityV2"),
    ROUTE(V2 "/", GET, identity_show_v2, OPEN, 0, "showIdentityV2"),
    ROUTE_END,
};

const struct version version_identity = {
    .name = BYTES_LIT("identity"),
    .base = BYTES_LIT(ROOT),
    .routes = routes,
    .open = true,
};
