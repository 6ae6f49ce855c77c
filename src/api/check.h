/*
 * check: the checks that every request needs, in the order of docs/api.md 3.1.
 *
 *   Threads  a context belongs to one call of api_handle()
 */
#ifndef API_CHECK_H
#define API_CHECK_H

#include "api/context.h"

/* Refuses a request with a foreign Host, if the front end asks for that check. */
enum status check_host(struct context *ctx);

/*
 * Checks headers and names of a request whose resource is known, and fills in project and
 * client. The route may be NULL: that is checked later.
 */
enum status check_request(struct context *ctx);

/* Refuses a request whose caller may not do another action, too. ST_FORBIDDEN,
 * explained. */
enum status check_action(struct context *ctx, enum action action);

/*
 * Identifies the caller of an open route, and checks that it may do an action
 * (ACTION_COUNT: none), for all projects or for that of the request. Statuses of
 * access_ask(). Without authentication: ST_OK, and an empty caller.
 */
enum status check_caller(struct context *ctx, enum action action, bool everywhere,
                         struct access_caller *out);

#endif
