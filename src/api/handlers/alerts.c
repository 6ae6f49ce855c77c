/*
 * alerts: GET /claimd/alerts (docs/api.md 26.7). Declared in handlers.h.
 */
#include "api/alerts.h"

#include "api/check.h"
#include "api/handlers/handlers.h"
#include "api/response.h"

/* Only callers that may see /metrics see the alerts about the server. */
static enum status
may_see_server(struct context *ctx, bool *out)
{
    struct access_caller caller;
    const enum status st = check_caller(ctx, ACTION_METRICS_GET, true, &caller);

    *out = st == ST_OK;
    if (st != ST_FORBIDDEN && st != ST_MISSING_PROJECT)
        return st;
    reason_init(ctx->why);
    return ST_OK;
}

/* GET /claimd/alerts */
enum status
handle_alert_list(struct context *ctx)
{
    struct buf *out = &ctx->res->body;
    bool of_server = false;
    enum status st = may_see_server(ctx, &of_server);

    if (st != ST_OK)
        return st;
    if (ctx->api->alerts == NULL)
        return context_refuse(ctx, ST_NO_PATH, "this server evaluates no alerts");
    buf_byte(out, '{');
    alerts_write(ctx->api->alerts, ctx, ctx->queue.project, of_server, out);
    buf_byte(out, '}');
    return response_json(ctx, 200);
}
