/*
 * dispatch: a request's way through the API: its resource, the checks, its handler, its response.
 */
#ifndef API_DISPATCH_H
#define API_DISPATCH_H

#include "api/context.h"

/* A version that is switched on. */
struct served {
    const struct version *version;
    struct resources resources; /* owned */
};

struct api {
    const struct api_steps *steps;
    struct api_limits limits;
    struct store *store;
    struct mem *mem;
    const struct auth *auth; /* borrowed; NULL: none */
    struct access *access;   /* borrowed; NULL: headers are believed */
    struct signer *signer;
    struct seal *seal;
    const struct clock *real; /* borrowed; with access, signer or the test API */
    const struct api_condition *condition; /* borrowed */
    const struct metrics *metrics;         /* borrowed; NULL: none */
    struct testapi *testapi;               /* borrowed; NULL: none */
    struct quotas *quotas;                 /* owned */
    struct bytes allowed_hosts;            /* borrowed; absent: none */
    struct served served[VERSIONS_MAX];    /* newest first */
    size_t count;
    struct served root; /* "/" */
};

/* The response is complete but for what depends on the store's log: is it to be held? */
enum api_next response_complete(struct context *ctx);

#endif
