/*
 * same: two stores that show the same to every caller.
 */
#ifndef TESTS_MODEL_SAME_H
#define TESTS_MODEL_SAME_H

#include "claimd/store/store.h"

/*
 * Compares what two stores show of all queues, at one time: the queues, their messages in
 * their order, claims, subscriptions, statistics and totals. A transient queue must be
 * there in the second store, with nothing in it. projects: all that have queues; a NULL
 * stands behind them. Returns the number of messages compared.
 */
size_t expect_same(struct store *a, struct store *b, int64_t now_ms,
                   const char *const *projects);

/* The same, but a transient queue has equal contents in both stores. */
size_t expect_same_transient(struct store *a, struct store *b, int64_t now_ms,
                             const char *const *projects);

#endif
