/* Observers look at everything and change nothing. */
#include "sim/sim.h"

/* Reads on in a listing, or begins another one. */
static void
list(struct sim *sim, struct actor *a, struct random *r)
{
    struct operation *op = &a->page;
    struct sim_response response;

    if (op->from.marker.text[0] == '\0' || random_chance(r, 20))
        *op = (struct operation){.kind = OP_LIST,
                                 .place = sim_some_place(sim, r),
                                 .client = a->client,
                                 .limit =
                                     (int)random_between(r, 0, sim->profile->claim_limit),
                                 .echo = random_chance(r, 80),
                                 .include_claimed = random_chance(r, 60),
                                 .include_delayed = random_chance(r, 60)};
    if (!sim_request(sim, a, op, &response) || response.code != 200)
        return;
    if (response.count == 0) { /* the end, for now */
        op->from.marker.text[0] = '\0';
        return;
    }
    op->from.marker = response.marker;
    op->from.incarnation = sim->ledger.queues[op->place].incarnation;
    op->from.order = ledger_message(&sim->ledger, op->place,
                                    response.messages[response.count - 1].id.text)
                         ->order;
}

static bool
is_named(const struct operation *op, struct store_id id)
{
    for (size_t i = 0; i < op->id_count; i++)
        if (strcmp(op->ids[i].text, id.text) == 0)
            return true;
    return false;
}

static void
get(struct sim *sim, struct actor *a, struct random *r)
{
    struct operation op = {.kind = random_chance(r, 50) ? OP_GET_ONE : OP_GET_MANY,
                           .place = sim_some_place(sim, r),
                           .client = a->client};
    int64_t count = random_between(r, 1, IDS_MAX);
    struct sim_response response;

    op.id = sim_some_message(sim, r, op.place);
    for (int64_t i = 0; i < count; i++) {
        struct store_id id = sim_some_message(sim, r, op.place);

        if (id.text[0] != '\0' && !is_named(&op, id))
            op.ids[op.id_count++] = id;
    }
    if (random_chance(r, 5)) /* in a queue where they are not */
        op.place = sim_some_place(sim, r);
    if (op.id_count > 0 && op.id.text[0] != '\0')
        (void)sim_request(sim, a, &op, &response);
}

static void
look(struct sim *sim, struct actor *a, struct random *r, enum op_kind kind)
{
    struct operation op = {
        .kind = kind, .place = sim_some_place(sim, r), .client = a->client};
    struct sim_response response;

    if (kind == OP_CLAIM_SHOW) {
        op.id = sim_some_claim(sim, r, op.place);
        if (op.id.text[0] == '\0')
            return;
    }
    (void)sim_request(sim, a, &op, &response);
}

void
observer_act(struct sim *sim, struct actor *a, struct random *r)
{
    uint64_t what = random_below(r, 100);

    if (what < 50)
        list(sim, a, r);
    else if (what < 70)
        get(sim, a, r);
    else if (what < 80)
        look(sim, a, r, OP_CLAIM_SHOW);
    else if (what < 92)
        look(sim, a, r, OP_QUEUE_STATS);
    else if (what < 96)
        look(sim, a, r, OP_QUEUE_SHOW);
    else
        look(sim, a, r, OP_QUEUE_LIST);
}
