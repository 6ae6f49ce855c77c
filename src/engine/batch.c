#include "engine/batch.h"

enum status
batch_open(struct engine *e, size_t room, struct store_batch *out)
{
    struct store_batch batch = STORE_BATCH_INIT;

    if (room > SIZE_MAX / sizeof(*batch.messages))
        return ST_NO_MEMORY;
    batch.messages = mem_alloc(e->mem, room * sizeof(*batch.messages));
    if (batch.messages == NULL)
        return ST_NO_MEMORY;
    batch.store = &e->store;
    *out = batch;
    return ST_OK;
}

void
batch_add(struct store_batch *batch, struct message *m, uint32_t tag, int64_t now_ms)
{
    message_view(m, tag, now_ms, &batch->messages[batch->count++]);
}

void
engine_batch_release(const struct store *s, struct store_batch *batch)
{
    struct mem *mem = ((const struct engine *)s)->mem;

    for (size_t i = 0; i < batch->count; i++)
        message_unpin(mem, batch->messages[i].pin);
    mem_free(mem, batch->messages);
}
