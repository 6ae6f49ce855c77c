/* The identity stub's routes; they are there only with --identity-stub. */
#include "api/identity/identity.h"

#define ROOT "/identity"
#define V3   ROOT "/v3"
#define V2   ROOT "/v2.0"

static const struct route routes[] = {
    {V3 "/auth/tokens", METHOD_POST, identity_login_v3, ACTION_OPEN, 0, "logIn"},
    {V3 "/auth/tokens", METHOD_GET, identity_show_token, ACTION_OPEN, 0, "showToken"},
    {V3 "/auth/tokens", METHOD_HEAD, identity_show_token, ACTION_OPEN, 0,
     "showTokenBriefly"},
    {V3 "/auth/tokens", METHOD_DELETE, identity_revoke_token, ACTION_OPEN, 0,
     "revokeToken"},
    {V3 "/auth/projects", METHOD_GET, identity_list_projects, ACTION_OPEN, 0,
     "listProjects"},
    {V3 "/auth/catalog", METHOD_GET, identity_show_catalog, ACTION_OPEN, 0,
     "showCatalog"},
    {V2 "/tokens", METHOD_POST, identity_login_v2, ACTION_OPEN, 0, "logInV2"},
    {V2 "/tenants", METHOD_GET, identity_list_tenants, ACTION_OPEN, 0, "listTenants"},
    {ROOT, METHOD_GET, identity_list_versions, ACTION_OPEN, 0, "listIdentityVersions"},
    {ROOT "/", METHOD_GET, identity_list_versions, ACTION_OPEN, 0,
     "listIdentityVersions"},
    {V3, METHOD_GET, identity_show_v3, ACTION_OPEN, 0, "showIdentityV3"},
    {V3 "/", METHOD_GET, identity_show_v3, ACTION_OPEN, 0, "showIdentityV3"},
    {V2, METHOD_GET, identity_show_v2, ACTION_OPEN, 0, "showIdentityV2"},
    {V2 "/", METHOD_GET, identity_show_v2, ACTION_OPEN, 0, "showIdentityV2"},
    ROUTE_END,
};

const struct version version_identity = {
    .name = BYTES_LIT("identity"),
    .base = BYTES_LIT(ROOT),
    .routes = routes,
    .open = true,
};
