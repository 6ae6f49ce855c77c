/*
 * plan: everything about one phase of a run that its drivers share and do not change.
 */
#ifndef BENCH_PLAN_H
#define BENCH_PLAN_H

#include "bench/endpoint.h"
#include "bench/pace.h"
#include "claimd/base/bytes.h"

#include <stdatomic.h>

#define BATCH_MAX   100U /* messages a request: Rackspace's largest claim */
#define BODY_NUMBER 16U  /* hexadecimal digits that make every body different */

/* X(name, text, help) */
#define SCENARIO_LIST(X)                                                                 \
    X(POST, "post", "post messages")                                                     \
    X(RELEASE, "release", "claim and release, on a backlog")                             \
    X(CYCLE, "cycle", "post, claim, delete")                                             \
    X(LIST, "list", "list messages, on a backlog")                                       \
    X(MIXED, "mixed", "posts, claims, deletes, releases and listings at random")         \
    X(DELIVERY, "delivery",                                                              \
      "producers post at --rate, workers claim, wait and delete. Measures from due to "  \
      "claimed")                                                                         \
    X(PREPARE, NULL, "phase: create the queues again")                                   \
    X(FILL, NULL, "phase: post the backlog")                                             \
    X(HOLD, NULL, "phase: claim messages and keep them")

enum scenario {
#define SCENARIO_ENUM(name, text, help) SCENARIO_##name,
    SCENARIO_LIST(SCENARIO_ENUM)
#undef SCENARIO_ENUM
        SCENARIO_COUNT
};

/* How a scenario deletes what it has claimed. */
enum delete_mode { DELETE_ONE_BY_ONE, DELETE_IN_BULK };

struct protocol;

struct plan {
    const struct protocol *protocol; /* borrowed for the phase, as all pointers here */
    const struct endpoint *endpoint;
    enum scenario scenario;
    enum delete_mode deleting;
    bool spin;            /* poll for answers instead of sleeping */
    unsigned connections; /* over all threads */
    unsigned threads;
    unsigned queues;
    unsigned batch;         /* messages a request, <= BATCH_MAX */
    const char *queue_base; /* queues are BASE-0, BASE-1 ... */
    struct bytes body_head; /* a body is head, BODY_NUMBER digits, tail */
    struct bytes body_tail;
    struct bytes http_tail; /* " HTTP/1.1" and the headers every request has */
    int64_t message_ttl;    /* seconds */
    int64_t claim_ttl;
    int64_t claim_grace;
    int64_t wait; /* claims ask the server to wait so many seconds; 0: they do not */
    unsigned producers; /* DELIVERY: the first so many connections post ... */
    int64_t poll_ns;    /* ... the others pause so long behind an empty claim */

    /* When set, lifetimes (FILL) or claims (HOLD) end within a second after expire_ns. */
    int64_t expire_ns;

    struct pace pace;
    int64_t from_ns;       /* requests that start in [from_ns, to_ns) are recorded */
    int64_t to_ns;         /* none starts later, except to finish what was begun */
    int64_t give_up_ns;    /* whatever is still missing then is cut off */
    int64_t storm_from_ns; /* requests that start in this window are counted apart */
    int64_t storm_to_ns;

    /* PREPARE, FILL, HOLD: how much is left to do; DELIVERY: messages still to arrive. */
    _Atomic int64_t *quota;
};

static inline size_t
plan_body_len(const struct plan *p)
{
    return p->body_head.len + BODY_NUMBER + p->body_tail.len;
}

#endif
