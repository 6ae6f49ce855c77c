/*
 * directory: the projects, the queues of each kind of each project in byte order of their
 * names, over all shards, and the messages, bytes and keys (keys.h) of each project,
 * within its limits.
 *
 * Its lock is a leaf: callers may hold a shard's lock, and the directory takes no other
 * lock.
 *
 *   Cost     add, remove O(log queues of the project), and O(log projects) for the first
 *            and the last queue; a page O(log n + its length)
 *   Threads  any: one mutex of its own, held for pointer work only
 */
#ifndef ENGINE_DIRECTORY_H
#define ENGINE_DIRECTORY_H

#include "claimd/base/hash.h"
#include "claimd/base/lock.h"
#include "claimd/base/mem.h"
#include "claimd/ds/nameset.h"
#include "claimd/store/metrics.h"

#include <stdatomic.h>

struct directory {
    struct lock lock;
    struct mem *mem;
    struct hash_key key;
    struct nameset projects[STORE_KINDS]; /* owned */
    uint64_t queues[STORE_KINDS];         /* number of names */
    struct nameset key_shares;            /* of projects with keys; owned */
    uint64_t keys;                        /* of all projects */
};

struct project;

/* Limits of each project; 0: no limit. Any thread may change them. */
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

/* Adds a name, borrowed until directory_remove(), that is not there. ST_NO_MEMORY;
 * ST_PROJECT_QUEUES: the project has `most` queues already (0: no limit). */
enum status directory_add(struct directory *d, const struct store_queue *where,
                          struct directory_entry *entry, uint64_t most);

void directory_remove(struct directory *d, struct directory_entry *entry);

/*
 * Charges the project for messages that the entry's queue is about to get.
 * ST_PROJECT_MESSAGES, ST_PROJECT_BYTES: beyond `limits` (NULL: no limits), nothing was
 * charged. Takes no lock. The counters are atomic, so concurrent posts never exceed a
 * limit.
 */
enum status directory_charge(const struct directory_entry *entry, uint64_t messages,
                             uint64_t bytes, const struct project_limits *limits);

/* Ends the charge for messages that were removed, or were not added after all. */
void directory_uncharge(const struct directory_entry *entry, uint64_t messages,
                        uint64_t bytes);

/* The number of keys of a project, also of keys of deleted queues. */
struct key_share;

/* Counts a key of a project. ST_KEYS_FULL: the project has as many keys as are left of
 * `most` for all projects. ST_NO_MEMORY. */
enum status directory_add_key(struct directory *d, struct bytes project, uint64_t most,
                              struct key_share **out);

void directory_remove_key(struct directory *d, struct key_share *share);

/*
 * Views of the names of a page, without metadata, and their total: queues of a project,
 * or the projects that have queues of the page's kind. The caller owns out->queues.
 * ST_NO_MEMORY.
 */
enum status directory_page(struct directory *d, const struct store_page *page,
                           bool projects, struct store_queues *out);

/* Fills in the names of a slice of the queues (store/metrics.h), and counts all of
 * them. */
void directory_survey(struct directory *d, struct store_survey *survey);

/* Sums over all projects. */
struct directory_sum {
    size_t queues;
    uint64_t messages, bytes, keys;
};

/* True if every invariant holds and the sums are as expected. O(n). */
bool directory_audit(struct directory *d, const struct directory_sum *expected);

#endif
