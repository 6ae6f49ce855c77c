/*
 * dump: the content of the store as lines of JSON, and loading such lines
 * (docs/api.md 24). Declared in handlers.h. claimd/api/dump.h writes a page of lines,
 * and state.h applies them.
 */
#include "claimd/api/dump.h"
#include "api/handlers/handlers.h"
#include "api/response.h"

#include <inttypes.h>

/* Bytes after which a page ends. */
enum { DUMP_PAGE = 256 * 1024 };

/* GET /claimd/dump */
enum status
handle_dump(struct context *ctx)
{
    struct bytes marker = query_get(&ctx->query, "marker");
    struct buf *out = &ctx->res->body;
    struct dump dump = {.begun = false};
    enum status st;

    if (bytes_present(marker) && !dump_read_marker(marker, &dump))
        return context_refuse(
            ctx, ST_BAD_PARAMETER,
            "the parameter marker must be from a response of this server");
    st = dump_lines(ctx->store, &ctx->op, query_get(&ctx->query, "project"), DUMP_PAGE,
                    &dump, out);
    if (st != ST_OK)
        return st;
    if (dump.done) {
        buf_str(out, "{\"end\":true}\n");
    } else {
        buf_str(out, "{\"next\":\"");
        dump_write_marker(&dump, out);
        buf_str(out, "\"}\n");
    }
    return response_typed(ctx, 200, "application/jsonl");
}

struct record_load
load_of_request(struct context *ctx)
{
    return (struct record_load){.store = ctx->store,
                                .op = &ctx->op,
                                .reader = {.limits = ctx->limits,
                                           .mem = ctx->config->mem,
                                           .arena = ctx->req->arena,
                                           .now_ms = ctx->op.now_ms,
                                           .why = ctx->why}};
}

void
load_ended(const struct context *ctx, const struct record_load *l)
{
    const struct api_scheduler *s = ctx->config->scheduler;

    if (l->schedules && s != NULL)
        (void)s->reload(s->arg); /* without memory it reads them within the hour */
}

/* POST /claimd/load */
enum status
handle_load(struct context *ctx)
{
    struct record_load l = load_of_request(ctx);
    enum status st = context_read_bool(ctx, "replace", &l.replace);

    if (st != ST_OK)
        return st;
    if (ctx->req->body_too_large)
        return context_refuse(ctx, ST_TOO_LONG,
                              "the body is too large. Send fewer lines at a time");
    if (ctx->req->body.len == 0)
        return context_refuse(ctx, ST_BAD_BODY, "a body is required");
    st = load_read(&l, ctx->req->body);
    if (st == ST_OK)
        st = load_check(&l);
    if (st == ST_OK)
        st = load_apply(&l);
    load_ended(ctx, &l);
    if (st != ST_OK)
        return load_refusal(&l, st);
    buf_printf(&ctx->res->body,
               "{\"queues\":%" PRIu64 ",\"messages\":%" PRIu64
               ",\"subscriptions\":%" PRIu64 "}",
               l.queues, l.messages, l.subscriptions);
    return response_json(ctx, 200);
}
