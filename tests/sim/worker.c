/* Workers claim, finish, renew, give back, crash, and come back when it is too late. */
#include "sim/sim.h"

static int64_t
draw_ttl(const struct profile *p, struct random *r)
{
    if (random_chance(r, 20))
        return STORE_UNSET;
    return random_chance(r, 30) ? 60 : random_between(r, 60, p->claim_most_s);
}

static struct operation
claim_operation(const struct actor *a, enum op_kind kind, const struct holding *h)
{
    return (struct operation){.kind = kind,
                              .place = h->place,
                              .client = a->client,
                              .id = h->claim,
                              .ttl_s = STORE_UNSET,
                              .grace_s = STORE_UNSET};
}

static void
draw_terms(const struct profile *p, struct random *r, struct operation *op)
{
    op->ttl_s = draw_ttl(p, r);
    op->grace_s = draw_ttl(p, r);
}

static void
remember(struct holding *h, int place, const struct sim_response *response)
{
    h->claim = response->location;
    h->place = place;
    h->count = response->count;
    for (size_t i = 0; i < response->count; i++)
        h->ids[i] = response->messages[i].id;
}

void
actor_receive(struct actor *a, const struct operation *op,
              const struct sim_response *response)
{
    if (op->kind == OP_CLAIM && response->code == 201)
        remember(&a->held, op->place, response);
}

/* Would rather wait than get nothing, now and then for one of several queues. */
static void
draw_waiting(const struct profile *p, struct random *r, struct operation *op)
{
    if (p->waiting_once == 0 || !random_once_in(r, p->waiting_once))
        return;
    op->wait_s = (int)random_between(r, 1, 60);
    if (random_chance(r, 70))
        return;
    op->any_count = (size_t)random_between(r, 1, NAMES);
    for (size_t i = 0; i < op->any_count; i++)
        op->any[i] =
            place_of(op->place / NAMES, (int)random_below(r, (uint64_t)p->names));
}

static void
claim(struct sim *sim, struct actor *a, struct random *r)
{
    struct holding none = {.place = sim_some_place(sim, r)};
    struct operation op = claim_operation(a, OP_CLAIM, &none);
    struct sim_response response;

    draw_terms(sim->profile, r, &op);
    op.limit = (int)random_between(r, 0, sim->profile->claim_limit);
    draw_waiting(sim->profile, r, &op);
    if (op.wait_s > 0)
        sim_wait(sim, a, &op);
    else if (sim_request(sim, a, &op, &response) && response.code == 201)
        remember(&a->held, op.place, &response);
}

static void
drop(struct holding *h, size_t at)
{
    h->count--;
    h->ids[at] = h->ids[h->count];
}

/* Deletes one of the messages; keeps it in mind when the response did not come. */
static void
finish_one(struct sim *sim, struct actor *a, struct random *r, struct holding *h)
{
    struct operation op = claim_operation(a, OP_DELETE_ONE, h);
    struct sim_response response;
    size_t at;

    if (h->count == 0)
        return;
    at = (size_t)random_below(r, h->count);
    op.id = h->ids[at];
    op.claim = h->claim;
    if (sim_request(sim, a, &op, &response) && response.code != 503)
        drop(h, at);
}

static void
finish_all(struct sim *sim, struct actor *a, struct random *r, struct holding *h)
{
    struct operation op = claim_operation(a, OP_DELETE_MANY, h);
    struct sim_response response;

    if (h->count == 0)
        return;
    op.id_count = h->count;
    memcpy(op.ids, h->ids, sizeof(op.ids));
    if (sim->profile->rules.strict_delete || random_chance(r, 70))
        op.claim = h->claim;
    if (sim_request(sim, a, &op, &response) && response.code == 204)
        h->count = 0;
}

/* How many bodies a log with small segments takes in one write. */
static size_t
bodies_most(const struct profile *p)
{
    const size_t most = p->restart_once == 0 ? IDS_MAX : 20000 / (2 * p->body + 600);

    return most == 0 ? 1 : most > IDS_MAX ? IDS_MAX : most;
}

/* Names messages with what is to be done, those first that are to be deleted. */
static void
draw_items(struct sim *sim, struct random *r, const struct holding *h,
           struct operation *op)
{
    const bool letters =
        sim->ledger.queues[h->place].settings[SETTING_DEAD_LETTER] != STORE_UNSET ||
        random_chance(r, 5);
    enum store_finish_action drawn[IDS_MAX];
    size_t dead = 0;

    for (size_t i = 0; i < h->count; i++) {
        const uint64_t dice = random_below(r, 100);

        drawn[i] = dice < 40               ? STORE_FINISH_DELETE
                   : dice < 75 || !letters ? STORE_FINISH_RELEASE
                                           : STORE_FINISH_DEAD_LETTER;
        if (drawn[i] == STORE_FINISH_DEAD_LETTER &&
            ++dead > bodies_most(sim->profile) / 2)
            drawn[i] = STORE_FINISH_DELETE;
    }
    for (int action = STORE_FINISH_DELETE; action <= STORE_FINISH_DEAD_LETTER; action++)
        for (size_t i = 0; i < h->count; i++) {
            struct finish_item *item = &op->items[op->id_count];

            if ((int)drawn[i] != action || random_chance(r, 20))
                continue;
            op->ids[op->id_count++] = h->ids[i];
            *item =
                (struct finish_item){.action = drawn[i], .reason = random_chance(r, 40)};
            if (action == STORE_FINISH_RELEASE && random_chance(r, 60))
                item->delay_s = random_between(r, 1, 400);
        }
}

/* To one or two queues of the project. */
static void
draw_posts(struct sim *sim, struct random *r, int place, struct operation *op)
{
    const struct profile *p = sim->profile;
    size_t most = bodies_most(p) / 2;

    if (most == 0 || !random_chance(r, 40))
        return;
    most = most > 3 ? 3 : most;
    op->post_count = (size_t)random_between(r, 1, POSTS_MAX);
    for (size_t i = 0; i < op->post_count; i++) {
        op->posts[i].place =
            place_of(place / NAMES, (int)random_below(r, (uint64_t)p->names));
        if (i > 0 && op->posts[i].place == op->posts[0].place) {
            op->post_count = i;
            return;
        }
        op->posts[i].unique = profile_some_unique(p, r);
        op->posts[i].count = op->posts[i].unique.number != 0
                                 ? 1
                                 : 1 + (size_t)random_below(r, most / (i + 1) + 1);
        for (size_t k = 0; k < op->posts[i].count; k++)
            op->drafts[op->draft_count++] =
                (struct draft){.number = sim->bodies++,
                               .len = (size_t)random_below(r, p->body),
                               .ttl_s = random_between(r, 60, p->ttl_most_s),
                               .delay_s = random_chance(r, 20) ? random_between(r, 0, 300)
                                                               : STORE_UNSET};
    }
}

/* Deletes, gives back and gives up messages, posts others and renews, in one step. */
static void
finish_at_once(struct sim *sim, struct actor *a, struct random *r, struct holding *h)
{
    struct operation op = claim_operation(a, OP_FINISH, h);
    struct sim_response response;

    op.atomic = random_chance(r, 60);
    draw_items(sim, r, h, &op);
    draw_posts(sim, r, h->place, &op);
    op.renews = random_chance(r, 30) || (op.id_count == 0 && op.post_count == 0);
    if (op.renews)
        draw_terms(sim->profile, r, &op);
    if (!sim_request(sim, a, &op, &response) || response.code != 200)
        return;
    for (size_t i = 0; i < op.id_count; i++)
        for (size_t k = 0; k < h->count; k++)
            if (strcmp(h->ids[k].text, op.ids[i].text) == 0)
                drop(h, k--);
    if (h->count == 0)
        h->claim.text[0] = '\0';
}

static void
renew(struct sim *sim, struct actor *a, struct random *r, struct holding *h)
{
    struct operation op = claim_operation(a, OP_CLAIM_RENEW, h);
    struct sim_response response;

    draw_terms(sim->profile, r, &op);
    if (sim_request(sim, a, &op, &response) && response.code == 404)
        h->claim.text[0] = '\0';
}

static void
release(struct sim *sim, struct actor *a, struct holding *h)
{
    struct operation op = claim_operation(a, OP_CLAIM_RELEASE, h);
    struct sim_response response;

    if (sim_request(sim, a, &op, &response) && response.code == 204)
        h->claim.text[0] = '\0';
}

static void
show(struct sim *sim, struct actor *a, const struct holding *h)
{
    struct operation op = claim_operation(a, OP_CLAIM_SHOW, h);
    struct sim_response response;

    (void)sim_request(sim, a, &op, &response);
}

/* Leaves the claim behind: no worker will release it, but one may come back. */
static void
crash(struct actor *a)
{
    a->ghosts[a->next_ghost++ % GHOSTS] = a->held;
    a->held.claim.text[0] = '\0';
}

static void
work(struct sim *sim, struct actor *a, struct random *r, struct holding *h)
{
    uint64_t what = random_below(r, 100);

    if (sim->profile->finish_once > 0 && random_once_in(r, sim->profile->finish_once))
        finish_at_once(sim, a, r, h);
    else if (what < 50)
        finish_one(sim, a, r, h);
    else if (what < 60)
        finish_all(sim, a, r, h);
    else if (what < 75)
        renew(sim, a, r, h);
    else if (what < 88)
        release(sim, a, h);
    else
        show(sim, a, h);
}

/* Comes back with a claim of old, now and then to a queue it was not made in. */
static void
haunt(struct sim *sim, struct actor *a, struct random *r)
{
    struct holding *h = &a->ghosts[random_below(r, GHOSTS)];
    int place = h->place;

    if (h->claim.text[0] == '\0')
        return;
    if (random_chance(r, 10))
        h->place = sim_some_place(sim, r);
    work(sim, a, r, h);
    h->place = place;
}

void
worker_act(struct sim *sim, struct actor *a, struct random *r)
{
    if (sim_waits(sim, a)) {
        if (random_chance(r, 15))
            sim_hang_up(sim, a, r);
    } else if (random_chance(r, 15)) {
        haunt(sim, a, r);
    } else if (a->held.claim.text[0] == '\0') {
        claim(sim, a, r);
    } else if (random_chance(r, 12)) {
        crash(a);
        claim(sim, a, r);
    } else {
        work(sim, a, r, &a->held);
    }
}
