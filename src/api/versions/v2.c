/* API v2 (docs/api.md 6 to 9, 18, 19): the form in which everything was written. */
#include "api/handlers/handlers.h"

#define V2     "/v2"
#define QUEUE  V2 "/queues/{queue}"
#define TOPIC  V2 "/topics/{topic}"
#define CLAIMS QUEUE "/claims"

/* Routes of a queue and of a topic. */
#define CONTAINER_ROUTES(path, ACTIONS, Noun, of)                                         \
    {path "/messages/{id}", METHOD_GET, handle_message_get,                               \
     ACTION_MESSAGES_GET,   0,          "getMessage" of},                                 \
        {path "/messages/{id}",                                                           \
         METHOD_DELETE,                                                                   \
         handle_message_delete,                                                           \
         ACTION_MESSAGES_DELETE,                                                          \
         0,                                                                               \
         "deleteMessage" of},                                                             \
        {path "/messages",        METHOD_GET, handle_message_list,                        \
         ACTION_MESSAGES_GET_ALL, 0,          "listMessages" of},                         \
        {path "/messages",       METHOD_POST, handle_message_post,                        \
         ACTION_MESSAGES_CREATE, 0,           "postMessages" of},                         \
        {path "/messages",                                                                \
         METHOD_DELETE,                                                                   \
         handle_message_delete_many,                                                      \
         ACTION_MESSAGES_DELETE_ALL,                                                      \
         0,                                                                               \
         "deleteMessages" of},                                                            \
        {path "/messages?pop", METHOD_DELETE, handle_message_pop, ACTION_MESSAGES_POP, 0, \
         "deleteMessages" of},                                                            \
        {path, METHOD_GET, handle_queue_show, ACTION_##ACTIONS##_GET, 0, "show" Noun},    \
        {path, METHOD_PUT,   handle_queue_create, ACTION_##ACTIONS##_CREATE,              \
         0,    "create" Noun},                                                            \
        {path, METHOD_PATCH, handle_queue_patch, ACTION_##ACTIONS##_UPDATE,               \
         0,    "update" Noun},                                                            \
        {path, METHOD_DELETE, handle_queue_delete, ACTION_##ACTIONS##_DELETE,             \
         0,    "delete" Noun},                                                            \
        {path "/stats",      METHOD_GET, handle_queue_stats, ACTION_##ACTIONS##_STATS, 0, \
         "show" Noun "Stats"},                                                            \
        {path "/purge", METHOD_POST, handle_queue_purge, ACTION_##ACTIONS##_PURGE, 0,     \
         "purge" Noun},                                                                   \
        {path "/subscriptions",       METHOD_GET, handle_subscription_list,               \
         ACTION_SUBSCRIPTION_GET_ALL, 0,          "listSubscriptions" of},                \
        {path "/subscriptions",      METHOD_POST, handle_subscription_create,             \
         ACTION_SUBSCRIPTION_CREATE, 0,           "createSubscription" of},               \
        {path "/subscriptions/{id}", METHOD_GET, handle_subscription_show,                \
         ACTION_SUBSCRIPTION_GET,    0,          "showSubscription" of},                  \
        {path "/subscriptions/{id}",                                                      \
         METHOD_PATCH,                                                                    \
         handle_subscription_update,                                                      \
         ACTION_SUBSCRIPTION_UPDATE,                                                      \
         0,                                                                               \
         "updateSubscription" of},                                                        \
        {path "/subscriptions/{id}",                                                      \
         METHOD_DELETE,                                                                   \
         handle_subscription_delete,                                                      \
         ACTION_SUBSCRIPTION_DELETE,                                                      \
         0,                                                                               \
         "deleteSubscription" of},                                                        \
    {                                                                                     \
        path "/subscriptions/{id}/confirm", METHOD_PUT, handle_subscription_confirm,      \
            ACTION_SUBSCRIPTION_CONFIRM, 0, "confirmSubscription" of                      \
    }

/* The paths of workers come first. */
static const struct route routes[] = {
    {CLAIMS, METHOD_POST, handle_claim_create, ACTION_CLAIMS_CREATE, 0, "claimMessages"},
    {CLAIMS "/{id}", METHOD_GET, handle_claim_show, ACTION_CLAIMS_GET, 0, "showClaim"},
    {CLAIMS "/{id}", METHOD_PATCH, handle_claim_renew, ACTION_CLAIMS_UPDATE, 0,
     "renewClaim"},
    {CLAIMS "/{id}", METHOD_DELETE, handle_claim_release, ACTION_CLAIMS_DELETE, 0,
     "releaseClaim"},
    CONTAINER_ROUTES(QUEUE, QUEUES, "Queue", ""),
    {QUEUE "/share", METHOD_POST, handle_queue_share, ACTION_QUEUES_SHARE, 0,
     "shareQueue"},
    {V2 "/queues", METHOD_GET, handle_queue_list, ACTION_QUEUES_GET_ALL, 0, "listQueues"},
    CONTAINER_ROUTES(TOPIC, TOPICS, "Topic", "OfTopic"),
    {V2 "/topics", METHOD_GET, handle_queue_list, ACTION_TOPICS_GET_ALL, 0, "listTopics"},
    {V2 "/", METHOD_GET, home_show, ACTION_HOME_GET, 0, "showHome"},
    {V2 "/ping", METHOD_GET, handle_ping, ACTION_PING_GET, 0, "ping"},
    {V2 "/ping", METHOD_HEAD, handle_ping, ACTION_PING_GET, 0, "pingBriefly"},
    {V2 "/health", METHOD_GET, handle_health_show, ACTION_HEALTH_GET, ROUTE_ADMIN,
     "showHealth"},
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
    .reads_claim_ids = true,

    .message = MESSAGE_FULL,
    .metadata_defaults = true,
};
