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
    struct api_config config;           /* with a condition */
    struct quotas *quotas;              /* owned */
    struct served served[VERSIONS_MAX]; /* newest first */
    size_t count;
    struct served root; /* "/" */
};

/* The response is complete but for what depends on the store's log: is it to be held? */
enum api_next response_complete(struct context *ctx);

#endif
