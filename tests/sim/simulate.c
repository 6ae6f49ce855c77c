/*
 * simulate: runs seeds; prints the shortest history of the first that fails.
 *
 *   simulate [--seeds N] [--seed S] [--steps N] [--trace] [--figures] [--common]
 *
 *   --seed S     the first seed (1)
 *   --seeds N    how many seeds from there on (1 if --seed was given, else 200)
 *   --steps N    steps of each history (400)
 *   --trace      write every history down
 *   --figures    print the number of requests by kind and status
 *   --common     fail if 500 seeds do not reach a common state (claimd/base/sometimes.h)
 *
 * From 500 seeds on it prints the states that were not reached. Exit status 0 if no
 * promise was broken.
 */
#include "claimd/base/clock.h"
#include "sim/run.h"
#include "sim/shrink.h"
#include "support/sometimes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* So many seeds should reach every common state. */
enum { ENOUGH = 500 };

struct options {
    uint64_t seed, seeds;
    size_t steps;
    bool trace, metrics, common;
};

static bool
read_number(const char *text, uint64_t *out)
{
    return text != NULL && bytes_to_u64(bytes_str(text), out);
}

static bool
read_options(int argc, char **argv, struct options *out)
{
    bool seeds_given = false, seed_given = false;

    *out = (struct options){.seed = 1, .seeds = 200, .steps = 400};
    for (int i = 1; i < argc; i++) {
        uint64_t value = 0;

        if (strcmp(argv[i], "--trace") == 0) {
            out->trace = true;
            continue;
        }
        if (strcmp(argv[i], "--figures") == 0) {
            out->metrics = true;
            continue;
        }
        if (strcmp(argv[i], "--common") == 0) {
            out->common = true;
            continue;
        }
        if (i + 1 == argc || !read_number(argv[i + 1], &value))
            return false;
        if (strcmp(argv[i], "--seed") == 0) {
            out->seed = value;
            seed_given = true;
        } else if (strcmp(argv[i], "--seeds") == 0) {
            out->seeds = value;
            seeds_given = true;
        } else if (strcmp(argv[i], "--steps") == 0) {
            out->steps = (size_t)value;
        } else {
            return false;
        }
        i++;
    }
    if (seed_given && !seeds_given)
        out->seeds = 1;
    return true;
}

/* Makes the history short, writes it down, and says how to have it again. */
static void
report(const struct options *o, uint64_t seed, struct plan *plan, struct outcome *outcome)
{
    struct run_options run = {.audit = true};
    size_t steps = outcome->steps;

    printf("seed %" PRIu64 ": broken in step %zu: %s: %s\n", seed, steps,
           promise_text(outcome->verdict.broken), outcome->verdict.why);
    shrink_plan(plan, &run, outcome);
    printf("the shortest history found has %zu steps:\n\n", plan->count);
    run.trace = stdout;
    run_plan(plan, &run, outcome);
    printf("\nbroken: %s: %s\nagain: scripts/simulate --seed %" PRIu64 " --steps %zu\n",
           promise_text(outcome->verdict.broken), outcome->verdict.why, seed, o->steps);
}

/* Some seeds are run twice: a history that does not repeat itself is good for nothing. */
static bool
repeats_itself(const struct plan *plan, uint64_t seed, const struct outcome *first)
{
    enum { EVERY = 16 };
    struct run_options run = {.audit = true};
    struct outcome again;

    if (seed % EVERY != 0)
        return true;
    run_plan(plan, &run, &again);
    if (again.digest == first->digest)
        return true;
    printf("seed %" PRIu64 ": the same plan had other responses\n", seed);
    return false;
}

/* One seed; false if a promise was broken. */
static bool
run_seed(const struct options *o, uint64_t seed, struct outcome *total)
{
    struct run_options run = {.audit = true, .trace = o->trace ? stdout : NULL};
    struct outcome outcome;
    struct plan plan;
    bool kept;

    plan_make(&plan, seed, o->steps);
    run_plan(&plan, &run, &outcome);
    total->steps += outcome.steps;
    tally_add(&total->tally, &outcome.tally);
    total->simulated_ms += outcome.simulated_ms;
    total->digest ^= outcome.digest + seed;
    kept = outcome.verdict.broken == PROMISE_NONE;
    if (!kept)
        report(o, seed, &plan, &outcome);
    else
        kept = repeats_itself(&plan, seed, &outcome);
    plan_fini(&plan);
    return kept;
}

static void
print_metrics(const struct options *o, const struct outcome *total, int64_t took_ns)
{
    double minutes = (double)took_ns / 6e10;

    printf("%" PRIu64 " seeds from %" PRIu64 ", %zu steps, %" PRIu64 " requests, %" PRIu64
           " restarts (%" PRIu64 " lost changes), %" PRIu64 " parked responses, %" PRIu64
           " deliveries, %" PRIu64
           " moves of the clock, %.0f simulated hours, digest %016" PRIx64 "\n",
           o->seeds, o->seed, total->steps, total->tally.requests, total->tally.restarts,
           total->tally.undone, total->tally.held, total->tally.leased,
           total->tally.moves, (double)total->simulated_ms / 3.6e6, total->digest);
    printf("in %.1f s: %.0f requests and %.0f simulated hours a minute\n", minutes * 60,
           (double)total->tally.requests / minutes,
           (double)total->simulated_ms / 3.6e6 / minutes);
}

int
main(int argc, char **argv)
{
    int64_t start_ns = clock_stopwatch_ns();
    struct outcome total = {.steps = 0};
    struct options o;

    if (!read_options(argc, argv, &o)) {
        fprintf(stderr, "usage: simulate [--seeds N] [--seed S] [--steps N] [--trace] "
                        "[--figures] [--common]\n");
        return 2;
    }
    for (uint64_t i = 0; i < o.seeds; i++)
        if (!run_seed(&o, o.seed + i, &total))
            return 1;
    if (o.metrics)
        tally_print(&total.tally, stdout);
    print_metrics(&o, &total, clock_stopwatch_ns() - start_ns);
    if (o.seeds >= ENOUGH && !sometimes_report("sim/seeds", stdout) && o.common)
        return 1;
    return 0;
}
