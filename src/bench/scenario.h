/*
 * scenario: which request a connection sends next.
 */
#ifndef BENCH_SCENARIO_H
#define BENCH_SCENARIO_H

#include "bench/protocol.h"

/* The scenario with this name on the command line; SCENARIO_COUNT if there is none. */
enum scenario scenario_find(const char *name);
const char *scenario_name(enum scenario s);
const char *scenario_help(enum scenario s);

/*
 * True when the actor holds nothing and stands between two rounds: the place to stop, so
 * that a run leaves nothing claimed behind.
 */
bool scenario_at_start(const struct plan *plan, const struct actor *a);

/*
 * Chooses the next step, which starts (or was due, in an open loop) at start_ns; false
 * when the phase's quota is used up.
 */
bool scenario_next(const struct plan *plan, struct actor *a, int64_t start_ns,
                   struct step *out);

/*
 * How long a connection pauses behind a step that has moved so many messages and took so
 * long, ns: DELIVERY, poll_ns behind an empty claim. One that took as long as the pause is
 * one that the server has waited with. A pause is up to a quarter shorter or longer:
 * workers that happened to poll at the same moment would do so for ever.
 */
int64_t scenario_pause(const struct plan *plan, struct actor *a, const struct step *step,
                       unsigned messages, int64_t took_ns);

/* The operation whose messages are the scenario's throughput. */
enum op scenario_counted(const struct plan *plan);

#endif
