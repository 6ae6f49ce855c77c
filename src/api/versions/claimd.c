/* What claimd adds to the API of Zaqar (docs/api.md 11.3, 18.7); its messages are shown as by v2. */
#include "api/handlers/handlers.h"
#include "api/versions/version.h"

#define PROGRESS       "/claimd/queues/{queue}/subscriptions"
#define TOPIC_PROGRESS "/claimd/topics/{topic}/subscriptions"

static const struct route routes[] = {
    ROUTE("/claimd/claims", POST, handle_claim_any, CLAIMS_CREATE, 0, "claimFromSeveral"),
    ROUTE(PROGRESS, GET, handle_progress_list, SUBSCRIPTION_PROGRESS, 0, "listProgress"),
    ROUTE(PROGRESS "/{id}", GET, handle_progress_show, SUBSCRIPTION_PROGRESS, 0,
          "showProgress"),
    ROUTE(TOPIC_PROGRESS, GET, handle_progress_list, SUBSCRIPTION_PROGRESS, 0,
          "listProgressOfTopic"),
    ROUTE(TOPIC_PROGRESS "/{id}", GET, handle_progress_show, SUBSCRIPTION_PROGRESS, 0,
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

/* ------------------------------------------------------------------ operators */

/* What operators have besides, below /claimd/ (docs/api.md 24). */

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
