/*
 * state: the whole state of a project, or of all, read out of the store and put in its place
 * (docs/api.md 23.4).
 *
 *   Cost     O(everything in the projects), in one call: for tests and for the start
 *   Memory   the arena for what is kept, but for bodies, which are pinned
 */
#ifndef API_STATE_H
#define API_STATE_H

#include "api/wire/decode_state.h"
#include "claimd/base/buf.h"

struct state_keeper {
    struct store *store;
    struct mem *mem;
    struct arena *arena;
    struct store_visit *visit;
};

/* Writes the document of a project, or (absent) of all. ST_NO_MEMORY, and the store's. */
enum status state_write(struct state_keeper *k, struct bytes project, struct buf *out);

/*
 * Deletes all that the project, or (absent) any project, has, and loads the state instead. If
 * that cannot be loaded the old one is put back, and `why` tells of what it was. ST_NO_MEMORY,
 * and what the store refuses a load for. Others may use the queues meanwhile, but not replace them:
 * what they do goes with what is replaced.
 */
enum status state_replace(struct state_keeper *k, struct bytes project,
                          const struct state *wanted, struct reason *why);

/* What the store refuses a load for, as it is told: a limit of a project is no 429 here, since
 * asking again later is of no use. */
enum status state_refusal(enum status st);

#endif
