/* API v1.1 (docs/api.md 13): v2 without the resources and parameters that came later. */
#include "api/handlers/handlers.h"

#define V1_1     "/v1.1"
#define QUEUE    V1_1 "/queues/{queue}"
#define MESSAGES QUEUE "/messages"
#define CLAIMS   QUEUE "/claims"

static const struct route routes[] = {
    {CLAIMS, METHOD_POST, handle_claim_create, ACTION_CLAIMS_CREATE, 0,
     "claimMessagesV1_1"},
    {CLAIMS "/{id}", METHOD_GET, handle_claim_show, ACTION_CLAIMS_GET, 0,
     "showClaimV1_1"},
    {CLAIMS "/{id}", METHOD_PATCH, handle_claim_renew, ACTION_CLAIMS_UPDATE, 0,
     "renewClaimV1_1"},
    {CLAIMS "/{id}", METHOD_DELETE, handle_claim_release, ACTION_CLAIMS_DELETE, 0,
     "releaseClaimV1_1"},
    {MESSAGES "/{id}", METHOD_GET, handle_message_get, ACTION_MESSAGES_GET, 0,
     "getMessageV1_1"},
    {MESSAGES "/{id}", METHOD_DELETE, handle_message_delete, ACTION_MESSAGES_DELETE, 0,
     "deleteMessageV1_1"},
    {MESSAGES, METHOD_GET, handle_message_list, ACTION_MESSAGES_GET_ALL, 0,
     "listMessagesV1_1"},
    {MESSAGES, METHOD_POST, handle_message_post, ACTION_MESSAGES_CREATE, 0,
     "postMessagesV1_1"},
    {MESSAGES, METHOD_DELETE, handle_message_delete_many, ACTION_MESSAGES_DELETE_ALL, 0,
     "deleteMessagesV1_1"},
    {MESSAGES "?pop", METHOD_DELETE, handle_message_pop, ACTION_MESSAGES_POP, 0,
     "deleteMessagesV1_1"},
    {QUEUE, METHOD_GET, handle_queue_show, ACTION_QUEUES_GET, 0, "showQueueV1_1"},
    {QUEUE, METHOD_PUT, handle_queue_create, ACTION_QUEUES_CREATE, 0, "createQueueV1_1"},
    {QUEUE, METHOD_DELETE, handle_queue_delete, ACTION_QUEUES_DELETE, 0,
     "deleteQueueV1_1"},
    {QUEUE "/stats", METHOD_GET, handle_queue_stats, ACTION_QUEUES_STATS, 0,
     "showQueueStatsV1_1"},
    {V1_1 "/queues", METHOD_GET, handle_queue_list, ACTION_QUEUES_GET_ALL, 0,
     "listQueuesV1_1"},
    {V1_1 "/", METHOD_GET, home_show, ACTION_HOME_GET, 0, "showHomeV1_1"},
    {V1_1 "/ping", METHOD_GET, handle_ping, ACTION_PING_GET, 0, "pingV1_1"},
    {V1_1 "/ping", METHOD_HEAD, handle_ping, ACTION_PING_GET, 0, "pingBrieflyV1_1"},
    {V1_1 "/health", METHOD_GET, handle_health_show, ACTION_HEALTH_GET, ROUTE_ADMIN,
     "showHealthV1_1"},
    ROUTE_END,
};

const struct version version_v1_1 = {
    .name = BYTES_LIT("v1.1"),
    .base = BYTES_LIT(V1_1),
    .routes = routes,
    .home = HOME_V1_1,

    .headers_required = true,
    .puts_metadata = true,
    .post = POST_V1_1,
    .claim = TERMS_CLAIM,
    .renew = TERMS_RENEW,
    .posts_make_queue = true,

    .message = MESSAGE_FULL,
};
