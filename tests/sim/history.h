/*
 * history: writing down what happens, for people. Does nothing without a trace.
 */
#ifndef TESTS_SIM_HISTORY_H
#define TESTS_SIM_HISTORY_H

#include "sim/sim.h"

/* The actor of the next lines; NULL: the checker. */
void history_who(struct sim *sim, const struct actor *who);

/* The clock has gone on by this. */
void history_wait(struct sim *sim, int64_t ms);

/* The request just done and its response. */
void history_request(struct sim *sim, struct trouble trouble, bool starved);

void history_note(struct sim *sim, const char *text);

#endif
