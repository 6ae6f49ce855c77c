#include "claimd/base/mem.h"

#include <assert.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>

struct mem {
    _Atomic size_t used;
    _Atomic size_t budget;     /* 0: none */
    _Atomic uint64_t attempts; /* allocations tried so far */
    _Atomic uint64_t fail_at;  /* the attempt that fails; 0: none */
    _Atomic bool fail_after;   /* all attempts from fail_at on fail */
};

/* What malloc adds before each block. */
enum { BLOCK_HEADER = sizeof(size_t) };

struct mem *
mem_new(size_t budget)
{
    struct mem *mem = calloc(1, sizeof(*mem));

    if (mem != NULL)
        atomic_init(&mem->budget, budget);
    return mem;
}

void
mem_destroy(struct mem *mem)
{
    if (mem == NULL)
        return;
    assert(mem_used(mem) == 0);
    free(mem);
}

/* True if this attempt is to fail. */
static bool
planned_failure(struct mem *mem)
{
    uint64_t attempt =
        atomic_fetch_add_explicit(&mem->attempts, 1, memory_order_relaxed) + 1;
    uint64_t at = atomic_load_explicit(&mem->fail_at, memory_order_relaxed);

    if (at == 0 || attempt < at)
        return false;
    return attempt == at || atomic_load_explicit(&mem->fail_after, memory_order_relaxed);
}

static void *
count_block(struct mem *mem, void *block)
{
    if (block != NULL)
        atomic_fetch_add_explicit(&mem->used, malloc_usable_size(block) + BLOCK_HEADER,
                                  memory_order_relaxed);
    return block;
}

static void
uncount_block(struct mem *mem, void *block)
{
    atomic_fetch_sub_explicit(&mem->used, malloc_usable_size(block) + BLOCK_HEADER,
                              memory_order_relaxed);
}

void *
mem_alloc(struct mem *mem, size_t size)
{
    return planned_failure(mem) ? NULL : count_block(mem, malloc(size));
}

void *
mem_calloc(struct mem *mem, size_t count, size_t size)
{
    return planned_failure(mem) ? NULL : count_block(mem, calloc(count, size));
}

void *
mem_realloc(struct mem *mem, void *block, size_t size)
{
    size_t before = block == NULL ? 0 : malloc_usable_size(block) + BLOCK_HEADER;
    void *grown = planned_failure(mem) ? NULL : realloc(block, size);

    if (grown == NULL)
        return NULL;
    atomic_fetch_sub_explicit(&mem->used, before, memory_order_relaxed);
    return count_block(mem, grown);
}

void
mem_free(struct mem *mem, void *block)
{
    if (block == NULL)
        return;
    uncount_block(mem, block);
    free(block);
}

bool
mem_admits(const struct mem *mem, size_t extra)
{
    size_t budget = mem_budget(mem);
    size_t used = mem_used(mem);

    return budget == 0 || (used <= budget && extra <= budget - used);
}

size_t
mem_used(const struct mem *mem)
{
    return atomic_load_explicit(&mem->used, memory_order_relaxed);
}

size_t
mem_budget(const struct mem *mem)
{
    return atomic_load_explicit(&mem->budget, memory_order_relaxed);
}

void
mem_set_budget(struct mem *mem, size_t budget)
{
    atomic_store(&mem->budget, budget);
}

static void
plan_failure(struct mem *mem, uint64_t nth, bool all_after)
{
    uint64_t at = nth == 0 ? 0 : mem_attempts(mem) + nth;

    atomic_store(&mem->fail_after, all_after);
    atomic_store(&mem->fail_at, at);
}

void
mem_fail_nth(struct mem *mem, uint64_t nth)
{
    plan_failure(mem, nth, false);
}

void
mem_fail_from(struct mem *mem, uint64_t nth)
{
    plan_failure(mem, nth, true);
}

uint64_t
mem_attempts(const struct mem *mem)
{
    return atomic_load(&mem->attempts);
}
