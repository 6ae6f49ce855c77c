/*
 * subscription: writes the documents of subscriptions (docs/api.md 18.1, 18.7), and
 * decodes the bodies that make, change and confirm them (18.2, 18.5, 18.6).
 *
 * A reason never repeats a subscriber, which may contain a password.
 *
 *   Cost     O(length); jansson parses a retry policy
 *   Memory   the buffer, and the request's arena for the subscriber; options are borrowed
 *            from the body
 *   Threads  any: no state
 */
#ifndef API_WIRE_SUBSCRIPTION_H
#define API_WIRE_SUBSCRIPTION_H

#include "claimd/api/limits.h"
#include "claimd/base/arena.h"
#include "claimd/base/buf.h"
#include "claimd/base/clock.h"
#include "claimd/json/reason.h"
#include "claimd/store/store.h"
#include "claimd/store/subscription.h"

#include <jansson.h>

/* Writes the document for clients. source: the name of the queue. */
void subscription_write(struct buf *out, struct bytes source,
                        const struct store_subscription *subscription);

/* Writes the progress of a subscription, for operators. */
void subscription_write_progress(struct buf *out, int64_t now_ms,
                                 const struct clock *time_base,
                                 const struct store_subscription *subscription);

/* ------------------------------------------------------------------ reading */

/* Minimum TTL of a subscription in seconds. */
enum { SUBSCRIPTION_TTL_MIN = 60 };

/*
 * Decodes a new subscription at now_ms, with defaults for members left out. ST_BAD_BODY:
 * no JSON; ST_BAD_VALUE: any other error, also an absent body; both with a reason;
 * ST_NO_MEMORY.
 */
enum status decode_subscription(struct bytes body, const struct api_limits *limits,
                                int64_t now_ms, struct arena *arena,
                                struct store_subscription_draft *out, struct reason *why);

/* Decodes a change. Members left out stay unset. ST_NO_KNOWN_MEMBER: all are left out. */
enum status
decode_subscription_change(struct bytes body, const struct api_limits *limits,
                           int64_t now_ms, struct arena *arena,
                           struct store_subscription_draft *out, struct reason *why);

/* The same checks for a subscription of a record. ST_BAD_VALUE, ST_NO_MEMORY. */
enum status subscription_check(struct bytes subscriber, struct bytes options,
                               const struct api_limits *limits, struct reason *why);

/* Decodes {"confirmed": true} or false. ST_BAD_BODY, ST_BAD_VALUE. */
enum status decode_confirmation(struct bytes body, bool *out, struct reason *why);

/* Checks the member _retry_policy of metadata or options (docs/api.md 7.9).
 * ST_BAD_VALUE. */
enum status retry_policy_check(const json_t *policy, struct reason *why);

#endif
