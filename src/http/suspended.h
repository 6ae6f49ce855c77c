/*
 * suspended: exchanges whose response has to wait (respond.h has their states), and what ends that.
 *
 *   Cost     WAITING: nothing until it ends. Ending many: all in one round
 *   Threads  all in the worker
 */
#ifndef HTTP_SUSPENDED_H
#define HTTP_SUSPENDED_H

#include "http/respond.h"

/* ST_NO_MEMORY. */
enum status suspended_init(struct worker *w);
void suspended_fini(struct worker *w);

/* Does some slices of the requests that are done so. */
void suspended_slices(struct worker *w);

/* There is an event of c. */
void suspended_event(struct worker *w, struct conn *c, unsigned bits);

/* The client of c has hung up, or half: it does not wait for a message any more. */
void suspended_hung_up(struct worker *w, struct conn *c);

/* Ends the waiting, or the delay, whose time is over. When the next one's is; INT64_MAX: never. */
int64_t suspended_expire(struct worker *w);

/* Resumes the exchanges whose change has become durable, if the log has made progress. */
void suspended_commits(struct worker *w);

/* The server drains: ends all waiting and all delays. */
void suspended_drain(struct worker *w);

#endif
