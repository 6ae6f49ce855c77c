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

/* Chooses the next step; false when the phase's quota is used up. */
bool
scenario_next(const struct plan *plan, struct actor *a, int64_t now_ns, struct step *out);

/* The operation whose messages are the scenario's throughput. */
enum op scenario_counted(const struct plan *plan);

#endif
