/*
 * sim: one history under way.
 *
 * Actors send requests, the network may lose requests and responses, the server
 * responses, and the checker judges every response the server gives, received or lost.
 */
#ifndef TESTS_SIM_SIM_H
#define TESTS_SIM_SIM_H

#include "sim/actor.h"
#include "sim/crash.h"
#include "sim/plan.h"
#include "sim/server.h"
#include "sim/tally.h"

#include <stdio.h>

struct sim {
    const struct plan *plan; /* borrowed */
    const struct profile *profile;
    struct server server;
    struct ledger ledger;
    struct verdict verdict;
    struct actor actors[ACTORS_MAX];
    int actor_count;
    uint64_t keys;      /* given out so far */
    uint64_t bodies;    /* given out so far: every body is another one */
    struct random luck; /* of the step: what goes wrong with its requests */
    bool lucky;         /* nothing does */
    int64_t round_ms;   /* of the scheduler's last one */
    bool settled;       /* no due time of a schedule may be left */
    struct crashes crashes;
    struct tally tally; /* of all requests */
    uint64_t digest;    /* of all responses: two runs of a plan have the same */
    FILE *trace;        /* NULL: none is written */
};

struct judging;

void sim_open(struct sim *sim, const struct plan *plan, FILE *trace);
void sim_close(struct sim *sim);

/*
 * An actor's request. True if the actor got a response; false: it was lost on the way, or
 * the response was, and the actor does not know which; or a promise is broken.
 */
bool sim_request(struct sim *sim, struct actor *who, const struct operation *op,
                 struct sim_response *response);

/* The actor repeats its last request with an Idempotency-Key. */
void sim_retry(struct sim *sim, struct actor *who);

/*
 * An actor's request that may have to wait. actor_receive() gets the response, now or
 * later, unless it is lost.
 */
void sim_wait(struct sim *sim, struct actor *who, const struct operation *op);
bool sim_waits(const struct sim *sim, const struct actor *who);

/* The actor waits no longer: it hangs up, and never gets the response. */
void sim_hang_up(struct sim *sim, struct actor *who, struct random *r);

/*
 * The front end has its turn: it retries for notified waiters, and for those whose time
 * is over, in an order of the dice; for some of them, or as long as there are any
 * (whole). Then no waiter must be left.
 */
void sim_round(struct sim *sim, struct random *r, bool whole);

/* All waiting is over. */
void sim_drain(struct sim *sim);

/* So much time goes on. */
void sim_pass(struct sim *sim, struct random *r, int64_t ms);

/* Is the disk about to fail, or has it? */
bool sim_impaired(const struct sim *sim);

/* Messages whose last claim has expired become dead letters now; late: the server was
 * away. */
void sim_settle(struct sim *sim, bool late);

/* Everything that is due is delivered, and nothing is leased any more. */
void sim_deliver_all(struct sim *sim);

/* The scheduler has its turn, and what it has posted is judged. False: it had trouble.
 * Does nothing without planners, as the next ones. */
bool sim_schedule(struct sim *sim);

/* Enters what schedules have posted into the ledger. */
void sim_find_scheduled(struct sim *sim);

/* All schedules are as the ledger says. */
void sim_inspect_schedules(struct sim *sim);

/* No due time is left behind; then the schedules go. */
void sim_end_schedules(struct sim *sim, struct random *r);

/* A request of the checker itself: always received, without faults. */
bool sim_look(struct sim *sim, const struct operation *op, struct sim_response *response);

/* Everything at a place must be as the ledger says. If it is not, a request has changed
 * what it must not have, and `p` is broken; PROMISE_NONE: see the verdict. */
bool sim_inspect(struct sim *sim, int place, enum promise p);

/* An id of a message (a claim) that is, or was lately, at this place; "" if none. */
struct store_id sim_some_message(const struct sim *sim, struct random *r, int place);
struct store_id sim_some_claim(const struct sim *sim, struct random *r, int place);

/* A place that the profile uses. */
int sim_some_place(const struct sim *sim, struct random *r);

/* --------------------------------------------------------------- shared by the parts */

/* Judges a response, and writes it down; sound: it is the document it has to be. */
void sim_judge(struct sim *sim, struct judging *j, struct trouble trouble, bool sound);

/* The faults of the next request, and whether its response is lost. */
struct trouble sim_trouble(struct sim *sim);
bool sim_loses_response(struct sim *sim);

/* Is the response lost, a new claim, and does the server know that? Then it is given
 * back. */
bool sim_loses_claim(struct sim *sim, const struct operation *op,
                     const struct sim_response *response);

/* A refused request has changed nothing: look at all it could have changed. */
void sim_inspect_refused(struct sim *sim, const struct operation *op);

static inline bool
sim_broken(const struct sim *sim)
{
    return sim->verdict.broken != PROMISE_NONE;
}

#endif
