/*
 * mem: counted allocation with a budget and failures on demand.
 *
 * All memory that clients can cause to be used comes from here. A `struct mem` is an
 * account, not an arena: blocks are plain malloc blocks, counted with what the allocator
 * really set aside for them.
 *
 *   Cost     that of malloc plus two relaxed atomic additions in a cache line of the thread
 *   Budget   never refuses by itself: whoever admits new data asks mem_admits() first, so
 *            that what is already accepted can always be served, moved and deleted
 *   Threads  any; the account is atomic
 */
#ifndef CLAIMD_BASE_MEM_H
#define CLAIMD_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mem; /* opaque */

/* Returns an account with this budget in bytes (0: no budget), owned; NULL without
 * memory. */
struct mem *mem_new(size_t budget);

/* Frees the account. Every block must have been freed before (asserted). */
void mem_destroy(struct mem *mem);

/* Returns an uninitialised / zeroed block of size bytes, owned; NULL when out of memory.
 */
void *mem_alloc(struct mem *mem, size_t size);
void *mem_calloc(struct mem *mem, size_t count, size_t size);

/* Grows or shrinks a block (NULL: a new one). On failure NULL; the old block stays. */
void *mem_realloc(struct mem *mem, void *block, size_t size);

/* Frees a block of this account; NULL is fine. */
void mem_free(struct mem *mem, void *block);

/*
 * For what memory is asked: what clients send may take three quarters of the budget, with all
 * that is there; the last quarter is for answers, so that what is there can be fetched and
 * deleted when nothing more is taken in.
 */
enum mem_share { MEM_FREE, /* for nothing that has a limit */ MEM_DATA, MEM_ANSWERS };

/* True if there would be room for `extra` more bytes for this. */
bool mem_admits_for(const struct mem *mem, size_t extra, enum mem_share share);

/* The same for data. */
bool mem_admits(const struct mem *mem, size_t extra);

/* Bytes in use now, and the budget (0: none). */
size_t mem_used(const struct mem *mem);
size_t mem_budget(const struct mem *mem);

/* Changes the budget; for tests and simulation. */
void mem_set_budget(struct mem *mem, size_t budget);

/*
 * For tests: the nth allocation from now on (1: the next) fails, once; 0 switches it off.
 * mem_fail_from() lets the nth and all that follow fail until it is called with 0.
 */
void mem_fail_nth(struct mem *mem, uint64_t nth);
void mem_fail_from(struct mem *mem, uint64_t nth);

/* Allocations tried since the account was made; for tests that checkpoint over them. */
uint64_t mem_attempts(const struct mem *mem);

#endif
