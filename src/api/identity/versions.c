/* How SDKs find out which versions of Keystone they may speak. */
#include "api/identity/identity.h"

#include "claimd/json/tree.h"

struct keystone {
    const char *id, *updated, *path;
};

static const struct keystone v3 = {"v3.14", "2020-04-07T00:00:00Z", "/identity/v3/"};
static const struct keystone v2 = {"v2.0", "2014-04-17T00:00:00Z", "/identity/v2.0/"};

/* What a Host header may consist of: it is going to stand in links. */
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

enum status
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

enum status
identity_answer(struct context *ctx, int code, json_t *tree)
{
    if (tree == NULL)
        return ST_NO_MEMORY;
    json_tree_write(&ctx->res->body, tree);
    json_decref(tree);
    return answer_json(ctx, code);
}

static json_t *
describe(const struct keystone *k, struct bytes origin)
{
    return json_pack("{s:s, s:s, s:s, s:[{s:s, s:s+}], s:[{s:s, s:s}]}", "id", k->id,
                     "status", "stable", "updated", k->updated, "links", "rel", "self",
                     "href", origin.data, k->path, "media-types", "base",
                     "application/json", "type",
                     "application/vnd.openstack.identity+json");
}

enum status
identity_list_versions(struct context *ctx)
{
    struct bytes origin;
    enum status st = identity_origin(ctx, &origin);

    if (st != ST_OK)
        return st;
    return identity_answer(ctx, 300,
                           json_pack("{s:{s:[o,o]}}", "versions", "values",
                                     describe(&v3, origin), describe(&v2, origin)));
}

static enum status
show(struct context *ctx, const struct keystone *k)
{
    struct bytes origin;
    enum status st = identity_origin(ctx, &origin);

    if (st != ST_OK)
        return st;
    return identity_answer(ctx, 200, json_pack("{s:o}", "version", describe(k, origin)));
}

enum status
identity_show_v3(struct context *ctx)
{
    return show(ctx, &v3);
}

enum status
identity_show_v2(struct context *ctx)
{
    return show(ctx, &v2);
}
