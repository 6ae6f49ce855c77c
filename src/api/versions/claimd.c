/* Routes that Zaqar does not have (docs/api.md 11.3, 18.7). Messages have the form of v2. */
#include "api/handlers/handlers.h"

#define PROGRESS       "/claimd/queues/{queue}/subscriptions"
#define TOPIC_PROGRESS "/claimd/topics/{topic}/subscriptions"

static const struct route routes[] = {
    ROUTE("/claimd/claims", POST, handle_claim_any, CLAIMS_CREATE, 0, "claimFromSeveral"),
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
    .routes = routes,

    .headers_required = true,
    .claim = TERMS_CLAIM,

    .message = MESSAGE_FULL,
};

/* ------------------------------------------------------------------ operators: docs/api.md 24 */

static const struct route operator_routes[] = {
    ROUTE("/claimd/dump", GET, handle_dump, STATE_DUMP, ROUTE_GUARDED | ROUTE_OWN_FORM,
          "dump"),
    ROUTE("/claimd/load", POST, handle_load, STATE_LOAD, ROUTE_GUARDED, "load"),
    ROUTE_END,
};

const struct version version_operator = {
    .name = BYTES_LIT("claimd"),
    .base = BYTES_LIT("/claimd"),
    .routes = operator_routes,
    .open = true,
};

/* ------------------------------------------------------------------ the server */

enum { GUARDED = ROUTE_GUARDED | ROUTE_OWN_FORM | ROUTE_METRICS };

static const struct route root_routes[] = {
    ROUTE("/", GET, handle_versions, OPEN, 0, "listVersions"),
    ROUTE("/openapi.json", GET, handle_openapi, OPEN, 0, "describe"),
    ROUTE("/openapi.json", HEAD, handle_openapi, OPEN, 0, "describeBriefly"),
    ROUTE("/livez", GET, handle_livez, OPEN, ROUTE_METRICS, "isAlive"),
    ROUTE("/livez", HEAD, handle_livez, OPEN, ROUTE_METRICS, "isAliveBriefly"),
    ROUTE("/readyz", GET, handle_readyz, OPEN, ROUTE_METRICS, "isReady"),
    ROUTE("/readyz", HEAD, handle_readyz, OPEN, ROUTE_METRICS, "isReadyBriefly"),
    ROUTE("/metrics", GET, handle_metrics, METRICS_GET, GUARDED, "showMetrics"),
    ROUTE("/metrics", HEAD, handle_metrics, METRICS_GET, GUARDED, "showMetricsBriefly"),
    ROUTE_END,
};

const struct version version_root = {
    .name = BYTES_LIT(""), .routes = root_routes, .open = true};
