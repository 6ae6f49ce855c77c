/*
 * keystone_token: the document in which Keystone says who has a token.
 *
 *     {"token": {"expires_at": "2026-01-31T13:00:00.000000Z", "user": {"id": ...},
 *                "project": {"id": ...}, "roles": [{"name": ...}, ...], ...}}
 *
 * Of what is read nothing may be missing, of another kind, or there twice; what else is in it
 * is passed over. A token may be without a project and without roles.
 *
 *   Cost     O(length), constant stack
 *   Memory   none
 */
#ifndef AUTH_KEYSTONE_TOKEN_H
#define AUTH_KEYSTONE_TOKEN_H

#include "auth/verdict.h"
#include "claimd/auth/role_map.h"

/*
 * Fills in name, project, roles and expires_ms. ST_BAD_BODY: it is no such document, *why
 * says why, and what was filled in means nothing.
 */
enum status keystone_token_read(struct bytes text, const struct role_map *roles,
                                struct verdict *out, struct reason *why);

#endif
