/*
 * directory: which queues of each kind a project has, in byte order of their names, over
 * all shards.
 *
 * A leaf in the lock order: it is entered with a shard's lock held, and takes none
 * itself.
 *
 *   Cost     add, remove O(log queues of the project); a page O(log n + its length)
 *   Threads  any: one mutex of its own, held for pointer work only
 */
#ifndef ENGINE_DIRECTORY_H
#define ENGINE_DIRECTORY_H

#include "claimd/base/hash.h"
#include "claimd/base/lock.h"
#include "claimd/base/mem.h"
#include "claimd/ds/hashmap.h"
#include "claimd/ds/nameset.h"
#include "claimd/store/types.h"

struct directory {
    struct lock lock;
    struct mem *mem;
    struct hash_key key;
    struct hashmap projects; /* owned */
};

struct project;

/* A queue's place in the directory; embedded in the queue, which also owns the name. */
struct directory_entry {
    struct namenode node;
    struct project *project;
};

/* A page of names, copied; free with mem_free(names). */
struct directory_page {
    struct bytes *names; /* the texts stand in the same allocation */
    size_t count;
    size_t total; /* queues of the project */
};

void directory_init(struct directory *d, struct mem *mem, struct hash_key key);
void directory_fini(struct directory *d);

/* Enters a name (borrowed until removed) that is not there. ST_NO_MEMORY. */
enum status directory_add(struct directory *d, const struct store_queue *where,
                          struct directory_entry *entry);

void directory_remove(struct directory *d, struct directory_entry *entry);

/* The names of a page. ST_NO_MEMORY. */
enum status directory_page(struct directory *d, const struct store_page *page,
                           struct directory_page *out);

/* True if every invariant holds, and the names are `expected` in number. O(n). */
bool directory_audit(struct directory *d, size_t expected);

#endif
