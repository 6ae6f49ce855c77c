/*
 * openapi: GET /openapi.json, what this server serves (docs/api.md 6.6).
 *
 * Made from the tables of routes, what stands beside them (operation.h), and the limits in
 * force.
 *
 *   Cost     written anew for each request, some 80 KB in a third of a millisecond: clients ask
 *            once, and a server that nobody asks has no memory in it
 */
#ifndef API_OPENAPI_OPENAPI_H
#define API_OPENAPI_OPENAPI_H

#include "api/context.h"

handler_fn handle_openapi;

#endif
