/*
 * fake_keystone: what Keystone would say, without a network and at the pace of a test.
 *
 * A token says itself who has it: "member,reader@p" has two roles in project p, "member@"
 * is for no project; one without an @ is none.
 *
 *     Gate    questions wait at a gate while it is shut
 *     Count   of questions that were put
 *
 *   Threads  any
 */
#ifndef TESTS_SUPPORT_FAKE_KEYSTONE_H
#define TESTS_SUPPORT_FAKE_KEYSTONE_H

#include "claimd/auth/keystone.h"

#include <pthread.h>

struct fake_keystone {
    struct keystone_wire wire;
    const char *expires; /* of every token, as Keystone writes it */
    /* If it is not 0, this is said in any case, with this body. */
    int code;
    const char *body;
    enum status status;   /* if not ST_OK, there is no response */
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t moved;
    bool shut;
    size_t standing, requests;
};

/* Tokens end at FAKE_KEYSTONE_END_MS until another end is set. */
#define FAKE_KEYSTONE_END    "2026-01-31T13:00:00.000000Z"
#define FAKE_KEYSTONE_END_MS INT64_C(1769864400000)

/* Admin is admin, member is worker and producer, reader is reader. */
extern const struct role_map fake_keystone_roles;

void fake_keystone_init(struct fake_keystone *k);
void fake_keystone_fini(struct fake_keystone *k);

/* Questions wait, and go on. */
void fake_keystone_shut(struct fake_keystone *k);
void fake_keystone_open(struct fake_keystone *k);

/* Waits until so many stand at the gate. */
void fake_keystone_await(struct fake_keystone *k, size_t count);

/* The number of verifications so far. */
size_t fake_keystone_requests(struct fake_keystone *k);

#endif
