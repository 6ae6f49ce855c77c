/*
 * profile: what kind of history a seed makes.
 *
 * Each seed switches on other things in other amounts (swarm testing, Groce et al. 2012):
 * a bug that needs a deep queue and one that needs an empty one are not found by the same
 * mixture.
 */
#ifndef TESTS_SIM_PROFILE_H
#define TESTS_SIM_PROFILE_H

#include "sim/judge.h"

#include "support/random.h"

enum part {
    PART_PRODUCER,
    PART_WORKER,
    PART_POPPER,
    PART_OBSERVER,
    PART_ADMIN,
    PART_SUBSCRIBER,
    PART_DELIVERER,
    PART_PLANNER,
    PART_COUNT
};

const char *part_name(enum part part);

enum { ACTORS_MAX = WAITERS_MAX };

struct profile {
    uint64_t seed;
    size_t shards;
    int actors[PART_COUNT]; /* how many of each */
    int projects, names;    /* how many of them are used */
    int unique_keys;        /* likewise, of unique messages */
    unsigned batch;         /* most messages a post */
    size_t body;            /* most bytes a body, about */
    unsigned claim_limit;   /* most messages a claim, a pop or a page */
    int64_t ttl_most_s;     /* longest life of most messages */
    int64_t claim_most_s;   /* longest claim of most workers */

    /* Once in so many steps (0: never). */
    unsigned wait_once, deadline_once, long_wait_once, day_wait_once;
    unsigned housekeep_once;
    unsigned starve_once;       /* an allocation fails */
    unsigned lose_once;         /* a request or a response is lost */
    unsigned delay_once;        /* a message is posted with a delay */
    unsigned reset_once;        /* of an administrator's acts: purge, delete */
    unsigned dead_letters_once; /* likewise: settings of dead letters */
    unsigned waiting_once;      /* a claim or a pop would rather wait than get nothing */
    /* Of claims: the response cannot be sent, and the claim is released. */
    unsigned lose_claim_once;
    unsigned finish_once;  /* of a worker's acts: several things in one step */
    unsigned key_once;     /* of the requests that may have an Idempotency-Key */
    unsigned unique_once;  /* of the posts of one message, which then are unique */
    unsigned pause_once;   /* of an administrator's acts: pauses or resumes a queue */
    unsigned redrive_once; /* of an administrator's acts: dead letters go back */
    unsigned restart_once; /* the process ends; 0: it has no journal */
    unsigned commit_once; /* of the responses: the journal commits before anything else */
    unsigned checkpoint_once;
    bool unload;             /* with a journal: all messages that can be leave memory */
    uint64_t segment_bytes;  /* of the journal */
    uint64_t journal_bytes;  /* journal_max_bytes; 0: any number */
    unsigned fails_once;     /* a delivery */
    unsigned transient_once; /* of the queues that are made: in memory only */
    bool sets_wall;          /* planners set the wall clock */
    bool testapi;            /* its clock is moved as tests do it */
    size_t memory;           /* bytes the budget allows; 0: any */
    int64_t claim_ttl_max, claim_grace_max; /* max_claim_ttl and max_claim_grace */
    struct rules rules;
};

void profile_draw(struct profile *p, uint64_t seed);

/* The key of a post of one message, now and then. */
struct known_unique profile_some_unique(const struct profile *p, struct random *r);

/* One of these, drawn. */
#define random_of(r, ...)                                                                \
    (((const unsigned[]){__VA_ARGS__})[random_below(                                     \
        (r), sizeof((const unsigned[]){__VA_ARGS__}) / sizeof(unsigned))])

#endif
