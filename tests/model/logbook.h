/*
 * logbook: a log in memory: the records of the changes of an engine, and an engine
 * from them.
 *
 * Record number n has LSN n, from 1. The records of a group stay together: a cut within
 * one is moved to its begin. A record must fit into what was granted for it, and nothing
 * is logged without a reservation, but for what needs no record.
 */
#ifndef TESTS_MODEL_LOGBOOK_H
#define TESTS_MODEL_LOGBOOK_H

#include "claimd/engine/engine.h"
#include "journal/record.h"
#include "support/random.h"
#include "support/store_fixture.h"

struct logbook {
    struct store_log observer;
    uint8_t *bytes; /* owned: the records from LSN `first` on */
    size_t len, capacity;
    uint64_t first, next; /* LSNs */
    size_t granted[STORE_CHANGE_KINDS];
    size_t set_aside;
    struct random *random; /* NULL: nothing is refused */
    unsigned refuse;       /* percent */
    bool refused;          /* since it was last said not to */
    uint64_t recorded[STORE_CHANGE_KINDS];
    struct group {
        uint64_t first, end; /* LSNs of changes that are in the log together */
    } * groups;              /* owned, in order */
    size_t group_count, group_capacity;

    /* Called for each change with a record; NULL: none. */
    void (*watch)(struct logbook *log, const struct store_change *change);
    void *listener;
};

/* An empty logbook whose first record has this LSN, owned. Aborts without memory. */
struct logbook *logbook_new(uint64_t first);
void logbook_free(struct logbook *log);

/* Adds a change as a record, without a reservation. Bodies and texts have 64 bytes. */
void logbook_add(struct logbook *log, struct store_change *change);

/* Adds the used-up numbers of the store. */
void logbook_mark(struct logbook *log, struct store *durable);

/* Cuts off what is in front of a LSN. */
void logbook_cut(struct logbook *log, uint64_t lsn);

/* Adds those records of another one that follow, in front of a LSN. */
void logbook_copy(struct logbook *log, const struct logbook *from, uint64_t lsn);

/* Puts the records of another one, which ends where this begins, in front. */
void logbook_prepend(struct logbook *log, const struct logbook *front);

/* The largest LSN, at most this one, at which a log that ends in front of it has no part
 * of a group. */
uint64_t logbook_whole(const struct logbook *log, uint64_t lsn);

/* Tells an engine of all records. */
enum status logbook_replay(const struct logbook *log, struct store *durable);

/* Everything that was granted was used or given back; the next operation may begin. */
void logbook_settle(struct logbook *log);

#endif
