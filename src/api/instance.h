/*
 * instance: an API, with the versions that it serves. claimd/api/api.h opens and frees
 * it.
 *
 *   Threads  any, once the API is open
 */
#ifndef API_INSTANCE_H
#define API_INSTANCE_H

#include "api/route.h"
#include "api/version.h"
#include "claimd/api/api.h"

/* A version that is enabled. */
struct served {
    const struct version *version;
    struct route_resources resources; /* owned */
};

struct api {
    const struct api_steps *steps;
    struct api_config config;           /* `condition` is not NULL */
    struct quotas *quotas;              /* owned */
    struct running_keys *keys;          /* owned */
    struct snapshots *snapshots;        /* owned */
    struct served served[VERSIONS_MAX]; /* newest first */
    size_t count;
    struct served root; /* "/" */
};

#endif
