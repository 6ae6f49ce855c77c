/* Deliverers take what is due, and give it back: delivered, failed, failed for good, or
 * late. */
#include "sim/history.h"
#include "sim/judge.h"
#include "sim/sim.h"

#include <inttypes.h>

static struct delivering
delivering_now(struct sim *sim)
{
    return (struct delivering){.ledger = &sim->ledger,
                               .rules = &sim->profile->rules,
                               .now_ms = sim->server.now_ms,
                               .verdict = &sim->verdict};
}

static void
write_leased(struct sim *sim, const struct store_delivery *d)
{
    static const char *const notices[] = {"message", "confirmation", "unsubscribed"};

    if (sim->trace == NULL)
        return;
    fprintf(sim->trace, "is leased: %s %.*s for %s in %.*s [%.*s], failed %" PRIu32 "\n",
            notices[d->notice], (int)(d->body.len < 80 ? d->body.len : 80),
            d->body.len > 0 ? d->body.data : "", d->subscription.text,
            (int)d->queue.name.len, d->queue.name.data, (int)d->queue.project.len,
            d->queue.project.data, d->failed);
}

static int
place_of_delivery(const struct store_delivery *d)
{
    for (int i = 0; i < PLACES; i++)
        if (bytes_equal_str(d->queue.project, place_project(i)) &&
            bytes_equal_str(d->queue.name, place_name(i)))
            return i;
    return NOWHERE;
}

/* Takes one; false: there is none, or no space for it, or a promise is broken. */
static bool
take(struct sim *sim, bool settled)
{
    struct delivering by = delivering_now(sim);
    bool notified = server_is_notified(&sim->server);
    struct store_delivery *d;

    if (settled)
        (void)server_housekeep(&sim->server);
    notified = notified || server_is_notified(&sim->server);
    d = server_lease(&sim->server);
    if (d == NULL) {
        history_note(sim, "gets no delivery\n");
        return sim->server.leased_count < LEASED_MAX && judge_nothing_due(&by, settled) &&
               false;
    }
    sim->tally.leased++;
    sim->digest = (sim->digest ^ d->body.len) * 0x100000001b3;
    write_leased(sim, d);
    if (!notified)
        return verdict_break(
            &sim->verdict, PROMISE_NO_SUBSCRIBER_DELAYED,
            "there is something to deliver, and no listener was notified");
    return judge_leased(&by, d) && crash_delivers(sim, d->lsn, place_of_delivery(d));
}

/* Gives one of those back. */
static void
give(struct sim *sim, struct random *r, size_t which, enum store_outcome outcome)
{
    static const char *const outcomes[] = {"delivered", "failed", "backed off",
                                           "failed for good", "gone"};
    const struct store_delivery *d = &sim->server.leased[which];
    struct store_id id = d->subscription;
    int64_t now_ms = sim->server.now_ms;
    int64_t again_ms = now_ms + random_of(r, 0, 1, 50, 5000, 70000);
    struct trouble trouble = sim_trouble(sim);
    int place = place_of_delivery(d);
    bool starved;

    if (outcome == STORE_OUTCOME_GONE)
        trouble.starve = 0; /* the log has to know of it */
    if (sim->trace != NULL)
        fprintf(sim->trace, "gives back for %s: %s, again in %" PRId64 " ms\n", id.text,
                outcomes[outcome], again_ms - now_ms);
    crash_remember(sim);
    starved = server_give(&sim->server, which, trouble, outcome, again_ms);
    ledger_delivered(&sim->ledger, place, id.text, outcome, now_ms, again_ms, starved);
}

static enum store_outcome
draw_outcome(const struct profile *p, struct random *r)
{
    if (!random_once_in(r, p->fails_once))
        return STORE_OUTCOME_DELIVERED;
    return random_chance(r, 5)
               ? STORE_OUTCOME_GONE
               : (enum store_outcome)random_of(
                     r, STORE_OUTCOME_FAILED, STORE_OUTCOME_FAILED,
                     STORE_OUTCOME_BACKED_OFF, STORE_OUTCOME_PERMANENT_FAILURE);
}

void
deliverer_act(struct sim *sim, struct actor *a, struct random *r)
{
    uint64_t rounds = random_of(r, 3, 10, 30);

    /* Without a journal it has nothing to go by. */
    for (; rounds > 0 && !sim_broken(sim) && !sim->server.lost; rounds--) {
        struct server *s = &sim->server;

        history_who(sim, a);
        if (s->leased_count > 0 && random_chance(r, 50))
            give(sim, r, random_below(r, s->leased_count), draw_outcome(sim->profile, r));
        else if (!take(sim, random_chance(r, 70)) &&
                 (s->leased_count == 0 || random_chance(r, 40)))
            return;
    }
}

void
sim_deliver_all(struct sim *sim)
{
    struct random r = {sim->digest};

    while (!sim_broken(sim)) {
        history_who(sim, NULL);
        if (sim->server.leased_count > 0)
            give(sim, &r, 0, STORE_OUTCOME_DELIVERED);
        else if (!take(sim, true))
            return;
    }
}
