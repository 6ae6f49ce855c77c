/*
 * version: in what the versions of the API differ.
 *
 * Meaning is shared: every version leads to the same handlers and the same store. A
 * version is a table of routes and these few facts about form.
 */
#ifndef API_VERSIONS_VERSION_H
#define API_VERSIONS_VERSION_H

#include "api/route.h"
#include "api/wire/decode.h"
#include "api/wire/message.h"

struct version {
    struct bytes name; /* first segment of its paths: "v2"; of two with the same name, the
                          second one only has whole paths */
    struct bytes base; /* "/v2" */
    const struct route *routes;
    bool open; /* no Client-ID, project or token is asked for */

    /* Requests. */
    bool headers_required; /* Client-ID and X-Project-ID; else where a route says so */
    bool puts_metadata;    /* a queue is made with metadata; else a body is ignored */
    enum post_form post;   /* the document that posts messages */
    enum terms_form claim; /* the one that makes a claim */
    enum terms_form renew; /* the one that renews it */
    bool posts_make_queue; /* else ST_NOT_FOUND */
    bool queue_settings;   /* defaults and size limit of the queue count for posts */
    bool lists_delayed;    /* include_delayed */
    bool queue_filters;    /* name, with_count and metadata filters of the listing */
    bool
        reads_claim_ids; /* of a bulk delete; message_delete_with_claim_id demands them */

    /* Answers. */
    enum message_shape message;
    bool metadata_defaults; /* metadata shows reserved members that are unset */
    bool claims_hidden;     /* hrefs outside of claims go without claim id */
    bool empty_is_204;      /* an empty page has no body */
    bool bare_arrays;       /* claims and messages by id are an array at the top */
    bool tells_partial;     /* a post's answer has "partial": false */
    bool queues_must_exist; /* metadata and statistics of an unknown one: 404 */
};

enum { VERSIONS_MAX = 7 };

extern const struct version version_v1, version_v1_1, version_v2;

/* Without a version, such as "/" and "/metrics". */
extern const struct version version_root;

/* What is not Zaqar's, below /claimd/. */
extern const struct version version_claimd;

/* What operators have besides, below /claimd/ too (docs/api.md 24). */
extern const struct version version_operator;

/* What tests have besides, below /claimd/ too (docs/api.md 23). */
extern const struct version version_testapi;

/* The identity stub (identity/identity.h). */
extern const struct version version_identity;

#endif
