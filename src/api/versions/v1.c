/* API v1 (docs/api.md 14): the API of Rackspace Cloud Queues. */
#include "api/handlers/handlers.h"

#define V1       "/v1"
#define QUEUE    V1 "/queues/{queue}"
#define MESSAGES QUEUE "/messages"
#define CLAIMS   QUEUE "/claims"

static const struct route routes[] = {
    ROUTE(CLAIMS, POST, handle_claim_create, CLAIMS_CREATE, 0, "claimMessagesV1"),
    ROUTE(CLAIMS "/{id}", GET, handle_claim_show, CLAIMS_GET, ROUTE_LOCATED,
          "showClaimV1"),
    ROUTE(CLAIMS "/{id}", PATCH, handle_claim_renew, CLAIMS_UPDATE, 0, "renewClaimV1"),
    ROUTE(CLAIMS "/{id}", DELETE, handle_claim_release, CLAIMS_DELETE, 0,
          "releaseClaimV1"),
    ROUTE(MESSAGES "/{id}", GET, handle_message_get, MESSAGES_GET, ROUTE_LOCATED,
          "getMessageV1"),
    ROUTE(MESSAGES "/{id}", DELETE, handle_message_delete, MESSAGES_DELETE, 0,
          "deleteMessageV1"),
    ROUTE(MESSAGES, GET, handle_message_list, MESSAGES_GET_ALL,
          ROUTE_CLIENT | ROUTE_LOCATED, "listMessagesV1"),
    ROUTE(MESSAGES, POST, handle_message_post, MESSAGES_CREATE, ROUTE_CLIENT,
          "postMessagesV1"),
    ROUTE(MESSAGES, DELETE, handle_message_delete_many, MESSAGES_DELETE_ALL, 0,
          "deleteMessagesV1"),
    ROUTE(QUEUE, GET, handle_queue_exists, QUEUES_GET, ROUTE_LOCATED_PATH,
          "queueExistsV1"),
    ROUTE(QUEUE, HEAD, handle_queue_exists, QUEUES_GET, ROUTE_LOCATED_PATH,
          "queueExistsBrieflyV1"),
    ROUTE(QUEUE, PUT, handle_queue_create, QUEUES_CREATE, 0, "createQueueV1"),
    ROUTE(QUEUE, DELETE, handle_queue_delete, QUEUES_DELETE, 0, "deleteQueueV1"),
    ROUTE(QUEUE "/metadata", GET, handle_queue_show, QUEUES_GET, ROUTE_LOCATED_PATH,
          "showMetadataV1"),
    ROUTE(QUEUE "/metadata", PUT, handle_metadata_put, QUEUES_UPDATE, 0,
          "replaceMetadataV1"),
    ROUTE(QUEUE "/stats", GET, handle_queue_stats, QUEUES_STATS, ROUTE_LOCATED_PATH,
          "showQueueStatsV1"),
    ROUTE(V1 "/queues", GET, handle_queue_list, QUEUES_GET_ALL, ROUTE_LOCATED,
          "listQueuesV1"),
    ROUTE(V1 "/", GET, handle_home, HOME_GET, 0, "showHomeV1"),
    ROUTE(V1 "/health", GET, handle_ping, PING_GET, ROUTE_OPEN, "pingV1"),
    ROUTE(V1 "/health", HEAD, handle_ping, PING_GET, ROUTE_OPEN, "pingBrieflyV1"),
    ROUTE_END,
};

const struct version version_v1 = {
    .name = BYTES_LIT("v1"),
    .base = BYTES_LIT(V1),
    .routes = routes,

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
