/*
 * state: queues as documents, from images of the store (docs/api.md 23.4): of the whole state of a
 * project, or line by line, as dumps have them.
 *
 * Times are seconds with up to three decimals that count from the moment of the image, so a
 * document that is loaded later goes on where it was.
 *
 *   Cost     O(bytes written)
 */
#ifndef API_WIRE_STATE_H
#define API_WIRE_STATE_H

#include "claimd/base/buf.h"
#include "claimd/store/store.h"

/* The version of documents and dumps. */
enum { STATE_VERSION = 1 };

/* {"id":...,"ttl":...,"age":...} */
void
state_write_claim(struct buf *out, const struct store_image_claim *claim, int64_t now_ms);

/* The i-th message of a piece. `whole_claim`: its claim stands in it, not just its id. */
void state_write_message(struct buf *out, const struct store_image *image, size_t i,
                         bool whole_claim, int64_t now_ms);

void state_write_subscription(struct buf *out,
                              const struct store_image_subscription *subscription,
                              int64_t now_ms);

#endif
