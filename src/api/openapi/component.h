/*
 * component: what several operations share in /openapi.json, its "components".
 *
 * Only what is named is written: a server without version 1 shows none of its schemas.
 */
#ifndef API_OPENAPI_COMPONENT_H
#define API_OPENAPI_COMPONENT_H

#include "api/openapi/template.h"

/* Which are named; the rest is this file's own. */
struct component_set {
    uint64_t named;
};

/* Adds those that a template names, and those that they name. NULL: none. */
void components_add(struct component_set *set, const char *text);

/* Writes them: {"parameters":{...},...}. */
void components_write(struct buf *out, const struct component_set *set,
                      const struct api_limits *limits);

#endif
