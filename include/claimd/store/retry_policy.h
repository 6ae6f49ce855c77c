/*
 * store/retry_policy: the members of _retry_policy (docs/api.md 7.9), in the metadata of
 * a queue and the options of a subscription. The API checks them, and notify uses them.
 */
#ifndef CLAIMD_STORE_RETRY_POLICY_H
#define CLAIMD_STORE_RETRY_POLICY_H

#include <stdint.h>

/* X(name, default): the members that are integers. */
#define RETRY_INTEGERS(X)                                                                \
    X(retries_with_no_delay, 3)                                                          \
    X(minimum_delay_retries, 3)                                                          \
    X(minimum_delay, 5)                                                                  \
    X(maximum_delay, 30)                                                                 \
    X(maximum_delay_retries, 3)

/* Values of retry_backoff_function; the first is the default. */
#define RETRY_BACKOFFS(X)                                                                \
    X(linear)                                                                            \
    X(arithmetic)                                                                        \
    X(geometric)                                                                         \
    X(exponential)

/* Minimum difference of the delays, in seconds. */
enum { RETRY_DELAY_SPAN_LEAST = 10 };

#endif
