/* API v1 (docs/api.md 14): the API of Rackspace Cloud Queues. */
#include "api/handlers/handlers.h"

#define V1       "/v1"
#define QUEUE    V1 "/queues/{queue}"
#define MESSAGES QUEUE "/messages"
#define CLAIMS   QUEUE "/claims"

static const struct route routes[] = {
    {CLAIMS, METHOD_POST, handle_claim_create, ACTION_CLAIMS_CREATE, 0,
     "claimMessagesV1"},
    {CLAIMS "/{id}", METHOD_GET, handle_claim_show, ACTION_CLAIMS_GET, ROUTE_LOCATED,
     "showClaimV1"},
    {CLAIMS "/{id}", METHOD_PATCH, handle_claim_renew, ACTION_CLAIMS_UPDATE, 0,
     "renewClaimV1"},
    {CLAIMS "/{id}", METHOD_DELETE, handle_claim_release, ACTION_CLAIMS_DELETE, 0,
     "releaseClaimV1"},
    {MESSAGES "/{id}", METHOD_GET, handle_message_get, ACTION_MESSAGES_GET, ROUTE_LOCATED,
     "getMessageV1"},
    {MESSAGES "/{id}", METHOD_DELETE, handle_message_delete, ACTION_MESSAGES_DELETE, 0,
     "deleteMessageV1"},
    {MESSAGES, METHOD_GET, handle_message_list, ACTION_MESSAGES_GET_ALL,
     ROUTE_CLIENT | ROUTE_LOCATED, "listMessagesV1"},
    {MESSAGES, METHOD_POST, handle_message_post, ACTION_MESSAGES_CREATE, ROUTE_CLIENT,
     "postMessagesV1"},
    {MESSAGES, METHOD_DELETE, handle_message_delete_many, ACTION_MESSAGES_DELETE_ALL, 0,
     "deleteMessagesV1"},
    {QUEUE, METHOD_GET, handle_queue_exists, ACTION_QUEUES_GET, ROUTE_LOCATED_PATH,
     "queueExistsV1"},
    {QUEUE, METHOD_HEAD, handle_queue_exists, ACTION_QUEUES_GET, ROUTE_LOCATED_PATH,
     "queueExistsBrieflyV1"},
    {QUEUE, METHOD_PUT, handle_queue_create, ACTION_QUEUES_CREATE, 0, "createQueueV1"},
    {QUEUE, METHOD_DELETE, handle_queue_delete, ACTION_QUEUES_DELETE, 0, "deleteQueueV1"},
    {QUEUE "/metadata", METHOD_GET, handle_queue_show, ACTION_QUEUES_GET,
     ROUTE_LOCATED_PATH, "showMetadataV1"},
    {QUEUE "/metadata", METHOD_PUT, handle_metadata_put, ACTION_QUEUES_UPDATE, 0,
     "replaceMetadataV1"},
    {QUEUE "/stats", METHOD_GET, handle_queue_stats, ACTION_QUEUES_STATS,
     ROUTE_LOCATED_PATH, "showQueueStatsV1"},
    {V1 "/queues", METHOD_GET, handle_queue_list, ACTION_QUEUES_GET_ALL, ROUTE_LOCATED,
     "listQueuesV1"},
    {V1 "/", METHOD_GET, home_show, ACTION_HOME_GET, 0, "showHomeV1"},
    {V1 "/health", METHOD_GET, handle_ping, ACTION_PING_GET, ROUTE_OPEN, "pingV1"},
    {V1 "/health", METHOD_HEAD, handle_ping, ACTION_PING_GET, ROUTE_OPEN,
     "pingBrieflyV1"},
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
