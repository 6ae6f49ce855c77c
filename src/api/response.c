#include "api/response.h"
#include "api/caller.h"
#include "claimd/base/invariant.h"

void
response_add_header(struct context *ctx, const char *name, const char *value)
{
    struct response *res = ctx->res;

    ENSURE(res->header_count < RESPONSE_HEADERS_MAX);
    ENSURE(strlen(value) <= RESPONSE_VALUE_MAX);
    res->headers[res->header_count++] = (struct response_header){name, value};
}

enum status
response_copy_header(struct context *ctx, const char *name, struct bytes value)
{
    struct bytes copy = arena_copy(ctx->req->arena, value);

    if (!bytes_present(copy))
        return ST_NO_MEMORY;
    response_add_header(ctx, name, copy.data);
    return ST_OK;
}

enum status
response_add_location(struct context *ctx, const char *tail, struct bytes id)
{
    const char *text = context_path(ctx, tail, id);

    if (text == NULL)
        return ST_NO_MEMORY;
    response_add_header(ctx, "Location", text);
    return ST_OK;
}

enum status
response_empty(struct context *ctx, int code)
{
    ctx->res->code = code;
    ctx->res->body.len = 0;
    return ST_OK;
}

enum status
response_typed(struct context *ctx, int code, const char *type)
{
    ctx->res->code = code;
    response_add_header(ctx, "Content-Type", type);
    return ST_OK;
}

enum status
response_json(struct context *ctx, int code)
{
    return response_typed(ctx, code, "application/json");
}

bool
request_asks_for_stream(const struct request *req)
{
    return bytes_present(req->headers[API_HEADER_ACCEPT]) &&
           caller_names_type(req->headers[API_HEADER_ACCEPT],
                             bytes_str(RESPONSE_STREAM_TYPE));
}

bool
request_asks_for_page(const struct request *req)
{
    const struct bytes accept = req->headers[API_HEADER_ACCEPT];

    return caller_names_type(accept, bytes_str("text/html")) &&
           !caller_names_type(accept, bytes_str("application/json"));
}

enum api_next
response_complete(struct context *ctx)
{
    ENSURE_DEBUG(response_head_size(ctx->res) <= RESPONSE_HEAD_MAX);
    ctx->res->lsn = ctx->op.lsn;
    return ctx->res->lsn == 0 ? API_SEND : API_HOLD;
}

size_t
response_head_size(const struct response *res)
{
    enum { PUNCTUATION = 4 }; /* colon, space, end of the line */
    size_t size = 0;

    for (size_t i = 0; i < res->header_count; i++)
        size +=
            strlen(res->headers[i].name) + strlen(res->headers[i].value) + PUNCTUATION;
    return size;
}
