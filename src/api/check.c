#include "api/check.h"
#include "api/caller.h"
#include "api/context.h"
#include "api/quota.h"
#include "api/response.h"
#include "api/wire/decode.h"
#include "claimd/base/plural.h"

static bool
is_listed(struct bytes list, struct bytes entry)
{
    while (bytes_present(list))
        if (bytes_equal(bytes_cut(&list, ','), entry))
            return true;
    return false;
}

/* True if the path, as sent, is in the list or below an entry of it. */
static bool
is_within(struct bytes list, struct bytes path)
{
    while (bytes_present(list)) {
        struct bytes root = bytes_cut(&list, ',');

        if (root.len > 0 && path.len >= root.len &&
            memcmp(path.data, root.data, root.len) == 0 &&
            (path.len == root.len || path.data[root.len] == '/'))
            return true;
    }
    return false;
}

/* A request with a signature, even an empty one, is admitted by its signature or not at
 * all. */
static enum status
check_signature(struct context *ctx)
{
    const struct bytes *headers = ctx->req->headers;
    const struct grant grant = {.paths = headers[API_HEADER_URL_PATHS],
                                .methods = headers[API_HEADER_URL_METHODS],
                                .project = headers[API_HEADER_PROJECT_ID],
                                .expires = headers[API_HEADER_URL_EXPIRES]};
    struct bytes signature = headers[API_HEADER_URL_SIGNATURE];
    enum status st = ST_NO_PATH;
    int64_t ends_ms;

    if (!bytes_present(signature))
        return ST_OK;
    if (ctx->config->signer != NULL && ctx->req->method != METHOD_OTHER &&
        is_listed(grant.methods, bytes_str(api_method_name(ctx->req->method))) &&
        is_within(grant.paths, ctx->req->path) &&
        iso_time_read(grant.expires, &ends_ms) &&
        clock_wall_ms(ctx->config->real) < ends_ms)
        st = signer_verify(ctx->config->signer, &grant, signature, ctx->req->arena);
    ctx->is_signed = st == ST_OK;
    if (st != ST_NO_PATH)
        return st;
    return context_refuse(
        ctx, st,
        "the header URL-Signature does not match this request, or it has expired");
}

static bool
has_flag(const struct context *ctx, enum route_flag flag)
{
    return ctx->route != NULL && (ctx->route->flags & flag) != 0;
}

/* For a method that the resource lacks, and for OPTIONS, its methods decide. */
static bool
is_guarded(const struct context *ctx)
{
    const struct route *const *routes = ctx->resource->routes;

    if (ctx->route != NULL)
        return has_flag(ctx, ROUTE_GUARDED);
    for (unsigned m = 0; m < METHOD_COUNT; m++)
        if (routes[m] != NULL && (routes[m]->flags & ROUTE_GUARDED) != 0)
            return true;
    return false;
}

/* Checks a Client-ID that is required or sent. */
static enum status
check_client(struct context *ctx)
{
    struct bytes text = ctx->req->headers[API_HEADER_CLIENT_ID];
    bool required = ctx->version->headers_required || has_flag(ctx, ROUTE_CLIENT);
    enum status st;

    if (!required && !bytes_present(text))
        return ST_OK;
    st = caller_client(text, ctx->limits, &ctx->client);
    if (st == ST_BAD_CLIENT_ID && !ctx->limits->client_id_strict)
        return context_refuse(
            ctx, st,
            "the header Client-ID is %zu character%s long. It must be %lld to %lld "
            "(min_length_client_id, max_length_client_id)",
            text.len, plural_s(text.len), (long long)ctx->limits->min_length_client_id,
            (long long)ctx->limits->max_length_client_id);
    if (st == ST_BAD_CLIENT_ID)
        return context_refuse(
            ctx, st,
            "the header Client-ID is \"%s\". It must be a UUID (client_id_uuid_safe)",
            received(text).text);
    return st;
}

/* The project in the path, else in the header. check_same_project() compares them. */
static struct bytes
named_project(const struct context *ctx)
{
    return bytes_present(ctx->path_project) ? ctx->path_project
                                            : ctx->req->headers[API_HEADER_PROJECT_ID];
}

/*
 * Reads the token from X-Auth-Token, or else from Authorization. A proxy may keep a
 * password or a token of its own in Authorization.
 */
static enum status
find_token(struct context *ctx, struct bytes *out)
{
    static const struct bytes scheme = BYTES_LIT("Bearer ");
    struct bytes bearer = ctx->req->headers[API_HEADER_AUTHORIZATION];

    *out = bytes_trim(ctx->req->headers[API_HEADER_AUTH_TOKEN]);
    if (out->len > 0 || bearer.len == 0)
        return ST_OK;
    if (bearer.len < scheme.len ||
        !bytes_equal_nocase(bytes_of(bearer.data, scheme.len), scheme))
        return context_refuse(ctx, ST_UNAUTHORIZED,
                              "the header Authorization must have the form Bearer TOKEN");
    *out = bytes_trim(bytes_of(bearer.data + scheme.len, bearer.len - scheme.len));
    return ST_OK;
}

enum status
check_host(struct context *ctx)
{
    struct bytes host = ctx->req->headers[API_HEADER_HOST];

    if (!ctx->req->check_host || host_is_allowed(host, ctx->config->allowed_hosts))
        return ST_OK;
    return context_refuse(
        ctx, ST_FORBIDDEN,
        "the header Host is \"%s\". Without authentication it must be an IP address, "
        "localhost, or a name in the option allowed_hosts",
        received(host).text);
}

/*
 * A browser sends the site of its page in Origin. A page of another site can make a
 * browser send requests that need no header, such as a claim of API v1. So claimd refuses
 * a foreign origin without a token. A client certificate does not help, because the
 * browser sends it for every page.
 *
 * Behind a proxy that replaces Host, the browser's Sec-Fetch-Site says that the page is
 * of this site. No page can set it. A link, a picture or a script of another site comes
 * without Origin, but browsers say "cross-site" there.
 */
static enum status
check_origin(struct context *ctx)
{
    struct bytes origin = ctx->req->headers[API_HEADER_ORIGIN];
    struct bytes host = ctx->req->headers[API_HEADER_HOST];
    struct bytes site = ctx->req->headers[API_HEADER_FETCH_SITE];
    const char *scheme;

    if (!bytes_present(origin) && !bytes_equal_str(site, "cross-site"))
        return ST_OK;
    if (!bytes_present(origin))
        return context_refuse(
            ctx, ST_FORBIDDEN,
            "the header Sec-Fetch-Site is \"cross-site\". The request comes "
            "from a page of another site. Send a token");
    scheme = origin.len == 0 ? NULL : memmem(origin.data, origin.len, "://", 3);
    if (scheme != NULL) {
        size_t skip = (size_t)(scheme - origin.data) + 3;

        origin = bytes_of(origin.data + skip, origin.len - skip);
    }
    if ((scheme != NULL && bytes_equal_nocase(origin, host)) ||
        bytes_equal_str(site, "same-origin"))
        return ST_OK;
    return context_refuse(ctx, ST_FORBIDDEN,
                          "the header Origin is \"%s\". The request comes from a page of "
                          "another site. Send a token",
                          received(ctx->req->headers[API_HEADER_ORIGIN]).text);
}

static enum status
refuse_access(struct context *ctx, enum status st)
{
    *ctx->why = *ctx->access_why;
    return st;
}

/*
 * Refuses a request without a valid token at once. If the token is valid but does not
 * permit the request, check_project() refuses it later, in the order of the contract.
 */
static enum status
check_access(struct context *ctx)
{
    struct access_request request = {.certificate = ctx->req->certificate,
                                     .project = named_project(ctx),
                                     .action = ctx->route != NULL ? ctx->route->action
                                                                  : ACTION_OPEN,
                                     .everywhere = is_guarded(ctx),
                                     .now_ms = clock_wall_ms(ctx->config->real),
                                     .proof = ctx->proof};
    struct access_caller caller = {.project = BYTES_NONE};
    enum status st = find_token(ctx, &request.token);

    if (st != ST_OK)
        return st;
    reason_init(ctx->access_why);
    st = access_ask(ctx->config->access, &request, ctx->req->arena, &caller,
                    ctx->access_why);
    if (st != ST_OK && st != ST_FORBIDDEN && st != ST_MISSING_PROJECT)
        return refuse_access(ctx, st);
    if (st == ST_OK && has_flag(ctx, ROUTE_ANY_PROJECT) &&
        !bytes_present(request.project) && !bytes_present(caller.project)) {
        request.everywhere = true;
        request.action = ACTION_STATE_DUMP;
        st = access_ask(ctx->config->access, &request, ctx->req->arena, &caller,
                        ctx->access_why);
    }
    ctx->access_status = st;
    ctx->token_project = caller.project;
    ctx->caller = caller.name;
    return request.token.len == 0 ? check_origin(ctx) : ST_OK;
}

enum status
check_caller(struct context *ctx, enum action action, bool everywhere,
             struct access_caller *out)
{
    struct access_request request = {.certificate = ctx->req->certificate,
                                     .project = bytes_present(ctx->queue.project)
                                                    ? ctx->queue.project
                                                    : named_project(ctx),
                                     .action = action,
                                     .everywhere = everywhere,
                                     .now_ms = clock_wall_ms(ctx->config->real),
                                     .proof = ctx->proof};
    enum status st;

    *out = (struct access_caller){.project = BYTES_NONE};
    if (ctx->config->access == NULL)
        return ST_OK;
    st = find_token(ctx, &request.token);
    return st == ST_OK
               ? access_ask(ctx->config->access, &request, ctx->req->arena, out, ctx->why)
               : st;
}

enum status
check_action(struct context *ctx, enum action action)
{
    struct access_caller caller;

    return check_caller(ctx, action, false, &caller);
}

static bool
requires_stub_token(const struct context *ctx)
{
    return ctx->config->auth != NULL && auth_is_required(ctx->config->auth);
}

static enum status
check_stub_token(struct context *ctx)
{
    struct bytes token = ctx->req->headers[API_HEADER_AUTH_TOKEN];
    struct auth_caller caller;
    enum status st = auth_token_read(ctx->config->auth, context_wall_ms(ctx), token,
                                     ctx->req->arena, &caller);

    if (st == ST_OK)
        ctx->token_project = caller.project;
    return st;
}

/* A guarded request has no project, so it is refused here. A token of the stub has a
 * project. */
static enum status
check_guarded(struct context *ctx)
{
    enum status st;

    if (ctx->config->access != NULL) {
        st = check_access(ctx);
        return st == ST_OK && ctx->access_status != ST_OK
                   ? refuse_access(ctx, ctx->access_status)
                   : st;
    }
    if (!requires_stub_token(ctx))
        return check_origin(ctx);
    st = check_stub_token(ctx);
    return st != ST_OK ? st
                       : context_refuse(ctx, ST_FORBIDDEN,
                                        "the request affects all projects, but the token "
                                        "is not for all projects");
}

/* Reads a token wherever one is sent, except on open routes. */
static enum status
check_token(struct context *ctx)
{
    const enum status st =
        bytes_present(ctx->req->headers[API_HEADER_UI]) ? check_origin(ctx) : ST_OK;

    if (st != ST_OK)
        return st;
    if (ctx->req->listener == API_LISTENER_METRICS || ctx->is_signed)
        return ST_OK;
    if (is_guarded(ctx))
        return check_guarded(ctx);
    if (ctx->version->open || has_flag(ctx, ROUTE_OPEN))
        return ST_OK;
    if (ctx->config->access != NULL)
        return check_access(ctx);
    /* Without a token, claimd believes the headers, unless the stub has a list of
     * users. */
    return requires_stub_token(ctx) || (ctx->config->auth != NULL &&
                                        ctx->req->headers[API_HEADER_AUTH_TOKEN].len > 0)
               ? check_stub_token(ctx)
               : check_origin(ctx);
}

/* A token is valid for its own project, which the request need not name. */
static enum status
check_token_project(struct context *ctx)
{
    struct bytes named = named_project(ctx);

    ctx->queue.project = ctx->token_project;
    if (named.len == 0 || bytes_equal(named, ctx->token_project))
        return ST_OK;
    return context_refuse(ctx, ST_FORBIDDEN, "the token is not for the project \"%s\"",
                          received(named).text);
}

/* Refuses a request whose path and header name different projects. */
static enum status
check_same_project(struct context *ctx)
{
    const struct bytes header = ctx->req->headers[API_HEADER_PROJECT_ID];

    if (!bytes_present(ctx->path_project) || !bytes_present(header) ||
        bytes_equal(ctx->path_project, header))
        return ST_OK;
    return context_refuse(
        ctx, ST_BAD_PROJECT,
        "the path names the project \"%s\", and the header X-Project-ID "
        "names \"%s\". Send one of them, or the same project in both",
        received(ctx->path_project).text, received(header).text);
}

static enum status
check_project(struct context *ctx)
{
    struct bytes project = named_project(ctx);
    const enum status st = check_same_project(ctx);

    if (st != ST_OK)
        return st;
    if (ctx->access_status != ST_OK)
        return refuse_access(ctx, ctx->access_status);
    if (bytes_present(ctx->token_project))
        return check_token_project(ctx);
    if (!bytes_present(project) && has_flag(ctx, ROUTE_ANY_PROJECT) && !ctx->is_signed)
        return ST_OK; /* ctx->queue.project is absent */
    if (!bytes_present(project) && !ctx->version->headers_required) {
        ctx->queue.project = bytes_str(""); /* the project with the empty name */
        return ST_OK;
    }
    ctx->queue.project = project;
    return caller_project(project, bytes_present(ctx->queue.name));
}

enum status
check_request(struct context *ctx)
{
    enum status st = check_signature(ctx);

    if (st == ST_OK)
        st = check_token(ctx);
    if (st == ST_OK)
        st = caller_content_type(ctx->req->headers[API_HEADER_CONTENT_TYPE],
                                 ctx->req->body.len > 0 || ctx->req->body_too_large);
    if (st == ST_OK && !has_flag(ctx, ROUTE_OWN_FORM) &&
        !(has_flag(ctx, ROUTE_LIVE) && request_asks_for_stream(ctx->req)) &&
        !(has_flag(ctx, ROUTE_HTML) && request_asks_for_page(ctx->req)))
        st = caller_accept(ctx->req->headers[API_HEADER_ACCEPT]);
    if (st != ST_OK || ctx->version->open)
        return st;
    st = check_client(ctx);
    if (st != ST_OK)
        return st;
    st = check_project(ctx);
    if (st == ST_OK && bytes_present(ctx->queue.name))
        st = context_check_name(ctx, ctx->queue.name);
    if (st == ST_BAD_QUEUE_NAME && ctx->queue.kind == STORE_TOPIC)
        st = ST_BAD_TOPIC_NAME;
    ctx->op.client = ctx->req->headers[API_HEADER_CLIENT_ID];
    if (st != ST_OK || ctx->progress->admitted || !bytes_present(ctx->queue.project))
        return st;
    st = quotas_admit(ctx->api->quotas, ctx->queue.project, context_real_ms(ctx),
                      ctx->req->connection);
    ctx->progress->admitted =
        st == ST_OK; /* so that a later slice does not count again */
    return st;
}
