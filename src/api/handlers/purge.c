#include "api/handlers/handlers.h"
#include "claimd/json/fault.h"
#include "claimd/json/scan.h"

/* What a purge removes. */
struct purge {
    bool messages, subscriptions;
};

static bool
is_text(const struct json_scan_value *value, const char *text)
{
    struct json_scan_name inside;

    if (value->kind != SCAN_STRING)
        return false;
    inside.text = bytes_of(value->text.data + 1, value->text.len - 2);
    inside.escaped = memchr(inside.text.data, '\\', inside.text.len) != NULL;
    return json_scan_name_is(&inside, text);
}

/* The last member resource_types of a valid document; absent: SCAN_NONE. */
static struct json_scan_value
find_types(struct bytes body)
{
    struct json_scan_value types = {.kind = SCAN_NONE};
    struct json_scan s;
    struct json_scan_name name;

    json_scan_begin(&s, body);
    if (!json_scan_enter(&s, SCAN_OBJECT))
        return types;
    while (json_scan_member(&s, &name))
        (void)json_scan_value(&s,
                              json_scan_name_is(&name, "resource_types") ? &types : NULL);
    return types;
}

static enum status
read_types(struct context *ctx, const struct json_scan_value *types, struct purge *out)
{
    struct json_scan s;

    json_scan_begin(&s, types->text);
    (void)json_scan_enter(&s, SCAN_ARRAY);
    while (json_scan_item(&s)) {
        struct json_scan_value item;

        (void)json_scan_value(&s, &item);
        if (is_text(&item, "messages"))
            out->messages = true;
        else if (is_text(&item, "subscriptions"))
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
    struct reason why;
    enum status st =
        context_body_within(ctx, ctx->limits->max_queue_metadata, "max_queue_metadata");

    if (st != ST_OK)
        return st;
    *out = (struct purge){.messages = body.len == 0, .subscriptions = body.len == 0};
    if (body.len == 0)
        return ST_OK;
    if (json_fault(body, &why))
        return context_explain(ctx, ST_BAD_BODY, &why);
    types = find_types(body);
    if (types.kind == SCAN_NONE)
        return context_refuse(
            ctx, ST_BAD_VALUE,
            "the body must be an object with the member resource_types");
    if (types.kind != SCAN_ARRAY)
        return context_refuse(ctx, ST_BAD_BODY, "resource_types must be an array");
    return read_types(ctx, &types, out);
}

static enum store_purge
what(const struct purge *purge)
{
    if (purge->messages && purge->subscriptions)
        return STORE_PURGE_BOTH;
    return purge->messages ? STORE_PURGE_MESSAGES : STORE_PURGE_SUBSCRIPTIONS;
}

/* POST .../queues/{queue}/purge */
enum status
handle_queue_purge(struct context *ctx)
{
    struct purge purge;
    enum status st = read_purge(ctx, &purge);

    if (st == ST_OK && (purge.messages || purge.subscriptions))
        st = store_queue_purge(ctx->store, &ctx->visit, &ctx->queue, what(&purge));
    return st == ST_OK ? answer_empty(ctx, 204) : st;
}
