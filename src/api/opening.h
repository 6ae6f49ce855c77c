/*
 * opening: the bodies of a queue that keeps them encrypted, on their way in and out
 * (docs/adr/0012-encryption.md).
 *
 * Everything comes from the request's arena.
 */
#ifndef API_OPENING_H
#define API_OPENING_H

#include "api/context.h"

/*
 * Shows the first `count` messages of the context's queue with open bodies, where they are
 * sealed. ST_NO_KEY, ST_DAMAGED, explained; ST_NO_MEMORY: asking again goes on from there.
 */
enum status opening_show(struct context *ctx, struct store_batch *batch, size_t count);

/*
 * Shows messages as `opened` does, which has all of them that are sealed. ST_UNCONFIRMED: it has
 * not, so the store broke its promise after it took the messages.
 */
enum status opening_adopt(struct store_batch *batch, const struct store_batch *opened);

/*
 * Makes the drafts of a post anew, with sealed bodies. ST_NO_KEY, explained; ST_NO_MEMORY,
 * ST_UNAVAILABLE.
 */
enum status opening_seal(struct context *ctx, struct store_post *post);

/* ST_BAD_VALUE, explained, if there is no key for a queue that is to encrypt. */
enum status opening_allow(struct context *ctx, const struct store_settings *settings);

#endif
