#include "api/call.h"

#include "claimd/base/invariant.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum { DETAIL_MAX = 512 };

/* ------------------------------------------------------------------ refusing */

enum status
call_refuse(struct call *call, enum status st, const char *format, ...)
{
    char text[DETAIL_MAX];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args); /* a longer one is cut */
    va_end(args);
    /* Without memory the explanation is absent, and that of the status is given. */
    call->detail = arena_copy(call->req->arena, bytes_str(text));
    return st;
}

enum status
call_explain(struct call *call, enum status st, const struct reason *why)
{
    return why->text[0] == '\0' ? st : call_refuse(call, st, "%s", why->text);
}

enum status
call_refuse_queue(struct call *call)
{
    return call_refuse(call, ST_NOT_FOUND, "there is no queue %.*s",
                       (int)call->queue.name.len, call->queue.name.data);
}

enum status
call_body_within(struct call *call, int64_t max, const char *option)
{
    if (!call->req->body_too_large && call->req->body.len <= (size_t)max)
        return ST_OK;
    return call_refuse(call, ST_TOO_LARGE,
                       "the body of this request may have %" PRId64 " bytes (%s)", max,
                       option);
}

/* ------------------------------------------------------------------ parameters */

enum status
call_limit(struct call *call, const char *name, int64_t max, const char *option,
           size_t *out)
{
    enum status st = query_limit(&call->query, name, max, out);

    if (st == ST_BAD_PARAMETER)
        return call_refuse(call, st, "the parameter %s must be an integer", name);
    if (st == ST_BAD_VALUE)
        return call_refuse(call, st,
                           "the parameter %s must be within 1 and %" PRId64 " (%s)", name,
                           max, option);
    return st;
}

enum status
call_bool(struct call *call, const char *name, bool *out)
{
    enum status st = query_bool(&call->query, name, out);

    if (st == ST_BAD_PARAMETER)
        return call_refuse(call, st, "the parameter %s must be true or false", name);
    return st;
}

enum status
call_list(struct call *call, const char *name, int64_t max, const char *option,
          struct bytes **items, size_t *count)
{
    enum status st =
        query_list(&call->query, name, (size_t)max, call->req->arena, items, count);

    if (st == ST_BAD_VALUE)
        return call_refuse(call, st,
                           "the parameter %s may name at most %" PRId64 " at once (%s)",
                           name, max, option);
    return st;
}

/* ------------------------------------------------------------------ answering */

void
call_header(struct call *call, const char *name, struct bytes value)
{
    struct response *res = call->res;

    ENSURE(res->header_count < RESPONSE_HEADERS_MAX);
    ENSURE(value.len <= RESPONSE_VALUE_MAX);
    res->headers[res->header_count++] = (struct response_header){name, value};
}

struct bytes
call_path(const struct call *call, const char *tail, struct bytes id)
{
    static const struct bytes queues = BYTES_LIT("/queues/");
    const struct bytes pieces[] = {call->base, queues, call->queue.name, bytes_str(tail),
                                   id};
    size_t len = 0;
    char *text;

    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++)
        len += pieces[i].len;
    text = arena_alloc(call->req->arena, len + 1);
    if (text == NULL)
        return BYTES_NONE;
    len = 0;
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        if (pieces[i].len > 0)
            memcpy(text + len, pieces[i].data, pieces[i].len);
        len += pieces[i].len;
    }
    text[len] = '\0';
    return bytes_of(text, len);
}

enum status
call_location(struct call *call, const char *tail, struct bytes id)
{
    struct bytes text = call_path(call, tail, id);

    if (!bytes_present(text))
        return ST_NO_MEMORY;
    call_header(call, "Location", text);
    return ST_OK;
}

enum status
call_empty(struct call *call, int code)
{
    call->res->code = code;
    call->res->body.len = 0;
    return ST_OK;
}

enum status
call_json(struct call *call, int code)
{
    static const struct bytes json = BYTES_LIT("application/json");

    call->res->code = code;
    call_header(call, "Content-Type", json);
    return ST_OK;
}

enum status
call_message_form(const struct call *call, struct message_form *out)
{
    struct bytes href = call_path(call, "/messages", BYTES_NONE);

    if (!bytes_present(href))
        return ST_NO_MEMORY;
    *out = (struct message_form){
        .shape = call->version->message,
        .href = href,
        .hide_claim = call->version->claims_hidden,
        .checksum = call->limits->enable_checksum,
    };
    return ST_OK;
}
