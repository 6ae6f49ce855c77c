/*
 * promise: what claimd promises by name, and the verdict that one was broken.
 */
#ifndef TESTS_SIM_PROMISE_H
#define TESTS_SIM_PROMISE_H

#include "claimd/store/store.h"

#include <stdbool.h>
#include <stddef.h>

/* X(name, text): the promises of the design, then two that need no name there. "Gone is
 * gone" is that of the front end and the API: docs/api.md 11.5. */
#define PROMISE_LIST(X)                                                                  \
    X(NOTHING_LOST, "nothing lost")                                                      \
    X(ONE_HOLDER, "one holder")                                                          \
    X(OLDEST_FIRST, "oldest first")                                                      \
    X(ONLY_HOLDER, "only the holder finishes")                                           \
    X(ON_TIME, "on time")                                                                \
    X(GRACE, "grace")                                                                    \
    X(ALL_OR_NOTHING, "all or nothing")                                                  \
    X(NO_WAITER_LEFT, "no waiter left")                                                  \
    X(FIRST_COME, "first come, first served")                                            \
    X(GONE_IS_GONE, "gone is gone")                                                      \
    X(NUMBERS_GROW, "claim numbers grow")                                                \
    X(DELIVERED_IN_ORDER, "delivered in order")                                          \
    X(DELIVERED_AT_LEAST_ONCE, "delivered at least once")                                \
    X(FEW_DELIVERED_AGAIN, "few are delivered again")                                    \
    X(ONLY_SUBSCRIBERS, "only subscribers get deliveries")                               \
    X(NO_SUBSCRIBER_DELAYED, "no subscriber delayed")                                    \
    X(ADDS_UP, "it adds up")                                                             \
    X(SAYS_SO, "says so")                                                                \
    X(LATER_IN_PLACE, "later, in its old place")                                         \
    X(ONE_STEP, "finished in one step")                                                  \
    X(ONE_QUEUE, "back in one queue")                                                    \
    X(ONE_EFFECT, "one key, one effect")                                                 \
    X(UNIQUE, "unique means one")                                                        \
    X(PAUSED, "paused until resumed")                                                    \
    X(DUE_ONCE, "a due time posts once")                                                 \
    X(STEP_BY_STEP, "step by step")                                                      \
    X(CONTRACT, "a response the API does not allow")                                     \
    X(SOUND, "the store's own audit")

enum promise {
    PROMISE_NONE,
#define PROMISE_ENUM(name, text) PROMISE_##name,
    PROMISE_LIST(PROMISE_ENUM)
#undef PROMISE_ENUM
};

const char *promise_text(enum promise p);

/* The first broken promise of a run; PROMISE_NONE: all are kept. */
struct verdict {
    enum promise broken;
    char why[400];
    struct store_id missing; /* of a message that must be there; empty: none */
    enum promise withheld;   /* broken if it is there and only not given */
};

/* Notes a broken promise, unless one is noted already. Returns false for the caller to
 * pass on. */
bool verdict_break(struct verdict *v, enum promise p, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
