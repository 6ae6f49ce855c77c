/*
 * shrink: makes a failing history short.
 *
 * Leaves out what is not needed: the steps behind the failure, whole actors, runs of
 * steps (delta debugging, Zeller & Hildebrandt 2002), then waits, troubles and
 * housekeeping of single steps; keeps a plan only if it breaks the same promise.
 */
#ifndef TESTS_SIM_SHRINK_H
#define TESTS_SIM_SHRINK_H

#include "sim/run.h"

/* Makes *plan, which has this outcome, shorter, and *out what comes of it. */
void
shrink_plan(struct plan *plan, const struct run_options *options, struct outcome *out);

#endif
