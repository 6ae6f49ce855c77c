/*
 * preflight: checks whether this Redis, or this cluster, would lose confirmed data. It runs when the store is
 * opened, since later is too late (docs/scale-out.md, "Checks at the start"). claimd refuses an unfit Redis with advice. With `unsafe` in the URL, or with one
 * Redis without a cluster, which survives little anyway, claimd only logs a warning.
 */
#ifndef REDIS_PREFLIGHT_H
#define REDIS_PREFLIGHT_H

#include "claimd/json/reason.h"

struct redis_store;

/* ST_UNAVAILABLE with a reason; ST_NO_MEMORY. */
enum status preflight_check(struct redis_store *s, struct reason *why);

/* Can it be used just now: does each primary answer, and is the cluster well? Likewise. */
enum status preflight_ping(struct redis_store *s, struct reason *why);

#endif
