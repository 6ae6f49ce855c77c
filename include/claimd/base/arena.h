/*
 * arena: memory for one request, freed all at once.
 *
 *   Cost     a pointer bump; sometimes a block from mem
 *   Threads  one
 */
#ifndef CLAIMD_BASE_ARENA_H
#define CLAIMD_BASE_ARENA_H

#include "claimd/base/bytes.h"
#include "claimd/base/mem.h"

struct arena {
    struct mem *mem;
    struct arena_block *block; /* newest first; owned */
};

void arena_init(struct arena *a, struct mem *mem);
void arena_fini(struct arena *a);

/* Frees all allocations, but keeps one block of ordinary size. */
void arena_reset(struct arena *a);

/* A position in the arena. */
struct arena_mark {
    struct arena_block *block;
    size_t used;
};

struct arena_mark arena_mark(const struct arena *a);

/* Frees the allocations since the mark. The arena must not have been reset meanwhile. */
void arena_rewind(struct arena *a, struct arena_mark mark);

/* Returns size bytes aligned for any type, valid until the reset. NULL without memory. */
void *arena_alloc(struct arena *a, size_t size);

/* The same for count items of size bytes; NULL also when the product overflows. */
void *arena_array(struct arena *a, size_t count, size_t size);

/* A copy with a NUL behind it; absent without memory. */
struct bytes arena_copy(struct arena *a, struct bytes text);

/* A formatted text, absent without memory. */
struct bytes arena_printf(struct arena *a, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
