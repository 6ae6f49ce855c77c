#include "api/context.h"
#include "api/caller.h"
#include "api/prefer.h"
#include "api/quota.h"
#include "api/steps.h"
#include "claimd/base/clock.h"
#include "claimd/base/invariant.h"
#include "claimd/base/nearest.h"
#include "claimd/base/sometimes.h"
#include "claimd/json/string.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum { DETAIL_MAX = 512 };

int64_t
context_real_ms(const struct context *ctx)
{
    return ctx->api->steps->real_ms(ctx);
}

int64_t
context_wall_ms(const struct context *ctx)
{
    return ctx->config->real == NULL ? context_real_ms(ctx)
                                     : clock_wall_ms(ctx->config->real);
}

int64_t
context_shown_ms(const struct context *ctx, int64_t ms)
{
    /* A store on Redis has times of its own, and no base. */
    return clock_to_wall_ms(
        ctx->config->time_base != NULL ? ctx->config->time_base : ctx->config->real, ms);
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
    /* Without memory the detail is absent, and the response has the text of the
     * status. */
    ctx->detail = arena_copy(ctx->req->arena, bytes_str(text));
    return st;
}

enum status
context_refuse_queue(struct context *ctx)
{
    return context_refuse(ctx, ST_NOT_FOUND, "%s %.*s does not exist", context_noun(ctx),
                          (int)ctx->queue.name.len, ctx->queue.name.data);
}

enum status
context_refuse_id(struct context *ctx, const char *item, bool may_expire)
{
    return context_refuse(ctx, ST_NOT_FOUND, "%s %.*s has no %s with the id \"%s\"%s",
                          context_noun(ctx), (int)ctx->queue.name.len,
                          ctx->queue.name.data, item, received(ctx->id).text,
                          may_expire ? ". It may have expired" : "");
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
context_read_body(struct context *ctx)
{
    return context_body_within(ctx, ctx->limits->max_queue_metadata,
                               "max_queue_metadata");
}

enum status
context_read_object(struct context *ctx, const char *const *names, size_t count,
                    struct json_scan_value *values, struct json_names *seen)
{
    if (json_fault(ctx->req->body, ctx->why))
        return ST_BAD_BODY;
    if (json_members_read(ctx->req->body, names, count, values, seen) != ST_OK)
        return context_refuse(ctx, ST_BAD_BODY, "the body must be an object");
    return ST_OK;
}

enum status
context_read_members(struct context *ctx, const char *const *names, size_t count,
                     struct json_scan_value *values)
{
    struct json_names seen;
    char allowed[128] = "";
    size_t len = 0;
    enum status st = context_read_object(ctx, names, count, values, &seen);

    if (st != ST_OK || !bytes_present(seen.unknown))
        return st;
    for (size_t i = 0; i < count && len < sizeof(allowed); i++)
        len += (size_t)snprintf(allowed + len, sizeof(allowed) - len, "%s%s",
                                i == 0           ? ""
                                : i + 1 == count ? " and "
                                                 : ", ",
                                names[i]);
    return context_refuse(ctx, ST_BAD_BODY,
                          "the body has the unknown member \"%s\"%s. Allowed are %s",
                          received(seen.unknown).text,
                          nearest_hint(seen.unknown, names, count).text, allowed);
}

enum status
context_read_flag(struct context *ctx, const struct json_scan_value *value,
                  const char *name, bool *out)
{
    if (json_left_out(value))
        return ST_OK;
    if (value->kind != SCAN_TRUE && value->kind != SCAN_FALSE)
        return context_refuse(ctx, ST_BAD_BODY, "%s must be true or false", name);
    *out = value->kind == SCAN_TRUE;
    return ST_OK;
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

void
context_warn_member(struct context *ctx, struct bytes name, const char *const *known,
                    size_t count)
{
    warning_add_unknown(&ctx->warnings, ctx->req->arena, "member", name, known, count);
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
        "%s%s%s",
        name, received(query_get(&ctx->query, name)).text, max,
        option == NULL ? "" : " (", option == NULL ? "" : option,
        option == NULL ? "" : ")");
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
context_read_listing(struct context *ctx, const struct listing *listing)
{
    const struct parameter *all = listing->parameters;
    enum status st = ST_OK;

    for (size_t i = 0; st == ST_OK && i < sizeof(listing->parameters) / sizeof(*all);
         i++) {
        const struct parameter *p = &all[i];

        if (p->limit != NULL)
            st = context_read_limit(ctx, p->name, p->most, p->option, p->limit);
        else if (p->flag != NULL)
            st = context_read_bool(ctx, p->name, p->flag);
        else if (p->text != NULL)
            *p->text = query_get(&ctx->query, p->name);
    }
    return st;
}

enum status
context_read_list(struct context *ctx, const char *name, int64_t max, const char *option,
                  struct bytes **items, size_t *count)
{
    enum status st =
        query_list(&ctx->query, name, true, (size_t)max, ctx->req->arena, items, count);

    if (st == ST_BAD_VALUE)
        return context_refuse(
            ctx, st, "the parameter %s has %zu values. The maximum is %" PRId64 " (%s)",
            name, *count, max, option);
    return st;
}

/* ------------------------------------------------------------------ links */

const char *
context_noun(const struct context *ctx)
{
    return ctx->queue.kind == STORE_TOPIC ? "topic" : "queue";
}

enum status
context_set_base(struct context *ctx, struct bytes base, struct bytes project)
{
    ctx->base = base;
    if (ctx->prefix.len == 0 && project.len == 0)
        return ST_OK;
    ctx->base = arena_printf(ctx->req->arena, "%.*s%.*s%s%.*s", (int)ctx->prefix.len,
                             ctx->prefix.data, (int)base.len, base.data,
                             project.len > 0 ? "/" : "", (int)project.len, project.data);
    return bytes_present(ctx->base) ? ST_OK : ST_NO_MEMORY;
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
        .details = ctx->req->headers[API_HEADER_PREFER].len > 0 &&
                   prefer_details(ctx->req->headers[API_HEADER_PREFER]),
        .time_base = ctx->config->time_base,
    };
    return ST_OK;
}
