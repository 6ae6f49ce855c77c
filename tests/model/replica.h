/*
 * replica: a copy of a store's contents that is made of nothing but the changes that the
 * store appends to its log (store/log.h).
 */
#ifndef TESTS_MODEL_REPLICA_H
#define TESTS_MODEL_REPLICA_H

#include "claimd/store/log.h"

#include "model/story.h"

/* Limits of the contents of a queue. */
enum { REPLICA_MESSAGES = 4096, REPLICA_CLAIMS = 1024, REPLICA_SUBSCRIPTIONS = 512 };
enum { REPLICA_KEYS = 256 }; /* of all queues */

/* The details of a message, as the changes give them. */
struct known_details {
    char reason[24], client[8], origin[8];
    int64_t released_ms, dead_lettered_ms;
};

struct replica_message {
    struct store_message_record m; /* without body and checksum */
    char body[24];
    uint8_t sum; /* first byte of its checksum; 0: none */
    uint64_t claim;
    struct known_details details;
};

struct replica_claim {
    struct store_id id;
    uint64_t number;
    int64_t started_ms, ends_ms;
};

struct replica_subscription {
    uint64_t number;
    char subscriber[24];
    int64_t ends_ms;
    bool confirmed, attached;
    uint64_t after, delivered, permanent_failures;
};

struct replica_queue {
    bool there;
    uint32_t tag;
    uint64_t fence_base, last_number, last_claim;
    char json[32];
    int64_t max_claim_count;
    bool transient;
    char dead_letter[8];
    struct replica_message messages[REPLICA_MESSAGES]; /* in the order of their numbers */
    size_t message_count;
    struct replica_claim leases[REPLICA_CLAIMS];
    size_t lease_count;
    /* Also those whose time is over. */
    struct replica_subscription members[REPLICA_SUBSCRIPTIONS];
    size_t member_count;
};

/* A key in the log. */
struct known_key {
    uint32_t tag;
    struct store_key_record record;
};

struct replica {
    struct store_log observer; /* first */
    struct replica_queue queues[STORY_QUEUES];
    uint64_t lsn;                /* of the latest change */
    uint64_t seen[STORY_QUEUES]; /* LSN of the latest change of a queue of this address */
    struct known_key keys[REPLICA_KEYS];  /* the latest ones, a ring */
    uint64_t key_count;                   /* ever known */
    uint64_t lone_keys;                   /* without their effects in the same group */
    unsigned granted[STORE_CHANGE_KINDS]; /* reservations that the store must use */
    size_t reserved[STORE_CHANGE_KINDS];  /* messages of these */
    size_t set_aside; /* all reservations, less those that were used or returned */
    uint64_t changes; /* but for what time did */
    uint64_t recorded[STORE_CHANGE_KINDS], recorded_transient;
    uint64_t flushed; /* LSN when it was flushed last */
    struct random *random;
    unsigned refuse; /* percent */
    bool refused;    /* in the operation under way */
    struct mem *mem;
    uint64_t failing; /* the attempt of `mem` that is to fail; 0: none */
};

/* Prepares an empty replica, whose `observer` is the log of a new store. `random`:
 * decides which reservations it refuses. `mem`: the account of the store. */
void replica_init(struct replica *r, struct random *random, struct mem *mem);

/* The nth allocation of the store from now on fails, as with mem_fail_nth(). */
void replica_fail_nth(struct replica *r, uint64_t nth);

/*
 * Ends a step, and fails the test unless the store has used or returned each reservation.
 * If an allocation or a reservation fails, the store must return the reservations before
 * it. It must use all others, unless it refused the operation (`is_refused`).
 */
void replica_end_step(struct replica *r, bool is_refused);

/* Fails the test unless the store shows what the replica contains. */
void replica_compare(struct fixture *f, struct replica *r);

#endif
