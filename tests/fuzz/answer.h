/*
 * answer: what must be true of any answer of the API, and of the store around a refusal.
 */
#ifndef TESTS_FUZZ_ANSWER_H
#define TESTS_FUZZ_ANSWER_H

#include "claimd/api/api.h"

/*
 * The code is one of the contract's, 503 only where memory is short on purpose; headers
 * are single lines that end with a NUL; a body is JSON and says so.
 */
void answer_check(const struct response *res, bool starved);

/* What there is to see of a project. */
struct state {
    uint64_t digest;
    bool dead_letters; /* some queue has a dead letter queue */
};

struct state state_of(struct store *store, int64_t now_ms, struct bytes project);

#endif
