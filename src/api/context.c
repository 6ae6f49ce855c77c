#include "api/context.h"

#include "api/caller.h"

#include "claimd/base/clock.h"
#include "claimd/base/invariant.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum { DETAIL_MAX = 512 };

int64_t
context_real_ms(const struct context *ctx)
{
    return ctx->steps->real_ms(ctx);
}

/* ------------------------------------------------------------------ refusing */

enum status
context_refuse(struct context *ctx, enum status st, const char *format, ...)
{
    char text[DETAIL_MAX];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args); /* a longer one is cut */
    va_end(args);
    /* Without memory the explanation is absent, and that of the status is given. */
    ctx->detail = arena_copy(ctx->req->arena, bytes_str(text));
    return st;
}

enum status
context_explain(struct context *ctx, enum status st, const struct reason *why)
{
    return why->text[0] == '\0' ? st : context_refuse(ctx, st, "%s", why->text);
}

enum status
context_refuse_queue(struct context *ctx)
{
    return context_refuse(ctx, ST_NOT_FOUND, "%s %.*s does not exist", context_noun(ctx),
                          (int)ctx->queue.name.len, ctx->queue.name.data);
}

enum status
context_body_within(struct context *ctx, int64_t max, const char *option)
{
    if (ctx->req->body_too_large)
        return context_refuse(
            ctx, ST_TOO_LARGE,
            "the body is too large. The maximum is %" PRId64 " bytes (%s)", max, option);
    if (ctx->req->body.len <= (size_t)max)
        return ST_OK;
    return context_refuse(ctx, ST_TOO_LARGE,
                          "the body is %zu bytes long. The maximum is %" PRId64
                          " bytes (%s)",
                          ctx->req->body.len, max, option);
}

enum status
context_check_name(struct context *ctx, struct bytes name)
{
    enum status st = caller_queue_name(name);

    if (st != ST_OK && name.len > CALLER_QUEUE_NAME_MAX)
        return context_refuse(ctx, st, "the %s name is %zu bytes long. The maximum is %d",
                              context_noun(ctx), name.len, CALLER_QUEUE_NAME_MAX);
    return st == ST_OK ? ST_OK
                       : context_refuse(ctx, st,
                                        "the %s name is \"%s\". It must be 1 to %d "
                                        "characters from A-Z a-z 0-9 _ - .",
                                        context_noun(ctx), received(name).text,
                                        CALLER_QUEUE_NAME_MAX);
}

/* ------------------------------------------------------------------ parameters */

enum status
context_read_limit(struct context *ctx, const char *name, int64_t max, const char *option,
                   size_t *out)
{
    enum status st = query_limit(&ctx->query, name, max, out);

    if (st != ST_BAD_PARAMETER && st != ST_BAD_VALUE)
        return st;
    return context_refuse(
        ctx, st,
        "the parameter %s is \"%s\". It must be an integer between 1 and %" PRId64
        " (%s)",
        name, received(query_get(&ctx->query, name)).text, max, option);
}

enum status
context_read_bool(struct context *ctx, const char *name, bool *out)
{
    enum status st = query_bool(&ctx->query, name, out);

    if (st == ST_BAD_PARAMETER)
        return context_refuse(ctx, st,
                              "the parameter %s is \"%s\". It must be true or false",
                              name, received(query_get(&ctx->query, name)).text);
    return st;
}

enum status
context_read_list(struct context *ctx, const char *name, int64_t max, const char *option,
                  struct bytes **items, size_t *count)
{
    enum status st =
        query_list(&ctx->query, name, (size_t)max, ctx->req->arena, items, count);

    if (st == ST_BAD_VALUE)
        return context_refuse(
            ctx, st, "the parameter %s has %zu values. The maximum is %" PRId64 " (%s)",
            name, *count, max, option);
    return st;
}

/* ------------------------------------------------------------------ answering */

void
answer_header(struct context *ctx, const char *name, const char *value)
{
    struct response *res = ctx->res;

    ENSURE(res->header_count < RESPONSE_HEADERS_MAX);
    ENSURE(strlen(value) <= RESPONSE_VALUE_MAX);
    res->headers[res->header_count++] = (struct response_header){name, value};
}

enum status
answer_header_copy(struct context *ctx, const char *name, struct bytes value)
{
    struct bytes copy = arena_copy(ctx->req->arena, value);

    if (!bytes_present(copy))
        return ST_NO_MEMORY;
    answer_header(ctx, name, copy.data);
    return ST_OK;
}

const char *
context_noun(const struct context *ctx)
{
    return ctx->queue.kind == STORE_TOPIC ? "topic" : "queue";
}

char *
context_path(const struct context *ctx, const char *tail, struct bytes id)
{
    static const struct bytes queues = BYTES_LIT("/queues/"),
                              topics = BYTES_LIT("/topics/");
    const struct bytes pieces[] = {ctx->base,
                                   ctx->queue.kind == STORE_TOPIC ? topics : queues,
                                   ctx->queue.name, bytes_str(tail), id};
    size_t len = 0;
    char *text;

    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++)
        len += pieces[i].len;
    text = arena_alloc(ctx->req->arena, len + 1);
    if (text == NULL)
        return NULL;
    len = 0;
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        if (pieces[i].len > 0)
            memcpy(text + len, pieces[i].data, pieces[i].len);
        len += pieces[i].len;
    }
    text[len] = '\0';
    return text;
}

enum status
answer_location(struct context *ctx, const char *tail, struct bytes id)
{
    const char *text = context_path(ctx, tail, id);

    if (text == NULL)
        return ST_NO_MEMORY;
    answer_header(ctx, "Location", text);
    return ST_OK;
}

enum status
answer_empty(struct context *ctx, int code)
{
    ctx->res->code = code;
    ctx->res->body.len = 0;
    return ST_OK;
}

enum status
answer_json(struct context *ctx, int code)
{
    ctx->res->code = code;
    answer_header(ctx, "Content-Type", "application/json");
    return ST_OK;
}

enum status
context_message_form(const struct context *ctx, struct message_form *out)
{
    const char *href = context_path(ctx, "/messages", BYTES_NONE);

    if (href == NULL)
        return ST_NO_MEMORY;
    *out = (struct message_form){
        .shape = ctx->version->message,
        .href = bytes_str(href),
        .hide_claim = ctx->version->claims_hidden,
        .checksum = ctx->limits->enable_checksum,
    };
    return ST_OK;
}
