/*
 * caller: checks of single headers and names (docs/api.md 3.1 to 3.5). Headers come as in
 * struct request: absent if not sent. check.c calls the checks in the order of the
 * contract.
 *
 *   Cost     O(length of the header)
 *   Memory   none
 *   Threads  any: no state
 */
#ifndef API_CALLER_H
#define API_CALLER_H

#include "claimd/api/limits.h"
#include "claimd/base/bytes.h"
#include "claimd/base/status.h"

#define CALLER_QUEUE_NAME_MAX 64
#define CALLER_PROJECT_MAX    256

/* Refuses a body of form data. ST_BAD_CONTENT_TYPE. */
enum status caller_content_type(struct bytes content_type, bool has_body);

/* ST_NOT_ACCEPTABLE if the header excludes application/json. */
enum status caller_accept(struct bytes accept);

/* True if the header accepts this media type by its full name. */
bool caller_names_type(struct bytes accept, struct bytes type);

/*
 * Reads the client as a number for `echo`: equal for every spelling of the same UUID
 * (strict), or for the same text (not strict). ST_MISSING_CLIENT_ID, ST_BAD_CLIENT_ID.
 */
enum status
caller_client(struct bytes client_id, const struct api_limits *limits, uint64_t *out);

/*
 * Checks a project. ST_MISSING_PROJECT, ST_EMPTY_PROJECT. If it is too long:
 * ST_BAD_QUEUE_NAME where the path names a queue, else ST_BAD_PROJECT. In API v1 an
 * absent project is the one with the empty name, so v1 does not call this without a
 * project.
 */
enum status caller_project(struct bytes project, bool names_queue);

/* Checks the name of a queue, percent-decoded. ST_BAD_QUEUE_NAME. */
enum status caller_queue_name(struct bytes name);

/* Checks the media type of a PATCH of a queue. ST_BAD_MEDIA_TYPE. */
enum status caller_patch_type(struct bytes content_type);

#endif
