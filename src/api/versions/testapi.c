/* What tests have besides, below /claimd/ (docs/api.md 23). */
#include "api/handlers/testapi.h"
#include "api/openapi/operation.h"
#include "api/versions/version.h"

#define TESTAPI(path, method, handle, operation)                                         \
    {                                                                                    \
        "/claimd/" path, METHOD_##method, handle, ACTION_CI_USE, ROUTE_GUARDED,          \
            operation                                                                    \
    }

static const struct route routes[] = {
    TESTAPI("clock", GET, handle_clock_show, &operation_clock_show),
    TESTAPI("clock", PUT, handle_clock_set, &operation_clock_set),
    TESTAPI("clock/advance", POST, handle_clock_advance, &operation_clock_advance),
    TESTAPI("reset", POST, handle_reset, &operation_reset),
    TESTAPI("state", GET, handle_state_show, &operation_state_show),
    TESTAPI("state", PUT, handle_state_set, &operation_state_set),
    TESTAPI("history", GET, handle_history, &operation_history),
    TESTAPI("expect", GET, handle_expect, &operation_expect),
    TESTAPI("leaks", GET, handle_leaks, &operation_leaks),
    TESTAPI("faults", GET, handle_faults_show, &operation_faults_show),
    TESTAPI("faults", PUT, handle_faults_set, &operation_faults_set),
    TESTAPI("faults", DELETE, handle_faults_delete, &operation_faults_delete),
    ROUTE_END,
};

const struct version version_testapi = {
    .name = BYTES_LIT("claimd"),
    .base = BYTES_LIT("/claimd"),
    .routes = routes,
    .open = true,
};
