/*
 * fitness: would this Redis, or this cluster, lose what it has confirmed?
 *
 * Looked at when the store is opened, since afterwards it is too late (docs/scale-out.md, "Checks
 * at the start"). claimd refuses an unfit Redis with advice. With `unsafe` in the URL, or with one
 * Redis without a cluster, which survives little anyway, claimd only logs a warning.
 */
#ifndef REDIS_FITNESS_H
#define REDIS_FITNESS_H

#include "redis/private.h"

/* ST_UNAVAILABLE with a reason; ST_NO_MEMORY. */
enum status fitness_check(struct redis_store *s, struct reason *why);

/* Can it be used just now: does each primary answer, and is the cluster well? Likewise. */
enum status fitness_now(struct redis_store *s, struct reason *why);

#endif
