/*
 * mem: counted allocation with a budget, and failures on demand.
 *
 * All memory that clients can cause to be used comes from here. A `struct mem` is an
 * account, not an arena: blocks are plain malloc blocks, counted with the size that the
 * allocator really uses.
 *
 *   Cost     that of malloc plus two relaxed atomic additions in a cache line of the
 *            thread
 *   Budget   allocations never fail because of it: code that admits new data calls
 *            mem_admits() first, so that accepted data can always be served, moved and
 *            deleted
 *   Threads  any; the account is atomic
 */
#ifndef CLAIMD_BASE_MEM_H
#define CLAIMD_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mem; /* opaque */

/* Makes an account with this budget in bytes (0: none). NULL without memory. */
struct mem *mem_new(size_t budget);

/* Frees the account. Every block must have been freed (asserted in debug builds). */
void mem_destroy(struct mem *mem);

/* Returns an uninitialised / zeroed block of size bytes, owned; NULL when out of memory.
 */
void *mem_alloc(struct mem *mem, size_t size);
void *mem_calloc(struct mem *mem, size_t count, size_t size);

/* Grows or shrinks a block (NULL: a new one). On failure NULL; the old block stays. */
void *mem_realloc(struct mem *mem, void *block, size_t size);

/* Frees a block of this account; NULL has no effect. */
void mem_free(struct mem *mem, void *block);

/*
 * The purpose of memory: data of clients may fill three quarters of the budget. The last
 * quarter is for responses, so that messages can be fetched and deleted when no more are
 * accepted.
 */
enum mem_share { MEM_FREE, /* without a limit */ MEM_DATA, MEM_RESPONSES };

/* True if the budget has `extra` more bytes for this purpose. */
bool mem_admits_for(const struct mem *mem, size_t extra, enum mem_share share);

/* The same for data. */
bool mem_admits(const struct mem *mem, size_t extra);

/* Bytes in use now, and the budget (0: none). */
size_t mem_used(const struct mem *mem);
size_t mem_budget(const struct mem *mem);

/* Changes the budget; for tests and simulation. */
void mem_set_budget(struct mem *mem, size_t budget);

/* For tests: the nth allocation from now on (1: the next) fails once; 0 switches it off.
 * With mem_fail_from() the nth and all later ones fail until it is called with 0. */
void mem_fail_nth(struct mem *mem, uint64_t nth);
void mem_fail_from(struct mem *mem, uint64_t nth);

/* Allocations tried since the account was made; for tests that fail each of them. */
uint64_t mem_attempts(const struct mem *mem);

#endif
