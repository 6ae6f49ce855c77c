/*
 * raw: messages without documents, for curl and scripts (docs/api.md 32). A post has the
 * body of one message, and a claim returns the body of one message. Declared in
 * handlers.h.
 *
 *     1. A text becomes a message whose body is a JSON string. With Content-Type:
 *        application/json the body is the JSON value itself.
 *     2. post_decoded() posts it, and claim_raw() claims it, as in version 2.
 *     3. raw_write() writes the text of a JSON string, or another JSON value as it is.
 */
#include "api/handlers/handlers.h"
#include "api/response.h"
#include "claimd/json/string.h"

/* Continues as version 2, so that its links and its settings of queues apply. */
static enum status
become_v2(struct context *ctx)
{
    const struct bytes prefix = version_claimd.base;
    const size_t skip = ctx->prefix.len + prefix.len;
    struct bytes project = bytes_of(ctx->base.data + skip, ctx->base.len - skip);

    if (project.len > 0) /* the slash in front of it */
        project = bytes_of(project.data + 1, project.len - 1);
    ctx->version = &version_v2;
    return context_set_base(ctx, version_v2.base, project);
}

/* Reads a parameter in seconds, which may be left out. */
static enum status
read_seconds(struct context *ctx, const char *name, int64_t min, int64_t max,
             const char *options, int64_t *out)
{
    enum status st = query_i64(&ctx->query, name, out);

    if (st == ST_OK &&
        (!bytes_present(query_get(&ctx->query, name)) || (*out >= min && *out <= max)))
        return ST_OK;
    return context_refuse(ctx, st == ST_OK ? ST_BAD_VALUE : st,
                          "the parameter %s is \"%s\". It must be %lld to %lld seconds "
                          "(%s)",
                          name, received(query_get(&ctx->query, name)).text,
                          (long long)min, (long long)max, options);
}

/* Makes a JSON string of a text. */
static enum status
quote_text(struct context *ctx, struct bytes text, struct bytes *out)
{
    const unsigned char *at = (const unsigned char *)text.data, *const end =
                                                                    at + text.len;
    struct buf quoted;
    char *copy;

    while (at < end) {
        const unsigned char *next = utf8_pass(at, end);

        if (next == NULL)
            return context_refuse(ctx, ST_BAD_BODY,
                                  "the body is not UTF-8 text: byte %zu is invalid. "
                                  "Encode other data, for example in base64",
                                  (size_t)(at - (const unsigned char *)text.data));
        at = next;
    }
    buf_init(&quoted, ctx->res->body.mem);
    json_string_write(&quoted, text);
    copy = quoted.failed ? NULL : arena_alloc(ctx->req->arena, quoted.len);
    if (copy != NULL)
        *out = bytes_of(memcpy(copy, quoted.data, quoted.len), quoted.len);
    buf_fini(&quoted);
    return copy == NULL ? ST_NO_MEMORY : ST_OK;
}

/* Makes the body of the message of the body of the request. */
static enum status
read_raw(struct context *ctx, struct bytes *out)
{
    struct bytes rest = ctx->req->headers[API_HEADER_CONTENT_TYPE];
    const struct bytes type = bytes_trim(bytes_cut(&rest, ';'));
    struct json_scan_value value;
    struct json_scan scan;

    if (!bytes_equal_nocase(type, bytes_str("application/json")))
        return quote_text(ctx, ctx->req->body, out);
    json_scan_begin(&scan, ctx->req->body);
    if (!json_scan_value(&scan, &value) || json_scan_end(&scan) != ST_OK)
        return context_refuse(ctx, ST_BAD_BODY,
                              "the body is not one JSON value, although Content-Type is "
                              "application/json. Without that header it is a text");
    *out = value.text;
    return ST_OK;
}

/* POST /claimd/queues/{queue}/raw?ttl=N&delay=N */
enum status
handle_raw_post(struct context *ctx)
{
    const struct api_limits *l = ctx->limits;
    struct store_draft draft = {.ttl_s = STORE_UNSET, .delay_s = STORE_UNSET};
    const struct decoded_post post = {.drafts = &draft, .count = 1};
    enum status st = post_check(ctx);

    if (st == ST_OK)
        st = read_seconds(ctx, "ttl", l->min_message_ttl, l->max_message_ttl,
                          "min_message_ttl, max_message_ttl", &draft.ttl_s);
    if (st == ST_OK)
        st = read_seconds(ctx, "delay", 0, l->max_message_delay, "max_message_delay",
                          &draft.delay_s);
    if (st == ST_OK)
        st = read_raw(ctx, &draft.body);
    if (st == ST_OK && draft.body.len > (size_t)l->max_messages_post_size)
        st =
            context_refuse(ctx, ST_TOO_LARGE,
                           "the text takes %zu bytes as a JSON string, with its escapes. "
                           "The maximum is %lld bytes (max_messages_post_size)",
                           draft.body.len, (long long)l->max_messages_post_size);
    if (st == ST_OK)
        st = become_v2(ctx);
    return st == ST_OK ? post_decoded(ctx, &post) : st;
}

enum status
raw_write(struct context *ctx, struct bytes body)
{
    const bool is_text = body.len > 0 && body.data[0] == '"';
    struct buf *out = &ctx->res->body;
    struct bytes rest;

    if (!is_text) {
        buf_bytes(out, body);
        return response_json(ctx, 201);
    }
    for (rest = bytes_of(body.data + 1, body.len - 2); rest.len > 0;) {
        const char *escape = memchr(rest.data, '\\', rest.len);
        const size_t plain = escape == NULL ? rest.len : (size_t)(escape - rest.data);
        char text[4];

        buf_add(out, rest.data, plain);
        rest = bytes_of(rest.data + plain, rest.len - plain);
        if (rest.len > 0)
            buf_add(out, text, utf8_write(json_string_next(&rest), text));
    }
    return response_typed(ctx, 201, "text/plain; charset=utf-8");
}

/* POST /claimd/queues/{queue}/raw/claims */
enum status
handle_raw_claim(struct context *ctx)
{
    const enum status st = become_v2(ctx);

    return st == ST_OK ? claim_raw(ctx) : st;
}
