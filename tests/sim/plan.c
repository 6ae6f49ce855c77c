#include "sim/plan.h"

#include <stdlib.h>

static struct step *
new_steps(size_t count)
{
    struct step *steps = calloc(count + 1, sizeof(*steps));

    if (steps == NULL)
        abort();
    return steps;
}

void
plan_make(struct plan *p, uint64_t seed, size_t steps)
{
    struct random r = {seed ^ 0x73746570}; /* not the profile's numbers */
    int actors = 0;

    profile_draw(&p->profile, seed);
    for (int i = 0; i < PART_COUNT; i++)
        actors += p->profile.actors[i];
    p->steps = new_steps(steps);
    p->count = steps;
    for (size_t i = 0; i < steps; i++) {
        p->steps[i].dice = random_next(&r);
        p->steps[i].actor = (int)random_below(&r, (uint64_t)actors);
    }
}

void
plan_copy(struct plan *to, const struct plan *from)
{
    to->profile = from->profile;
    to->count = from->count;
    to->steps = new_steps(from->count);
    memcpy(to->steps, from->steps, from->count * sizeof(*to->steps));
}

void
plan_fini(struct plan *p)
{
    free(p->steps);
    p->steps = NULL;
}
