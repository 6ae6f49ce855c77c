/*
 * nearest: the known name that is most like a misspelled one, for "did you mean".
 *
 *   Cost     O(length of both names) for each known name
 *   Threads  any: no state
 */
#ifndef CLAIMD_BASE_NEAREST_H
#define CLAIMD_BASE_NEAREST_H

#include "claimd/base/bytes.h"

struct nearest {
    struct bytes name; /* the misspelled one; borrowed */
    const char *found; /* borrowed; NULL: no known name is like it */
    size_t distance;   /* of `found` */
};

/* Begins with a misspelled name. */
struct nearest nearest_begin(struct bytes name);

/* Compares a known name, in any case. It is like the other one if few characters are
 * missing, added, changed or swapped (one, or one of three), or if it begins alike. */
void nearest_offer(struct nearest *n, const char *known);

#endif
