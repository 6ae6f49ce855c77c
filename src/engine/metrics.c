#include "engine/metrics.h"
#include "claimd/base/invariant.h"

enum status
metrics_slots_init(struct metrics_slots *s, struct mem *mem, size_t count)
{
    s->count = count;
    s->lowest = 0;
    s->all = NULL;
    atomic_init(&s->free, count);
    if (count > 0)
        s->all = mem_calloc(mem, count, sizeof(*s->all));
    if (count > 0 && s->all == NULL)
        return ST_NO_MEMORY;
    lock_init(&s->lock);
    return ST_OK;
}

void
metrics_slots_fini(struct metrics_slots *s, struct mem *mem)
{
    lock_fini(&s->lock);
    mem_free(mem, s->all);
}

void
metrics_slots_enter(struct metrics_slots *s, struct shard *sh, struct queue *q,
                    uint32_t *number)
{
    ENSURE(*number == 0);
    if (atomic_load_explicit(&s->free, memory_order_relaxed) == 0)
        return;
    lock_acquire(&s->lock);
    while (s->lowest < s->count &&
           atomic_load_explicit(&s->all[s->lowest].shard, memory_order_relaxed) != NULL)
        s->lowest++;
    if (s->lowest < s->count) {
        struct metrics_slot *slot = &s->all[s->lowest++];

        slot->queue = q;
        atomic_store_explicit(&slot->shard, sh, memory_order_release);
        *number = (uint32_t)s->lowest;
        (void)atomic_fetch_sub(&s->free, 1);
    }
    lock_release(&s->lock);
}

void
metrics_slots_leave(struct metrics_slots *s, uint32_t *number)
{
    size_t at = *number;

    if (at-- == 0)
        return;
    ENSURE(at < s->count);
    *number = 0;
    lock_acquire(&s->lock);
    s->all[at].queue = NULL;
    atomic_store_explicit(&s->all[at].shard, NULL, memory_order_release);
    if (at < s->lowest)
        s->lowest = at;
    (void)atomic_fetch_add(&s->free, 1);
    lock_release(&s->lock);
}

struct shard *
metrics_slots_next(const struct metrics_slots *s, size_t *at)
{
    for (; *at < s->count; ++*at) {
        struct shard *sh = atomic_load_explicit(&s->all[*at].shard, memory_order_acquire);

        if (sh != NULL)
            return sh;
    }
    return NULL;
}

struct queue *
metrics_slots_queue(const struct metrics_slots *s, size_t at, const struct shard *sh)
{
    const struct metrics_slot *slot = &s->all[at];

    /* A slot joins or leaves this shard only under the lock that the caller holds. */
    return atomic_load_explicit(&slot->shard, memory_order_acquire) == sh ? slot->queue
                                                                          : NULL;
}
