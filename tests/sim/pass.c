/*
 * Time goes on; with the test API by the interface that tests have: from one deadline to the next, and
 * who waits is served in between.
 */
#include "sim/history.h"
#include "sim/sim.h"

#include <inttypes.h>
#include <stdlib.h>

/* Claims that have to end within a step, each at its time. */
struct due {
    struct store_id id;
    int place;
    int64_t at_ms;
    bool told;
};

struct step_of_time {
    struct sim *sim;
    struct due *due; /* owned */
    size_t count;
    int64_t at_ms; /* of the entry before */
};

/* Is there a message that the claim still holds when it ends? It is over without a word else. */
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
        if (d->told || e->at_ms != d->at_ms)
            (void)verdict_break(&step->sim->verdict, PROMISE_STEP_BY_STEP,
                                "claim %s ends at %" PRId64 ", and is told %s %" PRId64,
                                d->id.text, d->at_ms, d->told ? "again at" : "to end at",
                                e->at_ms);
        d->told = true;
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
        if (!step->due[i].told)
            (void)verdict_break(&sim->verdict, PROMISE_STEP_BY_STEP,
                                "claim %s ends at %" PRId64 ", and nobody is told",
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
            server_let_go(&sim->server);
    if (server_advance_end(&sim->server) != 200)
        (void)verdict_break(&sim->verdict, PROMISE_CONTRACT, "the clock is not moved");
    sim->tally.moves++;
    check_step(&step, since);
}

void
sim_pass(struct sim *sim, struct random *r, int64_t ms)
{
    enum { DAYS_MOST = 366 };

    history_wait(sim, ms);
    if (sim->server.testapi != NULL && ms >= 1000 && ms < INT64_C(86400000) * DAYS_MOST) {
        advance(sim, r, ms / 1000);
        ms %= 1000;
    }
    server_pass(&sim->server, ms);
}
