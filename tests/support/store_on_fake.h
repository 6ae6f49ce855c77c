/*
 * store_on_fake: a store on Redis whose Redis is a fake (fake_redis.h): one Redis with
 * one replica, at the test's time. The commands that follow its opening are the test's
 * to response.
 */
#ifndef TESTS_SUPPORT_STORE_ON_FAKE_H
#define TESTS_SUPPORT_STORE_ON_FAKE_H

#include "claimd/store/store.h"
#include "support/fake_redis.h"

struct store_on_fake {
    struct fake_redis redis;
    struct mem *mem;
    struct store *store;
    struct store_queue queue; /* "q" of project "p" */
};

/* Opens it; changes are confirmed by so many replicas. */
void store_on_fake_open(struct store_on_fake *f, int replicas);
void store_on_fake_close(struct store_on_fake *f);

#endif
