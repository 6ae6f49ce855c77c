/*
 * arena: memory for one request, given back all at once.
 *
 *   Cost     a pointer bump; a block from mem now and then
 *   Threads  none
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

/* Everything handed out becomes invalid; one block of ordinary size is kept. */
void arena_reset(struct arena *a);

/* How much has been handed out. */
struct arena_mark {
    struct arena_block *block;
    size_t used;
};

struct arena_mark arena_mark(const struct arena *a);

/* Takes back what was handed out since the mark; nothing older may have been reset. */
void arena_rewind(struct arena *a, struct arena_mark mark);

/* Returns size bytes aligned for any type, borrowed until the reset; NULL without memory.
 */
void *arena_alloc(struct arena *a, size_t size);

/* The same for count items of size bytes; NULL also when the product overflows. */
void *arena_array(struct arena *a, size_t count, size_t size);

/* A copy with a NUL behind it; absent without memory. */
struct bytes arena_copy(struct arena *a, struct bytes text);

/* A formatted text, absent without memory. */
struct bytes arena_printf(struct arena *a, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
