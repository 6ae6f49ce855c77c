/*
 * subscription: the documents of subscriptions, as they go into answers (docs/api.md 18.1,
 * 18.7).
 *
 *   Cost     O(length of what was given)
 *   Memory   the buffer's
 */
#ifndef API_WIRE_SUBSCRIPTION_H
#define API_WIRE_SUBSCRIPTION_H

#include "claimd/api/limits.h"
#include "claimd/base/arena.h"
#include "claimd/base/buf.h"
#include "claimd/json/reason.h"
#include "claimd/store/store.h"
#include "claimd/store/subscription.h"

#include <jansson.h>

/* What clients see; source: the name of its queue. */
void subscription_write(struct buf *out, struct bytes source,
                        const struct store_subscription *subscription);

/* What operators see: how far it has come. */
void subscription_write_progress(struct buf *out, int64_t now_ms,
                                 const struct store_subscription *subscription);

/* ------------------------------------------------------------------ reading */

/*
 * The bodies that make, change and confirm subscriptions (docs/api.md
 * 18.2, 18.5, 18.6).
 *
 * What is refused is never repeated in the reason: a subscriber may have a password in it.
 *
 *   Cost     O(length); a retry policy is parsed by jansson
 *   Memory   the request's arena for the subscriber; options are borrowed from the body
 */

/* Seconds that a subscription lives at least. */
enum { SUBSCRIPTION_TTL_MIN = 60 };

/*
 * A new subscription at now_ms, with defaults for what is left out. ST_BAD_BODY: no JSON;
 * ST_BAD_VALUE: anything else that is wrong, also without a body; both with a reason;
 * ST_NO_MEMORY.
 */
enum status decode_subscription(struct bytes body, const struct api_limits *limits,
                                int64_t now_ms, struct arena *arena,
                                struct store_subscription_draft *out, struct reason *why);

/* The same for one that is to be changed; what is left out stays as it is.
 * ST_NO_KNOWN_MEMBER: all of it. */
enum status
decode_subscription_change(struct bytes body, const struct api_limits *limits,
                           int64_t now_ms, struct arena *arena,
                           struct store_subscription_draft *out, struct reason *why);

/* What a subscription is refused for that has its texts by other ways. ST_BAD_VALUE,
 * ST_NO_MEMORY. */
enum status subscription_check(struct bytes subscriber, struct bytes options,
                               const struct api_limits *limits, struct reason *why);

/* {"confirmed": true}, or false. ST_BAD_BODY, ST_BAD_VALUE likewise. */
enum status decode_confirmation(struct bytes body, bool *out, struct reason *why);

/* ------------------------------------------------------------------ retry policies */

/*
 * The member _retry_policy of metadata (docs/api.md 7.9), checked.
 */

/* ST_OK if a policy is an object whose known members are what they must be; ST_BAD_VALUE
 * with a reason. */
enum status retry_policy_check(const json_t *policy, struct reason *why);

#endif
