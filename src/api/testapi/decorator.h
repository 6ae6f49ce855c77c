/*
 * decorator: what the test API adds to the way of a request (docs/api.md 23): faults, a history of
 * what was refused and shown, and a listener that counts which waiters have not yet been served.
 *
 * A fault is found once, after the checks, by the request's own header or by the rules. What is
 * found stands in its progress, so that a retry counts nothing twice. The front end carries out
 * what concerns the response: response.fault.
 */
#ifndef API_TESTAPI_DECORATOR_H
#define API_TESTAPI_DECORATOR_H

#include "api/context.h"

extern const struct api_steps steps_testapi;

#endif
