/*
 * claim_ends: ends claims on Redis, although no request concerns their queue. Otherwise the messages that have no
 * attempt left would not become dead letters before the next request.
 *
 *     a script gives a claim such a message -> due_ms behind its response (mark_due() of lib/queue.lua)
 *     call_run()                            -> claim_ends_add()      (call.h) adds the queue to its list (due.h)
 *     maintenance thread                    -> claim_ends_look()     queue_expire, until the last such claim has ended
 *
 * Such a look also sends the transfers that a process has left behind (outbox.h).
 *
 *   Threads  claim_ends_look(): one at a time. All others: any
 *   Memory   none that grows
 */
#ifndef REDIS_CLAIM_ENDS_H
#define REDIS_CLAIM_ENDS_H

#include "redis/call.h"

/* Makes s->claim_ends. ST_NO_MEMORY. */
enum status claim_ends_open(struct redis_store *s);

/* Does nothing if s->claim_ends is NULL. */
void claim_ends_close(struct redis_store *s);

/* Ends some claims of one queue, if that is due. Returns when to call it again, as redis_clock_ms(). */
int64_t claim_ends_look(struct redis_store *s, int64_t now_ms);

/* When to call claim_ends_look(). */
int64_t claim_ends_next_ms(struct redis_store *s);

#endif
