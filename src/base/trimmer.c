#include "claimd/base/trimmer.h"

#include <malloc.h>

enum { QUIET_MS = 50, WORTHWHILE = 1024 * 1024 };

void
trimmer_init(struct trimmer *t, struct mem *mem)
{
    t->mem = mem;
    atomic_init(&t->high, mem_used(mem));
    atomic_init(&t->busy_ms, 0);
}

void
trimmer_busy(struct trimmer *t, int64_t real_ms)
{
    if (atomic_load_explicit(&t->busy_ms, memory_order_relaxed) != real_ms)
        atomic_store_explicit(&t->busy_ms, real_ms, memory_order_relaxed);
}

int64_t
trimmer_step(struct trimmer *t, int64_t real_ms)
{
    size_t used = mem_used(t->mem), high = atomic_load(&t->high);
    int64_t quiet_ms = real_ms - atomic_load_explicit(&t->busy_ms, memory_order_relaxed);

    if (used > high)
        (void)atomic_compare_exchange_strong(&t->high, &high,
                                             used); /* try again the next time */
    if (high <= used || high - used < WORTHWHILE || high - used < high / 3)
        return -1; /* not worth the time */
    if (quiet_ms < QUIET_MS)
        return QUIET_MS - quiet_ms;
    /* The thread that lowers the mark trims. */
    if (atomic_compare_exchange_strong(&t->high, &high, used))
        (void)malloc_trim(0);
    return -1;
}
