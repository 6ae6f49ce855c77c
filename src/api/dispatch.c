/*
 * dispatch: finds the route of a request and makes its response. These are the steps of
 * an api without the test API (steps_plain, declared in steps.h). instance.c has
 * api_handle().
 *
 *     1. handle_request() empties the response, and reserves space in which claimd can
 *        refuse without memory.
 *     2. find_resource() finds the version and the resource, and reads project, queue
 *        and id from the path.
 *     3. resource_route() selects the route, and check_request() makes the checks
 *        (check.c).
 *     4. run_handler() calls the handler (handlers/handlers.h). The test API replaces
 *        this step (testapi/decorator.c).
 *     5. After ST_AGAIN and ST_WAIT the front end calls again, and all begins with
 *        step 1. The progress of the request keeps what slices need of each other.
 *     6. Otherwise stop_waiting() ends the waiters and the builds of the request. An
 *        error becomes a document (problem.c), and response_complete() completes the
 *        response.
 *
 * Read check.c and handlers/claims.c next.
 */
#include "api/caller.h"
#include "api/check.h"
#include "api/context.h"
#include "api/key.h"
#include "api/problem.h"
#include "api/quota.h"
#include "api/response.h"
#include "api/snapshot.h"
#include "api/steps.h"
#include "api/wait.h"
#include "api/wire/query.h"
#include "claimd/base/invariant.h"

/* -------------------------------------------------------------- finding the resource */

static const struct served *
find_version(const struct api *api, const struct path *path)
{
    const struct served *found = NULL;

    for (size_t i = 0; i < api->count; i++) {
        const struct served *s = &api->served[i];

        if (bytes_equal(path->segments[0], s->version->name)) {
            if (found == NULL || resource_find(&s->resources, path) != NULL)
                found = s;
        } else if (found != NULL) {
            break; /* versions of one name are side by side */
        }
    }
    if (found != NULL)
        return found;
    return resource_find(&api->root.resources, path) != NULL ? &api->root : NULL;
}

/* Explains that a version is disabled. */
static enum status
refuse_version(struct context *ctx, const struct path *path)
{
    static const struct {
        const struct version *version;
        const char *option;
    } optional[] = {
        {&version_v1, "enable_v1"},
        {&version_v1_1, "enable_v1_1"},
        {&version_identity, "identity_stub"},
    };

    for (size_t i = 0; i < sizeof(optional) / sizeof(optional[0]); i++)
        if (bytes_equal(path->segments[0], optional[i].version->name))
            return context_refuse(ctx, ST_NO_PATH, "%s is disabled on this server (%s)",
                                  optional[i].version->base.data, optional[i].option);
    return ST_NO_PATH;
}

/*
 * Refuses the beginning of another path in the place of a project. A client makes such a
 * path if it appends "/v2/queues/..." to a base URL that ends with the version.
 */
static enum status
refuse_root_as_project(struct context *ctx)
{
    const struct version *const roots[] = {&version_v2, &version_v1_1, &version_v1,
                                           &version_claimd};

    for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++)
        if (bytes_equal(ctx->path_project, roots[i]->name))
            return context_refuse(
                ctx, ST_NO_PATH,
                "the path has %s behind %s, where a project can stand. %s is no project. "
                "Leave the version out of the base URL of the client",
                roots[i]->name.data, ctx->version->base.data, roots[i]->name.data);
    return ST_OK;
}

/*
 * Cuts the project out of the path. Hrefs have it at the same place (ctx->base), and
 * begin with the prefix that a proxy has cut off.
 */
static enum status
read_base(struct context *ctx, struct path *path)
{
    struct bytes raw, tidy = BYTES_NONE;
    enum status st;

    if (ctx->req->from_proxy)
        ctx->prefix = uri_prefix(ctx->req->headers[API_HEADER_FORWARDED_PREFIX]);
    if (path_cut_project(path, &raw, &ctx->path_project)) {
        st = refuse_root_as_project(ctx);
        if (st == ST_OK)
            st = uri_tidy(ctx->req->arena, raw, &tidy);
        if (st != ST_OK)
            return st;
    }
    return context_set_base(ctx, ctx->version->base, tidy);
}

/* Fills in the queue or topic, and the id, from the path. */
static void
read_names(struct context *ctx, const struct path *path)
{
    const struct resource *r = ctx->resource;

    if (r->depth > 1 && bytes_equal_str(r->words[1], "topics"))
        ctx->queue.kind = STORE_TOPIC;
    if (r->depth > 2 && !bytes_present(r->words[2]))
        ctx->queue.name = path->segments[2];
    if (r->depth > 4 && !bytes_present(r->words[4]))
        ctx->id = path->segments[4];
}

/* Refuses a path without a resource. */
static enum status
refuse_path(struct context *ctx, const struct path *path)
{
    if (path->depth == 1)
        return context_refuse(ctx, ST_NO_PATH,
                              "the path does not exist. The home document is %s/",
                              ctx->version->base.data);
    if (!ctx->limits->ui && path->depth > 1 &&
        bytes_equal(path->segments[0], version_ui.name) &&
        bytes_equal_str(path->segments[1], "ui"))
        return context_refuse(
            ctx, ST_NO_PATH,
            "the page for operators is disabled on this server. To enable it, "
            "set the option ui");
    if (ctx->config->testapi == NULL &&
        bytes_equal(path->segments[0], version_testapi.name))
        return context_refuse(
            ctx, ST_NO_PATH,
            "the path does not exist. The test API requires the option ci");
    return ST_NO_PATH;
}

static enum status
find_resource(struct context *ctx)
{
    const struct served *served;
    const struct route *get;
    struct path path;
    enum status st = path_split(ctx->req->arena, ctx->req->path, &path);

    if (st != ST_OK)
        return st;
    served = find_version(ctx->api, &path);
    if (served == NULL)
        return refuse_version(ctx, &path);
    ctx->version = served->version;
    st = read_base(ctx, &path);
    if (st != ST_OK)
        return st;
    if (path_drop_slash(&path))
        ctx->path.len--;
    ctx->resource = resource_find(&served->resources, &path);
    if (ctx->resource == NULL)
        return refuse_path(ctx, &path);
    get = ctx->resource->routes[METHOD_GET];
    if (ctx->req->listener != API_LISTENER_MAIN &&
        (get == NULL || (get->flags & ROUTE_METRICS) == 0))
        return context_refuse(ctx, ST_NO_PATH,
                              "this address serves only health checks and metrics");
    if (get != NULL && (get->flags & ROUTE_ADMIN) != 0 && !ctx->limits->admin_mode)
        return context_refuse(ctx, ST_NO_PATH, "%s requires the option admin_mode",
                              ctx->resource->pattern);
    read_names(ctx, &path);
    return ST_OK;
}

/* ------------------------------------------------------------------ responding */

/*
 * Adds Content-Location, for the routes that promise it: path and query as sent. If it
 * does not fit into the head, it is left out, because a shorter one would name another
 * resource.
 */
static enum status
locate_content(struct context *ctx)
{
    const struct request *req = ctx->req;
    unsigned flags = ctx->route->flags;
    bool query = (flags & ROUTE_LOCATED) != 0 && bytes_present(req->query);
    struct bytes text;
    enum status st;

    if ((flags & (ROUTE_LOCATED | ROUTE_LOCATED_PATH)) == 0)
        return ST_OK;
    text =
        arena_printf(req->arena, "%.*s%.*s%s%.*s", (int)ctx->prefix.len, ctx->prefix.data,
                     (int)ctx->path.len, ctx->path.data, query ? "?" : "",
                     query ? (int)req->query.len : 0, query ? req->query.data : "");
    if (!bytes_present(text))
        return ST_NO_MEMORY;
    st = uri_tidy(req->arena, text, &text);
    if (st == ST_OK && text.len <= RESPONSE_VALUE_MAX)
        st = response_copy_header(ctx, "Content-Location", text);
    return st;
}

/*
 * Finds and checks the route of a request, and runs it. Reads the parameters before the
 * checks, because a parameter may decide the action. Too many parameters are refused
 * after the checks, as the contract says.
 */
static enum status
route_and_run(struct context *ctx)
{
    const struct request *req = ctx->req;
    enum status st = check_host(ctx), parsed;

    if (st == ST_OK)
        st = find_resource(ctx);
    if (st != ST_OK)
        return st;
    parsed = query_parse(req->query, req->arena, &ctx->query);
    ctx->route = resource_route(ctx->resource, req->method, &ctx->query);
    if (ctx->route != NULL && (ctx->route->flags & ROUTE_HTML_ONLY) != 0 &&
        !request_asks_for_page(req))
        ctx->route = NULL;
    if (ctx->route != NULL) /* metrics have only routes that exist */
        ctx->res->route = ctx->resource->pattern;
    st = check_request(ctx);
    if (st != ST_OK)
        return st;
    if (req->method == METHOD_OPTIONS || ctx->route == NULL) {
        const bool options = req->method == METHOD_OPTIONS;

        response_add_header(ctx, "Allow",
                            options ? ctx->resource->allow : ctx->resource->allow_all);
        return options ? response_empty(ctx, 200) : ST_BAD_METHOD;
    }
    if (parsed == ST_BAD_PARAMETER)
        return context_refuse(ctx, parsed,
                              "the request has more than %d query parameters",
                              QUERY_PAIRS_MAX);
    if (parsed != ST_OK)
        return parsed;
    st = ctx->api->steps->run(ctx);
    return st == ST_OK ? locate_content(ctx) : st;
}

/* Warns of parameters that the handler has not read, and suggests those that it asked
 * for. In a listing of queues, the others are filters. */
static void
warn_parameters(struct context *ctx)
{
    const struct query_names *asked = ctx->query.asked;

    for (size_t i = 0; i < ctx->query.count; i++)
        if (!ctx->query.pairs[i].used)
            warning_add_unknown(&ctx->warnings, ctx->req->arena, "parameter",
                                ctx->query.pairs[i].name, asked->all, asked->count);
}

/* Adds the warnings of a request that is done, as far as there is space in the head. */
static void
add_warnings(struct context *ctx)
{
    struct response *res = ctx->res;

    warn_parameters(ctx);
    while (ctx->warnings.count > 0 &&
           response_head_size(res) + warnings_size(&ctx->warnings) > RESPONSE_HEAD_MAX)
        ctx->warnings.count--;
    for (size_t i = 0; i < ctx->warnings.count; i++)
        response_add_header(ctx, "Claimd-Warning", ctx->warnings.texts[i]);
}

/* The claim is that of the path or of the query, or a new one. */
static struct response_subject
subject_of(const struct context *ctx)
{
    struct response_subject about = {.project = ctx->queue.project,
                                     .queue = ctx->queue.name,
                                     .claim = ctx->res->claim_id};
    const struct resource *r = ctx->resource;

    if (bytes_present(ctx->id) && bytes_equal_str(r->words[3], "claims"))
        about.claim = ctx->id;
    else if (!bytes_present(about.claim))
        about.claim = query_get(&ctx->query, "claim_id");
    return about;
}

static enum status
run_handler(struct context *ctx)
{
    return ctx->route->handle(ctx);
}

/*
 * Makes the response of a view an event of a stream. If the project has too many waiting
 * requests, the response is that of one moment.
 */
static void
make_event(struct context *ctx)
{
    struct waiting *waiting = ctx->req->waiting;

    if (!waiting->streams && bytes_present(ctx->queue.project) &&
        quotas_wait_begin(ctx->api->quotas, ctx->queue.project, context_real_ms(ctx),
                          &waiting->tenant) != ST_OK)
        return;
    waiting->streams = true;
    ctx->res->stream = true;
    problem_set_header(ctx->res, "Content-Type", RESPONSE_STREAM_TYPE);
    response_add_header(ctx, "Cache-Control", "no-store");
    response_add_header(ctx, "X-Accel-Buffering", "no"); /* for nginx */
}

/* Sets Retry-After to the end of the oldest key of the store. Then a place is free. */
static void
set_key_end(struct context *ctx)
{
    const int64_t left_ms = ctx->op.key_end_ms - ctx->op.now_ms;
    struct bytes text = arena_printf(ctx->req->arena, "%lld",
                                     left_ms < 1000 ? 1LL : (left_ms + 999LL) / 1000);

    if (bytes_present(text))
        problem_set_retry(ctx->res, text.data);
}

static enum api_next
handle_request(const struct api *api, struct request *req, struct context *ctx)
{
    struct response *res = ctx->res;
    struct arena_mark mark = arena_mark(req->arena);
    const void *kept = req->progress.kept;
    enum status st;

    buf_reset(&res->body, SIZE_MAX);
    res->code = 0;
    res->header_count = 0;
    res->route = NULL;
    res->lsn = 0;
    res->claim_id = BYTES_NONE;
    res->claim_stays = false;
    res->fault.kind = FAULT_NONE;
    res->stream = false;
    /* In this space a refusal can be written without memory. */
    st = buf_reserve(&res->body, PROBLEM_SPACE) ? route_and_run(ctx) : ST_NO_MEMORY;
    if (st == ST_AGAIN || st == ST_WAIT) {
        if (req->progress.kept == kept) /* else the slice leaves its memory to the next */
            arena_rewind(req->arena, mark);
        buf_reset(&res->body, st == ST_AGAIN ? SIZE_MAX : 0);
        if (st == ST_AGAIN && ctx->op.loads)
            return API_LOAD;
        return st == ST_AGAIN ? API_AGAIN : API_WAIT;
    }
    api->steps->stop_waiting(api, req);
    if (!ctx->uncounted)
        quotas_count(api->quotas, st);
    if (st == ST_OK && res->body.failed)
        st = ST_NO_MEMORY;
    if (!bytes_present(ctx->detail) && ctx->why->text[0] != '\0')
        ctx->detail = bytes_str(ctx->why->text);
    if (st != ST_OK && ctx->bare_errors)
        problem_write_bare(res, st);
    else if (st != ST_OK)
        problem_write(res, st, ctx->detail);
    else if ((ctx->route != NULL && (ctx->route->flags & ROUTE_LIVE) != 0) &&
             req->waiting != NULL && request_asks_for_stream(req))
        make_event(ctx);
    else if (ctx->warnings.count > 0 || ctx->query.count > 0)
        add_warnings(ctx);
    if (st == ST_KEYS_FULL)
        set_key_end(ctx);
    if (st == ST_PAUSED)
        response_add_header(ctx, "Claimd-Paused", "posts");
    if (st == ST_UNAUTHORIZED && api->config.access != NULL)
        problem_set_header(res, "WWW-Authenticate", access_challenge(api->config.access));
    res->status = st;
    res->about = subject_of(ctx);
    res->caller = ctx->caller;
    res->audited = bytes_present(req->headers[API_HEADER_UI]) &&
                   req->method != METHOD_GET && req->method != METHOD_HEAD;
    return response_complete(ctx);
}

static struct store_listener *
listen_plainly(struct context *ctx)
{
    return &ctx->req->waiting->listener;
}

static void
show_plainly(struct context *ctx, const struct store_message *messages, size_t count)
{
    (void)ctx;
    (void)messages;
    (void)count;
}

static int64_t
store_ms(const struct context *ctx)
{
    return ctx->op.now_ms;
}

static void
stop_waiting(const struct api *api, struct request *req)
{
    if (req->waiting != NULL && req->waiting->waiter_count > 0)
        wait_done(api->config.store, api->config.mem, req->waiting);
    if (req->progress.key != NULL)
        key_end(api->keys, &req->progress);
    snapshot_leave(api->snapshots, &req->progress);
    access_proof_drop(&req->proof);
}

static bool
may_wait(const struct api *api, const struct request *req)
{
    (void)api;
    return bytes_present(req->headers[API_HEADER_PREFER]) ||
           request_asks_for_stream(req) || snapshot_may_wait(req);
}

/* Bytes of lines to load, besides the longest message. */
enum { LOAD_BYTES = 1 << 20 };

static size_t
body_limit(const struct api *api, struct bytes path)
{
    const struct api_limits *l = &api->config.limits;

    if (bytes_equal_str(path, "/claimd/load"))
        return LOAD_BYTES + 2 * (size_t)l->max_messages_post_size;
    return (size_t)(l->max_messages_post_size > l->max_queue_metadata
                        ? l->max_messages_post_size
                        : l->max_queue_metadata);
}

const struct api_steps steps_plain = {
    .handle = handle_request,
    .run = run_handler,
    .listen = listen_plainly,
    .shown = show_plainly,
    .real_ms = store_ms,
    .stop_waiting = stop_waiting,
    .may_wait = may_wait,
    .body_limit = body_limit,
};
