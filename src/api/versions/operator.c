/* What operators have besides, below /claimd/ (docs/api.md 24). */
#include "api/handlers/handlers.h"
#include "api/versions/version.h"

static const struct route routes[] = {
    {"/claimd/dump", METHOD_GET, handle_dump, ACTION_STATE_DUMP,
     ROUTE_GUARDED | ROUTE_OWN_FORM, "dump"},
    {"/claimd/load", METHOD_POST, handle_load, ACTION_STATE_LOAD, ROUTE_GUARDED, "load"},
    ROUTE_END,
};

const struct version version_operator = {
    .name = BYTES_LIT("claimd"),
    .base = BYTES_LIT("/claimd"),
    .routes = routes,
    .open = true,
};
