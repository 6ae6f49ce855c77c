/*
 * nameset: names in byte order, for listings in pages (a treap: a search tree on the
 * names that is a heap on random priorities; Seidel & Aragon 1996).
 *
 *   Cost     insert, remove, find, find-after O(log n) expected; the priority is the
 *            owner's keyed hash of the name, so clients cannot choose the shape
 *   Memory   never allocates: a node and its name live in their owner
 *   Threads  the owner's lock
 */
#ifndef CLAIMD_DS_NAMESET_H
#define CLAIMD_DS_NAMESET_H

#include "claimd/base/bytes.h"

struct namenode {
    struct namenode *left, *right, *parent; /* private */
    uint64_t priority;                      /* private */
    struct bytes name;                      /* borrowed from the owner while inserted */
};

/* All zeros: an empty set. */
struct nameset {
    struct namenode *root;
    size_t count;
};

/* Inserts a name that is not in the set. */
void nameset_insert(struct nameset *set, struct namenode *node, struct bytes name,
                    uint64_t priority);

void nameset_remove(struct nameset *set, struct namenode *node);

/* The node of this name; NULL if it is not in the set. */
struct namenode *nameset_find(const struct nameset *set, struct bytes name);

/* The first name behind marker (an absent marker: the very first); NULL if none. */
struct namenode *nameset_after(const struct nameset *set, struct bytes marker);

/* The name behind this one; NULL if none. O(1) amortised over a walk. */
struct namenode *nameset_next(const struct namenode *node);

bool nameset_audit(const struct nameset *set);

#endif
