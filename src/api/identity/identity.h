/*
 * identity: the identity stub below /identity, the part of Keystone that SDKs need to find this
 * server (docs/api.md 15).
 *
 * The response to a login has a token (claimd/auth/auth.h), and a catalog in which every service is
 * this server, at the address that the client has used.
 */
#ifndef API_IDENTITY_IDENTITY_H
#define API_IDENTITY_IDENTITY_H

#include "api/context.h"

#include <jansson.h>

/* login.c: logins, and the handlers of a token */
handler_fn identity_login_v3;
handler_fn identity_login_v2;
handler_fn identity_show_token;
handler_fn identity_revoke_token;
handler_fn identity_list_projects;
handler_fn identity_list_tenants;
handler_fn identity_show_catalog;

/* Writes the response from a tree, which it owns. NULL: ST_NO_MEMORY. */
enum status identity_respond(struct context *ctx, int code, json_t *tree);

/* catalog.c: makes the services of v3 and v2.0, owned trees. ST_NO_MEMORY, ST_BAD_VALUE. */
enum status identity_catalog_v3(struct context *ctx, struct bytes project, json_t **out);
enum status identity_catalog_v2(struct context *ctx, struct bytes project, json_t **out);

#endif
