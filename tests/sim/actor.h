/*
 * actor: one of those who use the server, as a small state machine.
 *
 * Actors know what they were sent, and act on it: a worker whose claim ran out while it
 * was away comes back and tries to finish. Now and then one uses an id it found in the
 * ledger, as people paste ids from logs.
 */
#ifndef TESTS_SIM_ACTOR_H
#define TESTS_SIM_ACTOR_H

#include "sim/operation.h"
#include "sim/profile.h"

struct sim_response;
struct sim;

/* A claim as a worker remembers it, and what it thinks it holds. */
struct holding {
    struct store_id claim; /* empty: none */
    int place;
    struct store_id ids[IDS_MAX];
    size_t count;
};

enum { GHOSTS = 3 };

struct actor {
    enum part part;
    int number; /* among those who play it */
    int client;
    struct holding held;           /* worker: what it works on */
    struct holding ghosts[GHOSTS]; /* worker: what it left behind in crashes */
    size_t next_ghost;
    struct operation page;  /* observer: the listing it reads on */
    struct operation retry; /* the last request with a key; without one: there is none */
};

/* Lets the actor do what it does next, with these dice. */
void actor_act(struct sim *sim, struct actor *a, struct random *r);

/* The response to a request of the actor that might have had to wait. */
void actor_receive(struct actor *a, const struct operation *op,
                   const struct sim_response *response);

void producer_act(struct sim *sim, struct actor *a, struct random *r);
void worker_act(struct sim *sim, struct actor *a, struct random *r);
void popper_act(struct sim *sim, struct actor *a, struct random *r);
void observer_act(struct sim *sim, struct actor *a, struct random *r);
void admin_act(struct sim *sim, struct actor *a, struct random *r);
void subscriber_act(struct sim *sim, struct actor *a, struct random *r);
void deliverer_act(struct sim *sim, struct actor *a, struct random *r);
void planner_act(struct sim *sim, struct actor *a, struct random *r);

#endif
