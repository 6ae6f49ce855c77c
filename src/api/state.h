/*
 * state: lines of records (docs/api.md 24), read whole and checked, then applied to the store queue
 * by queue. They may be a whole state of a project, or of all, that replaces the old one (23.4).
 *
 *   Cost     O(length), and sorting. A whole state is read or replaced in one call: for tests and for
 *            the start
 *   Memory   the arena; texts are borrowed from the lines. To replace: the old state as well
 */
#ifndef API_STATE_H
#define API_STATE_H

#include "api/wire/record_json.h"
#include "claimd/api/dump.h"

struct record_load {
    struct store *store;
    struct store_op *op;
    struct record_reader reader;
    bool replace;              /* a queue that is there is deleted first */
    bool whole;                /* the lines are a whole state (state_check()) */
    struct record_line *lines; /* from the arena */
    size_t count;
    struct store_record *batch;               /* private: of one queue; from the arena */
    uint64_t queues, messages, subscriptions; /* applied */
};

/* Reads all lines of a text. ST_BAD_BODY, ST_BAD_VALUE, with the number of the line; ST_NO_MEMORY,
 * ST_OVER_BUDGET. */
enum status load_read(struct record_load *l, struct bytes text);

/* Checks the lines as the store will, and joins claims. ST_BAD_VALUE; ST_NO_MEMORY. */
enum status load_check(struct record_load *l);

/*
 * Applies lines that were checked, those of a queue that are side by side together. ST_CONFLICT with
 * a reason, and the store's statuses.
 */
enum status load_apply(struct record_load *l);

/* A refusal as it is answered: a limit of a project is no 429 here, since asking again later is of
 * no use. */
enum status load_refusal(enum status st);

/* ------------------------------------------------------------------ whole states */

/* Writes a whole dump: of a project, whose lines do not name it, or (absent) of all. ST_NO_MEMORY,
 * and the store's. */
enum status state_write(struct store *store, struct store_op *op, struct bytes project,
                        struct buf *out);

/*
 * Checks lines that are a whole state: load_check(), queues, cycles of dead-letter queues, and ids
 * across queues. Sorts them, and adds lines for queues that have none. ST_BAD_VALUE with a reason;
 * ST_NO_MEMORY.
 */
enum status state_check(struct record_load *l);

/*
 * Deletes all that the project, or (absent) any project, has, and applies the lines of the load
 * instead, which were read and checked. If the store refuses them, the old state is put back. Other
 * clients may use the queues meanwhile: their changes are lost with what is replaced. A reason, if it
 * is a line's. Statuses of load_apply(); ST_OVER_BUDGET: no memory for both.
 */
enum status state_replace(struct record_load *l, struct bytes project);

/* Replaces all projects that a text has lines of (--seed). */
enum status state_seed(struct record_load *l, struct bytes text);

#endif
