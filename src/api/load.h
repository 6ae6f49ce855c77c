/*
 * load: lines of records (docs/api.md 24), read whole and checked, then applied to the store queue
 * by queue.
 *
 *   Cost     O(length), and sorting of claims' names
 *   Memory   the arena; texts are borrowed from the lines
 */
#ifndef API_LOAD_H
#define API_LOAD_H

#include "api/wire/record_json.h"
#include "claimd/api/dump.h"

struct load {
    struct store *store;
    struct store_visit *visit;
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
enum status load_read(struct load *l, struct bytes text);

/* Checks the lines as the store will, and joins claims. ST_BAD_VALUE; ST_NO_MEMORY. */
enum status load_check(struct load *l);

/*
 * Applies lines that were checked, those of a queue that are side by side together. ST_CONFLICT with
 * a reason, and the store's statuses.
 */
enum status load_apply(struct load *l);

/* A refusal as it is answered: a limit of a project is no 429 here, since asking again later is of
 * no use. */
enum status load_refusal(enum status st);

#endif
