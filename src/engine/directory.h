/*
 * directory: which projects there are, and which queues of each kind each has, in byte order of
 * their names, over all shards; and how much they have together, within the project's limits.
 *
 * A leaf in the lock order: it is entered with a shard's lock held, and takes none
 * itself.
 *
 *   Cost     add, remove O(log queues of the project), and O(log projects) for its first and last
 *            one; a page O(log n + its length)
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

#include <stdatomic.h>

struct directory {
    struct lock lock;
    struct mem *mem;
    struct hash_key key;
    struct hashmap projects; /* owned */
    struct nameset named[2]; /* the same in order, by kind */
};

struct project;

/* What each project may have; 0: any number. Any thread may change them. */
struct project_limits {
    _Atomic uint64_t queues, messages, bytes;
};

/* A queue's place in the directory; embedded in the queue, which also owns the name. */
struct directory_entry {
    struct namenode node;
    struct project *project;
};

void directory_init(struct directory *d, struct mem *mem, struct hash_key key);
void directory_fini(struct directory *d);

/*
 * Enters a name (borrowed until removed) that is not there. ST_NO_MEMORY; ST_PROJECT_QUEUES: the
 * project has `most` or more (0: any number may be).
 */
enum status directory_add(struct directory *d, const struct store_queue *where,
                          struct directory_entry *entry, uint64_t most);

void directory_remove(struct directory *d, struct directory_entry *entry);

/*
 * Counts messages that the entry's queue is about to get, if the project may have them:
 * ST_PROJECT_MESSAGES, ST_PROJECT_BYTES. NULL: it has them already. Without the lock: posts
 * of one project are counted one after the other, so its limits are never passed.
 */
enum status directory_take(const struct directory_entry *entry, uint64_t messages,
                           uint64_t bytes, const struct project_limits *limits);

/* Messages of the entry's queue are gone, or were not added after all. */
void
directory_give(const struct directory_entry *entry, uint64_t messages, uint64_t bytes);

/*
 * Views of the names of a page, without metadata, and their total: queues of a project, or the
 * projects that have queues of the page's kind. The caller owns out->queues. ST_NO_MEMORY.
 */
enum status directory_page(struct directory *d, const struct store_page *page,
                           bool projects, struct store_queues *out);

/* What there is in all projects. */
struct directory_sum {
    size_t queues;
    uint64_t messages, bytes;
};

/* True if every invariant holds, and there is so much. O(n). */
bool directory_audit(struct directory *d, const struct directory_sum *expected);

#endif
