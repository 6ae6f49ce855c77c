/*
 * verdict: what came of a try, and what that means to the store (docs/api.md 20.4).
 *
 *     2xx                    it is delivered
 *     410                    the subscription ends
 *     429, 5xx, no answer    it failed: again when the policy says so, and not before the
 *                            Retry-After of 429 and 503; or given up
 *     any other              it is final: given up at once. A redirect is not followed, so
 *                            nobody has got it either
 */
#ifndef NOTIFY_VERDICT_H
#define NOTIFY_VERDICT_H

#include "claimd/store/subscription.h"

/* Nobody has to wait for longer because a subscriber says so. */
enum { RETRY_AFTER_MOST_S = 3600 };

/* How a try ended. */
struct ending {
    enum ending_kind {
        ENDING_ANSWER,    /* with a status */
        ENDING_NONE,      /* without an answer, or with one that was broken off */
        ENDING_IMPOSSIBLE /* it cannot be sent: no try will be better */
    } kind;
    int status;            /* ANSWER; of mail 250, or 400 for what is refused for good */
    int64_t retry_after_s; /* ANSWER; 0: it says nothing */
    bool timed_out;        /* NONE */
};

/* For figures: what an outcome was. */
enum verdict_kind {
    VERDICT_DELIVERED,
    VERDICT_FAILED,   /* it is tried again */
    VERDICT_REFUSED,  /* the subscriber does not want this one */
    VERDICT_GIVEN_UP, /* the last try failed, or none is possible */
    VERDICT_GONE,
    VERDICT_KINDS
};

struct verdict {
    enum verdict_kind kind;
    enum store_outcome outcome;
    int64_t wait_ms; /* FAILED: until the next try */
};

void verdict_reach(const struct ending *e, const struct store_delivery *d,
                   struct verdict *out);

#endif
