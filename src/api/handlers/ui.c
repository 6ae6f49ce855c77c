/*
 * ui: the page for operators, and the permissions of its user (docs/api.md 29). Declared
 * in handlers.h. The build embeds the files of src/ui.
 */
#include "api/check.h"
#include "api/handlers/handlers.h"
#include "api/response.h"
#include "claimd/json/string.h"

/*
 * The files have a section of their own. Linux maps pages that are near to those that a
 * process uses, so among other constants they would count as memory of a server without
 * the page.
 */
#define UI_FILE_PLACE __attribute__((section(".ui_files")))

#include <ui_files.h> /* scripts/cmake/ui.cmake makes it */

/* ------------------------------------------------------------- GET /claimd/ui/{file} */

static const struct {
    const char *name;
    const char *text;
    size_t len;
} files[] = {
#define UI_FILE(name, text) {name, text, sizeof(text)},
    UI_FILES(UI_FILE)
#undef UI_FILE
};

static const struct {
    struct bytes ending;
    const char *type;
} types[] = {
    {BYTES_LIT(".html"), "text/html; charset=utf-8"},
    {BYTES_LIT(".js"), "text/javascript; charset=utf-8"},
    {BYTES_LIT(".css"), "text/css; charset=utf-8"},
    {BYTES_LIT(""), "text/plain; charset=utf-8"},
};

/* The page runs only its own scripts, talks only to this server, and no other page may
 * frame it. */
static const char policy[] = "default-src 'none';"
                             "script-src 'self';"
                             "style-src 'self';"
                             "img-src 'self' data:;"
                             "connect-src 'self';"
                             "base-uri 'none';"
                             "form-action 'none';"
                             "frame-ancestors 'none'";

static bool
ends_with(struct bytes text, struct bytes ending)
{
    return text.len >= ending.len &&
           memcmp(text.data + text.len - ending.len, ending.data, ending.len) == 0;
}

static const char *
type_of(struct bytes name)
{
    size_t i = 0;

    while (!ends_with(name, types[i].ending))
        i++; /* the last one fits all names */
    return types[i].type;
}

/* Links of the page are relative, so that it works behind a path prefix. They need the
 * slash. */
static enum status
redirect_to_slash(struct context *ctx)
{
    response_add_header(ctx, "Location", "ui/");
    return response_empty(ctx, 308);
}

/* GET /claimd/ui/ and /claimd/ui/{file} */
enum status
handle_ui(struct context *ctx)
{
    const struct bytes path = ctx->req->path;
    struct bytes name = ctx->queue.name;
    size_t i = 0;

    ctx->queue.name = BYTES_NONE; /* the name is that of a file */
    if (!bytes_present(name)) {
        if (path.data[path.len - 1] != '/')
            return redirect_to_slash(ctx);
        name = bytes_str("index.html");
    }
    while (i < sizeof(files) / sizeof(files[0]) && !bytes_equal_str(name, files[i].name))
        i++;
    if (i == sizeof(files) / sizeof(files[0]))
        return context_refuse(ctx, ST_NO_PATH, "the page has no file \"%s\"",
                              received(name).text);
    buf_bytes(&ctx->res->body, bytes_of(files[i].text, files[i].len));
    response_add_header(ctx, "Content-Security-Policy", policy);
    response_add_header(ctx, "Referrer-Policy", "no-referrer");
    response_add_header(ctx, "Cross-Origin-Opener-Policy", "same-origin");
    response_add_header(ctx, "Cache-Control", "no-cache");
    return response_typed(ctx, 200, type_of(name));
}

/* ----------------------------------------------------------- GET /claimd/permissions */

/* Whether the caller may do an action. Statuses that do not answer that, such as
 * ST_NO_MEMORY. */
static enum status
may_do(struct context *ctx, enum action action, bool everywhere, bool *out)
{
    struct access_caller caller;
    const enum status st = check_caller(ctx, action, everywhere, &caller);

    *out = st == ST_OK;
    return st == ST_FORBIDDEN || st == ST_MISSING_PROJECT ? ST_OK : st;
}

static enum status
write_actions(struct context *ctx)
{
    struct buf *out = &ctx->res->body;
    enum status st = ST_OK;

    json_write_name(out, "actions");
    buf_byte(out, '[');
    for (unsigned action = 0; st == ST_OK && action < ACTION_COUNT; action++) {
        bool may;

        st = may_do(ctx, (enum action)action, false, &may);
        if (st != ST_OK || !may)
            continue;
        json_write_comma(out);
        json_string_write(out, bytes_str(action_name((enum action)action)));
    }
    buf_byte(out, ']');
    return st;
}

/* GET /claimd/permissions */
enum status
handle_permissions(struct context *ctx)
{
    struct buf *out = &ctx->res->body;
    struct access_caller caller;
    bool all = false, has_role;
    enum status st = may_do(ctx, ACTION_STATE_DUMP, true, &all);

    if (st == ST_OK)
        st = check_caller(ctx, ACTION_COUNT, false, &caller);
    if (st != ST_OK)
        return st;
    has_role = ctx->config->access != NULL && caller.role < ROLE_COUNT;
    buf_byte(out, '{');
    json_write_flag(out, "auth", ctx->config->access != NULL);
    json_write_text_or_null(out, "name", caller.name);
    json_write_text_or_null(out, "role",
                            has_role ? bytes_str(role_name(caller.role)) : BYTES_NONE);
    json_write_text_or_null(out, "project", ctx->token_project);
    json_write_flag(out, "all_projects", all);
    st = write_actions(ctx);
    buf_byte(out, '}');
    if (st != ST_OK)
        return st;
    reason_init(ctx->why); /* of the actions that the caller may not do */
    return response_json(ctx, 200);
}
