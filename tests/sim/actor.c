#include "sim/sim.h"

void
actor_act(struct sim *sim, struct actor *a, struct random *r)
{
    static void (*const acts[PART_COUNT])(struct sim *, struct actor *,
                                          struct random *) = {
        producer_act, worker_act,     popper_act,    observer_act,
        admin_act,    subscriber_act, deliverer_act, planner_act};

    if (a->retry.key != 0 && random_chance(r, 40))
        sim_retry(sim, a);
    else
        acts[a->part](sim, a, r);
}
