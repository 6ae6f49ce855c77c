/* The routes of the test API (docs/api.md 23). */
#include "api/testapi/handlers.h"
#include "api/version.h"

#define TESTAPI(path, method, handle, operation)                                         \
    ROUTE("/claimd/" path, method, handle, CI_USE, ROUTE_GUARDED, operation)

static const struct route routes[] = {
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
    .routes = routes,
    .open = true,
};
