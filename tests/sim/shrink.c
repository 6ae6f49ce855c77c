#include "sim/shrink.h"

#include <string.h>

struct shrinking {
    struct plan *plan;
    struct run_options options;
    struct outcome *outcome; /* of *plan */
    size_t runs_left;
};

/* Takes the plan if it breaks the same promise; frees it if not. */
static bool
consider(struct shrinking *s, struct plan *candidate)
{
    struct outcome outcome;

    if (s->runs_left == 0) {
        plan_fini(candidate);
        return false;
    }
    s->runs_left--;
    run_plan(candidate, &s->options, &outcome);
    if (outcome.verdict.broken != s->outcome->verdict.broken) {
        plan_fini(candidate);
        return false;
    }
    candidate->count = outcome.steps; /* nothing behind it counts */
    plan_fini(s->plan);
    *s->plan = *candidate;
    *s->outcome = outcome;
    return true;
}

static bool
without_actor(struct shrinking *s, int actor)
{
    struct plan candidate;
    size_t kept = 0;

    plan_copy(&candidate, s->plan);
    for (size_t i = 0; i < candidate.count; i++)
        if (candidate.steps[i].actor != actor)
            candidate.steps[kept++] = candidate.steps[i];
    if (kept == candidate.count) {
        plan_fini(&candidate);
        return false;
    }
    candidate.count = kept;
    return consider(s, &candidate);
}

static bool
without_steps(struct shrinking *s, size_t from, size_t count)
{
    struct plan candidate;
    size_t behind;

    plan_copy(&candidate, s->plan);
    if (count > candidate.count - from)
        count = candidate.count - from;
    behind = candidate.count - from - count;
    memmove(&candidate.steps[from], &candidate.steps[from + count],
            behind * sizeof(*candidate.steps));
    candidate.count -= count;
    return consider(s, &candidate);
}

/* Leaves out runs of this many steps wherever it can. True if it could at all. */
static bool
without_runs(struct shrinking *s, size_t length)
{
    bool shorter = false;
    size_t at = 0;

    while (at < s->plan->count && s->runs_left > 0) {
        if (without_steps(s, at, length))
            shorter = true; /* others stand here now */
        else
            at += length;
    }
    return shorter;
}

static void
make_plain(struct shrinking *s)
{
    for (size_t i = 0; i < s->plan->count; i++)
        for (int what = 0; what < 3 && i < s->plan->count; what++) {
            struct plan candidate;

            plan_copy(&candidate, s->plan);
            candidate.steps[i].no_wait |= what == 0;
            candidate.steps[i].no_trouble |= what == 1;
            candidate.steps[i].no_housekeeping |= what == 2;
            (void)consider(s, &candidate);
        }
}

void
shrink_plan(struct plan *plan, const struct run_options *options, struct outcome *out)
{
    struct shrinking s = {
        .plan = plan, .options = *options, .outcome = out, .runs_left = 3000};
    bool shorter = true;

    s.options.trace = NULL;
    plan->count = out->steps;
    for (int actor = 0; actor < ACTORS_MAX; actor++)
        (void)without_actor(&s, actor);
    while (shorter && s.runs_left > 0) {
        shorter = false;
        for (size_t length = plan->count / 2; length > 0; length /= 2)
            if (without_runs(&s, length))
                shorter = true;
    }
    make_plain(&s);
    (void)without_runs(&s, 1);
}
