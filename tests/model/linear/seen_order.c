#include "model/linear/seen_order.h"

#include <string.h>

static uint64_t
bit(uint8_t message)
{
    return UINT64_C(1) << (message - 1);
}

/* A message before one that is before m is before m (Warshall 1962). */
static void
close_transitively(struct seen_order *order)
{
    for (unsigned via = 0; via < LINEAR_MESSAGES; via++)
        for (unsigned m = 0; m < LINEAR_MESSAGES; m++)
            if ((order->before[m] >> via & 1) != 0)
                order->before[m] |= order->before[via];
}

void
seen_order_learn(struct seen_order *order, const struct operation *ops, size_t count)
{
    memset(order, 0, sizeof(*order));
    for (size_t i = 0; i < count; i++) {
        const struct operation *op = &ops[i];

        if (op->kind == LINEAR_DELETE_MANY ||
            op->kind == LINEAR_FINISH) /* in the order of the request */
            continue;
        for (size_t k = 1; k < op->count; k++)
            order->before[op->messages[k] - 1] |= bit(op->messages[k - 1]);
    }
    close_transitively(order);
}

bool
seen_order_allows(const struct seen_order *order, const struct operation *post,
                  uint64_t posted)
{
    for (size_t i = 0; i < post->count; i++) {
        if ((order->before[post->messages[i] - 1] & ~posted) != 0)
            return false;
        posted |= bit(post->messages[i]);
    }
    return true;
}
