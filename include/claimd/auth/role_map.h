/*
 * role_map: what the roles of an identity server mean here.
 *
 *     admin=admin, member=producer, member=worker, reader=reader
 *
 * A name may stand several times, and a caller may have several roles: what any of them may
 * do, the caller may. Names are compared with their case; those that are not there mean
 * nothing.
 *
 *   Cost     a look-up: O(entries), of which there are ROLE_MAP_MAX at most
 *   Threads  any: nothing changes
 */
#ifndef CLAIMD_AUTH_ROLE_MAP_H
#define CLAIMD_AUTH_ROLE_MAP_H

#include "claimd/auth/policy.h"

enum { ROLE_MAP_MAX = 64 };

/* Several roles of ours: a bit each. */
typedef unsigned role_set;

static inline role_set
role_bit(enum role role)
{
    return 1U << role;
}

struct role_map {
    size_t count;
    struct {
        struct bytes name; /* borrowed from the text */
        enum role role;
    } entries[ROLE_MAP_MAX];
};

/* Reads the table. ST_BAD_VALUE: *why says what is wrong with it. */
enum status role_map_read(struct role_map *out, struct bytes text, struct reason *why);

/*
 * What the role means that has this name: the inside of a JSON string that was scanned.
 * Empty: nothing.
 */
role_set role_map_find(const struct role_map *map, struct bytes inside);

#endif
