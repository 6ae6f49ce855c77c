#include "claimd/api/api.h"

#include "api/check.h"
#include "api/context.h"
#include "api/fault.h"
#include "api/problem.h"
#include "api/quota.h"
#include "api/state.h"
#include "api/uri.h"
#include "api/wait.h"
#include "claimd/base/invariant.h"

/* A version that is switched on. */
struct served {
    const struct version *version;
    struct resources resources; /* owned */
};

struct api {
    struct api_limits limits;
    struct store *store;
    struct mem *mem;
    const struct auth *auth; /* borrowed; NULL: none */
    struct access *access;   /* borrowed; NULL: headers are believed */
    struct signer *signer;
    struct seal *seal;
    const struct clock *real; /* borrowed; with access, signer or the test API */
    const struct api_condition *condition; /* borrowed */
    const struct metrics *metrics;         /* borrowed; NULL: none */
    struct testapi *testapi;               /* borrowed; NULL: none */
    struct quotas *quotas;                 /* owned */
    struct bytes allowed_hosts;            /* borrowed; absent: none */
    struct served served[VERSIONS_MAX];    /* as versions_served() has them */
    size_t count;
    struct served root; /* "/" */
};

/* Of one that nobody operates. */
static const struct api_condition good_condition;

/* ------------------------------------------------------------------ life */

static enum status
serve(struct api *api, const struct version *version, struct served *out)
{
    out->version = version;
    return resources_build(api->mem, version->routes, &out->resources);
}

static enum status
serve_enabled(struct api *api)
{
    const struct version *served[VERSIONS_MAX];
    size_t count =
        versions_served(&api->limits, api->auth != NULL, api->testapi != NULL, served);
    enum status st = serve(api, &version_root, &api->root);

    for (size_t i = 0; i < count && st == ST_OK; i++)
        st = serve(api, served[i], &api->served[api->count++]);
    return st;
}

enum status
api_new(const struct api_config *config, struct api **out)
{
    struct api *api = mem_calloc(config->mem, 1, sizeof(*api));
    enum status st;

    if (api == NULL)
        return ST_NO_MEMORY;
    api->limits = config->limits;
    api->store = config->store;
    api->mem = config->mem;
    api->auth = config->auth;
    api->access = config->access;
    api->signer = config->signer;
    api->seal = config->seal;
    api->real = config->real;
    api->condition = config->condition != NULL ? config->condition : &good_condition;
    api->metrics = config->metrics;
    api->testapi = config->testapi;
    api->allowed_hosts = config->allowed_hosts;
    st = quotas_new(api->mem, &api->quotas);
    if (st == ST_OK) {
        quotas_set(api->quotas, &config->project_limits);
        st = serve_enabled(api);
    }
    if (st != ST_OK) {
        api_free(api);
        return st;
    }
    *out = api;
    return ST_OK;
}

void
api_free(struct api *api)
{
    if (api == NULL)
        return;
    for (size_t i = 0; i < VERSIONS_MAX; i++)
        resources_free(api->mem, &api->served[i].resources);
    resources_free(api->mem, &api->root.resources);
    quotas_free(api->quotas);
    mem_free(api->mem, api);
}

void
api_limit(struct api *api, const struct api_project_limits *limits)
{
    quotas_set(api->quotas, limits);
}

void
api_leave(const struct api *api, struct api_seat *seat)
{
    (void)api; /* the seat knows where it belongs */
    quotas_leave(seat);
}

/* Of lines, besides the longest message. */
enum { LOAD_BYTES = 1 << 20 };

enum status
api_seed(const struct api *api, struct bytes document, int64_t now_ms, struct reason *why)
{
    struct store_visit visit = {.now_ms = now_ms};
    struct state wanted;
    struct arena arena;
    enum status st;

    reason_init(why);
    arena_init(&arena, api->mem);
    {
        struct state_decoder decoder = {&api->limits, api->mem, &arena, now_ms, why};
        struct state_keeper keeper = {api->store, api->mem, &arena, &visit};

        st = decode_state(&decoder, document, bytes_str(API_SEED_PROJECT), true, &wanted);
        for (size_t i = 0; st == ST_OK && i < wanted.count; i++) {
            const struct state one = {&wanted.projects[i], 1};

            st = state_replace(&keeper, wanted.projects[i].name, &one, why);
        }
    }
    arena_fini(&arena);
    if (st != ST_OK && why->text[0] == '\0')
        (void)reason_give(why, st, "%s", status_text(st));
    return st;
}

size_t
api_body_limit(const struct api *api, struct bytes path)
{
    const struct api_limits *l = &api->limits;

    if (api->testapi != NULL && bytes_equal_str(path, "/claimd/state"))
        return API_SEED_MOST;
    if (bytes_equal_str(path, "/claimd/load"))
        return LOAD_BYTES + 2 * (size_t)l->max_messages_post_size;
    return (size_t)(l->max_messages_post_size > l->max_queue_metadata
                        ? l->max_messages_post_size
                        : l->max_queue_metadata);
}

/* ------------------------------------------------------------------ finding the way */

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
            break; /* those of one name stand behind one another */
        }
    }
    if (found != NULL)
        return found;
    return resource_find(&api->root.resources, path) != NULL ? &api->root : NULL;
}

/* There are versions that an operator has switched off, or not on: that is worth a word. */
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

/* Hrefs keep the project in front when the request had it there (see context.h). */
static enum status
take_project(struct context *ctx, struct path *path)
{
    struct bytes raw, tidy;
    enum status st;

    ctx->base = ctx->version->base;
    if (!path_take_project(path, &raw, &ctx->path_project))
        return ST_OK;
    st = uri_tidy(ctx->req->arena, raw, &tidy);
    if (st != ST_OK)
        return st;
    ctx->base = arena_printf(ctx->req->arena, "%s/%.*s", ctx->version->base.data,
                             (int)tidy.len, tidy.data);
    return bytes_present(ctx->base) ? ST_OK : ST_NO_MEMORY;
}

/* What the path names: a queue or topic, then perhaps something in it. */
static void
take_names(struct context *ctx, const struct path *path)
{
    const struct resource *r = ctx->resource;

    if (r->depth > 1 && bytes_equal_str(r->words[1], "topics"))
        ctx->queue.kind = STORE_TOPIC;
    if (r->depth > 2 && !bytes_present(r->words[2]))
        ctx->queue.name = path->segments[2];
    if (r->depth > 4 && !bytes_present(r->words[4]))
        ctx->id = path->segments[4];
}

/* A resource for administrators is not there for anybody while admin_mode is off. */
static bool
is_hidden(const struct context *ctx)
{
    const struct route *get = ctx->resource->routes[METHOD_GET];

    return get != NULL && (get->flags & ROUTE_ADMIN) != 0 && !ctx->limits->admin_mode;
}

/* Behind the door for metrics there is little else. */
static bool
is_behind_door(const struct context *ctx)
{
    const struct route *get = ctx->resource->routes[METHOD_GET];

    return ctx->req->door == API_DOOR_MAIN ||
           (get != NULL && (get->flags & ROUTE_METRICS) != 0);
}

/* What stands in for the resource that a path does not have. */
static enum status
refuse_path(struct context *ctx, const struct path *path)
{
    const char *base = ctx->version->base.data;

    if (ctx->resource != NULL)
        return context_refuse(ctx, ST_NO_PATH, "%s requires the option admin_mode",
                              ctx->resource->pattern);
    if (path->depth == 1)
        return context_refuse(ctx, ST_NO_PATH,
                              "the path does not exist. The home document is %s/", base);
    if (ctx->testapi == NULL && bytes_equal(path->segments[0], version_testapi.name))
        return context_refuse(
            ctx, ST_NO_PATH,
            "the path does not exist. The test API requires the option ci");
    return ST_NO_PATH;
}

static enum status
find_resource(const struct api *api, struct context *ctx)
{
    const struct served *served;
    struct path path;
    enum status st = path_split(ctx->req->arena, ctx->req->path, &path);

    if (st != ST_OK)
        return st;
    served = find_version(api, &path);
    if (served == NULL)
        return refuse_version(ctx, &path);
    ctx->version = served->version;
    st = take_project(ctx, &path);
    if (st != ST_OK)
        return st;
    if (path_drop_slash(&path))
        ctx->path.len--;
    ctx->resource = resource_find(&served->resources, &path);
    if (ctx->resource != NULL && !is_behind_door(ctx))
        return context_refuse(ctx, ST_NO_PATH,
                              "this address serves only health checks and metrics");
    if (ctx->resource == NULL || is_hidden(ctx))
        return refuse_path(ctx, &path);
    take_names(ctx, &path);
    return ST_OK;
}

/* ------------------------------------------------------------------ answering */

static enum status
answer_options(struct context *ctx)
{
    answer_header(ctx, "Allow", ctx->resource->allow);
    return answer_empty(ctx, 200);
}

static enum status
refuse_method(struct context *ctx)
{
    answer_header(ctx, "Allow", ctx->resource->allow_all);
    return ST_BAD_METHOD;
}

/*
 * Content-Location, for the routes that promise it: what was asked for, as it was sent. One
 * for which a head has no room is left out: a shorter one would name something else.
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
    text = arena_printf(req->arena, "%.*s%s%.*s", (int)ctx->path.len, ctx->path.data,
                        query ? "?" : "", query ? (int)req->query.len : 0,
                        query ? req->query.data : "");
    if (!bytes_present(text))
        return ST_NO_MEMORY;
    st = uri_tidy(req->arena, text, &text);
    if (st == ST_OK && text.len <= RESPONSE_VALUE_MAX)
        st = answer_header_copy(ctx, "Content-Location", text);
    return st;
}

/* What is asked for, as a policy names it; NULL: nothing that one could forbid. */
static const char *
name_action(const struct route *route)
{
    return route == NULL || route->action == ACTION_OPEN ? NULL
                                                         : action_name(route->action);
}

/* Who asks, for the history. */
static void
name_actor(struct context *ctx)
{
    bool is_claim =
        ctx->resource->depth > 4 && bytes_equal_str(ctx->resource->words[3], "claims");

    ctx->actor = (struct store_actor){
        .client = ctx->req->headers[API_HEADER_CLIENT_ID],
        .action = name_action(ctx->route),
        .claim = is_claim ? ctx->id : query_get(&ctx->query, "claim_id"),
    };
    if (!bytes_present(ctx->actor.claim))
        ctx->actor.claim = query_get(&ctx->query, "claim_ids");
    ctx->visit.actor = &ctx->actor;
}

/*
 * The parameters are read before the checks, because one may decide what the caller has to
 * be allowed; that there are too many is said after them, as the contract wants it.
 */
static enum status
answer(const struct api *api, struct context *ctx)
{
    const struct request *req = ctx->req;
    enum status st = check_host(ctx, api->allowed_hosts), parsed;

    if (st == ST_OK)
        st = find_resource(api, ctx);
    if (st != ST_OK)
        return st;
    parsed = query_parse(req->query, req->arena, &ctx->query);
    ctx->route = resource_route(ctx->resource, req->method, &ctx->query);
    if (ctx->route != NULL) /* figures are of what there is, not of what is asked */
        ctx->res->route = ctx->resource->pattern;
    st = check_request(ctx);
    if (st != ST_OK)
        return st;
    if (req->method == METHOD_OPTIONS)
        return answer_options(ctx);
    if (ctx->route == NULL)
        return refuse_method(ctx);
    if (parsed == ST_BAD_PARAMETER)
        return context_refuse(ctx, parsed,
                              "the request has more than %d query parameters",
                              QUERY_PAIRS_MAX);
    if (parsed != ST_OK)
        return parsed;
    if (ctx->testapi != NULL) {
        name_actor(ctx);
        st = fault_before(ctx);
        if (st != ST_OK)
            return st;
    }
    st = ctx->route->handle(ctx);
    return st == ST_OK ? locate_content(ctx) : st;
}

/* The claim is the one that the path or the query names, or that was made. */
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

/* With the test API: that the request was refused, or that it was told and has got something. */
static void
note_outcome(struct context *ctx, enum status st, bool called)
{
    const struct response *res = ctx->res;
    struct history_entry e = {
        .at_ms = ctx->visit.now_ms,
        .event = HISTORY_REFUSED,
        .queue = {res->about.project, res->about.queue, ctx->queue.kind},
        .client = ctx->req->headers[API_HEADER_CLIENT_ID],
        .action = name_action(ctx->route),
        .claim = res->about.claim,
        .status = res->code,
        .text = bytes_present(ctx->detail) ? ctx->detail : bytes_str(status_text(st))};

    if (ctx->version == NULL || ctx->version->open)
        return; /* the server itself was asked */
    if (res->fault.kind == FAULT_CUT_BEFORE)
        return; /* nobody hears of a refusal */
    if (st == ST_OK) {
        if (!called || res->code == 204)
            return;
        e.event = HISTORY_SERVED;
        e.status = 0;
        e.text = BYTES_NONE;
    }
    history_add(testapi_history(ctx->testapi), &e);
}

bool
api_may_block(const struct api *api, const struct request *req)
{
    return (api->store->blocks ||
            (api->access != NULL && access_may_block(api->access))) &&
           !bytes_equal_str(req->path, "/livez");
}

enum api_next
api_handle(const struct api *api, struct request *req, struct response *res)
{
    struct arena_mark mark = arena_mark(req->arena);
    struct context ctx = {.limits = &api->limits,
                          .store = api->store,
                          .mem = api->mem,
                          .auth = api->auth,
                          .access = api->access,
                          .signer = api->signer,
                          .seal = api->seal,
                          .real = api->real,
                          .condition = api->condition,
                          .metrics = api->metrics,
                          .testapi = api->testapi,
                          .quotas = api->quotas,
                          .req = req,
                          .progress = &req->progress,
                          .proof = &req->proof,
                          .visit = {.now_ms = req->now_ms, .flush_later = true},
                          .path = req->path,
                          .res = res};
    const bool called = req->waiting != NULL && testapi_call_take(req->waiting->call);
    enum status st;

    buf_reset(&res->body, SIZE_MAX);
    res->code = 0;
    res->header_count = 0;
    res->route = NULL;
    res->position = 0;
    res->claim_id = BYTES_NONE;
    res->fault.kind = FAULT_NONE;
    /* With this room a refusal can be written even when memory runs out on the way. */
    st = buf_reserve(&res->body, PROBLEM_ROOM) ? answer(api, &ctx) : ST_NO_MEMORY;
    if (st == ST_AGAIN || st == ST_WAIT) {
        if (called)
            testapi_call_served(api->testapi);
        arena_rewind(req->arena, mark);
        buf_reset(&res->body, st == ST_AGAIN ? SIZE_MAX : 0);
        return st == ST_AGAIN ? API_AGAIN : API_WAIT;
    }
    api_stop_waiting(api, req);
    if (req->progress.plight.fault.kind != FAULT_STATUS)
        quotas_count(api->quotas, st);
    if (st == ST_OK && res->body.failed)
        st = ST_NO_MEMORY;
    if (st != ST_OK && ctx.bare_errors)
        problem_write_bare(res, st);
    else if (st != ST_OK)
        problem_write(res, st, ctx.detail);
    if (st == ST_UNAUTHORIZED && api->access != NULL)
        problem_challenge(res, access_challenge(api->access));
    res->status = st;
    res->about = subject_of(&ctx);
    if (api->testapi != NULL) {
        fault_after(&ctx, st);
        note_outcome(&ctx, st, called);
    }
    if (called)
        testapi_call_served(api->testapi);
    ENSURE_DEBUG(response_head_size(res) <= RESPONSE_HEAD_MAX);
    res->position = ctx.visit.position;
    return res->position == 0 ? API_SEND : API_HOLD;
}

void
api_stop_waiting(const struct api *api, struct request *req)
{
    if (req->waiting != NULL && req->waiting->place_count > 0)
        wait_done(api->store, api->mem, req->waiting);
    if (req->waiting != NULL && req->waiting->watched != NULL) {
        history_unwatch(req->waiting->watched, &req->waiting->listener);
        req->waiting->watched = NULL;
    }
    access_proof_drop(&req->proof);
}

bool
api_may_wait(const struct api *api, const struct request *req)
{
    return bytes_present(req->headers[API_HEADER_PREFER]) ||
           (api->testapi != NULL && bytes_equal_str(req->path, "/claimd/expect"));
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
