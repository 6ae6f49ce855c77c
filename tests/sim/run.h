/*
 * run: carries out a plan from beginning to end.
 */
#ifndef TESTS_SIM_RUN_H
#define TESTS_SIM_RUN_H

#include "sim/plan.h"
#include "sim/promise.h"
#include "sim/tally.h"

#include <stdio.h>

struct outcome {
    struct verdict verdict;
    size_t steps; /* done, with the one in which a promise broke */
    struct tally tally;
    int64_t simulated_ms;
    uint64_t digest; /* of all responses */
};

/* How a plan is carried out. */
struct run_options {
    bool audit;  /* the store audits itself now and then */
    FILE *trace; /* the history is written here; NULL: nowhere */
};

/* The same plan always has the same outcome. */
void
run_plan(const struct plan *plan, const struct run_options *options, struct outcome *out);

#endif
