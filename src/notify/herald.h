/*
 * herald: what the log says of deliveries, a line a second at most of those that are lost, so
 * that a dead subscriber does not fill it.
 *
 * Of an address only protocol, host and port are shown (target.h).
 */
#ifndef NOTIFY_HERALD_H
#define NOTIFY_HERALD_H

#include "claimd/base/log.h"
#include "claimd/json/reason.h"
#include "notify/parcel.h"
#include "notify/verdict.h"

struct herald {
    const struct log *log;
    int64_t told_ns;       /* when the last of them was told; 0: never */
    uint64_t untold;       /* since then */
    struct reason missing; /* what was told last to be */
};

/* What came of a parcel. */
void herald_tell(struct herald *h, const struct parcel *p, const struct verdict *v,
                 const struct ending *how, const struct reason *why);

/* What is needed is missing, such as libcurl; told once, until it is something else. */
void herald_tell_missing(struct herald *h, const struct reason *why);

#endif
