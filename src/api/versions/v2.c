/* API v2 (docs/api.md 6 to 9, 18, 19): the form in which everything was written. */
#include "api/handlers/handlers.h"
#include "api/openapi/operation.h"
#include "api/versions/home.h"

#define V2            "/v2"
#define QUEUE         V2 "/queues/{queue}"
#define MESSAGES      QUEUE "/messages"
#define CLAIMS        QUEUE "/claims"
#define SUBSCRIPTIONS QUEUE "/subscriptions"
#define TOPIC         V2 "/topics/{topic}"

/* The paths of workers come first. */
static const struct route routes[] = {
    {CLAIMS, METHOD_POST, handle_claim_create, ACTION_CLAIMS_CREATE, 0,
     &operation_claim_create},
    {CLAIMS "/{id}", METHOD_GET, handle_claim_show, ACTION_CLAIMS_GET, 0,
     &operation_claim_show},
    {CLAIMS "/{id}", METHOD_PATCH, handle_claim_renew, ACTION_CLAIMS_UPDATE, 0,
     &operation_claim_renew},
    {CLAIMS "/{id}", METHOD_DELETE, handle_claim_release, ACTION_CLAIMS_DELETE, 0,
     &operation_claim_release},
    {MESSAGES "/{id}", METHOD_GET, handle_message_get, ACTION_MESSAGES_GET, 0,
     &operation_message_get},
    {MESSAGES "/{id}", METHOD_DELETE, handle_message_delete, ACTION_MESSAGES_DELETE, 0,
     &operation_message_delete},
    {MESSAGES, METHOD_GET, handle_message_list, ACTION_MESSAGES_GET_ALL, 0,
     &operation_message_list},
    {MESSAGES, METHOD_POST, handle_message_post, ACTION_MESSAGES_CREATE, 0,
     &operation_message_post},
    {MESSAGES, METHOD_DELETE, handle_message_delete_many, ACTION_MESSAGES_DELETE_ALL, 0,
     &operation_message_delete_many},
    {MESSAGES "?pop", METHOD_DELETE, handle_message_pop, ACTION_MESSAGES_POP, 0,
     &operation_message_delete_many},
    {QUEUE, METHOD_GET, handle_queue_show, ACTION_QUEUES_GET, 0, &operation_queue_show},
    {QUEUE, METHOD_PUT, handle_queue_create, ACTION_QUEUES_CREATE, 0,
     &operation_queue_create},
    {QUEUE, METHOD_PATCH, handle_queue_patch, ACTION_QUEUES_UPDATE, 0,
     &operation_queue_update},
    {QUEUE, METHOD_DELETE, handle_queue_delete, ACTION_QUEUES_DELETE, 0,
     &operation_queue_delete},
    {QUEUE "/stats", METHOD_GET, handle_queue_stats, ACTION_QUEUES_STATS, 0,
     &operation_queue_stats},
    {QUEUE "/purge", METHOD_POST, handle_queue_purge, ACTION_QUEUES_PURGE, 0,
     &operation_queue_purge},
    {QUEUE "/share", METHOD_POST, handle_queue_share, ACTION_QUEUES_SHARE, 0,
     &operation_queue_share},
    {SUBSCRIPTIONS, METHOD_GET, handle_subscription_list, ACTION_SUBSCRIPTION_GET_ALL, 0,
     &operation_subscription_list},
    {SUBSCRIPTIONS, METHOD_POST, handle_subscription_create, ACTION_SUBSCRIPTION_CREATE,
     0, &operation_subscription_create},
    {SUBSCRIPTIONS "/{id}", METHOD_GET, handle_subscription_show, ACTION_SUBSCRIPTION_GET,
     0, &operation_subscription_show},
    {SUBSCRIPTIONS "/{id}", METHOD_PATCH, handle_subscription_update,
     ACTION_SUBSCRIPTION_UPDATE, 0, &operation_subscription_update},
    {SUBSCRIPTIONS "/{id}", METHOD_DELETE, handle_subscription_delete,
     ACTION_SUBSCRIPTION_DELETE, 0, &operation_subscription_delete},
    {SUBSCRIPTIONS "/{id}/confirm", METHOD_PUT, handle_subscription_confirm,
     ACTION_SUBSCRIPTION_CONFIRM, 0, &operation_subscription_confirm},
    {V2 "/queues", METHOD_GET, handle_queue_list, ACTION_QUEUES_GET_ALL, 0,
     &operation_queue_list},
    {TOPIC "/messages"
           "/{id}",
     METHOD_GET, handle_message_get, ACTION_MESSAGES_GET, 0, &operation_message_get},
    {TOPIC "/messages"
           "/{id}",
     METHOD_DELETE, handle_message_delete, ACTION_MESSAGES_DELETE, 0,
     &operation_message_delete},
    {TOPIC "/messages", METHOD_GET, handle_message_list, ACTION_MESSAGES_GET_ALL, 0,
     &operation_message_list},
    {TOPIC "/messages", METHOD_POST, handle_message_post, ACTION_MESSAGES_CREATE, 0,
     &operation_message_post},
    {TOPIC "/messages", METHOD_DELETE, handle_message_delete_many,
     ACTION_MESSAGES_DELETE_ALL, 0, &operation_message_delete_many},
    {TOPIC "/messages"
           "?pop",
     METHOD_DELETE, handle_message_pop, ACTION_MESSAGES_POP, 0,
     &operation_message_delete_many},
    {TOPIC, METHOD_GET, handle_queue_show, ACTION_TOPICS_GET, 0, &operation_topic_show},
    {TOPIC, METHOD_PUT, handle_queue_create, ACTION_TOPICS_CREATE, 0,
     &operation_topic_create},
    {TOPIC, METHOD_PATCH, handle_queue_patch, ACTION_TOPICS_UPDATE, 0,
     &operation_topic_update},
    {TOPIC, METHOD_DELETE, handle_queue_delete, ACTION_TOPICS_DELETE, 0,
     &operation_topic_delete},
    {TOPIC "/stats", METHOD_GET, handle_queue_stats, ACTION_TOPICS_STATS, 0,
     &operation_topic_stats},
    {TOPIC "/purge", METHOD_POST, handle_queue_purge, ACTION_TOPICS_PURGE, 0,
     &operation_topic_purge},
    {TOPIC "/subscriptions", METHOD_GET, handle_subscription_list,
     ACTION_SUBSCRIPTION_GET_ALL, 0, &operation_subscription_list},
    {TOPIC "/subscriptions", METHOD_POST, handle_subscription_create,
     ACTION_SUBSCRIPTION_CREATE, 0, &operation_subscription_create},
    {TOPIC "/subscriptions"
           "/{id}",
     METHOD_GET, handle_subscription_show, ACTION_SUBSCRIPTION_GET, 0,
     &operation_subscription_show},
    {TOPIC "/subscriptions"
           "/{id}",
     METHOD_PATCH, handle_subscription_update, ACTION_SUBSCRIPTION_UPDATE, 0,
     &operation_subscription_update},
    {TOPIC "/subscriptions"
           "/{id}",
     METHOD_DELETE, handle_subscription_delete, ACTION_SUBSCRIPTION_DELETE, 0,
     &operation_subscription_delete},
    {TOPIC "/subscriptions"
           "/{id}/confirm",
     METHOD_PUT, handle_subscription_confirm, ACTION_SUBSCRIPTION_CONFIRM, 0,
     &operation_subscription_confirm},
    {V2 "/topics", METHOD_GET, handle_queue_list, ACTION_TOPICS_GET_ALL, 0,
     &operation_topic_list},
    {V2 "/", METHOD_GET, home_show, ACTION_HOME_GET, 0, &operation_home},
    {V2 "/ping", METHOD_GET, handle_ping, ACTION_PING_GET, 0, &operation_ping},
    {V2 "/ping", METHOD_HEAD, handle_ping, ACTION_PING_GET, 0, &operation_ping},
    {V2 "/health", METHOD_GET, handle_health_show, ACTION_HEALTH_GET, ROUTE_ADMIN,
     &operation_health},
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
