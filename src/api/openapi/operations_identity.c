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
    .summary = "Log in, with a password or a token",
    .body_required = true,
    .body = OBJECT("auth"),
    .answers = {{.code = 201,
                 .what = "The token is in the header",
                 .headers = SUBJECT ",'Vary':{'schema':{'type':'string'}}",
                 .schema = OBJECT("token")}},
    .refuses = {401},
};

const struct operation operation_token_show = {
    .name = "showToken",
    .tag = TAG,
    .summary = "What is this token?",
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
    .summary = "Take a token back (which the stub cannot: it ends by itself)",
    .parameters = "<parameters/SubjectToken>",
    .answers = {{.code = 204, .what = "It was a token"}},
    .refuses = {401},
};

const struct operation operation_projects = {
    .name = "listProjects",
    .tag = TAG,
    .summary = "The project that the token is for",
    .needs_token = true,
    .answers = {{.code = 200, .what = "It alone", .schema = ARRAY("projects")}},
    .refuses = {401},
};

const struct operation operation_catalog = {
    .name = "showCatalog",
    .tag = TAG,
    .summary = "The services: all of them are this server",
    .needs_token = true,
    .answers = {{.code = 200, .what = "The catalog", .schema = ARRAY("catalog")}},
    .refuses = {401},
};

const struct operation operation_login_v2 = {
    .name = "logInV2",
    .tag = TAG,
    .summary = "Log in, as Keystone v2.0 and Rackspace had it",
    .body_required = true,
    .body = OBJECT("auth"),
    .answers = {{.code = 200,
                 .what = "The token is in the document",
                 .schema = OBJECT("access")}},
    .refuses = {401},
};

const struct operation operation_tenants = {
    .name = "listTenants",
    .tag = TAG,
    .summary = "The project that the token is for",
    .needs_token = true,
    .answers = {{.code = 200, .what = "It alone", .schema = ARRAY("tenants")}},
    .refuses = {401},
};

const struct operation operation_identity_versions = {
    .name = "listIdentityVersions",
    .tag = TAG,
    .summary = "The versions of the identity API",
    .answers =
        {{.code = 300,
          .what = "All of them",
          .schema =
              "{'type':'object','required':['versions'],'properties':{'versions':" ARRAY(
                  "values") "}}"}},
};

const struct operation operation_identity_v3 = {
    .name = "showIdentityV3",
    .tag = TAG,
    .summary = "Version 3 of the identity API",
    .answers = {{.code = 200, .what = "Where it is", .schema = OBJECT("version")}},
};

const struct operation operation_identity_v2 = {
    .name = "showIdentityV2",
    .tag = TAG,
    .summary = "Version 2.0 of the identity API",
    .answers = {{.code = 200, .what = "Where it is", .schema = OBJECT("version")}},
};
