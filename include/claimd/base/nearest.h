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

/* Starts a search for the known name that is most like `name`. */
struct nearest nearest_begin(struct bytes name);

/*
 * Compares a known name, and keeps it in `found` if it is nearer than those before. Case
 * does not matter. A name is near if at most one character, or one of three of the
 * misspelled name, is missing, added, changed or swapped with its neighbor. If no name is
 * near so far, a name counts that begins with all characters of the misspelled name but
 * the last (five at least).
 */
void nearest_offer(struct nearest *n, const char *known);

/* The known name that is most like `name`; NULL: none is, or it is the same. */
const char *nearest_of(struct bytes name, const char *const *known, size_t count);

enum { NEAREST_HINT_CAP = 96 };

struct nearest_hint {
    char text[NEAREST_HINT_CAP];
};

/* ' (did you mean "ttl"?)' for the same, or "", as the end of a text. */
struct nearest_hint
nearest_hint(struct bytes name, const char *const *known, size_t count);

#endif
