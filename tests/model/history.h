/*
 * history: random operations of a given shape, done on the twin and the engine side by
 * side (pair.h).
 */
#ifndef TESTS_MODEL_HISTORY_H
#define TESTS_MODEL_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum operation {
    OP_POST,
    OP_LIST,
    OP_GET,
    OP_DELETE,
    OP_DELETE_MANY,
    OP_POP,
    OP_CLAIM,
    OP_QUERY,
    OP_RENEW,
    OP_RELEASE,
    OP_CREATE,
    OP_SHOW,
    OP_UPDATE,
    OP_DELETE_QUEUE,
    OP_LIST_QUEUES,
    OP_STATS,
    OP_PURGE,
    OP_HOUSEKEEP,
    OP_WAIT,  /* a claim or a pop that waits, or tries again */
    OP_SERVE, /* notified waiters try again, in any order */
    OP_LEAVE, /* a client stops waiting */
    OP_GIVE_BACK,
    OP_SUBSCRIBE, /* or whatever else is done with subscriptions */
    OP_DELIVER,   /* something is leased, or given back */
    OP_FINISH,
    OP_REDRIVE,
    OP_COUNT,
};

/* The kind of a history: all in percent or in units as named. */
struct shape {
    const char *name;
    unsigned share;  /* of all operations, in percent */
    uint64_t length; /* operations of one history */
    size_t queues;   /* even */
    size_t shards;
    size_t batch;         /* most messages in one post or claim */
    size_t backlog;       /* live messages above which the queues are emptied */
    unsigned still;       /* how often time stands still between operations */
    int64_t ttl_s;        /* lives of messages: 1 to this */
    int64_t delay_s;      /* delays: 0 to this, every fourth message */
    int64_t claim_s;      /* ttl and grace of claims: 1 to this */
    unsigned dead;        /* how often a new setting has a dead letter queue */
    bool days;            /* time may jump by days */
    uint64_t audit_every; /* operations */
    unsigned weights[OP_COUNT];
    bool confirming; /* subscriptions have to be confirmed */
};

/*
 * Does `length` operations from a seed, compares every response and audits on the way;
 * all there is to see is compared every 500 operations and at the end. Half of the
 * histories end with everything deleted and an engine that has nothing left to wait for.
 */
void history_run(const struct shape *shape, uint64_t seed, uint64_t length);

/* The same with every choice read from a tape, until it ends. */
struct tape;
void history_play(const struct shape *shape, struct tape *tape);

#endif
