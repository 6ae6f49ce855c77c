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

enum { DELIVERY_FRAME = 256 }; /* bytes: more than a response has besides its messages */

/*
 * Decrypts the encrypted bodies of the first `count` messages
 * (docs/adr/0012-encryption.md). ST_NO_KEY, ST_DAMAGED, explained; ST_NO_MEMORY: another
 * call continues.
 */
enum status decrypt_batch(struct context *ctx, struct store_batch *batch, size_t count);

/*
 * Reserves memory in res->body for documents of this form, and decrypts the messages.
 * After ST_OK, writing them cannot fail. Statuses as decrypt_batch().
 */
enum status delivery_prepare(struct context *ctx, const struct message_form *form,
                             struct store_batch *batch);

/* Writes messages as the document of the version: an array, or an object that contains
 * it. */
void write_messages(struct context *ctx, const struct message_form *form,
                    const struct store_batch *batch);

#endif
