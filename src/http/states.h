/*
 * states: how an exchange goes from one state to another (exchange.h; respond.h has the
 * picture).
 *
 *   Threads  the worker
 */
#ifndef HTTP_STATES_H
#define HTTP_STATES_H

#include "http/worker.h"

/* True if an exchange in this state waits for something. */
bool state_is_suspended(enum exchange_state state);

/* Sets the state, and counts it. */
void state_set(struct worker *w, struct exchange *ex, enum exchange_state state);

/* Removes an exchange from the list that it is suspended in. */
void state_unlist(struct worker *w, struct exchange *ex);

/* The response of a suspended exchange exists: resumes the connection, which then asks
 * for it. */
void state_make_ready(struct worker *w, struct exchange *ex);

#endif
