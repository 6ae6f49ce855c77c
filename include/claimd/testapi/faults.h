/*
 * testapi/faults: what tests want to go wrong (docs/api.md 23.7).
 *
 * A rule says which requests it is for, which of them its fault applies to, and counts both. The
 * rules stand in a list that is replaced as a whole. The first that matches a request is the
 * request's, whether its fault applies to this one or not; one that is used up matches no more.
 *
 *   Bounds   FAULT_RULES_MOST rules
 *   Cost     faults_strike() O(rules); without any a load
 *   Threads  any
 */
#ifndef CLAIMD_TESTAPI_FAULTS_H
#define CLAIMD_TESTAPI_FAULTS_H

#include "claimd/base/bytes.h"
#include "claimd/base/mem.h"
#include "claimd/base/status.h"

enum { FAULT_RULES_MOST = 100 };

enum fault_kind {
    FAULT_NONE,
    FAULT_LATENCY,    /* the answer is held back for ms */
    FAULT_STATUS,     /* nothing happens, the answer is `status` */
    FAULT_CUT_BEFORE, /* nothing happens, and there is no answer */
    FAULT_CUT_AFTER,  /* it happens, and there is no answer */
    FAULT_HALF,       /* it happens, and half of the answer comes */
    FAULT_SLOW,       /* the answer comes `bytes` at a time, every ms */
    FAULT_END_CLAIM,  /* the claim that was made is over */
    FAULT_CLOCK       /* the clock is moved by `seconds` first */
};

struct fault {
    enum fault_kind kind;
    int status;            /* 429 or 503 */
    int64_t retry_after_s; /* of it; -1: as the server would say */
    int64_t ms, bytes, seconds;
};

/* Of a rule: absent is any. Of a request: absent is none. Clients are UUIDs, in any case. */
struct fault_match {
    struct bytes action, method, queue, project, client;
};

struct fault_rule {
    struct fault_match match;
    uint64_t every, skip; /* it applies to every n-th, from 1, behind the first so many */
    uint64_t times;       /* and is used up then; 0: never */
    struct fault fault;
    uint64_t matched, struck; /* counted since the list was made */
};

struct faults;

/* Without rules; owned. ST_NO_MEMORY. */
enum status faults_new(struct mem *mem, struct faults **out);
void faults_free(struct faults *f);

/* These rules, which are copied, instead of those there are. ST_NO_MEMORY: those stay. */
enum status
faults_replace(struct faults *f, const struct fault_rule *rules, size_t count);

/* Counts a request. True: a fault applies to it. */
bool
faults_strike(struct faults *f, const struct fault_match *request, struct fault *out);

/* Shows the rules in their order, under the lock: `show` only copies. */
typedef void fault_show_fn(void *ctx, const struct fault_rule *rule);
void faults_read(struct faults *f, fault_show_fn *show, void *ctx);

#endif
