/* Subscribers subscribe, change what they said, confirm, and go. */
#include "sim/sim.h"

static int64_t
draw_ttl(struct random *r)
{
    return random_of(r, 60, 61, 300, 4000, 100000, 10000000);
}

/* The id of a subscription that is at this place, or was lately; "" if none. */
static struct store_id
some_subscription(const struct sim *sim, struct random *r, int place)
{
    const struct known_queue *q = &sim->ledger.queues[place];

    if (q->subscription_count == 0 || random_chance(r, 10))
        return sim_some_claim(sim, r, place);
    return q->subscriptions[random_below(r, q->subscription_count)]->id;
}

static struct operation
draw(const struct sim *sim, struct actor *a, struct random *r, enum op_kind kind)
{
    struct operation op = {.kind = kind,
                           .place = sim_some_place(sim, r),
                           .client = a->client,
                           .subscriber = (int)random_below(r, SUBSCRIBERS),
                           .options = random_between(r, 0, 99),
                           .ttl_s = draw_ttl(r),
                           .confirmed = random_chance(r, 75)};

    op.id = some_subscription(sim, r, op.place);
    return op;
}

static void
patch(struct sim *sim, struct actor *a, struct random *r)
{
    struct operation op = draw(sim, a, r, OP_SUBSCRIPTION_PATCH);
    struct sim_response response;

    if (random_chance(r, 50))
        op.subscriber = NONE;
    if (random_chance(r, 50))
        op.options = STORE_UNSET;
    if (random_chance(r, 50))
        op.ttl_s = STORE_UNSET;
    if (op.subscriber == NONE && op.options == STORE_UNSET)
        op.ttl_s = draw_ttl(r);
    if (op.id.text[0] != '\0')
        (void)sim_request(sim, a, &op, &response);
}

static void
act(struct sim *sim, struct actor *a, struct random *r, enum op_kind kind)
{
    struct operation op = draw(sim, a, r, kind);
    struct sim_response response;
    bool of_one = kind == OP_SUBSCRIPTION_CONFIRM || kind == OP_SUBSCRIPTION_DELETE;

    if (!of_one || op.id.text[0] != '\0')
        (void)sim_request(sim, a, &op, &response);
}

void
subscriber_act(struct sim *sim, struct actor *a, struct random *r)
{
    uint64_t what = random_below(r, 100);

    if (what < 35)
        act(sim, a, r, OP_SUBSCRIBE);
    else if (what < 50)
        patch(sim, a, r);
    else if (what < 75)
        act(sim, a, r, OP_SUBSCRIPTION_CONFIRM);
    else if (what < 82)
        act(sim, a, r, OP_SUBSCRIPTION_DELETE);
    else if (what < 90)
        act(sim, a, r, OP_SUBSCRIPTION_LIST);
    else
        act(sim, a, r, OP_PROGRESS_LIST);
}
