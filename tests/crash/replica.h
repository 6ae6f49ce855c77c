/*
 * replica: what a store has, made of what was told, in the plainest way: arrays and loops.
 *
 * Time does nothing in it: deadlines are compared when it is looked at. What transient queues
 * have is not in it, only that they are there.
 */
#ifndef TESTS_CRASH_REPLICA_H
#define TESTS_CRASH_REPLICA_H

#include "crash/told.h"

struct replica_claim {
    uint64_t number;
    struct store_id id;
    int64_t started_ms, ends_ms;
};

struct replica_queue {
    uint32_t tag;
    uint64_t fence_base;
    char name[TOLD_NAME_CAP];
    struct told_metadata metadata;
    struct told_message *messages; /* owned, by their numbers */
    size_t count, room;
    struct replica_claim *claims; /* owned */
    size_t claim_count, claim_room;
};

struct replica {
    struct replica_queue *queues; /* owned */
    size_t count, room;
    int64_t now_ms; /* of the latest change */
};

void replica_apply(struct replica *r, const struct told *told);

/* Makes `to`, which is empty or was one, the same as `from`. */
void replica_copy(struct replica *to, const struct replica *from);
void replica_fini(struct replica *r);

/* The claim that holds m at that time, or NULL. */
const struct replica_claim *replica_holder(const struct replica_queue *q,
                                           const struct told_message *m, int64_t now_ms);

/* Is it there, and is it not delayed any more? */
static inline bool
replica_lives(const struct told_message *m, int64_t now_ms)
{
    return m->expires_ms > now_ms;
}

#endif
