/*
 * suspended: ends the waits of exchanges whose response has to wait. respond.h has their
 * states.
 *
 *   Threads  the worker
 */
#ifndef HTTP_SUSPENDED_H
#define HTTP_SUSPENDED_H

#include "http/worker.h"

/* ST_NO_MEMORY. */
enum status suspended_init(struct worker *w);
void suspended_fini(struct worker *w);

/* Runs some slices of the exchanges in TURN. */
void suspended_slices(struct worker *w);

/* Handles the event bits of a connection. */
void suspended_event(struct worker *w, struct conn *c, unsigned bits);

/* Ends waits and delays whose deadline has passed. Returns the next deadline, INT64_MAX:
 * none. */
int64_t suspended_expire(struct worker *w);

/* If the log has made progress, finishes the exchanges whose change has become durable or
 * lost. */
void suspended_commits(struct worker *w);

/* During a drain: ends all long polling and all delays. */
void suspended_drain(struct worker *w);

#endif
