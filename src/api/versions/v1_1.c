/* API v1.1 (docs/api.md 13): v2 without its new resources and parameters. */
#include "api/handlers/handlers.h"

#define V1_1     "/v1.1"
#define QUEUE    V1_1 "/queues/{queue}"
#define MESSAGES QUEUE "/messages"
#define CLAIMS   QUEUE "/claims"

static const struct route routes[] = {
    ROUTE(CLAIMS, POST, handle_claim_create, CLAIMS_CREATE, 0, "claimMessagesV1_1"),
    ROUTE(CLAIMS "/{id}", GET, handle_claim_show, CLAIMS_GET, 0, "showClaimV1_1"),
    ROUTE(CLAIMS "/{id}", PATCH, handle_claim_renew, CLAIMS_UPDATE, 0, "renewClaimV1_1"),
    ROUTE(CLAIMS "/{id}", DELETE, handle_claim_release, CLAIMS_DELETE, 0,
          "releaseClaimV1_1"),
    ROUTE(MESSAGES "/{id}", GET, handle_message_get, MESSAGES_GET, 0, "getMessageV1_1"),
    ROUTE(MESSAGES "/{id}", DELETE, handle_message_delete, MESSAGES_DELETE, 0,
          "deleteMessageV1_1"),
    ROUTE(MESSAGES, GET, handle_message_list, MESSAGES_GET_ALL, 0, "listMessagesV1_1"),
    ROUTE(MESSAGES, POST, handle_message_post, MESSAGES_CREATE, 0, "postMessagesV1_1"),
    ROUTE(MESSAGES, DELETE, handle_message_delete_many, MESSAGES_DELETE_ALL, 0,
          "deleteMessagesV1_1"),
    ROUTE(MESSAGES "?pop", DELETE, handle_message_pop, MESSAGES_POP, 0,
          "deleteMessagesV1_1"),
    ROUTE(QUEUE, GET, handle_queue_show, QUEUES_GET, 0, "showQueueV1_1"),
    ROUTE(QUEUE, PUT, handle_queue_create, QUEUES_CREATE, 0, "createQueueV1_1"),
    ROUTE(QUEUE, DELETE, handle_queue_delete, QUEUES_DELETE, 0, "deleteQueueV1_1"),
    ROUTE(QUEUE "/stats", GET, handle_queue_stats, QUEUES_STATS, 0, "showQueueStatsV1_1"),
    ROUTE(V1_1 "/queues", GET, handle_queue_list, QUEUES_GET_ALL, 0, "listQueuesV1_1"),
    ROUTE(V1_1 "/", GET, handle_home, HOME_GET, 0, "showHomeV1_1"),
    ROUTE(V1_1 "/ping", GET, handle_ping, PING_GET, 0, "pingV1_1"),
    ROUTE(V1_1 "/ping", HEAD, handle_ping, PING_GET, 0, "pingBrieflyV1_1"),
    ROUTE(V1_1 "/health", GET, handle_health_show, HEALTH_GET, ROUTE_ADMIN,
          "showHealthV1_1"),
    ROUTE_END,
};

const struct version version_v1_1 = {
    .name = BYTES_LIT("v1.1"),
    .base = BYTES_LIT(V1_1),
    .routes = routes,

    .headers_required = true,
    .puts_metadata = true,
    .post = POST_V1_1,
    .claim = TERMS_CLAIM,
    .renew = TERMS_RENEW,
    .posts_make_queue = true,

    .message = MESSAGE_FULL,
};
