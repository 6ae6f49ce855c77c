/*
 * response: what a handler puts into the response (struct response).
 *
 *   Threads  a context belongs to one call of api_handle()
 */
#ifndef API_RESPONSE_H
#define API_RESPONSE_H

#include "api/context.h"

/* The type of a stream of events, which a client asks for in Accept. */
#define RESPONSE_STREAM_TYPE "text/event-stream"

/* True if the client accepts a stream of events (docs/api.md 26.6). */
bool request_asks_for_stream(const struct request *req);

/* True for a browser, which accepts HTML and does not name JSON (docs/api.md 6.1). */
bool request_asks_for_page(const struct request *req);

/* Adds a header. Borrows the value, which lives as long as the arena:
 * RESPONSE_VALUE_MAX. */
void response_add_header(struct context *ctx, const char *name, const char *value);

/* The same with a copy of the value. ST_NO_MEMORY. */
enum status
response_copy_header(struct context *ctx, const char *name, struct bytes value);

/* Adds Location with this path. ST_NO_MEMORY. */
enum status response_add_location(struct context *ctx, const char *tail, struct bytes id);

/* Complete the response: without a body, with the JSON or with this type in res->body.
 * ST_OK. */
enum status response_empty(struct context *ctx, int code);
enum status response_json(struct context *ctx, int code);
enum status response_typed(struct context *ctx, int code, const char *type);

/* Sets res->lsn of a complete response. API_HOLD if there is one, else API_SEND. */
enum api_next response_complete(struct context *ctx);

#endif
