#include "redis/done.h"

void
done_init(struct done *d)
{
    *d = (struct done){.counts = {{0}}};
    lock_init(&d->lock);
}

void
done_fini(struct done *d)
{
    lock_fini(&d->lock);
}

void
done_count(struct done *d, enum store_counter which, uint64_t by)
{
    lock_acquire(&d->lock);
    counter_add(&d->counts[which], by);
    lock_release(&d->lock);
}

void
done_span(struct done *d, enum store_span which, int64_t value)
{
    lock_acquire(&d->lock);
    buckets_add(&d->spans[which], &store_span_bounds[which],
                value > 0 ? (uint64_t)value : 0);
    lock_release(&d->lock);
}

void
done_read(const struct done *d, struct store_figures *out)
{
    for (size_t i = 0; i < STORE_COUNTERS; i++)
        out->counts[i] += counter_read(&d->counts[i]);
    for (size_t i = 0; i < STORE_SPANS; i++)
        buckets_merge(&out->spans[i], &d->spans[i]);
}
