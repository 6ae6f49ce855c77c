/*
 * subscriptions: the requests on the subscriptions of a queue or topic, and their
 * confirmation (docs/api.md 18). Declared in handlers.h. notify/notifier.c delivers to
 * subscribers. Read wire/subscription.h next.
 */
#include "api/handlers/handlers.h"
#include "api/response.h"
#include "api/wire/query.h"
#include "api/wire/subscription.h"

static const char tail[] = "/subscriptions";

/* ------------------------------------------------------------------ list, show */

/* Writes a subscription for clients, or, below /claimd/, its progress for operators. */
static void
write_subscription(struct context *ctx, const struct store_subscription *s)
{
    if (ctx->version == &version_claimd)
        subscription_write_progress(&ctx->res->body, ctx->op.now_ms,
                                    ctx->config->time_base, s);
    else
        subscription_write(&ctx->res->body, ctx->queue.name, s);
}

static enum status
write_page(struct context *ctx, const struct listing *listing,
           const struct store_subscriptions *page)
{
    const char *path = context_path(ctx, tail, BYTES_NONE);
    struct buf *out = &ctx->res->body;

    if (path == NULL)
        return ST_NO_MEMORY;
    buf_str(out, "{\"subscriptions\":[");
    for (size_t i = 0; i < page->count; i++) {
        if (i > 0)
            buf_byte(out, ',');
        write_subscription(ctx, &page->views[i]);
    }
    buf_byte(out, ']');
    next_page_write(out, bytes_str(path), &ctx->query, listing,
                    page->count == 0 ? BYTES_NONE : store_id_bytes(&page->next));
    buf_byte(out, '}');
    return response_json(ctx, 200);
}

/* GET .../subscriptions */
enum status
handle_subscription_list(struct context *ctx)
{
    const struct api_limits *l = ctx->limits;
    struct store_subscriptions page = STORE_SUBSCRIPTIONS_INIT;
    size_t limit = (size_t)limits_page(l, l->max_subscriptions_per_page);
    const struct listing listing = {
        .parameters = {{"limit", .limit = &limit, .most = l->max_subscriptions_per_page,
                        .option = "max_subscriptions_per_page"}}};
    enum status st = context_read_listing(ctx, &listing);

    if (st != ST_OK)
        return st;
    st = store_subscription_list(ctx->store, &ctx->op, &ctx->queue,
                                 query_get(&ctx->query, "marker"), limit, &page);
    if (st == ST_OK)
        st = write_page(ctx, &listing, &page);
    store_subscriptions_release(&page);
    return st;
}

/* GET .../subscriptions/{id} */
enum status
handle_subscription_show(struct context *ctx)
{
    struct store_subscriptions found = STORE_SUBSCRIPTIONS_INIT;
    enum status st =
        store_subscription_get(ctx->store, &ctx->op, &ctx->queue, ctx->id, &found);

    if (st == ST_OK)
        write_subscription(ctx, &found.views[0]);
    store_subscriptions_release(&found);
    if (st == ST_NOT_FOUND)
        return context_refuse_id(ctx, "subscription", false);
    return st == ST_OK ? response_json(ctx, 200) : st;
}

/* ------------------------------------------------------------------ create */

/* Refuses a subscriber that has confirmed. Otherwise claimd asks the subscriber again. */
static enum status
respond_subscribed(struct context *ctx, const struct store_subscribed *subscribed)
{
    struct buf *out = &ctx->res->body;

    if (!subscribed->created && subscribed->confirmed)
        return context_refuse(
            ctx, ST_CONFLICT, "the subscriber already has a subscription to %s %.*s",
            context_noun(ctx), (int)ctx->queue.name.len, ctx->queue.name.data);
    buf_str(out, "{\"subscription_id\":\"");
    buf_bytes(out, store_id_bytes(&subscribed->id));
    buf_str(out, "\"}");
    return response_json(ctx, 201);
}

/* POST .../subscriptions */
enum status
handle_subscription_create(struct context *ctx)
{
    struct store_subscription_draft draft;
    struct store_subscribed subscribed;
    enum status st = context_read_body(ctx);

    if (st == ST_OK)
        st = decode_subscription(ctx->req->body, ctx->limits, ctx->op.now_ms,
                                 ctx->req->arena, &draft, ctx->why);
    if (st != ST_OK)
        return st;
    st = response_add_location(ctx, tail, BYTES_NONE);
    if (st == ST_OK)
        st = store_subscription_create(ctx->store, &ctx->op, &ctx->queue, &draft,
                                       &subscribed);
    return st == ST_OK ? respond_subscribed(ctx, &subscribed) : st;
}

/* ------------------------------------------------------------------ change */

/* PATCH .../subscriptions/{id} */
enum status
handle_subscription_update(struct context *ctx)
{
    struct store_subscription_draft draft;
    const char *location;
    enum status st = context_read_body(ctx);

    if (st == ST_OK)
        st = decode_subscription_change(ctx->req->body, ctx->limits, ctx->op.now_ms,
                                        ctx->req->arena, &draft, ctx->why);
    if (st != ST_OK)
        return st;
    location = context_path(ctx, "/subscriptions/", ctx->id);
    if (location == NULL)
        return ST_NO_MEMORY;
    st = store_subscription_update(ctx->store, &ctx->op, &ctx->queue, ctx->id, &draft);
    if (st == ST_NOT_FOUND)
        return context_refuse_id(ctx, "subscription", false);
    if (st == ST_CONFLICT)
        return context_refuse(
            ctx, st, "the subscriber already has another subscription to this queue");
    if (st != ST_OK)
        return st;
    response_add_header(ctx, "Location", location);
    return response_empty(ctx, 204);
}

/* DELETE .../subscriptions/{id} */
enum status
handle_subscription_delete(struct context *ctx)
{
    enum status st =
        store_subscription_delete(ctx->store, &ctx->op, &ctx->queue, ctx->id);

    return st == ST_OK ? response_empty(ctx, 204) : st;
}

/* PUT .../subscriptions/{id}/confirm */
enum status
handle_subscription_confirm(struct context *ctx)
{
    const char *item = context_path(ctx, "/subscriptions/", ctx->id);
    struct bytes location;
    bool confirmed;
    enum status st = context_read_body(ctx);

    if (st == ST_OK)
        st = decode_confirmation(ctx->req->body, &confirmed, ctx->why);
    if (st != ST_OK)
        return st;
    if (item == NULL)
        return ST_NO_MEMORY;
    location = arena_printf(ctx->req->arena, "%s/confirm", item);
    if (!bytes_present(location))
        return ST_NO_MEMORY;
    st =
        store_subscription_confirm(ctx->store, &ctx->op, &ctx->queue, ctx->id, confirmed);
    if (st == ST_NOT_FOUND)
        return context_refuse_id(ctx, "subscription", false);
    if (st != ST_OK)
        return st;
    response_add_header(ctx, "Location", location.data);
    return response_empty(ctx, 204);
}
