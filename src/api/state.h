/*
 * state: loads lines of records (docs/api.md 24). It reads and checks all lines, and then
 * applies them to the store, queue by queue. The lines can be the whole state of a
 * project or of all projects, which replaces the old state (23.4).
 *
 *   Cost     O(n log n) for n lines. A whole state is read or replaced in one call: for
 *            tests and for the start
 *   Memory   the arena; texts are borrowed from the lines. To replace: the old state as
 *            well
 *   Errors   a reason that names the line
 *   Threads  a load belongs to one thread
 */
#ifndef API_STATE_H
#define API_STATE_H

#include "api/wire/record_json.h"
#include "claimd/api/dump.h"

struct record_load {
    struct store *store;
    struct store_op *op;
    struct record_reader reader;
    bool replace;              /* an existing queue is deleted first */
    bool whole;                /* the lines are a whole state (state_check()) */
    struct record_line *lines; /* from the arena */
    size_t count;
    struct store_record *batch;               /* private: of one queue; from the arena */
    uint64_t queues, messages, subscriptions; /* applied */
    bool schedules;                           /* some were applied */
};

/* Reads all lines of a text. ST_BAD_BODY, ST_BAD_VALUE, ST_NO_MEMORY, ST_OVER_BUDGET. */
enum status load_read(struct record_load *l, struct bytes text);

/* Checks the lines as the store does, and joins claims of one name. ST_BAD_VALUE;
 * ST_NO_MEMORY. */
enum status load_check(struct record_load *l);

/*
 * Applies lines that were checked. Adjacent lines of a queue are applied together.
 * ST_CONFLICT, and the store's statuses.
 */
enum status load_apply(struct record_load *l);

/* The status of the response. A retry is useless, so a limit of a project that a line
 * reaches is ST_CONFLICT. */
enum status load_refusal(const struct record_load *l, enum status st);

/* ------------------------------------------------------------------ whole states */

/* Writes a whole dump of a project, without its name, or (absent) of all. ST_NO_MEMORY,
 * and the store's. */
enum status state_write(struct store *store, struct store_op *op, struct bytes project,
                        struct buf *out);

/*
 * Checks lines that are a whole state: load_check(), queues, cycles of dead-letter
 * queues, and ids across queues. Sorts the lines, and adds lines for queues without one.
 * ST_BAD_VALUE; ST_NO_MEMORY.
 */
enum status state_check(struct record_load *l);

/*
 * Deletes all that the project, or (absent) any project, has, and applies the checked
 * lines instead. If the store refuses them, restores the old state. Changes that other
 * clients make meanwhile are lost. Statuses of load_apply(); ST_OVER_BUDGET: no memory
 * for both states.
 */
enum status state_replace(struct record_load *l, struct bytes project);

/* Replaces all projects that the text has lines for (--seed). */
enum status state_seed(struct record_load *l, struct bytes text);

#endif
