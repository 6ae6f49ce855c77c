/*
 * caller: who is asking and for what, from the headers and the path (docs/api.md 3.1 to
 * 3.5).
 *
 * Each function is one check of the fixed order, so that a router reads as the contract.
 * Headers come as in struct request: absent if not sent.
 *
 *   Cost     O(length of the header)
 *   Memory   none
 */
#ifndef API_CALLER_H
#define API_CALLER_H

#include "claimd/api/limits.h"
#include "claimd/base/bytes.h"
#include "claimd/base/status.h"

#define CALLER_QUEUE_NAME_MAX 64
#define CALLER_PROJECT_MAX    256

/* Form data is refused if there is a body. ST_BAD_CONTENT_TYPE. */
enum status caller_content_type(struct bytes content_type, bool has_body);

/* Whether application/json may be sent. ST_NOT_ACCEPTABLE. */
enum status caller_accept(struct bytes accept);

/* Whether this media type is asked for by its name. */
bool caller_names_type(struct bytes accept, struct bytes type);

/*
 * The client as a number for `echo`: equal for every spelling of the same UUID (strict),
 * or for the same text (off). ST_MISSING_CLIENT_ID, ST_BAD_CLIENT_ID.
 */
enum status
caller_client(struct bytes client_id, const struct api_limits *limits, uint64_t *out);

/*
 * Checks a project that was sent, or must be. ST_MISSING_PROJECT, ST_EMPTY_PROJECT;
 * too long: ST_BAD_QUEUE_NAME where the path names a queue, else ST_BAD_PROJECT.
 * API v1 takes an absent one for the nameless project: it calls this only for a present
 * one.
 */
enum status caller_project(struct bytes project, bool names_queue);

/* The name of a queue, percent-decoded. ST_BAD_QUEUE_NAME. */
enum status caller_queue_name(struct bytes name);

/* The media type that a PATCH of a queue needs. ST_BAD_MEDIA_TYPE. */
enum status caller_patch_type(struct bytes content_type);

#endif
