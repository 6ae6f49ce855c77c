/*
 * key: the Idempotency-Key of a request (docs/api.md 27). The store keeps the keys of
 * requests that had an effect (store/key.h). An api keeps those that run: a second
 * request with the same key is refused until the first one is done.
 *
 *   Cost     of a request without the header: one comparison
 *   Memory   a request with a key has 64 bytes until it ends
 *   Threads  any; the table has a lock
 */
#ifndef API_KEY_H
#define API_KEY_H

#include "api/context.h"
#include "api/response.h"

struct running_keys; /* opaque */

/* ST_NO_MEMORY, ST_UNAVAILABLE. */
enum status running_keys_new(struct mem *mem, struct running_keys **out);

/* NULL is fine. No request may be left. */
void running_keys_free(struct running_keys *keys);

static inline bool
key_is_sent(const struct context *ctx)
{
    return bytes_present(ctx->req->headers[API_HEADER_IDEMPOTENCY_KEY]);
}

/* Checks the key of a unique message (docs/api.md 30). where: for the refusal.
 * ST_BAD_VALUE with a reason. */
enum status unique_key_check(struct context *ctx, const char *where, struct bytes text);

/* Reads the header, and sets ctx->op.key. */
enum status key_read(struct context *ctx);

/*
 * Sets ctx->op.key if the request has a key. A handler calls it when it has read its
 * input. ST_BAD_VALUE with a reason; ST_KEY_RUNNING; ST_NO_MEMORY.
 */
static inline enum status
key_begin(struct context *ctx)
{
    return __builtin_expect(key_is_sent(ctx), 0) ? key_read(ctx) : ST_OK;
}

/* Adds the header Idempotent-Replay if the response is that of an earlier request. */
static inline void
key_mark_repeated(struct context *ctx)
{
    if (__builtin_expect(ctx->op.repeated, 0))
        response_add_header(ctx, "Idempotent-Replay", "true");
}

/* The request has ended. */
void key_end(struct running_keys *keys, struct progress *progress);

#endif
