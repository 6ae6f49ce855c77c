#include "claimd/base/mem.h"
#include "claimd/base/hash.h"
#include "claimd/base/invariant.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/*
 * Each thread counts in a slot of its own, in a cache line of its own. A single counter
 * would move between the cores with every allocation. A slot may be negative if its
 * threads free blocks of others. Only the sum matters.
 */
enum { SLOTS = 8, CACHE_LINE = 64 };

struct slot {
    _Alignas(CACHE_LINE) _Atomic int64_t used;
    _Atomic uint64_t attempts; /* allocations tried so far */
};

struct mem {
    struct slot slots[SLOTS];
    _Atomic size_t budget;    /* 0: none */
    _Atomic uint64_t fail_at; /* the attempt that fails; 0: none */
    _Atomic bool fail_after;  /* all attempts from fail_at on fail */
};

/* The header that malloc adds to each block. */
enum { BLOCK_HEADER = sizeof(size_t) };

struct mem *
mem_new(size_t budget)
{
    struct mem *mem = aligned_alloc(CACHE_LINE, sizeof(*mem));

    if (mem == NULL)
        return NULL;
    memset(mem, 0, sizeof(*mem));
    atomic_init(&mem->budget, budget);
    return mem;
}

void
mem_destroy(struct mem *mem)
{
    if (mem == NULL)
        return;
    /* For debugging only: a leak must not disturb the end of a server. */
    ENSURE_DEBUG(mem_used(mem) == 0);
    free(mem);
}

static struct slot *
own_slot(struct mem *mem)
{
    static _Thread_local char self; /* its address tells the threads apart */

    return &mem->slots[hash_mix((uintptr_t)&self) % SLOTS];
}

static bool
planned_failure(struct mem *mem)
{
    uint64_t at;

    atomic_fetch_add_explicit(&own_slot(mem)->attempts, 1, memory_order_relaxed);
    at = atomic_load_explicit(&mem->fail_at, memory_order_relaxed);
    if (at == 0 || mem_attempts(mem) < at)
        return false;
    return atomic_load(&mem->fail_after) ||
           atomic_compare_exchange_strong(&mem->fail_at, &at, 0); /* once */
}

/* Counts a block that was allocated (sign 1) or is freed (-1). */
static void
count_block(struct mem *mem, void *block, int64_t sign)
{
    if (block != NULL)
        atomic_fetch_add_explicit(&own_slot(mem)->used,
                                  sign *
                                      (int64_t)(malloc_usable_size(block) + BLOCK_HEADER),
                                  memory_order_relaxed);
}

void *
mem_alloc(struct mem *mem, size_t size)
{
    void *block = planned_failure(mem) ? NULL : malloc(size);

    count_block(mem, block, 1);
    return block;
}

void *
mem_calloc(struct mem *mem, size_t count, size_t size)
{
    void *block = planned_failure(mem) ? NULL : calloc(count, size);

    count_block(mem, block, 1);
    return block;
}

void *
mem_realloc(struct mem *mem, void *block, size_t size)
{
    void *grown;

    if (planned_failure(mem))
        return NULL;
    count_block(mem, block, -1);
    grown = realloc(block, size);
    count_block(mem, grown == NULL ? block : grown, 1);
    return grown;
}

void
mem_free(struct mem *mem, void *block)
{
    count_block(mem, block, -1);
    free(block);
}

bool
mem_admits(const struct mem *mem, size_t extra)
{
    return mem_admits_for(mem, extra, MEM_DATA);
}

bool
mem_admits_for(const struct mem *mem, size_t extra, enum mem_share share)
{
    size_t budget = mem_budget(mem);
    size_t used;

    if (budget == 0 || share == MEM_FREE)
        return true;
    if (share == MEM_DATA)
        budget -= budget / 4;
    used = mem_used(mem);
    return used <= budget && extra <= budget - used;
}

size_t
mem_used(const struct mem *mem)
{
    int64_t used = 0;

    for (size_t i = 0; i < SLOTS; i++)
        used += atomic_load_explicit(&mem->slots[i].used, memory_order_relaxed);
    return used > 0 ? (size_t)used : 0; /* negative: saw only the free */
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
    uint64_t attempts = 0;

    for (size_t i = 0; i < SLOTS; i++)
        attempts += atomic_load_explicit(&mem->slots[i].attempts, memory_order_relaxed);
    return attempts;
}
