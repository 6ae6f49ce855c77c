/*
 * crash: responses that wait for the journal, and processes that end before it has
 * committed.
 *
 * A client receives a response when the journal says that it is durable, as with the
 * front end. Meanwhile the simulation goes on, the disk may fail, and power may be
 * cut: between append, sync and response. The log is one order. So after a restart the
 * store must be as it was at the end of the log, and all that clients have received
 * must be in it. The ledger of each moment that the log may end at is kept for that.
 */
#ifndef TESTS_SIM_CRASH_H
#define TESTS_SIM_CRASH_H

#include "sim/response.h"
#include "support/random.h"

struct sim;
struct actor;

/* Faults of the disk. */
enum disk_fault {
    DISK_NONE,
    DISK_SYNC,  /* a sync fails */
    DISK_LYING, /* likewise, and memory hides it */
    DISK_OTHER, /* another operation fails */
    DISK_DIES,
    DISK_SHORT, /* short reads and writes */
    DISK_FULL,
    DISK_FAULTS
};

/* The ledger when the log ended with this LSN. */
struct moment {
    struct ledger ledger;
    uint64_t lsn;
    uint64_t next; /* LSN of the first change behind it; 0: unknown, or there is none */
};

/* A response that waits. */
struct held {
    struct operation op;
    struct sim_response response; /* without what it borrowed */
    uint64_t lsn;                 /* that it waits for, and */
    uint64_t shown;               /* that it has to wait for */
};

struct crashes {
    struct moment *moments; /* owned; oldest first */
    size_t count, cap;
    struct held *held[WAITERS_MAX]; /* owned; by waiter */
    uint64_t acknowledged;          /* LSN up to which clients have received changes */
    uint64_t first;                 /* of the changes behind the last moment */
    enum disk_fault fault;
    bool names_fail;
    struct random luck; /* of the step */
};

/* Before each call that may change the store. Does nothing without a journal, as all of
 * this. */
void crash_remember(struct sim *sim);

/* The last response is complete. True if the actor receives it at once. Else it
 * receives it later, or never. */
bool crash_sends(struct sim *sim, const struct actor *who, const struct operation *op,
                 const struct sim_response *response);

/* Waits until a leased delivery is durable, as a notifier does. False: it never will
 * be. */
bool crash_delivers(struct sim *sim, uint64_t lsn, int place);

/* The journal has its turn, and the front end sends what is durable. The process may
 * end. */
void crash_turn(struct sim *sim, struct random *r);

/* Nothing is wrong any more, and nothing waits. */
void crash_settle(struct sim *sim, struct random *r);

void crash_fini(struct sim *sim);

#endif
