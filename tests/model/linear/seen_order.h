/*
 * seen_order: which posts must come before which, whatever else happened, because some
 * response shows their messages in that order.
 *
 * Without it a search tries the orders of posts that overlap one by one, and finds out
 * only much later that it began wrongly.
 */
#ifndef TESTS_LINEAR_SEEN_ORDER_H
#define TESTS_LINEAR_SEEN_ORDER_H

#include "model/linear/operation.h"

/* Bit n - 1 stands for message n. */
struct seen_order {
    /* Of message n + 1: those that must be there first. */
    uint64_t before[LINEAR_MESSAGES];
};

void
seen_order_learn(struct seen_order *order, const struct operation *ops, size_t count);

/* True if everything seen in front of the messages of a post was posted already. */
bool seen_order_allows(const struct seen_order *order, const struct operation *post,
                       uint64_t posted);

#endif
