/*
 * identity: the part of Keystone that SDKs need to find this server (docs/api.md 15),
 * below /identity, as one more table of routes.
 *
 * A login is answered with a token (claimd/auth/auth.h) and a catalog in which every
 * service is this very server, at the address by which the client has reached it.
 */
#ifndef API_IDENTITY_IDENTITY_H
#define API_IDENTITY_IDENTITY_H

#include "api/context.h"

#include <jansson.h>

/* versions.c: discovery */
handler_fn identity_list_versions;
handler_fn identity_show_v3;
handler_fn identity_show_v2;

/* login.c: POST .../tokens */
handler_fn identity_login_v3;
handler_fn identity_login_v2;

/* tokens.c: what a token is good for */
handler_fn identity_show_token;
handler_fn identity_revoke_token;
handler_fn identity_list_projects;
handler_fn identity_list_tenants;
handler_fn identity_show_catalog;

/* "http://", or "https://", and what the client calls this server. ST_BAD_VALUE; ST_NO_MEMORY. */
enum status identity_origin(struct context *ctx, struct bytes *out);

/* The caller that this header's token tells of. ST_UNAUTHORIZED, ST_NO_MEMORY. */
enum status
identity_caller(struct context *ctx, enum api_header header, struct auth_caller *out);

/* Answers with a tree, which it takes; NULL: ST_NO_MEMORY. */
enum status identity_respond(struct context *ctx, int code, json_t *tree);

/* catalog.c: the services, as v3 and as v2.0 show them; owned trees. ST_NO_MEMORY,
 * ST_BAD_VALUE. */
enum status identity_catalog_v3(struct context *ctx, struct bytes project, json_t **out);
enum status identity_catalog_v2(struct context *ctx, struct bytes project, json_t **out);

/* tokens.c: {"token": ...} of v3 for this caller; an owned tree. Errors as above. */
enum status
identity_describe(struct context *ctx, const struct auth_caller *caller, json_t **out);

/* A JSON string as bytes; absent if it is none. */
static inline struct bytes
identity_text(const json_t *value)
{
    return json_is_string(value)
               ? bytes_of(json_string_value(value), json_string_length(value))
               : BYTES_NONE;
}

#endif
