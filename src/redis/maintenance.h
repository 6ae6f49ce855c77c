/*
 * maintenance: a thread of a store on Redis for the work that no request does. It wakes waiters whose time has
 * come (waiting.h), listens for changes by other processes, renews the leases of deliveries
 * (subscription_ops.h) and refreshes the map of the slots.
 *
 * Each queue has a channel, in the slot of its keys (sharded pub/sub of Redis 7). Scripts publish there when
 * messages become ready while a process listens, and when the queue is deleted (lib/queue.lua). The thread has
 * a connection to each node with a channel that it needs, and subscribes again when the connection breaks or
 * the slot moves. Notifications in between are lost, so waiters also look from time to time.
 *
 * With the clock of tests there is no such thread. Housekeeping does its work.
 *
 *   Memory   a channel each, for half a minute after the last waiter
 *   Blocking the thread: opening a connection, and the scripts of delivery_keep(); never reading
 */
#ifndef REDIS_MAINTENANCE_H
#define REDIS_MAINTENANCE_H

#include "claimd/base/status.h"

struct redis_store;
struct maintenance; /* opaque */

/* Starts it: s->maintenance. ST_NO_MEMORY; ST_UNAVAILABLE. */
enum status maintenance_start(struct redis_store *s);

/* Ends it; NULL is fine. */
void maintenance_end(struct maintenance *m);

#endif
