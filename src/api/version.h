/*
 * version: the differences between the versions of the API.
 *
 * All versions share the handlers and the store. A version is a table of routes, and
 * flags for the form of requests and responses.
 *
 *   Threads  any: constant
 */
#ifndef API_VERSION_H
#define API_VERSION_H

#include "api/route.h"
#include "api/wire/decode.h"
#include "api/wire/message.h"

struct version {
    struct bytes name; /* first segment of the paths: "v2". Versions can share a name */
    struct bytes base; /* "/v2" */
    const struct route *routes;
    bool open; /* needs no Client-ID, project or token */

    /* Requests. */
    bool headers_required; /* Client-ID and X-Project-ID; else only with ROUTE_CLIENT */
    bool puts_metadata;    /* PUT of a queue reads metadata; else it ignores its body */
    enum post_form post;   /* the document of a post */
    enum terms_form claim; /* the document of a claim */
    enum terms_form renew; /* the document of a renewal */
    bool posts_make_queue; /* a post creates its queue; else ST_NOT_FOUND */
    bool queue_settings;   /* defaults and size limit of the queue apply to posts */
    bool lists_delayed;    /* parameter include_delayed */
    bool queue_filters;    /* parameters name, with_count and filters on metadata */
    bool reads_claim_ids;  /* parameter claim_ids of a bulk delete */

    /* Responses. */
    enum message_shape message;
    bool metadata_defaults; /* metadata shows the defaults of reserved members */
    bool claims_hidden;     /* hrefs outside of claims have no claim id */
    bool empty_is_204;      /* an empty page has no body */
    bool bare_arrays;       /* claims, and messages by id, are a bare array */
    bool tells_partial;     /* the response to a post has "partial": false */
    bool queues_must_exist; /* metadata and statistics of an unknown queue: 404 */
};

enum { VERSIONS_MAX = 8 };

extern const struct version version_v1, version_v1_1, version_v2;

/* Paths without a version, such as "/" and "/metrics". */
extern const struct version version_root;

/* Below /claimd/: for all clients, for operators (docs/api.md 24) and for tests (23). */
extern const struct version version_claimd, version_operator, version_testapi;

/* The page at /claimd/ui/. */
extern const struct version version_ui;

/* The identity stub (handlers/identity.c). */
extern const struct version version_identity;

#endif
