#include "engine/shown.h"
#include "claimd/base/invariant.h"
#include "claimd/store/figures.h"
#include "engine/shard.h"

enum status
shown_init(struct shown *s, struct mem *mem, size_t count)
{
    s->count = count;
    s->lowest = 0;
    s->places = NULL;
    atomic_init(&s->free, count);
    if (count > 0)
        s->places = mem_calloc(mem, count, sizeof(*s->places));
    if (count > 0 && s->places == NULL)
        return ST_NO_MEMORY;
    lock_init(&s->lock);
    return ST_OK;
}

void
shown_fini(struct shown *s, struct mem *mem)
{
    lock_fini(&s->lock);
    mem_free(mem, s->places);
}

static bool
has_shown_names(const struct queue *q)
{
    return q->where.project.len <= STORE_FIGURES_PROJECT &&
           q->where.name.len <= STORE_FIGURES_NAME;
}

static bool
is_free(const struct place *place)
{
    return atomic_load_explicit(&place->shard, memory_order_relaxed) == NULL;
}

void
shown_enter(struct shown *s, struct queue *q)
{
    lock_assert_held(&q->shard->lock);
    ENSURE(q->place == 0);
    if (atomic_load_explicit(&s->free, memory_order_relaxed) == 0 || !has_shown_names(q))
        return;
    lock_acquire(&s->lock);
    while (s->lowest < s->count && !is_free(&s->places[s->lowest]))
        s->lowest++;
    if (s->lowest < s->count) {
        struct place *place = &s->places[s->lowest++];

        place->queue = q;
        place->expired = (struct store_expired){.messages = 0};
        atomic_store_explicit(&place->shard, q->shard, memory_order_release);
        q->place = (uint32_t)s->lowest;
        (void)atomic_fetch_sub(&s->free, 1);
    }
    lock_release(&s->lock);
}

void
shown_leave(struct shown *s, struct queue *q)
{
    size_t at = q->place;

    lock_assert_held(&q->shard->lock);
    if (at-- == 0)
        return;
    q->place = 0;
    lock_acquire(&s->lock);
    s->places[at].queue = NULL;
    atomic_store_explicit(&s->places[at].shard, NULL, memory_order_release);
    if (at < s->lowest)
        s->lowest = at;
    (void)atomic_fetch_add(&s->free, 1);
    lock_release(&s->lock);
}

struct store_expired *
shown_expired(const struct shown *s, const struct queue *q)
{
    return q->place == 0 ? NULL : &s->places[q->place - 1].expired;
}

struct shard *
shown_next(const struct shown *s, size_t *at)
{
    for (; *at < s->count; ++*at) {
        struct shard *sh =
            atomic_load_explicit(&s->places[*at].shard, memory_order_acquire);

        if (sh != NULL)
            return sh;
    }
    return NULL;
}

struct queue *
shown_queue(const struct shown *s, size_t at, const struct shard *sh)
{
    const struct place *place = &s->places[at];

    /* It cannot come to this shard, or leave it, without the lock. */
    return atomic_load_explicit(&place->shard, memory_order_acquire) == sh ? place->queue
                                                                           : NULL;
}
