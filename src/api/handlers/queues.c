/*
 * queues: the requests on one queue: create, show, change, delete, statistics and purge
 * (docs/api.md 7), and those that only API v1 has (14.3). Declared in handlers.h. A
 * change reads the metadata, applies the patch, and writes it back if its version is
 * still the same. Otherwise it begins again (queue_change()). Read wire/metadata.h next.
 */
#include "api/caller.h"
#include "api/handlers/handlers.h"
#include "api/response.h"
#include "api/wire/patch.h"
#include "claimd/base/clock.h"
#include "claimd/json/scan.h"
#include "claimd/json/string.h"

/* ------------------------------------------------------------------ create, delete */

/* ST_BAD_VALUE, explained, if a queue is to encrypt and there is no key. */
static enum status
encrypt_check(struct context *ctx, const struct store_settings *settings)
{
    if (!settings->encrypt ||
        (ctx->config->seal != NULL && seal_ready(ctx->config->seal)))
        return ST_OK;
    return context_refuse(ctx, ST_BAD_VALUE,
                          "_enable_encrypt_messages must be false. The server has no key "
                          "to encrypt with (encryption_keys)");
}

static enum status
read_metadata(struct context *ctx, struct store_metadata *out)
{
    enum status st = context_read_body(ctx);

    if (st == ST_OK)
        st = metadata_decode(ctx->req->body, ctx->limits, ctx->req->arena, out, ctx->why);
    if (st == ST_OK)
        st = metadata_check_lifetime(&out->settings, ctx->limits, ctx->why);
    return st == ST_OK ? encrypt_check(ctx, &out->settings) : st;
}

/* Warns of metadata that differs from that of the existing queue. */
static void
warn_kept(struct context *ctx, const struct store_metadata *given)
{
    struct store_queues found = STORE_QUEUES_INIT;

    if (given->json.len > 0 &&
        store_queue_get(ctx->store, &ctx->op, &ctx->queue, &found) == ST_OK &&
        !bytes_equal(given->json, found.queues[0].metadata.json))
        metadata_warn_kept(given, &found.queues[0].metadata, ctx->queue.kind, ctx->limits,
                           ctx->req->arena, &ctx->warnings);
    store_queues_release(&found);
}

/* PUT .../queues/{queue} */
enum status
handle_queue_create(struct context *ctx)
{
    struct store_metadata metadata = {BYTES_NONE, STORE_SETTINGS_INIT};
    bool created = false;
    enum status st = ctx->version->puts_metadata ? read_metadata(ctx, &metadata) : ST_OK;

    if (st == ST_OK)
        st = response_add_location(ctx, "", BYTES_NONE);
    if (st == ST_OK)
        st = store_queue_create(ctx->store, &ctx->op, &ctx->queue, &metadata, &created);
    if (st != ST_OK)
        return st;
    if (!created)
        warn_kept(ctx, &metadata);
    metadata_warn(&metadata, ctx->queue.name, ctx->req->arena, &ctx->warnings);
    return response_empty(ctx, created ? 201 : 204);
}

/* DELETE .../queues/{queue} */
enum status
handle_queue_delete(struct context *ctx)
{
    enum status st = store_queue_delete(ctx->store, &ctx->op, &ctx->queue);

    return st == ST_OK ? response_empty(ctx, 204) : st;
}

/* ------------------------------------------------------------------ show */

enum status
queue_write_metadata(struct context *ctx, const struct store_metadata *metadata)
{
    if (ctx->version->metadata_defaults)
        return metadata_show(metadata, ctx->queue.kind, ctx->limits, &ctx->res->body);
    metadata_plain(metadata, &ctx->res->body);
    return ST_OK;
}

/* GET .../queues/{queue}. A queue that does not exist has no metadata. */
enum status
handle_queue_show(struct context *ctx)
{
    const struct store_metadata nothing = {BYTES_NONE, STORE_SETTINGS_INIT};
    struct store_queues found = STORE_QUEUES_INIT;
    enum status st = store_queue_get(ctx->store, &ctx->op, &ctx->queue, &found);

    if (st == ST_OK)
        st = queue_write_metadata(ctx, &found.queues[0].metadata);
    else if (st == ST_NOT_FOUND && ctx->version->queues_must_exist)
        st = context_refuse_queue(ctx);
    else if (st == ST_NOT_FOUND)
        st = queue_write_metadata(ctx, &nothing);
    store_queues_release(&found);
    return st == ST_OK ? response_json(ctx, 200) : st;
}

/* ------------------------------------------------------------------ patch */

/* Attempts to change metadata while other clients change it, too. */
enum { ATTEMPTS = 16 };

enum status
queue_change(struct context *ctx, change_fn *change, const void *how)
{
    enum status st = ST_CHANGED;

    for (int i = 0; i < ATTEMPTS && st == ST_CHANGED; i++) {
        struct store_queues found = STORE_QUEUES_INIT;
        struct store_metadata changed;
        const struct store_metadata *old;

        ctx->res->body.len = 0;
        ctx->warnings.count = 0;
        st = store_queue_get(ctx->store, &ctx->op, &ctx->queue, &found);
        if (st == ST_OK) {
            old = &found.queues[0].metadata;
            st = change(ctx, how, old, &changed);
        }
        if (st == ST_OK && ctx->res->body.failed)
            st = ST_NO_MEMORY;
        if (st == ST_OK && (changed.json.data != old->json.data ||
                            changed.settings.paused != old->settings.paused))
            st = store_queue_update(ctx->store, &ctx->op, &ctx->queue,
                                    found.queues[0].version, &changed);
        store_queues_release(&found);
    }
    return st == ST_NOT_FOUND ? context_refuse_queue(ctx) : st;
}

static enum status
change_by_patch(struct context *ctx, const void *patch, const struct store_metadata *old,
                struct store_metadata *changed)
{
    enum status st =
        patch_apply(patch, old, ctx->limits, ctx->req->arena, changed, ctx->why);

    if (st == ST_OK && !old->settings.encrypt)
        st = encrypt_check(ctx, &changed->settings);
    if (st != ST_OK)
        return st;
    metadata_warn(changed, ctx->queue.name, ctx->req->arena, &ctx->warnings);
    return metadata_show(changed, ctx->queue.kind, ctx->limits, &ctx->res->body);
}

/* PATCH .../queues/{queue} */
enum status
handle_queue_patch(struct context *ctx)
{
    const struct request *req = ctx->req;
    struct patch patch = {.document = NULL};
    enum status st = caller_patch_type(req->headers[API_HEADER_CONTENT_TYPE]);

    if (st != ST_OK)
        return context_refuse(ctx, st,
                              "the header Content-Type is \"%s\". It must be "
                              "application/openstack-messaging-v2.0-json-patch",
                              received(req->headers[API_HEADER_CONTENT_TYPE]).text);
    if (context_read_body(ctx) != ST_OK)
        return ST_BAD_BODY; /* with another status than other requests */
    st = patch_read(req->body, ctx->limits, req->arena, &patch, ctx->why);
    if (st == ST_OK)
        st = queue_change(ctx, change_by_patch, &patch);
    patch_fini(&patch);
    return st == ST_OK ? response_json(ctx, 200) : st;
}

/* ------------------------------------------------------------------ statistics */

static void
write_end(struct context *ctx, const char *name, const struct store_end *end)
{
    struct buf *out = &ctx->res->body;
    char created[CLOCK_TEXT_CAP];

    clock_text(clock_to_wall_ms(ctx->config->time_base, end->created_ms), created);
    buf_printf(out, ",\"%s\":{\"age\":%lld,\"created\":\"%s\",\"href\":\"%s/%ss/", name,
               (long long)end->age_s, created, ctx->base.data, context_noun(ctx));
    buf_bytes(out, ctx->queue.name);
    buf_printf(out, "/messages/%s\"}", end->id.text);
}

/* GET .../queues/{queue}/stats */
enum status
handle_queue_stats(struct context *ctx)
{
    struct store_stats stats = {.total = 0};
    enum status st = store_queue_stats(ctx->store, &ctx->op, &ctx->queue, &stats);

    if (st == ST_NOT_FOUND && ctx->version->queues_must_exist)
        return context_refuse_queue(ctx);
    if (st != ST_OK && st != ST_NOT_FOUND)
        return st;
    buf_printf(&ctx->res->body,
               "{\"messages\":{\"claimed\":%llu,\"free\":%llu,\"total\":%llu",
               (unsigned long long)stats.claimed,
               (unsigned long long)(stats.total - stats.claimed),
               (unsigned long long)stats.total);
    if (stats.total > 0) {
        write_end(ctx, "oldest", &stats.oldest);
        write_end(ctx, "newest", &stats.newest);
    }
    buf_str(&ctx->res->body, "}}");
    return response_json(ctx, 200);
}

/* GET, HEAD .../queues/{queue} of v1: whether the queue exists. */
enum status
handle_queue_exists(struct context *ctx)
{
    struct store_queues found = STORE_QUEUES_INIT;
    enum status st = store_queue_get(ctx->store, &ctx->op, &ctx->queue, &found);

    store_queues_release(&found);
    ctx->bare_errors = st == ST_NOT_FOUND;
    return st == ST_OK ? response_empty(ctx, 204) : st;
}

/* ------------------------------------------------------------------ version 1 */

/* v1 has no reserved members, and refuses their names. */
static enum status
check_names(struct context *ctx)
{
    struct json_scan s;
    struct json_scan_name name;

    if (json_fault(ctx->req->body, ctx->why))
        return ST_BAD_BODY;
    json_scan_begin(&s, ctx->req->body);
    if (!json_scan_enter(&s, SCAN_OBJECT))
        return context_refuse(ctx, ST_BAD_BODY, "the body must be an object");
    while (json_scan_member(&s, &name)) {
        struct bytes rest = name.text;

        if (rest.len > 0 && json_string_next(&rest) == '_')
            return context_refuse(
                ctx, ST_BAD_VALUE,
                "the name of a member is \"%s\". It must not begin with an underscore",
                received(name.text).text);
        (void)json_scan_value(&s, NULL);
    }
    return json_scan_end(&s);
}

static enum status
replace_metadata(struct context *ctx, const void *metadata,
                 const struct store_metadata *old, struct store_metadata *changed)
{
    *changed = *(const struct store_metadata *)metadata;
    return metadata_keep(changed, &old->settings, ctx->req->arena);
}

/* PUT .../queues/{queue}/metadata */
enum status
handle_metadata_put(struct context *ctx)
{
    struct store_metadata metadata;
    enum status st = context_read_body(ctx);

    if (st == ST_OK)
        st = check_names(ctx);
    if (st == ST_OK)
        st = read_metadata(ctx, &metadata);
    if (st == ST_OK)
        st = response_add_location(ctx, "/metadata", BYTES_NONE);
    if (st == ST_OK)
        st = queue_change(ctx, replace_metadata, &metadata);
    return st == ST_OK ? response_empty(ctx, 204) : st;
}

/* ------------------------------------------------------------------ purging */

/* The parts that a purge deletes. */
struct purge {
    bool messages, subscriptions;
};

static enum status
read_types(struct context *ctx, const struct json_scan_value *types, struct purge *out)
{
    struct json_scan s;

    json_scan_begin(&s, types->text);
    (void)json_scan_enter(&s, SCAN_ARRAY);
    while (json_scan_item(&s)) {
        struct json_scan_value item;

        (void)json_scan_value(&s, &item);
        if (item.kind == SCAN_STRING &&
            json_string_equals(json_scan_inside(&item), bytes_str("messages")))
            out->messages = true;
        else if (item.kind == SCAN_STRING &&
                 json_string_equals(json_scan_inside(&item), bytes_str("subscriptions")))
            out->subscriptions = true;
        else
            return context_refuse(
                ctx, ST_BAD_VALUE,
                "resource_types has %s. It may contain only messages and subscriptions",
                received(item.text).text);
    }
    return ST_OK;
}

static enum status
read_purge(struct context *ctx, struct purge *out)
{
    struct bytes body = ctx->req->body;
    struct json_scan_value types;
    enum status st = context_read_body(ctx);

    if (st != ST_OK)
        return st;
    *out = (struct purge){.messages = body.len == 0, .subscriptions = body.len == 0};
    if (body.len == 0)
        return ST_OK;
    if (json_fault(body, ctx->why))
        return ST_BAD_BODY;
    types = json_member(body, "resource_types");
    if (types.kind == SCAN_NONE)
        return context_refuse(
            ctx, ST_BAD_VALUE,
            "the body must be an object with the member resource_types");
    if (types.kind != SCAN_ARRAY)
        return context_refuse(ctx, ST_BAD_BODY, "resource_types must be an array");
    return read_types(ctx, &types, out);
}

/* POST .../queues/{queue}/purge */
enum status
handle_queue_purge(struct context *ctx)
{
    struct purge purge;
    enum status st = read_purge(ctx, &purge);

    if (st == ST_OK && (purge.messages || purge.subscriptions))
        st = store_queue_purge(ctx->store, &ctx->op, &ctx->queue,
                               !purge.subscriptions ? STORE_PURGE_MESSAGES
                               : !purge.messages    ? STORE_PURGE_SUBSCRIPTIONS
                                                    : STORE_PURGE_BOTH);
    return st == ST_OK ? response_empty(ctx, 204) : st;
}
