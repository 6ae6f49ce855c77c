/* The identity stub (docs/api.md 15.4): as much as SDKs need to be told. */
#include "api/openapi/operation.h"

#define TAG "identity"

#define SUBJECT "'X-Subject-Token':{'required':true,'schema':{'type':'string'}}"

#define OBJECT(member)                                                                   \
    "{'type':'object','required':['" member "'],'properties':{'" member                  \
    "':{'type':'object'}},"                                                              \
    "'additionalProperties':true}"

#define ARRAY(member)                                                                    \
    "{'type':'object','required':['" member "'],'properties':{'" member                  \
    "':{'type':'array',"                                                                 \
    "'items':{'type':'object'}}},'additionalProperties':true}"

const struct operation operation_login = {
    .name = "logIn",
    .tag = TAG,
    .summary = "Log in with a password or a token",
    .body_required = true,
    .body = OBJECT("auth"),
    .answers = {{.code = 201,
                 .what = "The header X-Subject-Token has the token",
                 .headers = SUBJECT ",'Vary':{'schema':{'type':'string'}}",
                 .schema = OBJECT("token")}},
    .refuses = {401},
};

const struct operation operation_token_show = {
    .name = "showToken",
    .tag = TAG,
    .summary = "Show the token",
    .parameters = "<parameters/SubjectToken>",
    .answers = {{.code = 200,
                 .what = "The token",
                 .headers = SUBJECT,
                 .schema = OBJECT("token")}},
    .refuses = {401},
};

const struct operation operation_token_revoke = {
    .name = "revokeToken",
    .tag = TAG,
    .summary = "Revoke a token (the stub accepts this, but the token stays valid until "
               "it expires)",
    .parameters = "<parameters/SubjectToken>",
    .answers = {{.code = 204, .what = "The token is known"}},
    .refuses = {401},
};

const struct operation operation_projects = {
    .name = "listProjects",
    .tag = TAG,
    .summary = "List the project of the token",
    .needs_token = true,
    .answers = {{.code = 200,
                 .what = "An array with this project",
                 .schema = ARRAY("projects")}},
    .refuses = {401},
};

const struct operation operation_catalog = {
    .name = "showCatalog",
    .tag = TAG,
    .summary = "List the services, all of which are this server",
    .needs_token = true,
    .answers = {{.code = 200, .what = "The catalog", .schema = ARRAY("catalog")}},
    .refuses = {401},
};

const struct operation operation_login_v2 = {
    .name = "logInV2",
    .tag = TAG,
    .summary = "Log in with the API of Keystone v2.0 and Rackspace",
    .body_required = true,
    .body = OBJECT("auth"),
    .answers = {{.code = 200,
                 .what = "The document has the token",
                 .schema = OBJECT("access")}},
    .refuses = {401},
};

const struct operation operation_tenants = {
    .name = "listTenants",
    .tag = TAG,
    .summary = "List the project of the token",
    .needs_token = true,
    .answers = {{.code = 200,
                 .what = "An array with this project",
                 .schema = ARRAY("tenants")}},
    .refuses = {401},
};

const struct operation operation_identity_versions = {
    .name = "listIdentityVersions",
    .tag = TAG,
    .summary = "List the versions of the identity API",
    .answers =
        {{.code = 300,
          .what = "The versions",
          .schema =
              "{'type':'object','required':['versions'],'properties':{'versions':" ARRAY(
                  "values") "}}"}},
};

const struct operation operation_identity_v3 = {
    .name = "showIdentityV3",
    .tag = TAG,
    .summary = "Show version 3 of the identity API",
    .answers = {{.code = 200,
                 .what = "The version and its links",
                 .schema = OBJECT("version")}},
};

const struct operation operation_identity_v2 = {
    .name = "showIdentityV2",
    .tag = TAG,
    .summary = "Show version 2.0 of the identity API",
    .answers = {{.code = 200,
                 .what = "The version and its links",
                 .schema = OBJECT("version")}},
};
