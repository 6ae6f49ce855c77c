/*
 * testapi_private: what the test API is made of.
 */
#ifndef TESTAPI_TESTAPI_PRIVATE_H
#define TESTAPI_TESTAPI_PRIVATE_H

#include "claimd/base/lock.h"
#include "claimd/testapi/testapi.h"

struct testapi {
    struct mem *mem; /* borrowed */
    struct clock clock, real;
    struct history *history; /* owned */
    struct faults *faults;   /* owned */
    struct store_log observer;
    struct store_log *log; /* borrowed; NULL: none */
    struct store *store;   /* borrowed */
    void (*moved)(void *ctx);
    void *moved_ctx;
    struct lock lock;        /* of `calls` */
    struct list calls;       /* requests that wait */
    _Atomic int64_t called;  /* those that were told and have not asked again */
    _Atomic bool exchanging; /* somebody puts a whole state in the place of another */
};

/* Fills in the test API's observer (witness.c). */
void witness_init(struct testapi *testapi);

#endif
