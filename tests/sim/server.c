#include "sim/server.h"

#include "claimd/engine/engine.h"

#include <stdio.h>
#include <stdlib.h>

static void
open_store(struct server *s, const struct profile *p)
{
    struct engine_config config = {
        .mem = s->mem,
        .shards = p->shards,
        .now_ms = s->now_ms,
        .message_ttl_s = p->rules.message_ttl_s,
        .max_message_ttl_s = p->rules.max_message_ttl_s,
        .seeded = true,
        .seed = p->seed,
    };

    if (engine_open(&config, &s->store) != ST_OK)
        abort();
}

static void
open_api(struct server *s, const struct profile *p)
{
    struct api_config config = {
        .limits = api_limits_default, .store = s->store, .mem = s->mem};

    config.limits.message_delete_with_claim_id = p->rules.strict_delete;
    config.limits.max_claim_ttl = p->claim_ttl_max;
    config.limits.max_claim_grace = p->claim_grace_max;
    if (api_new(&config, &s->api) != ST_OK)
        abort();
}

void
server_open(struct server *s, const struct profile *p)
{
    *s = (struct server){.mem = mem_new(0), .own = mem_new(0), .now_ms = SERVER_START_MS};
    if (s->mem == NULL || s->own == NULL)
        abort();
    buf_init(&s->target, s->own);
    buf_init(&s->body, s->own);
    open_store(s, p);
    open_api(s, p);
    api_caller_init(&s->caller, s->api, s->mem, s->now_ms);
    api_caller_init(&s->peeper, s->api, s->mem, s->now_ms);
}

bool
server_close(struct server *s)
{
    bool clean;

    api_caller_fini(&s->caller);
    api_caller_fini(&s->peeper);
    api_free(s->api);
    store_close(s->store);
    clean = mem_used(s->mem) == 0;
    if (clean)
        mem_destroy(s->mem);
    buf_fini(&s->target);
    buf_fini(&s->body);
    mem_destroy(s->own);
    return clean;
}

static void
set_headers(struct server *s, const struct operation *op)
{
    s->caller.headers[API_HEADER_CLIENT_ID] = client_uuid(op->client);
    s->caller.headers[API_HEADER_PROJECT_ID] = place_project(op->place);
    s->caller.headers[API_HEADER_CONTENT_TYPE] =
        op->kind == OP_QUEUE_PATCH ? "application/openstack-messaging-v2.0-json-patch"
                                   : NULL;
}

bool
server_do(struct server *s, const struct operation *op, struct trouble trouble,
          struct answer *answer, bool *starved)
{
    uint64_t attempts;

    buf_reset(&s->target, SIZE_MAX);
    buf_reset(&s->body, SIZE_MAX);
    s->method = operation_write(op, &s->target, &s->body);
    set_headers(s, op);
    s->caller.now_ms = s->now_ms;
    mem_set_budget(s->mem, trouble.tight ? 1 : 0);
    attempts = mem_attempts(s->mem);
    mem_fail_nth(s->mem, trouble.starve);
    (void)api_call_bytes(&s->caller, api_method(bytes_str(s->method)),
                         buf_view(&s->target),
                         s->body.len == 0 ? BYTES_NONE : buf_view(&s->body));
    *starved = trouble.starve != 0 && mem_attempts(s->mem) - attempts >= trouble.starve;
    mem_fail_nth(s->mem, 0);
    mem_set_budget(s->mem, 0);
    return answer_read(op, &s->caller.res, answer);
}

bool
server_has(struct server *s, int place, struct store_id id)
{
    char target[128];

    (void)snprintf(target, sizeof(target), "/v2/queues/%s/messages/%s", place_name(place),
                   id.text);
    s->peeper.now_ms = s->now_ms;
    s->peeper.headers[API_HEADER_PROJECT_ID] = place_project(place);
    return api_call(&s->peeper, "GET", target, NULL) == 200;
}

int64_t
server_housekeep(struct server *s)
{
    int64_t next_ms;

    do
        store_housekeep(s->store, s->now_ms, &next_ms);
    while (next_ms <= s->now_ms);
    return next_ms;
}
