/*
 * decrypt: the bodies of a queue that keeps them encrypted, on their way in and out
 * (docs/adr/0012-encryption.md), and the delivery of messages to workers.
 *
 * Everything comes from the request's arena.
 */
#ifndef API_DECRYPT_H
#define API_DECRYPT_H

#include "api/context.h"

/*
 * Decrypts the bodies of the first `count` messages of the context's queue, where they are
 * encrypted. ST_NO_KEY, ST_DAMAGED, explained; ST_NO_MEMORY: a retry goes on from there.
 */
enum status decrypt_batch(struct context *ctx, struct store_batch *batch, size_t count);

/*
 * Gives messages the bodies that `opened` has, which has all that are encrypted. ST_UNCONFIRMED:
 * it has not, so the store broke its promise after it delivered the messages.
 */
enum status decrypt_reuse(struct store_batch *batch, const struct store_batch *opened);

/*
 * Makes the drafts of a post anew, with encrypted bodies. ST_NO_KEY, explained; ST_NO_MEMORY,
 * ST_UNAVAILABLE.
 */
enum status encrypt_post(struct context *ctx, struct store_post *post);

/* ST_BAD_VALUE, explained, if there is no key for a queue that is to encrypt. */
enum status encrypt_check(struct context *ctx, const struct store_settings *settings);

/* ------------------------------------------------------------------ delivering */

/*
 * Responses that deliver messages to a worker (claim, pop).
 *
 * A message that is delivered but not in the response is lost, at least for a while. So memory for
 * the response comes first. The store delivers only what fits, and says how much space the next
 * attempt needs.
 */

/* Delivers up to limit messages; heeds out->room and out->opened, see struct store_batch. */
typedef enum status
deliver_fn(struct context *ctx, const void *terms, size_t limit, struct store_batch *out);

/*
 * Calls `deliver` until its messages fit the memory reserved in res->body for documents of
 * this form and what surrounds them, and are decrypted. After ST_OK writing them cannot fail.
 * ST_NO_MEMORY, and any other status of `deliver`: no message was delivered.
 */
enum status deliver_messages(struct context *ctx, const struct message_form *form,
                             deliver_fn *deliver, const void *terms, size_t limit,
                             struct store_batch *out);

#endif
