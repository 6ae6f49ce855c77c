/*
 * v1/handlers: what only API v1 has (API.md 15); all else leads to v2's handlers.
 */
#ifndef API_V1_HANDLERS_H
#define API_V1_HANDLERS_H

#include "api/call.h"

/* GET, HEAD .../queues/{queue}: whether there is such a queue, without a word. */
enum status v1_queue_exists(struct call *call);

/* PUT .../queues/{queue}/metadata: replaces it all. */
enum status v1_metadata_put(struct call *call);

#endif
