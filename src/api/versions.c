/*
 * versions: the table of the routes of each version, and how the versions differ in
 * form. Declared in version.h. A new route is a row here. route.h says what its flags
 * mean.
 *
 * Read handlers/handlers.h next.
 */
#include "api/handlers/handlers.h"
#include "api/testapi/handlers.h"

/* ------------------------------------------------------------------ shared rows */

/* The claims of a queue. `located`: flags of responses. v: end of the names of
 * operations. */
#define CLAIM_ROUTES(queue, located, v)                                                  \
    ROUTE(queue "/claims", POST, handle_claim_create, CLAIMS_CREATE, 0,                  \
          "claimMessages" v),                                                            \
        ROUTE(queue "/claims/{id}", GET, handle_claim_show, CLAIMS_GET, located,         \
              "showClaim" v),                                                            \
        ROUTE(queue "/claims/{id}", PATCH, handle_claim_renew, CLAIMS_UPDATE, 0,         \
              "renewClaim" v),                                                           \
        ROUTE(queue "/claims/{id}", DELETE, handle_claim_release, CLAIMS_DELETE, 0,      \
              "releaseClaim" v)

/* The messages of a queue or a topic. `client`: flags of requests that need a
 * Client-ID. */
#define MESSAGE_ROUTES(path, client, located, v)                                         \
    ROUTE(path "/messages/{id}", GET, handle_message_get, MESSAGES_GET, located,         \
          "getMessage" v),                                                               \
        ROUTE(path "/messages/{id}", DELETE, handle_message_delete, MESSAGES_DELETE, 0,  \
              "deleteMessage" v),                                                        \
        ROUTE(path "/messages", GET, handle_message_list, MESSAGES_GET_ALL,              \
              client | located, "listMessages" v),                                       \
        ROUTE(path "/messages", POST, handle_message_post, MESSAGES_CREATE, client,      \
              "postMessages" v),                                                         \
        ROUTE(path "/messages", DELETE, handle_message_delete_many, MESSAGES_DELETE_ALL, \
              0, "deleteMessages" v)

/* A queue or a topic of v2. */
#define CONTAINER_ROUTES(path, ACTIONS, Noun, of)                                        \
    MESSAGE_ROUTES(path, 0, 0, of),                                                      \
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

/* ---------------------------------------------------- v2: docs/api.md 6 to 9, 18, 19 */

#define V2       "/v2"
#define QUEUE_V2 V2 "/queues/{queue}"

/* The paths of workers come first, because they are requested most. */
static const struct route routes_v2[] = {
    CLAIM_ROUTES(QUEUE_V2, 0, ""),
    CONTAINER_ROUTES(QUEUE_V2, QUEUES, "Queue", ""),
    ROUTE(QUEUE_V2 "/share", POST, handle_queue_share, QUEUES_SHARE, 0, "shareQueue"),
    ROUTE(V2 "/queues", GET, handle_queue_list, QUEUES_GET_ALL, 0, "listQueues"),
    CONTAINER_ROUTES(V2 "/topics/{topic}", TOPICS, "Topic", "OfTopic"),
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
    .routes = routes_v2,

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

/* -------------------------------------------------------------- v1.1: docs/api.md 13 */

#define V1_1       "/v1.1"
#define QUEUE_V1_1 V1_1 "/queues/{queue}"

/* v2 without its new resources and parameters. */
static const struct route routes_v1_1[] = {
    CLAIM_ROUTES(QUEUE_V1_1, 0, "V1_1"),
    MESSAGE_ROUTES(QUEUE_V1_1, 0, 0, "V1_1"),
    ROUTE(QUEUE_V1_1 "/messages?pop", DELETE, handle_message_pop, MESSAGES_POP, 0,
          "deleteMessagesV1_1"),
    ROUTE(QUEUE_V1_1, GET, handle_queue_show, QUEUES_GET, 0, "showQueueV1_1"),
    ROUTE(QUEUE_V1_1, PUT, handle_queue_create, QUEUES_CREATE, 0, "createQueueV1_1"),
    ROUTE(QUEUE_V1_1, DELETE, handle_queue_delete, QUEUES_DELETE, 0, "deleteQueueV1_1"),
    ROUTE(QUEUE_V1_1 "/stats", GET, handle_queue_stats, QUEUES_STATS, 0,
          "showQueueStatsV1_1"),
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
    .routes = routes_v1_1,

    .headers_required = true,
    .puts_metadata = true,
    .post = POST_V1_1,
    .claim = TERMS_CLAIM,
    .renew = TERMS_RENEW,
    .posts_make_queue = true,

    .message = MESSAGE_FULL,
};

/* ---------------------------------------------------------------- v1: docs/api.md 14 */

#define V1       "/v1"
#define QUEUE_V1 V1 "/queues/{queue}"

/* The API of Rackspace Cloud Queues. */
static const struct route routes_v1[] = {
    CLAIM_ROUTES(QUEUE_V1, ROUTE_LOCATED, "V1"),
    MESSAGE_ROUTES(QUEUE_V1, ROUTE_CLIENT, ROUTE_LOCATED, "V1"),
    ROUTE(QUEUE_V1, GET, handle_queue_exists, QUEUES_GET, ROUTE_LOCATED_PATH,
          "queueExistsV1"),
    ROUTE(QUEUE_V1, HEAD, handle_queue_exists, QUEUES_GET, ROUTE_LOCATED_PATH,
          "queueExistsBrieflyV1"),
    ROUTE(QUEUE_V1, PUT, handle_queue_create, QUEUES_CREATE, 0, "createQueueV1"),
    ROUTE(QUEUE_V1, DELETE, handle_queue_delete, QUEUES_DELETE, 0, "deleteQueueV1"),
    ROUTE(QUEUE_V1 "/metadata", GET, handle_queue_show, QUEUES_GET, ROUTE_LOCATED_PATH,
          "showMetadataV1"),
    ROUTE(QUEUE_V1 "/metadata", PUT, handle_metadata_put, QUEUES_UPDATE, 0,
          "replaceMetadataV1"),
    ROUTE(QUEUE_V1 "/stats", GET, handle_queue_stats, QUEUES_STATS, ROUTE_LOCATED_PATH,
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
    .routes = routes_v1,

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

/* ---------------------------------------------------- claimd: docs/api.md 11.3, 18.7 */

#define PROGRESS       "/claimd/queues/{queue}/subscriptions"
#define SCHEDULES      "/claimd/queues/{queue}/schedules"
#define TOPIC_PROGRESS "/claimd/topics/{topic}/subscriptions"

/* Routes that Zaqar does not have. Messages have the form of v2. */
static const struct route routes_claimd[] = {
    ROUTE("/claimd/claims", POST, handle_claim_any, CLAIMS_CREATE, 0, "claimFromSeveral"),
    ROUTE("/claimd/queues/{queue}/claims/{id}/finish", POST, handle_claim_finish,
          CLAIMS_UPDATE, 0, "finishMessages"),
    ROUTE("/claimd/queues/{queue}/redrive", POST, handle_redrive, MESSAGES_REDRIVE, 0,
          "redriveMessages"),
    ROUTE("/claimd/queues/{queue}/raw", POST, handle_raw_post, MESSAGES_CREATE, ROUTE_RAW,
          "postRaw"),
    ROUTE("/claimd/queues/{queue}/raw/claims", POST, handle_raw_claim, CLAIMS_CREATE,
          ROUTE_RAW, "claimRaw"),
    ROUTE("/claimd/queues/{queue}/pause", GET, handle_pause_show, CLAIMS_GET, 0,
          "showPause"),
    ROUTE("/claimd/queues/{queue}/pause", POST, handle_queue_pause, QUEUES_PAUSE, 0,
          "pauseQueue"),
    ROUTE("/claimd/permissions", GET, handle_permissions, HOME_GET, ROUTE_ANY_PROJECT,
          "showPermissions"),
    ROUTE("/claimd/queues", GET, handle_queue_survey, QUEUES_GET_ALL,
          ROUTE_ANY_PROJECT | ROUTE_LIVE, "surveyQueues"),
    ROUTE("/claimd/alerts", GET, handle_alert_list, QUEUES_GET_ALL,
          ROUTE_ANY_PROJECT | ROUTE_LIVE, "listAlerts"),
    ROUTE("/claimd/queues/{queue}/messages", GET, handle_message_search, MESSAGES_GET_ALL,
          0, "searchMessages"),
    ROUTE("/claimd/queues/{queue}/messages/{id}", GET, handle_message_explain,
          MESSAGES_GET, ROUTE_LIVE, "explainMessage"),
    ROUTE("/claimd/queues/{queue}/history", GET, handle_queue_history, QUEUES_STATS,
          ROUTE_LIVE, "showQueueHistory"),
    ROUTE("/claimd/queues/{queue}/claims", GET, handle_claim_list, CLAIMS_GET, ROUTE_LIVE,
          "listClaims"),
    ROUTE("/claimd/schedules", GET, handle_schedule_list, SCHEDULES_GET, 0,
          "listSchedules"),
    ROUTE(SCHEDULES, GET, handle_schedule_list, SCHEDULES_GET, 0, "listSchedulesOfQueue"),
    ROUTE(SCHEDULES "/{id}", GET, handle_schedule_show, SCHEDULES_GET, 0, "showSchedule"),
    ROUTE(SCHEDULES "/{id}", PUT, handle_schedule_set, SCHEDULES_SET, 0, "setSchedule"),
    ROUTE(SCHEDULES "/{id}", PATCH, handle_schedule_pause, SCHEDULES_SET, 0,
          "pauseSchedule"),
    ROUTE(SCHEDULES "/{id}", DELETE, handle_schedule_delete, SCHEDULES_SET, 0,
          "deleteSchedule"),
    ROUTE(PROGRESS, GET, handle_subscription_list, SUBSCRIPTION_PROGRESS, 0,
          "listProgress"),
    ROUTE(PROGRESS "/{id}", GET, handle_subscription_show, SUBSCRIPTION_PROGRESS, 0,
          "showProgress"),
    ROUTE(TOPIC_PROGRESS, GET, handle_subscription_list, SUBSCRIPTION_PROGRESS, 0,
          "listProgressOfTopic"),
    ROUTE(TOPIC_PROGRESS "/{id}", GET, handle_subscription_show, SUBSCRIPTION_PROGRESS, 0,
          "showProgressOfTopic"),
    ROUTE_END,
};

const struct version version_claimd = {
    .name = BYTES_LIT("claimd"),
    .base = BYTES_LIT("/claimd"),
    .routes = routes_claimd,

    .headers_required = true,
    .claim = TERMS_CLAIM,

    .message = MESSAGE_FULL,
};

/* --------------------------------------------------------- operators: docs/api.md 24 */

static const struct route routes_operator[] = {
    ROUTE("/claimd/dump", GET, handle_dump, STATE_DUMP, ROUTE_GUARDED | ROUTE_OWN_FORM,
          "dump"),
    ROUTE("/claimd/load", POST, handle_load, STATE_LOAD, ROUTE_GUARDED, "load"),
    ROUTE_END,
};

const struct version version_operator = {
    .name = BYTES_LIT("claimd"),
    .base = BYTES_LIT("/claimd"),
    .routes = routes_operator,
    .open = true,
};

/* ---------------------------------------------------------- the page: docs/api.md 29 */

static const struct route routes_ui[] = {
    ROUTE("/claimd/ui", GET, handle_ui, OPEN, ROUTE_OWN_FORM, "showPage"),
    ROUTE("/claimd/ui/{file}", GET, handle_ui, OPEN, ROUTE_OWN_FORM, "showPageFile"),
    ROUTE_END,
};

const struct version version_ui = {
    .name = BYTES_LIT("claimd"),
    .base = BYTES_LIT("/claimd"),
    .routes = routes_ui,
    .open = true,
};

/* ------------------------------------------------------- the test API: docs/api.md 23 */

#define TESTAPI(path, method, handle, operation)                                         \
    ROUTE("/claimd/" path, method, handle, CI_USE, ROUTE_GUARDED, operation)

static const struct route routes_testapi[] = {
    TESTAPI("clock", GET, handle_clock_show, "showClock"),
    TESTAPI("clock", PUT, handle_clock_set, "setClock"),
    TESTAPI("clock/advance", POST, handle_clock_advance, "advanceClock"),
    TESTAPI("reset", POST, handle_reset, "reset"),
    TESTAPI("state", GET, handle_state_show, "showState"),
    TESTAPI("state", PUT, handle_state_set, "setState"),
    TESTAPI("history", GET, handle_history, "listHistory"),
    TESTAPI("expect", GET, handle_expect, "expect"),
    TESTAPI("leaks", GET, handle_leaks, "listLeaks"),
    TESTAPI("faults", GET, handle_faults_show, "listFaults"),
    TESTAPI("faults", PUT, handle_faults_set, "setFaults"),
    TESTAPI("faults", DELETE, handle_faults_delete, "deleteFaults"),
    ROUTE_END,
};

const struct version version_testapi = {
    .name = BYTES_LIT("claimd"),
    .base = BYTES_LIT("/claimd"),
    .routes = routes_testapi,
    .open = true,
};

/* ------------------------------------------------------------------ the server */

enum {
    HEALTH = ROUTE_OWN_FORM | ROUTE_METRICS,
    GUARDED = ROUTE_GUARDED | ROUTE_OWN_FORM | ROUTE_METRICS
};

static const struct route routes_root[] = {
    ROUTE("/", GET, handle_versions, OPEN, ROUTE_HTML, "listVersions"),
    ROUTE("/", HEAD, handle_versions, OPEN, ROUTE_HTML | ROUTE_HTML_ONLY, "listVersions"),
    ROUTE("/openapi.json", GET, handle_openapi, OPEN, 0, "describe"),
    ROUTE("/openapi.json", HEAD, handle_openapi, OPEN, 0, "describeBriefly"),
    ROUTE("/livez", GET, handle_livez, OPEN, HEALTH, "isAlive"),
    ROUTE("/livez", HEAD, handle_livez, OPEN, HEALTH, "isAliveBriefly"),
    ROUTE("/readyz", GET, handle_readyz, OPEN, HEALTH, "isReady"),
    ROUTE("/readyz", HEAD, handle_readyz, OPEN, HEALTH, "isReadyBriefly"),
    ROUTE("/metrics", GET, handle_metrics, METRICS_GET, GUARDED, "showMetrics"),
    ROUTE("/metrics", HEAD, handle_metrics, METRICS_GET, GUARDED, "showMetricsBriefly"),
    ROUTE_END,
};

const struct version version_root = {
    .name = BYTES_LIT(""), .routes = routes_root, .open = true};
