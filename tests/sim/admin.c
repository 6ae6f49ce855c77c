/* Administrators make queues, change what they do, empty them and take them away. */
#include "sim/sim.h"

static void
do_plain(struct sim *sim, struct actor *a, enum op_kind kind, int place)
{
    struct operation op = {.kind = kind, .place = place, .client = a->client};
    struct sim_response response;

    (void)sim_request(sim, a, &op, &response);
}

/* Makes a queue, now and then one that is in memory only; that cannot be said later. */
static void
make(struct sim *sim, struct actor *a, struct random *r, int place)
{
    struct operation op = {.kind = OP_QUEUE_PUT, .place = place, .client = a->client};
    unsigned once = sim->profile->transient_once;
    struct sim_response response;

    op.transient =
        once > 0 && !sim->ledger.queues[place].exists && random_once_in(r, once);
    (void)sim_request(sim, a, &op, &response);
}

/* All of it, or, with subscribers, now and then a part. */
static void
purge(struct sim *sim, struct actor *a, struct random *r, int place)
{
    struct operation op = {.kind = OP_QUEUE_PURGE,
                           .place = place,
                           .client = a->client,
                           .purge = STORE_PURGE_BOTH};
    struct sim_response response;

    if (sim->profile->actors[PART_SUBSCRIBER] > 0 && random_chance(r, 60))
        op.purge =
            random_chance(r, 70) ? STORE_PURGE_MESSAGES : STORE_PURGE_SUBSCRIPTIONS;
    (void)sim_request(sim, a, &op, &response);
}

static void
patch(struct sim *sim, struct actor *a, int place, enum setting setting, int64_t value)
{
    struct operation op = {.kind = OP_QUEUE_PATCH,
                           .place = place,
                           .client = a->client,
                           .setting = setting,
                           .value = value};
    struct sim_response response;

    if (sim_request(sim, a, &op, &response) && response.code == 404) {
        do_plain(sim, a, OP_QUEUE_PUT, place);
        (void)sim_request(sim, a, &op, &response);
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

/* How many letters one write of the log takes: they go in one step. */
static int
letters_most(const struct profile *p)
{
    enum { SLICE = 64 };
    const int most = p->restart_once == 0 ? SLICE : (int)(20000 / (2 * p->body + 900));

    return most < 1 ? 1 : most > SLICE ? SLICE : most;
}

/* Have the first so many letters of a queue come from one place? */
static bool
have_one_origin(const struct sim *sim, int place, int limit)
{
    const struct known_queue *q = &sim->ledger.queues[place];
    int origin = NOWHERE;

    for (size_t i = 0; i < q->count && limit > 0; i++) {
        const struct known_message *m = q->messages[i];

        if (!m->letter || m->origin == NOWHERE || m->origin == place)
            continue;
        if (origin != NOWHERE && m->origin != origin)
            return false;
        origin = m->origin;
        limit--;
    }
    return true;
}

/* Where they came from if that is one place: with more targets it takes more than one
 * step. */
static void
redrive(struct sim *sim, struct actor *a, struct random *r)
{
    const struct profile *p = sim->profile;
    struct operation op = {.kind = OP_REDRIVE, .client = a->client, .to = NOWHERE};
    struct sim_response response;
    size_t most = 0;

    op.place = sim_some_place(sim, r);
    for (int place = 0; place < PLACES; place++) { /* mostly where there are letters */
        size_t letters = 0;

        for (size_t i = 0; i < sim->ledger.queues[place].count; i++)
            letters += sim->ledger.queues[place].messages[i]->letter;
        if (letters > most && random_chance(r, 80)) {
            most = letters;
            op.place = place;
        }
    }
    op.limit = (int)random_between(r, 1, letters_most(p));
    op.dry_run = random_chance(r, 15);
    op.keeps_count = random_chance(r, 30);
    if (random_chance(r, 30) || !have_one_origin(sim, op.place, op.limit))
        op.to = place_of(op.place / NAMES, (int)random_below(r, NAMES));
    (void)sim_request(sim, a, &op, &response);
}

/* Mostly resumes what is paused, so that a run goes on. */
static void
pause_or_resume(struct sim *sim, struct actor *a, struct random *r, int place)
{
    enum { BOTH = STORE_PAUSE_CLAIMS | STORE_PAUSE_POSTS };
    struct operation op = {.kind = OP_QUEUE_PAUSE, .place = place, .client = a->client};
    struct sim_response response;

    if (sim->ledger.queues[place].paused != 0 && random_chance(r, 80))
        op.resumes = (unsigned)random_of(r, STORE_PAUSE_CLAIMS, STORE_PAUSE_POSTS, BOTH);
    else
        op.pauses = (unsigned)random_of(r, STORE_PAUSE_CLAIMS, STORE_PAUSE_POSTS, BOTH);
    (void)sim_request(sim, a, &op, &response);
}

void
admin_act(struct sim *sim, struct actor *a, struct random *r)
{
    const struct profile *p = sim->profile;
    int place = sim_some_place(sim, r);

    if (p->pause_once > 0 && random_once_in(r, p->pause_once)) {
        pause_or_resume(sim, a, r, place);
        return;
    }
    if (p->redrive_once > 0 && random_once_in(r, p->redrive_once))
        redrive(sim, a, r);
    else if (p->reset_once > 0 && random_once_in(r, p->reset_once))
        reset(sim, a, r, place);
    else if (p->dead_letters_once > 0 && random_once_in(r, p->dead_letters_once))
        patch_dead_letters(sim, a, r, place);
    else if (random_chance(r, 20))
        make(sim, a, r, place);
    else
        patch_defaults(sim, a, r, place);
}
