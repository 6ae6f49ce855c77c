#include "api/handlers/handlers.h"
#include "api/opening.h"
#include "api/wire/metadata.h"
#include "claimd/json/fault.h"
#include "claimd/json/scan.h"
#include "claimd/json/string.h"

/* GET, HEAD .../queues/{queue}: whether there is such a queue, without a word. */
enum status
handle_queue_exists(struct context *ctx)
{
    struct store_queues found = STORE_QUEUES_INIT;
    enum status st = store_queue_get(ctx->store, &ctx->visit, &ctx->queue, &found);

    store_queues_release(&found);
    ctx->bare_errors = st == ST_NOT_FOUND;
    return st == ST_OK ? answer_empty(ctx, 204) : st;
}

/* ------------------------------------------------------------------ metadata */

static bool
is_underscored(const struct json_scan_name *name)
{
    struct bytes rest = name->text;

    return rest.len > 0 && json_string_next(&rest) == '_';
}

/* v1 knows no reserved members, and keeps their names free. */
static enum status
check_names(struct context *ctx)
{
    struct json_scan s;
    struct json_scan_name name;

    json_scan_begin(&s, ctx->req->body);
    if (!json_scan_enter(&s, SCAN_OBJECT))
        return context_refuse(ctx, ST_BAD_BODY, "the body must be an object");
    while (json_scan_member(&s, &name)) {
        if (is_underscored(&name))
            return context_refuse(
                ctx, ST_BAD_VALUE,
                "the name of a member is \"%s\". It must not begin with an underscore",
                received(name.text).text);
        (void)json_scan_value(&s, NULL);
    }
    return json_scan_end(&s);
}

static enum status
read_metadata(struct context *ctx, struct store_metadata *out)
{
    const struct request *req = ctx->req;
    struct reason why;
    enum status st =
        context_body_within(ctx, ctx->limits->max_queue_metadata, "max_queue_metadata");

    if (st != ST_OK)
        return st;
    if (json_fault(req->body, &why))
        return context_explain(ctx, ST_BAD_BODY, &why);
    st = check_names(ctx);
    if (st != ST_OK)
        return st;
    reason_init(&why);
    st = metadata_decode(req->body, ctx->limits, req->arena, out, &why);
    return st == ST_OK ? opening_allow(ctx, &out->settings)
                       : context_explain(ctx, st, &why);
}

/* Whatever stands there is replaced; a change in between is as if it had come before. */
static enum status
replace_metadata(struct context *ctx, struct store_metadata *metadata)
{
    enum { ATTEMPTS = 16 }; /* that many other writers in a row are not plausible */
    enum status st = ST_CHANGED;

    for (int i = 0; i < ATTEMPTS && st == ST_CHANGED; i++) {
        struct store_queues found = STORE_QUEUES_INIT;

        st = store_queue_get(ctx->store, &ctx->visit, &ctx->queue, &found);
        if (st == ST_OK)
            st = metadata_keep(metadata, &found.queues[0].metadata.settings,
                               ctx->req->arena);
        if (st == ST_OK)
            st = store_queue_update(ctx->store, &ctx->visit, &ctx->queue,
                                    found.queues[0].version, metadata);
        store_queues_release(&found);
    }
    return st;
}

/* PUT .../queues/{queue}/metadata: replaces it all. */
enum status
handle_metadata_put(struct context *ctx)
{
    struct store_metadata metadata;
    enum status st = read_metadata(ctx, &metadata);

    if (st != ST_OK)
        return st;
    st = answer_location(ctx, "/metadata", BYTES_NONE);
    if (st != ST_OK)
        return st;
    st = replace_metadata(ctx, &metadata);
    if (st == ST_NOT_FOUND)
        return context_refuse_queue(ctx);
    return st == ST_OK ? answer_empty(ctx, 204) : st;
}
