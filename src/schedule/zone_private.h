/* zone_private: the parts of a zone, for its reader (tzif.c). */
#ifndef SCHEDULE_ZONE_PRIVATE_H
#define SCHEDULE_ZONE_PRIVATE_H

#include "claimd/schedule/zone.h"
#include "schedule/posix_tz.h"

#include <stdatomic.h>

struct zone_change {
    int64_t at;     /* UTC second; greater than that of the change before */
    int64_t offset; /* from then on */
};

struct zone {
    struct mem *mem;
    atomic_uint refs;
    int64_t first_offset; /* before all changes */
    bool has_rule;        /* false: the last offset stays for ever */
    struct posix_tz rule; /* from the last change on; always, if there is none */
    uint32_t count;
    struct zone_change changes[];
};

/* A zone with space for `count` changes, owned. As it is, it is UTC. NULL without memory.
 */
struct zone *zone_new(struct mem *mem, uint32_t count);

#endif
