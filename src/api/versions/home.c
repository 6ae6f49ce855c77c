/* The list of versions ("/") and the home document of each (docs/api.md 6.1, 6.2). */
#include "api/handlers/handlers.h"

/* ------------------------------------------------------------------ versions */

struct listed {
    const char *id, *status, *updated, *media, *path;
};

static const struct listed listed_v1 = {"1", "DEPRECATED", "2014-9-11T17:47:05Z", "v1",
                                        "/v1/"};
static const struct listed listed_v1_1 = {"1.1", "DEPRECATED", "2016-7-29T02:22:47Z",
                                          "v1_1", "/v1.1/"};
static const struct listed listed_v2 = {"2", "CURRENT", "2014-9-24T04:06:47Z", "v2",
                                        "/v2/"};

static void
write_listed(struct buf *out, const struct listed *v, bool first)
{
    buf_printf(out,
               "%s{\"id\":\"%s\",\"status\":\"%s\",\"updated\":\"%s\","
               "\"media-types\":[{\"base\":\"application/json\","
               "\"type\":\"application/vnd.openstack.messaging-%s+json\"}],"
               "\"links\":[{\"href\":\"%s\",\"rel\":\"self\"}]}",
               first ? "" : ",", v->id, v->status, v->updated, v->media, v->path);
}

static enum status
versions_list(struct context *ctx)
{
    const struct api_limits *limits = ctx->limits;
    struct buf *out = &ctx->res->body;
    bool first = true;

    buf_str(out, "{\"versions\":[");
    if (limits->enable_v1) {
        write_listed(out, &listed_v1, first);
        first = false;
    }
    if (limits->enable_v1_1) {
        write_listed(out, &listed_v1_1, first);
        first = false;
    }
    write_listed(out, &listed_v2, first);
    buf_str(out, "]}");
    return answer_json(ctx, 300);
}

enum { GUARDED = ROUTE_GUARDED | ROUTE_OWN_FORM | ROUTE_METRICS };

static const struct route root_routes[] = {
    ROUTE("/", GET, versions_list, OPEN, 0, "listVersions"),
    ROUTE("/openapi.json", GET, handle_openapi, OPEN, 0, "describe"),
    ROUTE("/openapi.json", HEAD, handle_openapi, OPEN, 0, "describeBriefly"),
    ROUTE("/livez", GET, handle_livez, OPEN, ROUTE_METRICS, "isAlive"),
    ROUTE("/livez", HEAD, handle_livez, OPEN, ROUTE_METRICS, "isAliveBriefly"),
    ROUTE("/readyz", GET, handle_readyz, OPEN, ROUTE_METRICS, "isReady"),
    ROUTE("/readyz", HEAD, handle_readyz, OPEN, ROUTE_METRICS, "isReadyBriefly"),
    ROUTE("/metrics", GET, handle_metrics, METRICS_GET, GUARDED, "showMetrics"),
    ROUTE("/metrics", HEAD, handle_metrics, METRICS_GET, GUARDED, "showMetricsBriefly"),
    ROUTE_END,
};

const struct version version_root = {
    .name = BYTES_LIT(""), .routes = root_routes, .open = true};

/* ------------------------------------------------------------------ home documents */

struct relation {
    const char *name;
    const char *tail;  /* of the URI template, behind the version */
    const char *allow; /* its methods, as JSON */
    unsigned versions; /* that have it */
};

#define NEW (HOME_V1_1 | HOME_V2)
#define ALL (HOME_V1 | NEW)
#define Q   "/queues/{queue_name}"

/* Relations of v2 that later parts will serve are promised by the contract today. */
static const struct relation relations[] = {
    {"queues", "/queues{?marker,limit,detailed}", "[\"GET\"]", ALL},
    {"queue", Q, "[\"GET\",\"PUT\",\"PATCH\",\"DELETE\"]", HOME_V2},
    {"queue", Q, "[\"GET\",\"PUT\",\"DELETE\"]", HOME_V1_1},
    {"queue", Q, "[\"GET\",\"HEAD\",\"PUT\",\"DELETE\"]", HOME_V1},
    {"queue-metadata", Q "/metadata", "[\"GET\",\"PUT\"]", HOME_V1},
    {"queue-stats", Q "/stats", "[\"GET\"]", HOME_V1},
    {"queue_stats", Q "/stats", "[\"GET\"]", NEW},
    {"queue_share", Q "/share", "[\"POST\"]", HOME_V2},
    {"queue_purge", Q "/purge", "[\"POST\"]", HOME_V2},
    {"messages", Q "/messages{?marker,limit,echo,include_claimed}", "[\"GET\"]", ALL},
    {"post-messages", Q "/messages", "[\"POST\"]", HOME_V1},
    {"post_messages", Q "/messages", "[\"POST\"]", NEW},
    {"messages_delete", Q "/messages{?ids,pop}", "[\"DELETE\"]", NEW},
    {"message_delete", Q "/messages/{message_id}{?claim}", "[\"DELETE\"]", NEW},
    {"message_get", Q "/messages/{message_id}", "[\"GET\"]", NEW},
    {"claim", Q "/claims{?limit}", "[\"POST\"]", HOME_V1},
    {"claim", Q "/claims/{claim_id}", "[\"GET\"]", NEW},
    {"post_claim", Q "/claims{?limit}", "[\"POST\"]", NEW},
    {"patch_claim", Q "/claims/{claim_id}", "[\"PATCH\"]", NEW},
    {"delete_claim", Q "/claims/{claim_id}", "[\"DELETE\"]", NEW},
    {"subscriptions_get", Q "/subscriptions{?marker,limit}", "[\"GET\"]", HOME_V2},
    {"subscriptions_post", Q "/subscriptions", "[\"POST\"]", HOME_V2},
    {"subscription", Q "/subscriptions/{subscriptions_id}", "[\"GET\",\"DELETE\"]",
     HOME_V2},
    {"subscription_patch", Q "/subscriptions/{subscriptions_id}", "[\"PATCH\"]", HOME_V2},
    {"ping", "/ping", "[\"GET\",\"HEAD\"]", NEW},
};

#undef NEW
#undef ALL
#undef Q

/* "{a}{?b,c}" has the variables a, b and c; each is described by a name of its own. */
static void
write_variables(struct buf *out, struct bytes tail)
{
    bool first = true;

    buf_str(out, ",\"href-vars\":{");
    while (bytes_present(tail)) {
        struct bytes names;

        (void)bytes_cut(&tail, '{'); /* literal text */
        if (!bytes_present(tail))
            break;
        names = bytes_cut(&tail, '}');
        if (names.len > 0 && names.data[0] == '?')
            names = bytes_of(names.data + 1, names.len - 1);
        while (bytes_present(names)) {
            struct bytes name = bytes_cut(&names, ',');

            buf_printf(out, "%s\"%.*s\":\"param/%.*s\"", first ? "" : ",", (int)name.len,
                       name.data, (int)name.len, name.data);
            first = false;
        }
    }
    buf_byte(out, '}');
}

enum status
home_show(struct context *ctx)
{
    struct buf *out = &ctx->res->body;
    bool first = true;

    buf_str(out, "{\"resources\":{");
    for (size_t i = 0; i < sizeof(relations) / sizeof(relations[0]); i++) {
        const struct relation *r = &relations[i];

        if ((r->versions & ctx->version->home) == 0)
            continue;
        if (!first)
            buf_byte(out, ',');
        buf_printf(out, "\"rel/%s\":{\"href-template\":\"%s%s\"", r->name, ctx->base.data,
                   r->tail);
        write_variables(out, bytes_str(r->tail));
        buf_printf(out,
                   ",\"hints\":{\"allow\":%s,\"formats\":{\"application/json\":{}}}}",
                   r->allow);
        first = false;
    }
    buf_str(out, "}}");
    answer_header(ctx, "Content-Type", "application/json-home");
    answer_header(ctx, "Cache-Control", "max-age=86400");
    ctx->res->code = 200;
    return ST_OK;
}
