/*
 * idmap: which id of one store stands for which of another.
 *
 * Ids are opaque, so two stores may give different ones to the same thing; a test that
 * compares them keeps the pairs. Ids that were given twice are found out.
 *
 *   Cost     learn, same O(1)
 *   Memory   plain malloc; a test without memory ends
 */
#ifndef TESTS_MODEL_IDMAP_H
#define TESTS_MODEL_IDMAP_H

#include "claimd/store/store.h"

/* An id as both stores write it. */
struct id_pair {
    struct store_id left, right;
};

struct idmap {
    struct id_pair *pairs; /* owned */
    size_t count, capacity;
    size_t *slots[2]; /* owned; by left and by right: 1 + index of a pair, 0: empty */
    size_t slot_count;
};

void idmap_init(struct idmap *map);
void idmap_fini(struct idmap *map);

/* Enters a new pair; false if one of the two ids is known already. */
bool idmap_learn(struct idmap *map, const struct id_pair *pair);

/* True if the two are a known pair, or both are empty. */
bool idmap_same(const struct idmap *map, const struct store_id *left,
                const struct store_id *right);

/* The id on the left of this one; NULL: it is not known. */
const struct store_id *idmap_left(const struct idmap *map, const struct store_id *right);

#endif
