/*
 * plan: the steps of a history, drawn from a seed before it begins.
 *
 * A step has an actor and its dice. All decisions in it (the request, how far the clock
 * goes before, the faults) come from those dice and from the history so far. So steps can
 * be left out and the others still make sense: that is how a history is made short.
 */
#ifndef TESTS_SIM_PLAN_H
#define TESTS_SIM_PLAN_H

#include "sim/profile.h"

struct step {
    uint64_t dice;
    int actor;    /* number among all actors */
    bool no_wait; /* left out to make a history plainer */
    bool no_trouble;
    bool no_housekeeping;
};

struct plan {
    struct profile profile;
    struct step *steps; /* owned */
    size_t count;
};

/* Makes the plan of a seed; plan_fini() it. */
void plan_make(struct plan *p, uint64_t seed, size_t steps);
void plan_copy(struct plan *to, const struct plan *from);
void plan_fini(struct plan *p);

#endif
