/* The identity stub's routes; they are there only with --identity-stub. */
#include "api/identity/identity.h"
#include "api/openapi/operation.h"

#define ROOT "/identity"
#define V3   ROOT "/v3"
#define V2   ROOT "/v2.0"

static const struct route routes[] = {
    {V3 "/auth/tokens", METHOD_POST, identity_login_v3, ACTION_OPEN, 0, &operation_login},
    {V3 "/auth/tokens", METHOD_GET, identity_show_token, ACTION_OPEN, 0,
     &operation_token_show},
    {V3 "/auth/tokens", METHOD_HEAD, identity_show_token, ACTION_OPEN, 0,
     &operation_token_show},
    {V3 "/auth/tokens", METHOD_DELETE, identity_revoke_token, ACTION_OPEN, 0,
     &operation_token_revoke},
    {V3 "/auth/projects", METHOD_GET, identity_list_projects, ACTION_OPEN, 0,
     &operation_projects},
    {V3 "/auth/catalog", METHOD_GET, identity_show_catalog, ACTION_OPEN, 0,
     &operation_catalog},
    {V2 "/tokens", METHOD_POST, identity_login_v2, ACTION_OPEN, 0, &operation_login_v2},
    {V2 "/tenants", METHOD_GET, identity_list_tenants, ACTION_OPEN, 0,
     &operation_tenants},
    {ROOT, METHOD_GET, identity_list_versions, ACTION_OPEN, 0,
     &operation_identity_versions},
    {ROOT "/", METHOD_GET, identity_list_versions, ACTION_OPEN, 0,
     &operation_identity_versions},
    {V3, METHOD_GET, identity_show_v3, ACTION_OPEN, 0, &operation_identity_v3},
    {V3 "/", METHOD_GET, identity_show_v3, ACTION_OPEN, 0, &operation_identity_v3},
    {V2, METHOD_GET, identity_show_v2, ACTION_OPEN, 0, &operation_identity_v2},
    {V2 "/", METHOD_GET, identity_show_v2, ACTION_OPEN, 0, &operation_identity_v2},
    ROUTE_END,
};

const struct version version_identity = {
    .name = BYTES_LIT("identity"),
    .base = BYTES_LIT(ROOT),
    .routes = routes,
    .open = true,
};
