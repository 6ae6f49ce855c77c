/*
 * Time goes on; with the test API by the interface that tests have: from one deadline to
 * the next, and waiters are served in between.
 */
#include "sim/crash.h"
#include "sim/history.h"
#include "sim/sim.h"

#include <inttypes.h>
#include <stdlib.h>

/* Claims that have to end within a step, each at its time. */
struct due {
    struct store_id id;
    int place;
    int64_t at_ms;
    bool reported;
};

struct step_of_time {
    struct sim *sim;
    struct due *due; /* owned */
    size_t count;
    int64_t at_ms; /* of the entry before */
};

/* Is there a message that the claim still holds when it ends? It is over without a word
 * else. */
static bool
ends_with_something(const struct ledger *l, const struct known_claim *c)
{
    const struct known_queue *q = &l->queues[c->place];

    for (size_t i = 0; i < q->count; i++)
        if (q->messages[i]->claim == c && q->messages[i]->expires_ms > claim_end_ms(c))
            return true;
    return false;
}

static void
find_due(struct step_of_time *step, int64_t until_ms)
{
    const struct ledger *l = &step->sim->ledger;

    step->due = calloc(l->claim_count + 1, sizeof(*step->due));
    if (step->due == NULL)
        abort();
    for (size_t i = 0; i < l->claim_count; i++) {
        const struct known_claim *c = l->claims[i];

        if (claim_end_ms(c) <= until_ms && ends_with_something(l, c))
            step->due[step->count++] =
                (struct due){c->id, c->place, claim_end_ms(c), false};
    }
}

static void
check_claim(struct step_of_time *step, const struct history_entry *e)
{
    for (size_t i = 0; i < step->count; i++) {
        struct due *d = &step->due[i];

        if (!bytes_equal(e->claim, store_id_bytes(&d->id)) ||
            !bytes_equal_str(e->queue.name, place_name(d->place)) ||
            !bytes_equal_str(e->queue.project, place_project(d->place)))
            continue;
        if (d->reported || e->at_ms != d->at_ms)
            (void)verdict_break(
                &step->sim->verdict, PROMISE_STEP_BY_STEP,
                "claim %s ends at %" PRId64 ", and is reported %s %" PRId64, d->id.text,
                d->at_ms, d->reported ? "again at" : "to end at", e->at_ms);
        d->reported = true;
    }
}

static bool
check_entry(void *ctx, const struct history_entry *e)
{
    struct step_of_time *step = ctx;

    if (e->at_ms < step->at_ms)
        (void)verdict_break(&step->sim->verdict, PROMISE_STEP_BY_STEP,
                            "%s of %" PRId64 " behind what happened at %" PRId64,
                            history_event_names[e->event], e->at_ms, step->at_ms);
    step->at_ms = e->at_ms;
    if (e->event == HISTORY_CLAIM_ENDED)
        check_claim(step, e);
    return true;
}

static void
check_step(struct step_of_time *step, uint64_t since)
{
    struct sim *sim = step->sim;

    history_read(testapi_history(sim->server.testapi), since, check_entry, step);
    for (size_t i = 0; i < step->count; i++)
        if (!step->due[i].reported)
            (void)verdict_break(&sim->verdict, PROMISE_STEP_BY_STEP,
                                "claim %s ends at %" PRId64 ", and no event reports it",
                                step->due[i].id.text, step->due[i].at_ms);
    free(step->due);
}

/* By whole seconds, as tests do it. */
static void
advance(struct sim *sim, struct random *r, int64_t seconds)
{
    struct step_of_time step = {.sim = sim, .at_ms = sim->server.now_ms};
    uint64_t since = history_last(testapi_history(sim->server.testapi));

    ledger_advance(&sim->ledger, sim->server.now_ms);
    find_due(&step, sim->server.now_ms + seconds * 1000);
    server_advance_begin(&sim->server, seconds);
    while (!server_advance(&sim->server))
        if (server_calls(&sim->server) && !sim_broken(sim))
            sim_round(sim, r, true);
        else if (sim_broken(sim))
            server_end_waiters(&sim->server);
    if (server_advance_end(&sim->server) != 200)
        (void)verdict_break(&sim->verdict, PROMISE_CONTRACT, "the clock is not moved");
    sim->tally.moves++;
    check_step(&step, since);
}

static void
pass(struct sim *sim, struct random *r, int64_t ms)
{
    enum { DAYS_MOST = 366 };

    history_wait(sim, ms);
    if (sim->server.testapi != NULL && ms >= 1000 && ms < INT64_C(86400000) * DAYS_MOST) {
        advance(sim, r, ms / 1000);
        ms %= 1000;
    }
    server_pass(&sim->server, ms);
}

/* ---------------------------------------------------------------------- dead letters */

bool
sim_impaired(const struct sim *sim)
{
    return sim->crashes.fault != DISK_NONE || sim->server.lost;
}

/* A message whose last claim has expired. */
struct dying {
    struct known_message *m;
    int from, to;
    bool old;        /* it could not move then */
    size_t at;       /* where it stands in the new queue; SIZE_MAX: it has not moved */
    int64_t dead_ms; /* when it moved */
};

/* late: also those that could not move when their claims expired. A start tries that
 * again. */
static size_t
find_dying(const struct ledger *l, int64_t now_ms, bool late, struct dying *out,
           size_t most)
{
    size_t count = 0;

    for (int place = 0; place < PLACES; place++)
        for (size_t i = 0; i < l->queues[place].count; i++) {
            struct known_message *m = l->queues[place].messages[i];

            const bool old = late && m->claim == NULL && m->freed_by_time &&
                             ledger_exhausted(l, place, m);

            if (count < most &&
                (old || (ledger_dies(l, place, m) && claim_end_ms(m->claim) <= now_ms)))
                out[count++] =
                    (struct dying){m, place, ledger_dead_letters(l, place), old, 0, 0};
        }
    return count;
}

/* It has moved, and at the right time; or it could not. */
static void
look_for_dying(struct sim *sim, struct dying *d, bool late, bool refused)
{
    const int64_t now_ms = sim->server.now_ms;

    d->at = server_find(&sim->server, d->to, d->m->id, &d->dead_ms);
    if (d->at != SIZE_MAX && d->dead_ms < (d->old ? now_ms : claim_end_ms(d->m->claim)))
        d->at = SIZE_MAX; /* it is a dead letter of its own queue, from an earlier time */
    if (d->at != SIZE_MAX) {
        if (d->dead_ms > now_ms || (!late && d->dead_ms != now_ms))
            (void)verdict_break(&sim->verdict, PROMISE_ON_TIME,
                                "message %s is said to have moved at %" PRId64,
                                d->m->id.text, d->dead_ms);
    } else if (late && d->m->expires_ms <= now_ms) {
        return; /* it has expired since */
    } else if (!server_has(&sim->server, d->from, d->m->id)) {
        (void)verdict_break(&sim->verdict, PROMISE_NOTHING_LOST,
                            "message %s is lost at the end of its last claim",
                            d->m->id.text);
    } else if (!sim_impaired(sim) && !refused && !d->old) {
        (void)verdict_break(&sim->verdict, PROMISE_ON_TIME,
                            "message %s has not moved at the end of its last claim",
                            d->m->id.text);
    }
}

static int
compare_dying(const void *a, const void *b)
{
    const struct dying *x = a, *y = b;

    return x->to != y->to ? x->to - y->to : (x->at > y->at) - (x->at < y->at);
}

void
sim_settle(struct sim *sim, bool late)
{
    enum { DYING_MOST = 1000 };
    struct dying *all = calloc(DYING_MOST, sizeof(*all));
    bool refused = late; /* at a start, before anything can see it */
    size_t count;

    if (all == NULL)
        abort();
    count = find_dying(&sim->ledger, sim->server.now_ms, late, all, DYING_MOST);
    if (count > 0) {
        crash_remember(sim);
        refused = !server_settle(&sim->server);
    }
    for (size_t i = 0; i < count; i++)
        look_for_dying(sim, &all[i], late, refused);
    if (count > 0)
        history_note(sim, "    (dead letters of claims that expire)\n");
    qsort(all, count, sizeof(*all), compare_dying);
    for (size_t i = 0; i < count && !sim_broken(sim); i++)
        if (all[i].at != SIZE_MAX)
            ledger_dead_letter(&sim->ledger, all[i].from, all[i].to, all[i].m,
                               all[i].dead_ms);
    ledger_advance(&sim->ledger, sim->server.now_ms);
    if (count > 0 && !late) {
        sim->server.first_lsn = 0; /* the log may end between them */
        crash_remember(sim);
    }
    free(all);
}

/* Can a claim be made while time goes on? */
static bool
serves_waiters(const struct sim *sim)
{
    bool waits = false;

    for (int i = 0; sim->server.testapi != NULL && i < WAITERS_MAX; i++)
        waits = waits || server_waits(&sim->server, i);
    return waits;
}

void
sim_pass(struct sim *sim, struct random *r, int64_t ms)
{
    enum { CLAIM_LEAST_MS = 60000 };
    const int64_t until_ms = sim->server.now_ms + ms;

    while (!sim_broken(sim) && sim->server.now_ms < until_ms) {
        const int64_t death_ms = ledger_next_death(&sim->ledger);
        int64_t step_ms =
            (death_ms <= until_ms ? death_ms - 1 : until_ms) - sim->server.now_ms;

        if (step_ms >= CLAIM_LEAST_MS && serves_waiters(sim))
            step_ms = CLAIM_LEAST_MS - 1;
        if (step_ms > 0)
            pass(sim, r, step_ms);
        if (ledger_next_death(&sim->ledger) != sim->server.now_ms + 1 || sim_broken(sim))
            continue;
        server_pass(&sim->server, 1);
        sim_settle(sim, false);
    }
}
