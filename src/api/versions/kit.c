/* What tests have besides, below /claimd/ (docs/api.md 23). */
#include "api/handlers/kit.h"
#include "api/openapi/operation.h"
#include "api/versions/version.h"

#define KIT(path, method, handle, operation)                                             \
    {                                                                                    \
        "/claimd/" path, METHOD_##method, handle, ACTION_CI_USE, ROUTE_GUARDED,          \
            operation                                                                    \
    }

static const struct route routes[] = {
    KIT("clock", GET, handle_clock_show, &operation_clock_show),
    KIT("clock", PUT, handle_clock_set, &operation_clock_set),
    KIT("clock/advance", POST, handle_clock_advance, &operation_clock_advance),
    KIT("reset", POST, handle_reset, &operation_reset),
    KIT("state", GET, handle_state_show, &operation_state_show),
    KIT("state", PUT, handle_state_set, &operation_state_set),
    KIT("history", GET, handle_history, &operation_history),
    KIT("expect", GET, handle_expect, &operation_expect),
    KIT("leaks", GET, handle_leaks, &operation_leaks),
    KIT("faults", GET, handle_faults_show, &operation_faults_show),
    KIT("faults", PUT, handle_faults_set, &operation_faults_set),
    KIT("faults", DELETE, handle_faults_delete, &operation_faults_delete),
    ROUTE_END,
};

const struct version version_kit = {
    .name = BYTES_LIT("claimd"),
    .base = BYTES_LIT("/claimd"),
    .routes = routes,
    .open = true,
};
