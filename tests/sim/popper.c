/* Poppers take without a claim, and delete by id what they have seen. */
#include "sim/sim.h"

static void
pop(struct sim *sim, struct actor *a, struct random *r)
{
    struct operation op = {
        .kind = OP_POP, .place = sim_some_place(sim, r), .client = a->client};
    struct sim_response response;

    op.limit = (int)random_between(r, 1, sim->profile->claim_limit);
    if (sim->profile->waiting_once > 0 && random_once_in(r, sim->profile->waiting_once)) {
        op.wait_s = (int)random_between(r, 1, 60);
        sim_wait(sim, a, &op);
        return;
    }
    (void)sim_request(sim, a, &op, &response);
}

static void
delete_one(struct sim *sim, struct actor *a, struct random *r)
{
    struct operation op = {
        .kind = OP_DELETE_ONE, .place = sim_some_place(sim, r), .client = a->client};
    struct sim_response response;

    op.id = sim_some_message(sim, r, op.place);
    if (random_chance(r, 40))
        op.claim = sim_some_claim(sim, r, op.place);
    if (op.id.text[0] != '\0')
        (void)sim_request(sim, a, &op, &response);
}

void
popper_act(struct sim *sim, struct actor *a, struct random *r)
{
    if (sim_waits(sim, a)) {
        if (random_chance(r, 15))
            sim_hang_up(sim, a, r);
        return;
    }
    if (random_chance(r, 70))
        pop(sim, a, r);
    else
        delete_one(sim, a, r);
}
