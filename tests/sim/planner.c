/* Planners set schedules, pause and resume them, and work off what those post. */
#include "sim/history.h"
#include "sim/sim.h"

/* ---------------------------------------------------------------------- the actor */

static struct schedule_terms
draw_terms(struct random *r)
{
    struct schedule_terms terms = {
        .every_s = random_of(r, 2, 3, 5, 10, 30),
        .cron = random_chance(r, 20),
        .missed = (enum schedule_missed)random_below(r, SCHEDULE_MISSED_NONE + 1),
        .overlap = (enum schedule_overlap)random_below(r, SCHEDULE_OVERLAP_SKIP + 1),
        .paused = random_chance(r, 10)};

    if (terms.missed == SCHEDULE_MISSED_ALL && random_chance(r, 90))
        terms.every_s = 300; /* else there would be very many messages */
    if (terms.cron)
        terms.every_s = 60;
    return terms;
}

static int
call(struct sim *sim, const char *method, const char *tail, const char *body)
{
    crash_remember(sim);
    history_note(sim, method);
    history_note(sim, " " SCHEDULE_QUEUE);
    history_note(sim, tail);
    history_note(sim, "\n");
    return server_call_scheduled(&sim->server, method, tail, body);
}

/* Messages of the next queue begin anew. */
static void
delete_queue(struct sim *sim)
{
    if (call(sim, "DELETE", "", NULL) == 204)
        sim->ledger.scheduled.text[0] = '\0';
}

static void
set_wall(struct sim *sim, int64_t seconds)
{
    if (sim->trace != NULL)
        fprintf(sim->trace, "sets the wall clock to %lld s ahead\n", (long long)seconds);
    sim->ledger.set_back |= seconds * 1000 < sim->server.real.wall_ahead_ms;
    server_set_wall(&sim->server, seconds * 1000);
}

/* Works off messages of schedules, refuses them for a while, deletes their queue, or sets
 * the wall clock. It stays within the three hours in which no due time repeats. */
static void
interfere(struct sim *sim, struct random *r, uint64_t what)
{
    if (what < 15)
        (void)call(sim, "DELETE", "/messages?pop=10", NULL);
    else if (what < 20)
        (void)call(sim, "POST", "/pause",
                   random_chance(r, 30) ? "{\"posts\":true}" : "{\"posts\":false}");
    else if (what < 22)
        delete_queue(sim);
    else if (sim->profile->sets_wall)
        set_wall(sim, random_between(r, -3600, 3600));
}

void
planner_act(struct sim *sim, struct actor *a, struct random *r)
{
    uint64_t what = random_below(r, 100);
    struct operation op = {.client = a->client,
                           .schedule = (int)random_below(r, SCHEDULES)};
    struct sim_response response;

    if (what < 25) {
        history_who(sim, a);
        interfere(sim, r, what);
        return;
    }
    op.kind = what < 48   ? OP_SCHEDULE_SET
              : what < 65 ? OP_SCHEDULE_SHOW
              : what < 75 ? OP_SCHEDULE_LIST
              : what < 92 ? OP_SCHEDULE_PAUSE
                          : OP_SCHEDULE_DELETE;
    op.terms = draw_terms(r);
    if (op.kind == OP_SCHEDULE_PAUSE)
        op.terms.paused = random_chance(r, 40);
    (void)sim_request(sim, a, &op, &response);
}

/* ---------------------------------------------------------------------- the scheduler */

void
sim_find_scheduled(struct sim *sim)
{
    size_t count;

    if (sim->server.scheduler == NULL)
        return;
    do {
        struct store_batch batch = server_scheduled(&sim->server, sim->ledger.scheduled);

        count = batch.count;
        for (size_t i = 0; i < count && !sim_broken(sim); i++) {
            const struct store_details *d = batch.messages[i].details;

            (void)judge_scheduled(&sim->ledger, d->unique.key, d->unique.due_ms,
                                  sim->ledger.wall_ms, &sim->verdict);
            sim->ledger.scheduled = batch.messages[i].id;
            history_note(sim, "    (a schedule posts)\n");
        }
        store_batch_release(&batch);
    } while (count > 0 && !sim_broken(sim));
}

bool
sim_schedule(struct sim *sim)
{
    const int64_t wall_ms = sim->server.now_ms + sim->server.real.wall_ahead_ms;
    bool done;

    if (sim->server.scheduler == NULL || sim_broken(sim))
        return true;
    crash_remember(sim);
    done = server_schedule(&sim->server, sim_trouble(sim));
    if (!done)
        history_note(sim, "    (the scheduler has trouble)\n");
    sim->server.first_lsn = 0; /* it may do several things */
    sim->round_ms = sim->server.now_ms;
    if (sim->ledger.wall_ms < wall_ms)
        sim->ledger.wall_ms = wall_ms;
    sim_find_scheduled(sim);
    return done;
}

void
sim_inspect_schedules(struct sim *sim)
{
    struct operation op = {.kind = OP_SCHEDULE_SHOW};
    struct sim_response response;

    for (; sim->server.scheduler != NULL && op.schedule < SCHEDULES && !sim_broken(sim);
         op.schedule++)
        if (sim_look(sim, &op, &response) && response.code == 200 && sim->settled &&
            response.schedules[0].next_ms != 0 &&
            response.schedules[0].next_ms <=
                sim->server.now_ms + sim->server.real.wall_ahead_ms)
            (void)verdict_break(&sim->verdict, PROMISE_ON_TIME,
                                "schedule %d is left behind at %lld", op.schedule,
                                (long long)response.schedules[0].next_ms);
}

void
sim_end_schedules(struct sim *sim, struct random *r)
{
    /* A claim of the scheduler ends within this time, and its wait. */
    enum { CLAIM_MS = 61000, TURNS = 3, TURNS_MOST = 100 };
    bool done = true;
    struct operation op = {.kind = OP_SCHEDULE_DELETE};
    struct sim_response response;

    if (sim->server.scheduler == NULL || sim_broken(sim))
        return;
    (void)call(sim, "PUT", "", NULL);
    (void)call(sim, "POST", "/pause", "{\"posts\":false}");
    for (int i = 0; (i < TURNS || !done) && i < TURNS_MOST && !sim_broken(sim); i++) {
        sim_pass(sim, r, CLAIM_MS);
        while (server_commit(&sim->server)) /* so that the log has space */
            continue;
        (void)server_housekeep(&sim->server);
        done = sim_schedule(sim);
    }
    sim->settled = true;
    sim_inspect_schedules(sim);
    for (; op.schedule < SCHEDULES && !sim_broken(sim); op.schedule++)
        (void)sim_look(sim, &op, &response);
    delete_queue(sim);
}
