/*
 * seqmap: numbers -> items in a 64-ary radix tree with a live and a ready bit for each.
 *
 * A number that is in the map is live; a live number may be ready. Each node has one
 * bitmap word for each property; a parent's bit says "some below". So the next ready
 * number is found without looking at the others, and marking a number ready again puts it
 * where it was. Levels are added above the root as numbers grow and taken off as old
 * numbers go, so the height follows the span of the numbers in the map, not their size.
 *
 *   Cost     every operation O(levels), at most 11: the height of the lowest node that
 *            covers the oldest and the newest number. Mostly log64 of their distance,
 *            more while they straddle a multiple of a high power of 64. A find-next
 *            looks at no more than two nodes a level
 *   Memory   9 bytes an item in a dense map; nodes without live numbers go back at once
 *   Threads  none: the owner's lock
 *
 * Nodes come from a pool that maps under one lock share. Stocking the pool is the only
 * thing that can fail.
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

/* Makes sure the pool has at least `nodes` nodes. */
enum status seqmap_pool_stock(struct seqmap_pool *pool, size_t nodes);

/*
 * Frees all but 16 spare nodes (which keep single posts and deletes off malloc). O(spare
 * nodes): call it after each removal, or a few, not once after a million. A node is small,
 * but lies among messages: each one kept may keep a page from the system.
 */
void seqmap_pool_trim(struct seqmap_pool *pool);

/* All zeros: an empty map. */
struct seqmap {
    struct seqmap_node *root; /* NULL when empty */
    uint64_t base;            /* first number the root spans; defined when not empty */
    unsigned levels;          /* 1: the root is a leaf; 0 when empty */
    size_t live, ready;       /* how many */
};

/*
 * How many pool nodes inserting the numbers first .. first + count - 1, in any order, may
 * take at most. O(levels). A safe bound, not the exact number: nodes that are there
 * already are counted too. It holds until the next removal.
 */
size_t seqmap_nodes_for(const struct seqmap *map, uint64_t first, size_t count);

/* The same for any `count` numbers up to `last`, wherever they are. */
size_t seqmap_nodes_up_to(const struct seqmap *map, uint64_t last, size_t count);

/* Adds a number that is not in the map; item must not be NULL; nodes must be in stock. */
void seqmap_insert(struct seqmap *map, struct seqmap_pool *pool, uint64_t seq, void *item,
                   bool ready);

/* Takes a number out and returns its item; NULL if it is not in the map. */
void *seqmap_remove(struct seqmap *map, struct seqmap_pool *pool, uint64_t seq);

/* Returns the item of a number, NULL if it is not in the map. */
void *seqmap_find(const struct seqmap *map, uint64_t seq);

/* Sets or clears the ready bit of a number that is in the map. */
void seqmap_set_ready(struct seqmap *map, uint64_t seq, bool ready);

/* True if the number is in the map and ready. */
bool seqmap_is_ready(const struct seqmap *map, uint64_t seq);

/*
 * The item with the smallest number >= *seq that is live (ready), and that number in
 * *seq; NULL (and *seq unchanged) if there is none.
 */
void *seqmap_next_live(const struct seqmap *map, uint64_t *seq);
void *seqmap_next_ready(const struct seqmap *map, uint64_t *seq);

/* The item with the largest number, and the number; NULL if the map is empty. */
void *seqmap_last(const struct seqmap *map, uint64_t *seq);

/* Nodes touched by one find-next from seq; so that tests can state its cost. */
size_t seqmap_probe_ready(const struct seqmap *map, uint64_t seq);

/* Every invariant: bits agree with children, counts with bits, no empty nodes. O(n). */
bool seqmap_audit(const struct seqmap *map);

#endif
