/*
 * take: answers that hand messages over to a worker (claim, pop).
 *
 * What is taken and then cannot be told is lost to everybody, at least for a while. So
 * memory for the answer comes first: the store takes only what fits, and says how much
 * room the next attempt needs.
 */
#ifndef API_HANDLERS_TAKE_H
#define API_HANDLERS_TAKE_H

#include "api/context.h"

/* Takes up to limit messages; heeds out->room and out->opened, see struct store_batch. */
typedef enum status
take_fn(struct context *ctx, const void *terms, size_t limit, struct store_batch *out);

/*
 * Calls `take` until what it takes fits the memory reserved in res->body for documents of
 * this form and what stands around them, and is open. After ST_OK writing them cannot fail.
 * ST_NO_MEMORY, and whatever else `take` returns: nothing was taken.
 */
enum status
take_messages(struct context *ctx, const struct message_form *form, take_fn *take,
              const void *terms, size_t limit, struct store_batch *out);

#endif
