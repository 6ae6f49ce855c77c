/*
 * batch: filling the answers of the store seam with pinned messages.
 */
#ifndef ENGINE_BATCH_H
#define ENGINE_BATCH_H

#include "engine/backlog.h"
#include "engine/instance.h"
#include "engine/visit.h"

/* Makes an empty batch with room for `room` messages. ST_NO_MEMORY. */
enum status batch_open(struct engine *e, size_t room, struct store_batch *out);

/*
 * ST_NO_ROOM, and the bytes needed in out->room, if the first `count` messages that the visit
 * may take (visit_share) do not fit into a room that the caller set.
 */
enum status batch_fits(const struct visit *v, size_t count, struct store_batch *out);

/*
 * Shows one more message, for which there must be room; one that batch->claim_id holds, if
 * that is set. Needs the shard's lock.
 */
void
batch_add(struct store_batch *batch, struct message *m, uint32_t tag, int64_t now_ms);

/*
 * ST_SEALED, and a batch of the first `count` messages that the visit may take in *out, if any
 * of them is sealed and not in out->opened (see struct store_batch). ST_NO_MEMORY.
 */
enum status batch_opened(const struct visit *v, size_t count, struct store_batch *out);

#endif
