/*
 * response: what must be true of any response of the API, and of the store around a
 * refusal.
 */
#ifndef TESTS_FUZZ_RESPONSE_H
#define TESTS_FUZZ_RESPONSE_H

#include "claimd/api/api.h"

/* Faults that a response may have met. */
enum trouble {
    TROUBLE_MEMORY = 1, /* it is short on purpose */
    TROUBLE_LIMITS = 2, /* projects have limits */
    TROUBLE_REMOTE = 4  /* another server is called, which may respond nonsense */
};

/*
 * The code is one of the contract's, 503 only where memory is short or another server
 * is called, and 429 only where there are limits. Headers are single lines that end with
 * a NUL. A body is JSON and says so, but for /metrics and dumps.
 */
void response_check(const struct response *res, unsigned trouble);

/* All that a client can see of a project. */
struct state {
    uint64_t digest;
    bool dead_letters; /* some queue has a dead letter queue */
};

struct state state_of(struct store *store, int64_t now_ms, struct bytes project);

#endif
