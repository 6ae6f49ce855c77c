#include "sim/run.h"

#include "sim/history.h"

/* UNLOAD_POLL_MS: between two looks of the store at the writer of runs. */
enum {
    AUDIT_EVERY = 64,
    MINUTE_MS = 60000,
    DAY_MS = 24 * 60 * MINUTE_MS,
    UNLOAD_POLL_MS = 1000
};

/* ---------------------------------------------------------------------- the clock */

/* Chooses one deadline of many. */
struct choice {
    struct random *r;
    int64_t now_ms;
    bool soonest; /* else any */
    uint64_t seen;
    int64_t due_ms;
};

static void
choose(void *ctx, int64_t due_ms)
{
    struct choice *c = ctx;

    if (due_ms <= c->now_ms)
        return;
    c->seen++;
    if (c->soonest ? c->seen == 1 || due_ms < c->due_ms : random_once_in(c->r, c->seen))
        c->due_ms = due_ms;
}

/* Goes to a deadline: one millisecond before it, exactly there, or one behind it. */
static void
wait_for_deadline(struct sim *sim, struct random *r)
{
    struct choice c = {
        .r = r, .now_ms = sim->server.now_ms, .soonest = random_chance(r, 70)};
    int64_t ms;

    ledger_deadlines(&sim->ledger, choose, &c);
    for (int i = 0; i < WAITERS_MAX; i++)
        if (server_waits(&sim->server, i))
            choose(&c, sim->server.parked[i].until_ms);
    ms = c.due_ms + random_between(r, -1, 1) - c.now_ms;
    if (c.seen > 0 && ms > 0)
        sim_pass(sim, r, ms);
}

static bool
comes_up(struct random *r, unsigned once)
{
    return once > 0 && random_once_in(r, once);
}

static void
pass_time(struct sim *sim, struct random *r)
{
    const struct profile *p = sim->profile;

    if (comes_up(r, p->day_wait_once))
        sim_pass(sim, r, random_between(r, 1, INT64_C(15) * DAY_MS));
    else if (comes_up(r, p->long_wait_once))
        sim_pass(sim, r, random_between(r, 1, INT64_C(120) * MINUTE_MS));
    else if (comes_up(r, p->deadline_once))
        wait_for_deadline(sim, r);
    else if (comes_up(r, p->wait_once))
        sim_pass(sim, r,
                 random_chance(r, 50) ? random_between(r, 1, 50)
                                      : random_between(r, 1, 5000));
}

/* ---------------------------------------------------------------------- steps */

static void
audit(struct sim *sim)
{
    if (!store_audit(sim->server.store))
        (void)verdict_break(&sim->verdict, PROMISE_SOUND, "the audit fails");
}

/* The front end gets on with those who wait: with all of them, with some, or not yet. */
static void
go_on(struct sim *sim, struct random *r)
{
    uint64_t what = random_below(r, 100);

    if (what < 80 && !sim_broken(sim))
        sim_round(sim, r, what < 50);
}

/* Each kind of decision has dice of its own, so that leaving one out moves no other. */
static void
do_step(struct sim *sim, const struct step *step)
{
    struct random time = {step->dice ^ 1}, chores = {step->dice ^ 2};
    struct random acts = {step->dice ^ 3}, front = {step->dice ^ 5};
    struct random ends = {step->dice ^ 6};

    sim->luck = (struct random){step->dice ^ 4};
    sim->lucky = step->no_trouble;
    if (!step->no_wait)
        pass_time(sim, &time);
    if (!step->no_housekeeping && comes_up(&chores, sim->profile->housekeep_once)) {
        history_note(sim, "    (housekeeping)\n");
        (void)server_housekeep(&sim->server);
    }
    (void)sim_schedule(sim);
    crash_turn(sim, &ends);
    if (sim_broken(sim))
        return;
    actor_act(sim, &sim->actors[step->actor], &acts);
    if (sim->profile->waiting_once > 0)
        go_on(sim, &front);
}

/* ---------------------------------------------------------------------- the end */

static void
inspect_all(struct sim *sim)
{
    for (int place = 0; place < PLACES && !sim_broken(sim); place++)
        (void)sim_inspect(sim, place, PROMISE_NONE);
}

static void
delete_all(struct sim *sim)
{
    struct operation op = {.kind = OP_QUEUE_DELETE};
    struct sim_response response;

    for (op.place = 0; op.place < PLACES && !sim_broken(sim); op.place++)
        (void)sim_look(sim, &op, &response);
}

/* At the end everything is where it has to be; then it ends, and its memory is free. */
static void
finish(struct sim *sim)
{
    /* Tables and the last response keep a little, the pool of each shard its nodes. */
    size_t kept = (size_t)512 * 1024 + sim->profile->shards * 64 * 1024;
    size_t before = mem_used(sim->server.mem);
    struct random r = {sim->profile->seed};

    sim->lucky = true;
    crash_settle(sim, &r);
    sim_drain(sim);
    sim_deliver_all(sim);
    inspect_all(sim);
    sim_end_schedules(sim, &r);
    sim_pass(sim, &r, INT64_C(15) * DAY_MS);
    inspect_all(sim);
    delete_all(sim);
    if (sim_broken(sim))
        return;
    while (server_commit(&sim->server)) /* the last runs, which the store looks at then */
        continue;
    server_pass(&sim->server, UNLOAD_POLL_MS);
    if (server_housekeep(&sim->server) != INT64_MAX)
        (void)verdict_break(&sim->verdict, PROMISE_SOUND,
                            "an empty server wants to be woken");
    if (mem_used(sim->server.mem) > kept)
        (void)verdict_break(&sim->verdict, PROMISE_SOUND,
                            "an empty server uses %zu bytes, a full one %zu",
                            mem_used(sim->server.mem), before);
}

void
run_plan(const struct plan *plan, const struct run_options *options, struct outcome *out)
{
    static const struct outcome nothing;
    struct sim sim;

    *out = nothing;
    sim_open(&sim, plan, options->trace);
    while (out->steps < plan->count && !sim_broken(&sim)) {
        do_step(&sim, &plan->steps[out->steps++]);
        if (options->audit && out->steps % AUDIT_EVERY == 0 && !sim_broken(&sim))
            audit(&sim);
    }
    if (!sim_broken(&sim)) {
        finish(&sim);
        if (options->audit && !sim_broken(&sim))
            audit(&sim);
    }
    out->simulated_ms = sim.server.now_ms - SERVER_START_MS;
    out->tally = sim.tally;
    out->digest = sim.digest;
    sim_close(&sim);
    out->verdict = sim.verdict;
}
