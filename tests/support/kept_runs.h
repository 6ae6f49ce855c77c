/*
 * kept_runs: body files for tests, in memory (claimd/store/runs.h).
 *
 * A write becomes durable after a while, and fails now and then, as the seed has it. A
 * load ends when the test says so. Runs that the store does not release are reported at
 * the end.
 */
#ifndef TESTS_SUPPORT_KEPT_RUNS_H
#define TESTS_SUPPORT_KEPT_RUNS_H

#include "claimd/store/runs.h"
#include "support/random.h"

struct kept_run;

struct kept_runs {
    struct store_runs runs;
    struct random dice;
    struct kept_run *all; /* owned; a run a file, by its number - 1 */
    size_t count, capacity;
    size_t live; /* that are not released */
    struct list loads;
    uint64_t loaded, refused; /* counts */
};

void kept_runs_init(struct kept_runs *k, uint64_t seed);

/* Returns the number of runs that were not released. */
size_t kept_runs_fini(struct kept_runs *k);

/* Ends all loads. Fits patient_between(). */
void kept_runs_load(void *kept_runs);

#endif
