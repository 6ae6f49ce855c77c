/*
 * simulation: activates each bug of table.py that the simulation has to find, and runs
 * seeds.
 *
 *   simulation [--seeds N] [NAME...]
 *
 *   --seeds N    give up on a bug after so many seeds (500)
 *   NAME...      only these
 *
 * Prints a table of the promise that found each bug, the seed, and the steps of the
 * shortest history. The exit status is 0 if all were found.
 */
#include "mutant.h"
#include "sim/run.h"
#include "sim/shrink.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 400 };

struct row {
    enum mutant mutant;
    const char *name, *text;
    bool by_simulation;
};

static const struct row rows[] = {
#define MUTANT_ROW(name, text, by_simulation) {MUTANT_##name, #name, text, by_simulation},
    MUTANT_LIST(MUTANT_ROW)
#undef MUTANT_ROW
};

static const size_t row_count = sizeof(rows) / sizeof(rows[0]);

/* The store does not audit itself: only the promises find a bug. */
static const struct run_options options = {.audit = false};

static bool
is_caught(const struct row *row, uint64_t seed)
{
    struct outcome outcome;
    struct plan plan;
    bool caught;

    plan_make(&plan, seed, STEPS);
    run_plan(&plan, &options, &outcome);
    caught = outcome.verdict.broken != PROMISE_NONE;
    if (caught) {
        shrink_plan(&plan, &options, &outcome);
        printf("| %s | %s | %s | %" PRIu64 " | %zu |\n", row->name, row->text,
               promise_text(outcome.verdict.broken), seed, plan.count);
        fflush(stdout);
    }
    plan_fini(&plan);
    return caught;
}

static bool
find(const struct row *row, uint64_t seeds)
{
    mutant_awake = row->mutant;
    for (uint64_t seed = 1; seed <= seeds; seed++)
        if (is_caught(row, seed))
            return true;
    printf("| %s | %s | **not caught by %" PRIu64 " seeds** | | |\n", row->name,
           row->text, seeds);
    return false;
}

static bool
is_wanted(const struct row *row, int argc, char **argv, int from)
{
    for (int i = from; i < argc; i++)
        if (strcmp(argv[i], row->name) == 0)
            return true;
    return from == argc;
}

int
main(int argc, char **argv)
{
    uint64_t seeds = 500;
    bool all = true;
    int names = 1;

    if (argc > 2 && strcmp(argv[1], "--seeds") == 0) {
        seeds = strtoull(argv[2], NULL, 10);
        names = 3;
    }
    printf(
        "| mutant | what it does | caught by | seed | steps |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < row_count; i++)
        if (rows[i].by_simulation && is_wanted(&rows[i], argc, argv, names) &&
            !find(&rows[i], seeds))
            all = false;
    return all ? 0 : 1;
}
