/*
 * seqmap: numbers -> items in a 64-ary radix tree with a live and a ready bit for each
 * number.
 *
 * A number in the map is live. A live number may be ready. Each node has one bitmap word
 * for each property. A bit of a parent says that some number below has it. So the next
 * ready number is found without reading the others, and a number that becomes ready again
 * is at its old place. Levels are added above the root as numbers grow, and removed as
 * old numbers go. So the height follows the span of the numbers, not their size.
 *
 *   Cost     every operation O(levels), at most 11: the height of the lowest node that
 *            covers the oldest and the newest number. Mostly log64 of their distance,
 *            more while they straddle a multiple of a high power of 64. A find-next reads
 *            at most two nodes per level
 *   Memory   9 bytes per item in a dense map; nodes without live numbers are freed at
 *            once
 *   Threads  the owner's lock
 *
 * Nodes come from a pool that maps under one lock share. Only stocking the pool can fail.
 */
#ifndef CLAIMD_DS_SEQMAP_H
#define CLAIMD_DS_SEQMAP_H

#include "claimd/base/mem.h"
#include "claimd/base/status.h"

struct seqmap_node; /* private */

struct seqmap_pool {
    struct mem *mem;
    struct seqmap_node *spare; /* owned, linked */
    size_t count;
};

void seqmap_pool_init(struct seqmap_pool *pool, struct mem *mem);
void seqmap_pool_fini(struct seqmap_pool *pool);

/* Allocates nodes until the pool has `nodes`. ST_NO_MEMORY. */
enum status seqmap_pool_stock(struct seqmap_pool *pool, size_t nodes);

/*
 * Frees all but 16 spare nodes. With those, single posts and deletes need no allocator.
 * O(spare nodes): call it after one or a few removals, not once after a million. A small
 * node among messages may keep a whole page in memory.
 */
void seqmap_pool_trim(struct seqmap_pool *pool);

/* All zeros: an empty map. */
struct seqmap {
    struct seqmap_node *root; /* NULL when empty */
    uint64_t base;      /* first number that the root covers; defined when not empty */
    unsigned levels;    /* 1: the root is a leaf; 0 when empty */
    size_t live, ready; /* how many */
};

/*
 * An upper bound of the nodes that inserting the numbers first .. first + count - 1, in
 * any order, takes. It counts existing nodes, too. O(levels). Valid until the next
 * removal.
 */
size_t seqmap_nodes_for(const struct seqmap *map, uint64_t first, size_t count);

/* The same for any `count` numbers up to `last`, wherever they are. */
size_t seqmap_nodes_up_to(const struct seqmap *map, uint64_t last, size_t count);

/* Adds a number that is not in the map; item must not be NULL. The pool must have the
 * nodes. */
void seqmap_insert(struct seqmap *map, struct seqmap_pool *pool, uint64_t seq, void *item,
                   bool ready);

/* Removes a number and returns its item; NULL if it is not in the map. */
void *seqmap_remove(struct seqmap *map, struct seqmap_pool *pool, uint64_t seq);

/* Returns the item of a number, NULL if it is not in the map. */
void *seqmap_find(const struct seqmap *map, uint64_t seq);

/* Sets or clears the ready bit of a number that is in the map. */
void seqmap_set_ready(struct seqmap *map, uint64_t seq, bool ready);

/* True if the number is in the map and ready. */
bool seqmap_is_ready(const struct seqmap *map, uint64_t seq);

/* The live and the ready numbers among the 64 from `first`, a multiple of 64: bit i is
 * number first + i. */
void
seqmap_bits(const struct seqmap *map, uint64_t first, uint64_t *live, uint64_t *ready);

/*
 * The item with the smallest number >= *seq that is live (ready), and that number in
 * *seq; NULL (and *seq unchanged) if there is none.
 */
void *seqmap_next_live(const struct seqmap *map, uint64_t *seq);
void *seqmap_next_ready(const struct seqmap *map, uint64_t *seq);

/* The item with the largest number, and the number; NULL if the map is empty. */
void *seqmap_last(const struct seqmap *map, uint64_t *seq);

/* Number of nodes that a find-next from seq reads; for tests. */
size_t seqmap_probe_ready(const struct seqmap *map, uint64_t seq);

/* True if every invariant holds: bits agree with children, counts with bits, no node is
 * empty. O(n). */
bool seqmap_audit(const struct seqmap *map);

#endif
