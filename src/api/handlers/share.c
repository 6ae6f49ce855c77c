/*
 * share: makes a pre-signed URL for parts of a queue (docs/api.md 17). Declared in
 * handlers.h. It reads paths, methods and the end, brings them into the order of the
 * signed text, and lets the signer sign it (claimd/auth/signer.h). check.c verifies the
 * signatures of requests.
 */
#include "api/handlers/handlers.h"
#include "api/response.h"
#include "api/wire/decode.h"
#include "claimd/json/scan.h"
#include "claimd/json/string.h"

#include <ctype.h>
#include <stdlib.h>

/* DAY_MS: the default life of a grant. */
enum { DAY_MS = 24 * 3600 * 1000, METHOD_NAME_MAX = 32, METHODS_MAX = 32 };

/* The parts of a queue, by name. */
static const char *const parts[] = {"claims", "messages", "subscriptions"};

enum { PART_MESSAGES = 1, PART_COUNT = sizeof(parts) / sizeof(parts[0]) };

/* The content of a request for a grant. */
struct share {
    bool shown[PART_COUNT];
    char methods[METHODS_MAX][METHOD_NAME_MAX + 1];
    size_t method_count;
    int64_t ends_ms;
};

enum { PATHS, METHODS, EXPIRES, MEMBERS };

/* ------------------------------------------------------------------ reading */

/* Adds an item of a list. */
typedef enum status
add_item_fn(struct context *ctx, struct bytes inside, struct share *out);

static enum status
add_path(struct context *ctx, struct bytes inside, struct share *out)
{
    for (size_t i = 0; i < PART_COUNT; i++)
        if (json_string_equals(inside, bytes_str(parts[i]))) {
            out->shown[i] = true;
            return ST_OK;
        }
    return context_refuse(
        ctx, ST_BAD_VALUE,
        "paths has \"%s\". It may contain only messages, claims and subscriptions",
        received(inside).text);
}

/*
 * Adds a method, after it has decoded escapes. A method has no character that separates
 * lists or fields of the signed text.
 */
static enum status
add_method(struct context *ctx, struct bytes inside, struct share *out)
{
    size_t len = 0;

    while (inside.len > 0) {
        uint32_t c = json_string_next(&inside);

        if (c > 127 || !(isalnum((int)c) || c == '-' || c == '_') ||
            len == METHOD_NAME_MAX || out->method_count == METHODS_MAX)
            return context_refuse(ctx, ST_BAD_VALUE,
                                  "methods may have at most %d entries, each of at most "
                                  "%d letters, digits, hyphens and underscores",
                                  METHODS_MAX, METHOD_NAME_MAX);
        out->methods[out->method_count][len++] = (char)c;
    }
    if (len == 0)
        return context_refuse(ctx, ST_BAD_VALUE,
                              "methods must not contain an empty string");
    out->methods[out->method_count++][len] = '\0';
    return ST_OK;
}

static enum status
read_list(struct context *ctx, const struct json_scan_value *list, const char *name,
          add_item_fn *add, struct share *out)
{
    enum status st = ST_OK;
    struct json_scan s;

    if (json_left_out(list))
        return ST_OK;
    if (list->kind != SCAN_ARRAY)
        return context_refuse(ctx, ST_BAD_VALUE, "%s must be an array", name);
    json_scan_begin(&s, list->text);
    (void)json_scan_enter(&s, SCAN_ARRAY);
    while (st == ST_OK && json_scan_item(&s)) {
        struct json_scan_value item;

        (void)json_scan_value(&s, &item);
        if (item.kind != SCAN_STRING)
            return context_refuse(ctx, ST_BAD_VALUE,
                                  "%s has %s. It must be an array of strings", name,
                                  json_received(&item).text);
        st = add(ctx, json_scan_inside(&item), out);
    }
    return st;
}

/* Reads the end of the grant. A date needs no escapes. */
static enum status
read_end(struct context *ctx, const struct json_scan_value *expires, struct share *out)
{
    int64_t now_ms = clock_wall_ms(ctx->config->real);

    out->ends_ms = now_ms + DAY_MS;
    if (json_left_out(expires))
        return ST_OK;
    if (expires->kind != SCAN_STRING ||
        !iso_time_read(json_scan_inside(expires), &out->ends_ms))
        return context_refuse(
            ctx, ST_BAD_VALUE,
            "expires is %s. It must be a date such as 2099-01-31T12:00:00",
            received(expires->text).text);
    if (out->ends_ms <= now_ms)
        return context_refuse(ctx, ST_BAD_VALUE,
                              "expires is %s. It must be in the future",
                              received(expires->text).text);
    return ST_OK;
}

static int
compare_methods(const void *a, const void *b)
{
    return strcmp(a, b);
}

static enum status
read_share(struct context *ctx, struct share *out)
{
    static const char *const names[MEMBERS] = {"paths", "methods", "expires"};
    struct json_scan_value m[MEMBERS];
    struct json_names seen;
    enum status st = context_read_body(ctx);

    *out = (struct share){.method_count = 0};
    if (st == ST_OK)
        st = context_read_object(ctx, names, MEMBERS, m, &seen);
    if (st != ST_OK)
        return st;
    if (bytes_present(seen.unknown))
        return context_refuse(ctx, ST_BAD_VALUE,
                              "the body has an unknown member. The allowed members are "
                              "paths, methods and expires");
    st = read_list(ctx, &m[PATHS], names[PATHS], add_path, out);
    if (st == ST_OK)
        st = read_list(ctx, &m[METHODS], names[METHODS], add_method, out);
    if (st == ST_OK)
        st = read_end(ctx, &m[EXPIRES], out);
    if (st != ST_OK)
        return st;
    if (memchr(out->shown, true, sizeof(out->shown)) == NULL)
        out->shown[PART_MESSAGES] = true;
    if (out->method_count == 0)
        (void)add_method(ctx, bytes_str("GET"), out);
    qsort(out->methods, out->method_count, sizeof(out->methods[0]), compare_methods);
    return ST_OK;
}

/* ------------------------------------------------------------------ responding */

/* Writes the lists as they are signed. ST_NO_MEMORY. */
static enum status
write_lists(struct context *ctx, const struct share *share, struct buf *paths,
            struct buf *methods)
{
    for (size_t i = 0; i < PART_COUNT; i++) {
        if (!share->shown[i])
            continue;
        if (paths->len > 0)
            buf_byte(paths, ',');
        /* The signature is of the path that claimd gets, without the prefix of a
         * proxy. */
        buf_bytes(paths, bytes_of(ctx->base.data + ctx->prefix.len,
                                  ctx->base.len - ctx->prefix.len));
        buf_str(paths, "/queues/");
        buf_bytes(paths, ctx->queue.name);
        buf_byte(paths, '/');
        buf_str(paths, parts[i]);
    }
    for (size_t i = 0; i < share->method_count; i++) {
        if (i > 0)
            buf_byte(methods, ',');
        buf_str(methods, share->methods[i]);
    }
    return paths->failed || methods->failed ? ST_NO_MEMORY : ST_OK;
}

static enum status
respond_grant(struct context *ctx, const struct grant *grant)
{
    struct buf *out = &ctx->res->body;
    char signature[SIGNATURE_DIGITS + 1];
    enum status st = ST_NOT_FOUND;

    if (ctx->config->signer != NULL)
        st = signer_sign(ctx->config->signer, grant, ctx->req->arena, signature);
    if (st == ST_NOT_FOUND)
        return context_refuse(ctx, ST_BAD_VALUE,
                              "the server has no key to sign with (signing_keys)");
    if (st != ST_OK)
        return st;
    buf_byte(out, '{');
    json_write_list(out, "paths", grant->paths, ',');
    json_write_list(out, "methods", grant->methods, ',');
    json_write_text(out, "project", grant->project);
    json_write_text(out, "expires", grant->expires);
    json_write_text(out, "signature", bytes_str(signature));
    buf_byte(out, '}');
    return response_json(ctx, 200);
}

/* POST .../queues/{queue}/share */
enum status
handle_queue_share(struct context *ctx)
{
    struct buf paths, methods;
    char expires[ISO_TIME_CAP];
    struct share share;
    enum status st = read_share(ctx, &share);

    if (st != ST_OK)
        return st;
    /* Backslashes separate the fields of the signed text. */
    if (memchr(ctx->queue.project.data, '\\', ctx->queue.project.len) != NULL)
        return context_refuse(ctx, ST_BAD_VALUE,
                              "the name of the project has a backslash. Such a project "
                              "cannot use pre-signed URLs");
    buf_init(&paths, ctx->config->mem);
    buf_init(&methods, ctx->config->mem);
    iso_time_write(share.ends_ms, expires);
    st = write_lists(ctx, &share, &paths, &methods);
    if (st == ST_OK)
        st = respond_grant(ctx,
                           &(struct grant){.paths = bytes_of(paths.data, paths.len),
                                           .methods = bytes_of(methods.data, methods.len),
                                           .project = ctx->queue.project,
                                           .expires = bytes_str(expires)});
    buf_fini(&paths);
    buf_fini(&methods);
    return st;
}
