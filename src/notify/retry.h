/*
 * retry: when a notification that failed is tried again (docs/api.md 20.4).
 *
 *     try  at once ...  minimum_delay ...  delays that grow ...  maximum_delay ...  given up
 *
 * The policy of the subscription's options counts, or else that of the queue's metadata. What is
 * stored was checked when it came in; what is nevertheless no policy is the default one, and
 * numbers are cut to what makes sense: a message does not live longer than 14 days.
 *
 *   Cost     of reading: O(length of both documents), without memory; of a wait O(1)
 */
#ifndef NOTIFY_RETRY_H
#define NOTIFY_RETRY_H

#include "claimd/base/bytes.h"
#include "claimd/store/retry_policy.h"

#define RETRY_MEMBER(name, value) int64_t name;
#define RETRY_BACKOFF(name)       RETRY_##name,

enum retry_backoff { RETRY_BACKOFFS(RETRY_BACKOFF) RETRY_BACKOFF_COUNT };

struct retry_policy {
    RETRY_INTEGERS(RETRY_MEMBER) /* delays in seconds */
    enum retry_backoff backoff;
    bool queue_decides; /* ignore_subscription_override */
};

#undef RETRY_MEMBER
#undef RETRY_BACKOFF

/* The longest delay, and the most retries of one kind. */
enum { RETRY_DELAY_MOST_S = 14 * 24 * 3600, RETRY_RETRIES_MOST = 1000000 };

/* What counts of a subscription's options and its queue's metadata, two JSON objects. */
void
retry_policy_read(struct bytes options, struct bytes metadata, struct retry_policy *out);

/*
 * After `failed` tries, at least one, have failed: *wait_ms to the next one. False: it is given
 * up.
 */
bool retry_wait(const struct retry_policy *p, uint32_t failed, int64_t *wait_ms);

#endif
