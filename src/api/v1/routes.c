/* API v1 (API.md 15): the API of Rackspace Cloud Queues. */
#include "api/home.h"
#include "api/v1/handlers.h"
#include "api/v2/handlers.h"

#define V1       "/v1"
#define QUEUE    V1 "/queues/{queue}"
#define MESSAGES QUEUE "/messages"
#define CLAIMS   QUEUE "/claims"

static const struct route routes[] = {
    {CLAIMS, METHOD_POST, v2_claim_create, "claims:create", 0},
    {CLAIMS "/{id}", METHOD_GET, v2_claim_show, "claims:get", ROUTE_LOCATED},
    {CLAIMS "/{id}", METHOD_PATCH, v2_claim_renew, "claims:update", 0},
    {CLAIMS "/{id}", METHOD_DELETE, v2_claim_release, "claims:delete", 0},
    {MESSAGES "/{id}", METHOD_GET, v2_message_get, "messages:get", ROUTE_LOCATED},
    {MESSAGES "/{id}", METHOD_DELETE, v2_message_delete, "messages:delete", 0},
    {MESSAGES, METHOD_GET, v2_message_list, "messages:get_all",
     ROUTE_CLIENT | ROUTE_LOCATED},
    {MESSAGES, METHOD_POST, v2_message_post, "messages:create", ROUTE_CLIENT},
    {MESSAGES, METHOD_DELETE, v2_message_delete_many, "messages:delete_all", 0},
    {QUEUE, METHOD_GET, v1_queue_exists, "queues:get", ROUTE_LOCATED_PATH},
    {QUEUE, METHOD_HEAD, v1_queue_exists, "queues:get", ROUTE_LOCATED_PATH},
    {QUEUE, METHOD_PUT, v2_queue_create, "queues:create", 0},
    {QUEUE, METHOD_DELETE, v2_queue_delete, "queues:delete", 0},
    {QUEUE "/metadata", METHOD_GET, v2_queue_show, "queues:get", ROUTE_LOCATED_PATH},
    {QUEUE "/metadata", METHOD_PUT, v1_metadata_put, "queues:update", 0},
    {QUEUE "/stats", METHOD_GET, v2_queue_stats, "queues:stats", ROUTE_LOCATED_PATH},
    {V1 "/queues", METHOD_GET, v2_queue_list, "queues:get_all", ROUTE_LOCATED},
    {V1 "/", METHOD_GET, home_show, "home:get", 0},
    {V1 "/health", METHOD_GET, v2_ping, "ping:get", ROUTE_OPEN},
    {V1 "/health", METHOD_HEAD, v2_ping, "ping:get", ROUTE_OPEN},
    ROUTE_END,
};

const struct version version_v1 = {
    .name = BYTES_LIT("v1"),
    .base = BYTES_LIT(V1),
    .routes = routes,
    .home = HOME_V1,

    .post = POST_V1,
    .claim = TERMS_CLAIM_V1,
    .renew = TERMS_RENEW_V1,

    .message = MESSAGE_V1,
    .claims_hidden = true,
    .empty_is_204 = true,
    .bare_arrays = true,
    .tells_partial = true,
    .queues_must_exist = true,
};
