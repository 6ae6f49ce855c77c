/* API v2 (docs/api.md 6 to 9): the form in which everything was written. */
#include "api/handlers/handlers.h"
#include "api/versions/home.h"

#define V2       "/v2"
#define QUEUE    V2 "/queues/{queue}"
#define MESSAGES QUEUE "/messages"
#define CLAIMS   QUEUE "/claims"

/* The paths of workers come first. */
static const struct route routes[] = {
    {CLAIMS, METHOD_POST, handle_claim_create, "claims:create", 0},
    {CLAIMS "/{id}", METHOD_GET, handle_claim_show, "claims:get", 0},
    {CLAIMS "/{id}", METHOD_PATCH, handle_claim_renew, "claims:update", 0},
    {CLAIMS "/{id}", METHOD_DELETE, handle_claim_release, "claims:delete", 0},
    {MESSAGES "/{id}", METHOD_GET, handle_message_get, "messages:get", 0},
    {MESSAGES "/{id}", METHOD_DELETE, handle_message_delete, "messages:delete", 0},
    {MESSAGES, METHOD_GET, handle_message_list, "messages:get_all", 0},
    {MESSAGES, METHOD_POST, handle_message_post, "messages:create", 0},
    {MESSAGES, METHOD_DELETE, handle_message_delete_many, "messages:delete_all", 0},
    {MESSAGES "?pop", METHOD_DELETE, handle_message_pop, "messages:pop", 0},
    {QUEUE, METHOD_GET, handle_queue_show, "queues:get", 0},
    {QUEUE, METHOD_PUT, handle_queue_create, "queues:create", 0},
    {QUEUE, METHOD_PATCH, handle_queue_patch, "queues:update", 0},
    {QUEUE, METHOD_DELETE, handle_queue_delete, "queues:delete", 0},
    {QUEUE "/stats", METHOD_GET, handle_queue_stats, "queues:stats", 0},
    {QUEUE "/purge", METHOD_POST, handle_queue_purge, "queues:purge", 0},
    {V2 "/queues", METHOD_GET, handle_queue_list, "queues:get_all", 0},
    {V2 "/", METHOD_GET, home_show, "home:get", 0},
    {V2 "/ping", METHOD_GET, handle_ping, "ping:get", 0},
    {V2 "/ping", METHOD_HEAD, handle_ping, "ping:get", 0},
    {V2 "/health", METHOD_GET, handle_health_show, "health:get", ROUTE_ADMIN},
    ROUTE_END,
};

const struct version version_v2 = {
    .name = BYTES_LIT("v2"),
    .base = BYTES_LIT(V2),
    .routes = routes,
    .home = HOME_V2,

    .headers_required = true,
    .puts_metadata = true,
    .post = POST_V2,
    .claim = TERMS_CLAIM,
    .renew = TERMS_RENEW,
    .posts_make_queue = true,
    .queue_settings = true,
    .lists_delayed = true,
    .queue_filters = true,
    .deletes_strictly = true,

    .message = MESSAGE_FULL,
    .metadata_defaults = true,
};
