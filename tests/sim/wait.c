/* Those who wait for messages: the part of the front end, and what it may expect. */
#include "sim/history.h"
#include "sim/sim.h"

static int
number_of(const struct sim *sim, const struct actor *who)
{
    return (int)(who - sim->actors);
}

bool
sim_waits(const struct sim *sim, const struct actor *who)
{
    return server_waits(&sim->server, number_of(sim, who));
}

/* ------------------------------------------------------------------ calls */

/* How far a claim that runs out of memory has come with dead letters is looked at only
 * for those who do not wait (sim_judge). */
static bool
meets_dead_letters(const struct sim *sim, const struct operation *op)
{
    for (size_t i = 0; operation_place(op, i) != NOWHERE; i++)
        if (ledger_dead_letters(&sim->ledger, operation_place(op, i)) != NOWHERE)
            return true;
    return false;
}

/* From which of its queues the messages came. */
static int
place_of_claim(const struct sim *sim, const struct operation *op,
               const struct sim_response *response)
{
    for (size_t i = 0; operation_place(op, i) != NOWHERE; i++) {
        int place = operation_place(op, i);

        if (ledger_claim(&sim->ledger, place, response->location.text) != NULL)
            return place;
    }
    return op->place;
}

/* The request has its response. The actor receives it, unless it is lost. */
static void
end_response(struct sim *sim, int waiter, const struct sim_response *response, bool gone)
{
    struct operation op = sim->server.parked[waiter].op;

    ledger_stop_waiting(&sim->ledger, waiter);
    if (response->code == 201)
        op.place = place_of_claim(sim, &op, response);
    if (sim_loses_claim(sim, &op, response))
        gone = true;
    else if (!gone && sim_loses_response(sim)) {
        history_note(sim, "      (the response is lost on its way)\n");
        gone = true;
    }
    if (!gone && crash_sends(sim, &sim->actors[waiter], &op, response))
        actor_receive(&sim->actors[waiter], &op, response);
    server_end(&sim->server, waiter);
    if (response->code == 503)
        sim_inspect_refused(sim, &op);
}

/* Tries for a waiter: the first time with an operation, then with NULL. */
static void
call_api(struct sim *sim, int waiter, const struct operation *op, enum waiting_end end)
{
    struct parked *p = &sim->server.parked[waiter];
    struct trouble trouble = sim_trouble(sim);
    struct sim_response response;
    struct judging j = {.ledger = &sim->ledger,
                        .rules = &sim->profile->rules,
                        .op = &p->op,
                        .response = &response,
                        .now_ms = sim->server.now_ms,
                        .verdict = &sim->verdict,
                        .waiter = waiter,
                        .on = end == WAITING_ON,
                        .gone = end == WAITING_ABANDONED};
    bool sound;

    if (meets_dead_letters(sim, op != NULL ? op : &p->op))
        trouble.starve = 0;
    history_who(sim, &sim->actors[waiter]);
    if (end != WAITING_ON)
        history_note(sim, j.gone ? "(has hung up) " : "(for the last time) ");
    crash_remember(sim);
    sound = server_handle(&sim->server, waiter, op, end, trouble, &response, &j.starved);
    j.waits = p->waits;
    j.body_bytes = p->body.len;
    sim_judge(sim, &j, trouble, sound);
    if (!sim_broken(sim) && !p->waits)
        end_response(sim, waiter, &response, j.gone);
    if (!sim_broken(sim) && p->waits && j.starved) {
        /* Without memory for all that it wants, it may wait for less. It is tried
         * again. */
        bool lucky = sim->lucky;

        sim->lucky = true;
        call_api(sim, waiter, NULL, WAITING_ON);
        sim->lucky = lucky;
    }
}

void
sim_wait(struct sim *sim, struct actor *who, const struct operation *op)
{
    if (!sim_broken(sim))
        call_api(sim, number_of(sim, who), op, WAITING_ON);
}

/* The front end may call the API once more, or end the request without a word. */
void
sim_hang_up(struct sim *sim, struct actor *who, struct random *r)
{
    int waiter = number_of(sim, who);

    if (random_chance(r, 50)) {
        call_api(sim, waiter, NULL, WAITING_ABANDONED);
        return;
    }
    history_who(sim, who);
    history_note(sim, "(hangs up)\n");
    server_end(&sim->server, waiter);
    ledger_stop_waiting(&sim->ledger, waiter);
}

/* ---------------------------------------------------------------------- rounds */

/* Calls the API again if there is a reason to. */
static bool
retry_waiter(struct sim *sim, struct random *r, int waiter)
{
    const struct parked *p = &sim->server.parked[waiter];
    bool over = p->dismissed || sim->server.now_ms >= p->until_ms;

    if (!server_waits(&sim->server, waiter) || (!over && !p->notified))
        return false;
    if (random_chance(r, 5)) /* too late */
        sim_hang_up(sim, &sim->actors[waiter], r);
    else if (p->dismissed && !sim->ledger.dismissed[waiter])
        (void)verdict_break(&sim->verdict, PROMISE_CONTRACT,
                            "is notified that its queue is gone, which it is not");
    else
        call_api(sim, waiter, NULL, over ? WAITING_OVER : WAITING_ON);
    return true;
}

/* Retries for every waiter once, in a random order. True if any had a reason. */
static bool
retry_waiters(struct sim *sim, struct random *r, bool whole)
{
    uint64_t first = random_below(r, WAITERS_MAX);
    uint64_t stride = 2 * random_below(r, WAITERS_MAX / 2) + 1; /* prime to 64: all */
    bool any = false;

    for (uint64_t i = 0; i < WAITERS_MAX && !sim_broken(sim); i++)
        if (whole || random_chance(r, 50))
            any = retry_waiter(sim, r, (int)((first + i * stride) % WAITERS_MAX)) || any;
    return any;
}

/* Every notified waiter has tried again, and what is due has happened. */
static void
look_who_is_left(struct sim *sim, int waiter)
{
    const struct operation *op = &sim->server.parked[waiter].op;

    if (sim->ledger.dismissed[waiter])
        (void)verdict_break(&sim->verdict, PROMISE_NO_WAITER_LEFT,
                            "waits for a queue that was deleted, and is not notified");
    for (size_t i = 0; operation_place(op, i) != NOWHERE; i++) {
        int place = operation_place(op, i);

        if (ledger_ready(&sim->ledger, place, sim->server.now_ms) > 0)
            (void)verdict_break(&sim->verdict, PROMISE_NO_WAITER_LEFT,
                                "%s %d waits for %s, where a message lies ready",
                                part_name(sim->actors[waiter].part),
                                sim->actors[waiter].number + 1, place_name(place));
    }
}

void
sim_round(struct sim *sim, struct random *r, bool whole)
{
    if (!whole) {
        (void)retry_waiters(sim, r, false);
        return;
    }
    (void)server_housekeep(&sim->server);
    while (retry_waiters(sim, r, true) && !sim_broken(sim))
        continue;
    ledger_advance(&sim->ledger, sim->server.now_ms);
    for (int i = 0; i < WAITERS_MAX && !sim_broken(sim); i++)
        if (server_waits(&sim->server, i))
            look_who_is_left(sim, i);
}

void
sim_drain(struct sim *sim)
{
    for (int i = 0; i < WAITERS_MAX && !sim_broken(sim); i++)
        if (server_waits(&sim->server, i))
            call_api(sim, i, NULL, WAITING_OVER);
}
