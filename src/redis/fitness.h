/*
 * fitness: would this Redis, or this cluster, lose what it has confirmed?
 *
 * Looked at when the store is opened, since afterwards it is too late (docs/scale-out.md, "Checks
 * at the start"). What is not fit is refused with advice; with `unsafe` in the URL, or where one
 * Redis without a cluster is used, which survives little anyway, it is only told.
 */
#ifndef REDIS_FITNESS_H
#define REDIS_FITNESS_H

#include "redis/private.h"

/* ST_UNAVAILABLE with a reason; ST_NO_MEMORY. */
enum status fitness_check(struct redis_store *s, struct reason *why);

/* Can it be used just now: does each primary answer, and is the cluster well? Likewise. */
enum status fitness_now(struct redis_store *s, struct reason *why);

#endif
