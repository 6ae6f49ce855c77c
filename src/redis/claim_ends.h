/*
 * claim_ends: ends claims on Redis, although no request concerns their queue. Otherwise
 * the messages that have no attempt left would not become dead letters before the next
 * request.
 *
 *     a script gives a claim such a message -> due_ms behind its response (mark_due() of
 *                                              lib/queue.lua)
 *     call_run()                            -> claim_ends_add() (call.h) tells the thread
 *     thread                                -> due_add(), which adds the queue to its
 *                                           list
 *                                              (due.h), then queue_expire, which looks at
 *                                              the queue until the last such claim ends
 *
 * Such a look also sends the transfers that a process has left behind (outbox.h). A node
 * that fails is avoided for some seconds, so that it does not delay the looks at queues
 * of other nodes.
 *
 *   Threads  claim_ends_open(), claim_ends_start(), claim_ends_end(), claim_ends_close():
 *            the one that opens the store. claim_ends_step(): the thread, or one at a
 *            time if there is none. All others: any
 *   Memory   a copy of the address of each queue that is not in a list yet, ADDED_MOST at
 *            most
 */
#ifndef REDIS_CLAIM_ENDS_H
#define REDIS_CLAIM_ENDS_H

#include "redis/call.h"

/* Makes s->claim_ends. ST_NO_MEMORY; ST_UNAVAILABLE: no descriptor is free. */
enum status claim_ends_open(struct redis_store *s);

/* Does nothing if s->claim_ends is NULL. */
void claim_ends_close(struct redis_store *s);

/* Starts the thread. ST_UNAVAILABLE. */
enum status claim_ends_start(struct redis_store *s);

/* Ends the thread, if there is one. */
void claim_ends_end(struct redis_store *s);

/* Adds queues to their lists, and looks at one queue, if that is due. Without a thread,
 * housekeeping calls it. */
void claim_ends_step(struct redis_store *s, int64_t now_ms);

/* When to call claim_ends_step() again, as redis_clock_ms(). */
int64_t claim_ends_next_ms(struct redis_store *s);

#endif
