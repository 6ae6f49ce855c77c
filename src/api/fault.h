/*
 * fault: what befalls a request in a server that tests are run against (docs/api.md 23.7).
 *
 * It is found once, after the checks, by the request's own header or by the rules; what is
 * found stands in its progress, so that asking again counts nothing twice. What is to be done
 * with the answer is the front end's: response.fault.
 */
#ifndef API_FAULT_H
#define API_FAULT_H

#include "api/context.h"

/*
 * With the test API, before the handler. ST_OK: go on. ST_AGAIN: the clock is on its way. Else the
 * request ends here: the fault is an answer, or there is none, or the header is wrong.
 */
enum status fault_before(struct context *ctx);

/* With the test API, when the answer is complete, for `st`. */
void fault_after(struct context *ctx, enum status st);

#endif
