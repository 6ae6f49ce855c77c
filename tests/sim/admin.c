/* Administrators make queues, change what they do, empty them and take them away. */
#include "sim/sim.h"

static void
do_plain(struct sim *sim, struct actor *a, enum op_kind kind, int place)
{
    struct operation op = {.kind = kind, .place = place, .client = a->client};
    struct answer answer;

    (void)sim_request(sim, a, &op, &answer);
}

/* Makes a queue, now and then one that is in memory only; that cannot be said later. */
static void
make(struct sim *sim, struct actor *a, struct random *r, int place)
{
    struct operation op = {.kind = OP_QUEUE_PUT, .place = place, .client = a->client};
    unsigned once = sim->profile->transient_once;
    struct answer answer;

    op.transient =
        once > 0 && !sim->ledger.queues[place].exists && random_once_in(r, once);
    (void)sim_request(sim, a, &op, &answer);
}

/* All of it, or where somebody is subscribed now and then a part. */
static void
purge(struct sim *sim, struct actor *a, struct random *r, int place)
{
    struct operation op = {.kind = OP_QUEUE_PURGE,
                           .place = place,
                           .client = a->client,
                           .purge = STORE_PURGE_BOTH};
    struct answer answer;

    if (sim->profile->actors[PART_SUBSCRIBER] > 0 && random_chance(r, 60))
        op.purge =
            random_chance(r, 70) ? STORE_PURGE_MESSAGES : STORE_PURGE_SUBSCRIPTIONS;
    (void)sim_request(sim, a, &op, &answer);
}

static void
patch(struct sim *sim, struct actor *a, int place, enum setting setting, int64_t value)
{
    struct operation op = {.kind = OP_QUEUE_PATCH,
                           .place = place,
                           .client = a->client,
                           .setting = setting,
                           .value = value};
    struct answer answer;

    if (sim_request(sim, a, &op, &answer) && answer.code == 404) {
        do_plain(sim, a, OP_QUEUE_PUT, place);
        (void)sim_request(sim, a, &op, &answer);
    }
}

/* Another queue of the project; the same one would be a circle in itself. */
static int64_t
draw_dead_letter(struct random *r, int place)
{
    int64_t name = random_between(r, 0, NAMES - 1);

    return name == place % NAMES ? (name + 1) % NAMES : name;
}

static void
patch_dead_letters(struct sim *sim, struct actor *a, struct random *r, int place)
{
    switch (random_below(r, 8)) {
    case 0:
        patch(sim, a, place, SETTING_CLAIM_COUNT, STORE_UNSET);
        break;
    case 1:
        patch(sim, a, place, SETTING_DEAD_LETTER_TTL,
              random_chance(r, 50) ? STORE_UNSET : random_between(r, 60, 4000));
        break;
    default:
        patch(sim, a, place, SETTING_DEAD_LETTER, draw_dead_letter(r, place));
        patch(sim, a, place, SETTING_CLAIM_COUNT, random_between(r, 1, 3));
    }
}

static void
patch_defaults(struct sim *sim, struct actor *a, struct random *r, int place)
{
    static const struct {
        enum setting setting;
        int64_t low, high;
    } drawn[] = {{SETTING_TTL, 60, 1209600}, {SETTING_DELAY, 0, 900}};
    size_t which = (size_t)random_below(r, 2);

    if (random_chance(r, 20))
        patch(sim, a, place, SETTING_POST_BYTES,
              random_chance(r, 70) ? STORE_UNSET : random_between(r, 60, 20000));
    else
        patch(sim, a, place, drawn[which].setting,
              random_chance(r, 40)
                  ? STORE_UNSET
                  : random_between(r, drawn[which].low, drawn[which].high));
}

/* Takes it away, and often makes it again: the old ids must mean nothing there. */
static void
reset(struct sim *sim, struct actor *a, struct random *r, int place)
{
    if (random_chance(r, 50)) {
        purge(sim, a, r, place);
        return;
    }
    do_plain(sim, a, OP_QUEUE_DELETE, place);
    if (random_chance(r, 60))
        make(sim, a, r, place);
}

void
admin_act(struct sim *sim, struct actor *a, struct random *r)
{
    const struct profile *p = sim->profile;
    int place = sim_some_place(sim, r);

    if (p->reset_once > 0 && random_once_in(r, p->reset_once))
        reset(sim, a, r, place);
    else if (p->dead_letters_once > 0 && random_once_in(r, p->dead_letters_once))
        patch_dead_letters(sim, a, r, place);
    else if (random_chance(r, 20))
        make(sim, a, r, place);
    else
        patch_defaults(sim, a, r, place);
}
