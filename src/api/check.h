/*
 * check: what is checked of every request, in the order of docs/api.md 3.1.
 */
#ifndef API_CHECK_H
#define API_CHECK_H

#include "api/context.h"

/*
 * Refuses a request whose Host is none of ours, where the front end asks for that, before anything
 * else is known of it. `allowed` is the list of the option allowed_hosts, or absent.
 */
enum status check_host(struct context *ctx, struct bytes allowed);

/*
 * Checks headers and names of a request whose resource is known, and fills in project and
 * client. There may be no route, where the resource lacks the method: that is found out
 * later.
 */
enum status check_request(struct context *ctx);

#endif
