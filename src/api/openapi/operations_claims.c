/* Claims (docs/api.md 9, 11.3, 14.5). */
#include "api/openapi/operation.h"

#define TAG "claims"

#define NUMBER "'Claim-Number':<headers/Number>"

#define MADE                                                                             \
    "'Location':<headers/Location>," NUMBER ",'Preference-Applied':<headers/Preference>"

#define NOTHING                                                                          \
    {                                                                                    \
        .code = 204, .what = "No message is available",                                  \
        .headers = "'Preference-Applied':<headers/Preference>"                           \
    }

#define CLAIMED                                                                          \
    "{'type':'object','required':['messages'],'properties':{'messages':<schemas/"        \
    "Messages>}}"

const struct operation operation_claim_create = {
    .name = "claimMessages",
    .tag = TAG,
    .summary = "Claim the oldest ready messages",
    .parameters = "<parameters/ClaimLimit>,<parameters/Prefer>",
    .body = "<schemas/Terms>",
    .answers = {{.code = 201, .what = "Claimed", .headers = MADE, .schema = CLAIMED},
                NOTHING},
};

const struct operation operation_claim_create_v1 = {
    .name = "claimMessages",
    .tag = TAG,
    .summary = "Claim the oldest ready messages",
    .parameters = "<parameters/ClaimLimit>,<parameters/Prefer>",
    .body = "<schemas/TermsV1>",
    .body_required = true,
    .answers = {{.code = 201,
                 .what = "Claimed",
                 .headers = MADE,
                 .schema = "<schemas/MessagesV1>"},
                NOTHING},
};

const struct operation operation_claim_several = {
    .name = "claimFromSeveral",
    .tag = TAG,
    .summary = "Claim messages from the first of several queues that has any",
    .parameters = "<parameters/Several>,<parameters/ClaimLimit>,<parameters/Prefer>",
    .body = "<schemas/Terms>",
    .answers = {{.code = 201,
                 .what = "Claimed. Location and the hrefs name the queue",
                 .headers = MADE,
                 .schema = CLAIMED},
                NOTHING},
};

#define CLAIM(messages)                                                                  \
    "{'type':'object','required':['age','ttl','href','messages'],'properties':{"         \
    "'age':{'type':'integer','minimum':0},'ttl':{'type':'integer'},"                     \
    "'href':{'type':'string'},'messages':" messages "}}"

const struct operation operation_claim_show = {
    .name = "showClaim",
    .tag = TAG,
    .summary = "Show the claim and its messages",
    .answers = {{.code = 200,
                 .what = "The claim",
                 .headers = NUMBER,
                 .schema = CLAIM("<schemas/Messages>")}},
};

const struct operation operation_claim_show_v1 = {
    .name = "showClaim",
    .tag = TAG,
    .summary = "Show the claim and its messages",
    .answers = {{.code = 200,
                 .what = "The claim",
                 .headers = NUMBER,
                 .schema = CLAIM("<schemas/MessagesV1>")}},
};

const struct operation operation_claim_renew = {
    .name = "renewClaim",
    .tag = TAG,
    .summary = "Renew the claim",
    .body = "<schemas/Renewal>",
    .body_required = true,
    .answers = {{.code = 204, .what = "Renewed", .headers = NUMBER}},
};

const struct operation operation_claim_renew_v1 = {
    .name = "renewClaim",
    .tag = TAG,
    .summary = "Renew the claim",
    .body = "<schemas/RenewalV1>",
    .body_required = true,
    .answers = {{.code = 204, .what = "Renewed", .headers = NUMBER}},
};

const struct operation operation_claim_release = {
    .name = "releaseClaim",
    .tag = TAG,
    .summary = "Release the claim",
    .answers = {{.code = 204, .what = "The claim is released or did not exist"}},
};
