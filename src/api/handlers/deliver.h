/*
 * deliver: messages of the context's queue in a response.
 *
 *   Memory   decrypted bodies are in the arena of the request
 *   Threads  any; a context belongs to one call
 */
#ifndef API_HANDLERS_DELIVER_H
#define API_HANDLERS_DELIVER_H

#include "api/context.h"
#include "api/wire/message.h"

/*
 * Decrypts the encrypted bodies of the first `count` messages
 * (docs/adr/0012-encryption.md). ST_NO_KEY, ST_DAMAGED, explained; ST_NO_MEMORY: another
 * call continues.
 */
enum status decrypt_batch(struct context *ctx, struct store_batch *batch, size_t count);

/* Replaces encrypted bodies by those that `opened` has decrypted. ST_UNCONFIRMED:
 * `opened` lacks one, so the store delivered a message that it must not. */
enum status reuse_decrypted(struct store_batch *batch, const struct store_batch *opened);

/* Claims or pops up to `limit` messages. Obeys out->capacity and out->opened (struct
 * store_batch). */
typedef enum status
deliver_fn(struct context *ctx, const void *terms, size_t limit, struct store_batch *out);

/*
 * Calls `deliver` until its messages are decrypted and fit the memory reserved in
 * res->body for documents of this form. After ST_OK, writing them cannot fail. Statuses
 * of decrypt_batch() and of `deliver`: no message was delivered.
 */
enum status deliver_messages(struct context *ctx, const struct message_form *form,
                             deliver_fn *deliver, const void *terms, size_t limit,
                             struct store_batch *out);

/* Writes messages as the document of the version: an array, or an object that contains
 * it. */
void write_messages(struct context *ctx, const struct message_form *form,
                    const struct store_batch *batch);

#endif
