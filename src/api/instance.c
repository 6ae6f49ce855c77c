/*
 * instance: opens and frees an api, builds the table of its routes, and has the
 * functions that a front end calls, all declared in claimd/api/api.h. api_handle() fills
 * in the context of a request (context.h) and calls the steps of the api (steps.h).
 *
 * Read dispatch.c next.
 */
#include "api/alerts.h"
#include "api/context.h"
#include "api/key.h"
#include "api/quota.h"
#include "api/snapshot.h"
#include "api/state.h"
#include "api/steps.h"
#include "claimd/api/limits.h"

/* The condition of an api without one: neither draining nor closed. */
static const struct api_condition good_condition;

/* ------------------------------------------------------------------ life */

static enum status
enable_version(struct api *api, const struct version *version, struct served *out)
{
    out->version = version;
    return resources_build(api->config.mem, version->routes, &out->resources);
}

/* Enables the versions that are configured, newest first, because it has the most
 * clients. */
static enum status
enable_versions(struct api *api)
{
    const struct {
        const struct version *version;
        bool enabled;
    } known[VERSIONS_MAX] = {
        {&version_v2, true},
        {&version_v1_1, api->config.limits.enable_v1_1},
        {&version_v1, api->config.limits.enable_v1},
        {&version_claimd, true},
        {&version_operator, true},
        {&version_ui, api->config.limits.ui},
        {&version_testapi, api->config.testapi != NULL},
        {&version_identity, api->config.auth != NULL},
    };
    enum status st = enable_version(api, &version_root, &api->root);

    for (size_t i = 0; i < VERSIONS_MAX && st == ST_OK; i++)
        if (known[i].enabled)
            st = enable_version(api, known[i].version, &api->served[api->count++]);
    return st;
}

enum status
api_new(const struct api_config *config, struct api **out)
{
    struct api *api = mem_calloc(config->mem, 1, sizeof(*api));
    enum status st;

    if (api == NULL)
        return ST_NO_MEMORY;
    api->steps = config->testapi != NULL ? &steps_testapi : &steps_plain;
    api->config = *config;
    /* A released message that lives no longer than its delay would never become ready. */
    if (api->config.limits.max_release_delay >= config->limits.max_message_ttl)
        api->config.limits.max_release_delay = config->limits.max_message_ttl - 1;
    if (api->config.condition == NULL)
        api->config.condition = &good_condition;
    st = quotas_new(api->config.mem, &api->quotas);
    if (st == ST_OK)
        st = running_keys_new(api->config.mem, &api->keys);
    if (st == ST_OK)
        st = snapshots_new(api->config.mem, config->sampler, &api->snapshots);
    if (st == ST_OK && config->sampler != NULL)
        st = alerts_new(api->config.mem, &api->alerts);
    if (st == ST_OK) {
        quotas_set(api->quotas, &config->project_limits);
        st = enable_versions(api);
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
        resources_free(api->config.mem, &api->served[i].resources);
    resources_free(api->config.mem, &api->root.resources);
    quotas_free(api->quotas);
    running_keys_free(api->keys);
    snapshots_free(api->snapshots);
    alerts_free(api->alerts);
    mem_free(api->config.mem, api);
}

void
api_limit(struct api *api, const struct api_project_limits *limits)
{
    quotas_set(api->quotas, limits);
}

void
api_connection_closed(const struct api *api, struct api_connection *connection)
{
    (void)api; /* the connection has its tenant */
    quotas_disconnect(connection);
}

void
api_look(const struct api *api, int64_t now_ms)
{
    struct context ctx = {.api = api,
                          .config = &api->config,
                          .limits = &api->config.limits,
                          .store = api->config.store,
                          .op = {.now_ms = now_ms}};

    alerts_look(api->alerts, &ctx);
}

enum status
api_seed(const struct api *api, struct bytes text, int64_t now_ms, struct reason *why)
{
    struct store_op op = {.now_ms = now_ms};
    struct arena arena;
    struct record_load l = {.store = api->config.store,
                            .op = &op,
                            .reader = {.limits = &api->config.limits,
                                       .mem = api->config.mem,
                                       .arena = &arena,
                                       .now_ms = now_ms,
                                       .project = bytes_str(API_SEED_PROJECT),
                                       .why = why}};
    enum status st;

    reason_init(why);
    arena_init(&arena, api->config.mem);
    st = state_seed(&l, text);
    arena_fini(&arena);
    if (st != ST_OK && why->text[0] == '\0')
        (void)reason_give(why, st, "%s", status_text(st));
    return st;
}

/* ------------------------------------------------------------------ requests */

bool
api_may_block(const struct api *api, const struct request *req)
{
    return (api->config.store->blocks ||
            (api->config.access != NULL && access_may_block(api->config.access))) &&
           !bytes_equal_str(req->path, "/livez");
}

enum api_next
api_handle(const struct api *api, struct request *req, struct response *res)
{
    struct reason why, access_why; /* outside of ctx, which is cleared for each request */
    struct context ctx = {.api = api,
                          .config = &api->config,
                          .limits = &api->config.limits,
                          .store = api->config.store,
                          .req = req,
                          .progress = &req->progress,
                          .proof = &req->proof,
                          .op = {.now_ms = req->now_ms, .flush_later = true},
                          .path = req->path,
                          .access_why = &access_why,
                          .why = &why,
                          .res = res};

    reason_init(&why);
    reason_init(&access_why);
    return api->steps->handle(api, req, &ctx);
}

void
api_stop_waiting(const struct api *api, struct request *req)
{
    api->steps->stop_waiting(api, req);
    if (req->waiting != NULL && req->waiting->streams) {
        req->waiting->streams = false;
        quotas_wait_end(req->waiting->tenant);
    }
}

bool
api_may_wait(const struct api *api, const struct request *req)
{
    return api->steps->may_wait(api, req);
}

size_t
api_body_limit(const struct api *api, struct bytes path)
{
    return api->steps->body_limit(api, path);
}

/* ------------------------------------------------------------------ limits */

const struct api_limits api_limits_default = {.client_id_strict = true,
                                              .subscriber_types =
                                                  (1U << SUBSCRIBER_TYPES) - 1,
                                              .enable_v1 = true,
                                              .enable_v1_1 = true,
#define DEFAULT(name, value) .name = (value),
                                              API_LIMIT_LIST(DEFAULT)
#undef DEFAULT
};
