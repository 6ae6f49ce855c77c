/* Producers post, and post again what may not have arrived. */
#include "sim/sim.h"

static int64_t
draw_ttl(const struct profile *p, struct random *r)
{
    if (random_chance(r, 15))
        return STORE_UNSET;
    return random_chance(r, 30) ? 60 : random_between(r, 60, p->ttl_most_s);
}

static int64_t
draw_delay(const struct profile *p, struct random *r)
{
    if (p->delay_once == 0 || !random_once_in(r, p->delay_once))
        return random_chance(r, 50) ? STORE_UNSET : 0;
    return random_chance(r, 50) ? random_between(r, 1, 60) : random_between(r, 1, 900);
}

/* Posts again what may have arrived. With subscribers under other numbers: what is
 * delivered is known by its body alone. */
static void
post_again(struct sim *sim, struct actor *a, struct operation *op)
{
    struct sim_response response;

    for (size_t i = 0; sim->profile->actors[PART_SUBSCRIBER] > 0 && i < op->draft_count;
         i++)
        op->drafts[i].number = sim->bodies++;
    (void)sim_request(sim, a, op, &response);
}

void
producer_act(struct sim *sim, struct actor *a, struct random *r)
{
    const struct profile *p = sim->profile;
    struct operation op = {
        .kind = OP_POST, .place = sim_some_place(sim, r), .client = a->client};
    struct sim_response response;

    op.unique = profile_some_unique(p, r);
    op.draft_count = (size_t)random_between(r, 1, op.unique.number != 0 ? 1 : p->batch);
    for (size_t i = 0; i < op.draft_count; i++)
        op.drafts[i] = (struct draft){.number = sim->bodies++,
                                      .len = (size_t)random_below(r, p->body),
                                      .ttl_s = draw_ttl(p, r),
                                      .delay_s = draw_delay(p, r)};
    if (!sim_request(sim, a, &op, &response) && random_chance(r, 70))
        post_again(sim, a, &op);
}
