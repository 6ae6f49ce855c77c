/* The services an SDK can find: all of them are this server. */
#include "api/identity/identity.h"

#include "api/uri.h"

struct service {
    const char *type, *name;
    const char *v3_path, *v2_path; /* behind the origin */
    bool with_project;             /* the path ends with the project */
};

/*
 * openstacksdk and keystoneauth know the service as "message", zaqarclient and gophercloud
 * as "messaging"; they put the version behind the endpoint themselves. The SDKs made for
 * Rackspace take the endpoint as it is.
 */
static const struct service services[] = {
    {"identity", "keystone", "/identity", "/identity/v2.0", false},
    {"messaging", "zaqar", "", "", false},
    {"message", "zaqar", "", "", false},
    {"rax:queues", "cloudQueues", "/v1/", "/v1/", true},
};

#define SERVICES (sizeof(services) / sizeof(services[0]))

static bool
is_served(const struct context *ctx, const struct service *s)
{
    return !s->with_project || ctx->limits->enable_v1;
}

/* What both versions write about an endpoint. */
struct place {
    struct bytes origin, project; /* the project as a segment of a path */
    const char *region;
};

static enum status
find_place(struct context *ctx, struct bytes project, struct place *out)
{
    enum status st = identity_origin(ctx, &out->origin);

    out->region = auth_region(ctx->auth);
    return st == ST_OK ? uri_segment(ctx->req->arena, project, &out->project) : st;
}

static json_t *
endpoint_url(const struct place *at, const struct service *s, const char *path)
{
    return json_pack("s++", at->origin.data, path,
                     s->with_project ? at->project.data : "");
}

static json_t *
endpoint_v3(const struct place *at, const struct service *s, const char *interface)
{
    return json_pack("{s:s++, s:s, s:s, s:s, s:o}", "id", s->type, "-", interface,
                     "interface", interface, "region", at->region, "region_id",
                     at->region, "url", endpoint_url(at, s, s->v3_path));
}

static json_t *
service_v3(const struct place *at, const struct service *s)
{
    return json_pack("{s:s, s:s, s:s, s:[o,o,o]}", "id", s->type, "type", s->type, "name",
                     s->name, "endpoints", endpoint_v3(at, s, "public"),
                     endpoint_v3(at, s, "internal"), endpoint_v3(at, s, "admin"));
}

static json_t *
service_v2(const struct place *at, const struct service *s)
{
    return json_pack("{s:s, s:s, s:[{s:s, s:s, s:s, s:o, s:o, s:o}], s:[]}", "type",
                     s->type, "name", s->name, "endpoints", "id", s->type, "region",
                     at->region, "tenantId", at->project.data, "publicURL",
                     endpoint_url(at, s, s->v2_path), "internalURL",
                     endpoint_url(at, s, s->v2_path), "adminURL",
                     endpoint_url(at, s, s->v2_path), "endpoints_links");
}

static enum status
catalog(struct context *ctx, struct bytes project,
        json_t *(*describe)(const struct place *, const struct service *), json_t **out)
{
    struct place at;
    enum status st = find_place(ctx, project, &at);
    json_t *list = st == ST_OK ? json_array() : NULL;

    if (st != ST_OK)
        return st;
    for (size_t i = 0; i < SERVICES; i++)
        if (is_served(ctx, &services[i]) &&
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
    return catalog(ctx, project, service_v3, out);
}

enum status
identity_catalog_v2(struct context *ctx, struct bytes project, json_t **out)
{
    return catalog(ctx, project, service_v2, out);
}
