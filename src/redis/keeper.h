/*
 * keeper: a thread of a store on Redis that looks after what nobody asks for: lines whose time has come
 * (waiting.h), what other processes have changed (ear.h), leases and lists of deliveries (delivery.h).
 *
 * With the clock of tests there is none: housekeeping does its work.
 */
#ifndef REDIS_KEEPER_H
#define REDIS_KEEPER_H

#include "claimd/base/status.h"

struct redis_store;
struct keeper; /* opaque */

/* Starts it. ST_NO_MEMORY; ST_UNAVAILABLE. */
enum status keeper_start(struct redis_store *s);

/* Has it look at once what there is to do. Any thread; NULL is fine. */
void keeper_wake(struct keeper *k);

/* Ends it; NULL is fine. */
void keeper_end(struct keeper *k);

#endif
