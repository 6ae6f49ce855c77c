/* API v2 (docs/api.md 6 to 9, 18, 19). */
#include "api/handlers/handlers.h"

#define V2     "/v2"
#define QUEUE  V2 "/queues/{queue}"
#define TOPIC  V2 "/topics/{topic}"
#define CLAIMS QUEUE "/claims"

/* Routes of a queue and of a topic. */
#define CONTAINER_ROUTES(path, ACTIONS, Noun, of)                                        \
    ROUTE(path "/messages/{id}", GET, handle_message_get, MESSAGES_GET, 0,               \
          "getMessage" of),                                                              \
        ROUTE(path "/messages/{id}", DELETE, handle_message_delete, MESSAGES_DELETE, 0,  \
              "deleteMessage" of),                                                       \
        ROUTE(path "/messages", GET, handle_message_list, MESSAGES_GET_ALL, 0,           \
              "listMessages" of),                                                        \
        ROUTE(path "/messages", POST, handle_message_post, MESSAGES_CREATE, 0,           \
              "postMessages" of),                                                        \
        ROUTE(path "/messages", DELETE, handle_message_delete_many, MESSAGES_DELETE_ALL, \
              0, "deleteMessages" of),                                                   \
        ROUTE(path "/messages?pop", DELETE, handle_message_pop, MESSAGES_POP, 0,         \
              "deleteMessages" of),                                                      \
        ROUTE(path, GET, handle_queue_show, ACTIONS##_GET, 0, "show" Noun),              \
        ROUTE(path, PUT, handle_queue_create, ACTIONS##_CREATE, 0, "create" Noun),       \
        ROUTE(path, PATCH, handle_queue_patch, ACTIONS##_UPDATE, 0, "update" Noun),      \
        ROUTE(path, DELETE, handle_queue_delete, ACTIONS##_DELETE, 0, "delete" Noun),    \
        ROUTE(path "/stats", GET, handle_queue_stats, ACTIONS##_STATS, 0,                \
              "show" Noun "Stats"),                                                      \
        ROUTE(path "/purge", POST, handle_queue_purge, ACTIONS##_PURGE, 0,               \
              "purge" Noun),                                                             \
        ROUTE(path "/subscriptions", GET, handle_subscription_list,                      \
              SUBSCRIPTION_GET_ALL, 0, "listSubscriptions" of),                          \
        ROUTE(path "/subscriptions", POST, handle_subscription_create,                   \
              SUBSCRIPTION_CREATE, 0, "createSubscription" of),                          \
        ROUTE(path "/subscriptions/{id}", GET, handle_subscription_show,                 \
              SUBSCRIPTION_GET, 0, "showSubscription" of),                               \
        ROUTE(path "/subscriptions/{id}", PATCH, handle_subscription_update,             \
              SUBSCRIPTION_UPDATE, 0, "updateSubscription" of),                          \
        ROUTE(path "/subscriptions/{id}", DELETE, handle_subscription_delete,            \
              SUBSCRIPTION_DELETE, 0, "deleteSubscription" of),                          \
        ROUTE(path "/subscriptions/{id}/confirm", PUT, handle_subscription_confirm,      \
              SUBSCRIPTION_CONFIRM, 0, "confirmSubscription" of)

/* The paths of workers come first, because they are requested most. */
static const struct route routes[] = {
    ROUTE(CLAIMS, POST, handle_claim_create, CLAIMS_CREATE, 0, "claimMessages"),
    ROUTE(CLAIMS "/{id}", GET, handle_claim_show, CLAIMS_GET, 0, "showClaim"),
    ROUTE(CLAIMS "/{id}", PATCH, handle_claim_renew, CLAIMS_UPDATE, 0, "renewClaim"),
    ROUTE(CLAIMS "/{id}", DELETE, handle_claim_release, CLAIMS_DELETE, 0, "releaseClaim"),
    CONTAINER_ROUTES(QUEUE, QUEUES, "Queue", ""),
    ROUTE(QUEUE "/share", POST, handle_queue_share, QUEUES_SHARE, 0, "shareQueue"),
    ROUTE(V2 "/queues", GET, handle_queue_list, QUEUES_GET_ALL, 0, "listQueues"),
    CONTAINER_ROUTES(TOPIC, TOPICS, "Topic", "OfTopic"),
    ROUTE(V2 "/topics", GET, handle_queue_list, TOPICS_GET_ALL, 0, "listTopics"),
    ROUTE(V2 "/", GET, handle_home, HOME_GET, 0, "showHome"),
    ROUTE(V2 "/ping", GET, handle_ping, PING_GET, 0, "ping"),
    ROUTE(V2 "/ping", HEAD, handle_ping, PING_GET, 0, "pingBriefly"),
    ROUTE(V2 "/health", GET, handle_health_show, HEALTH_GET, ROUTE_ADMIN, "showHealth"),
    ROUTE_END,
};

const struct version version_v2 = {
    .name = BYTES_LIT("v2"),
    .base = BYTES_LIT(V2),
    .routes = routes,

    .headers_required = true,
    .puts_metadata = true,
    .post = POST_V2,
    .claim = TERMS_CLAIM,
    .renew = TERMS_RENEW,
    .posts_make_queue = true,
    .queue_settings = true,
    .lists_delayed = true,
    .queue_filters = true,
    .reads_claim_ids = true,

    .message = MESSAGE_FULL,
    .metadata_defaults = true,
};
