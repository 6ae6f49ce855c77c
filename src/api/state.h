/*
 * state: the whole state of a project, or of all, read out of the store and replaced
 * (docs/api.md 23.4).
 *
 *   Cost     O(everything in the projects), in one call: for tests and for the start
 *   Memory   the lines of the old and the new state
 */
#ifndef API_STATE_H
#define API_STATE_H

#include "api/load.h"

/* Writes a whole dump: of a project, whose lines do not name it, or (absent) of all. ST_NO_MEMORY,
 * and the store's. */
enum status state_write(struct store *store, struct store_visit *visit,
                        struct bytes project, struct buf *out);

/*
 * Checks lines that are a whole state: load_check(), queues, cycles of dead-letter queues, and ids
 * across queues. Sorts them, and adds lines for queues that have none. ST_BAD_VALUE with a reason;
 * ST_NO_MEMORY.
 */
enum status state_check(struct load *l);

/*
 * Deletes all that the project, or (absent) any project, has, and applies the lines of the load
 * instead, which were read and checked. If the store refuses them, the old state is put back. Other
 * clients may use the queues meanwhile: their changes are lost with what is replaced. A reason, if it
 * is a line's. Statuses of load_apply(); ST_OVER_BUDGET: no memory for both.
 */
enum status state_replace(struct load *l, struct bytes project);

/* Replaces all projects that a text has lines of (--seed). */
enum status state_seed(struct load *l, struct bytes text);

#endif
