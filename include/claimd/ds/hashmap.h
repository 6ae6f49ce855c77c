/*
 * hashmap: a chained hash table of embedded nodes that grows incrementally.
 *
 * Growing allocates a second, larger table (zeroed by the kernel on demand), and each
 * later insert moves a few chains to it. The owner computes the hash, keeps the keys in
 * its structures, and compares them with a function of its own. The low bits of the hash
 * choose the chain, so it must be a good one (hash_bytes, hash_mix).
 *
 *   Cost     find, insert, remove O(1); no operation is proportional to the table
 *   Memory   8 bytes a bucket, load factor at most 1 (more only if a reserve finds the
 *            table growing); never shrinks; node 16 bytes, in its owner
 *   Threads  the owner's lock
 */
#ifndef CLAIMD_DS_HASHMAP_H
#define CLAIMD_DS_HASHMAP_H

#include "claimd/base/mem.h"
#include "claimd/base/status.h"

struct hashnode {
    struct hashnode *next; /* private to the map */
    uint64_t hash;         /* set by hashmap_insert */
};

struct hashmap {
    struct mem *mem;
    struct hashnode **table[2]; /* [1]: the larger one, while growing */
    size_t mask[2];             /* undefined while the table is NULL */
    size_t moved;               /* chains of table[0] moved so far */
    size_t count;
};

/* True if node has this key. */
typedef bool hashmap_equal_fn(const struct hashnode *node, const void *key);

/* Makes an empty map without a table. */
void hashmap_init(struct hashmap *map, struct mem *mem);

/* Frees the tables, not the nodes. */
void hashmap_fini(struct hashmap *map);

/* Reserves memory for `extra` inserts. ST_NO_MEMORY changes nothing. */
enum status hashmap_reserve(struct hashmap *map, size_t extra);

/* Inserts a node whose key is not in the map. Needs hashmap_reserve(). */
void hashmap_insert(struct hashmap *map, struct hashnode *node, uint64_t hash);

/* Returns the node with this key, NULL if there is none. */
struct hashnode *hashmap_find(const struct hashmap *map, uint64_t hash,
                              hashmap_equal_fn *equal, const void *key);

/* Removes a node that is in the map. */
void hashmap_remove(struct hashmap *map, struct hashnode *node);

/*
 * Walks all nodes, in no order: start with NULL, ends with NULL. The map must not change
 * meanwhile, but for the removal of the node returned last after the next was fetched.
 * O(buckets): for shutdown, tests and audits.
 */
struct hashnode *hashmap_walk(const struct hashmap *map, const struct hashnode *last);

bool hashmap_audit(const struct hashmap *map);

#endif
