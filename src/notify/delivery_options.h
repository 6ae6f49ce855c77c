/*
 * delivery_options: the options of a subscription for its deliveries (docs/api.md 20.2,
 * 20.4, 20.5).
 *
 *     {"post_headers": {"X-Token": "a"}, "post_data": "...", "from": "...",
 *      "subject": "..."}
 *
 * Members with other types count as absent.
 *
 *   Cost     O(length)
 *   Memory   none
 *   Threads  any
 */
#ifndef NOTIFY_DELIVERY_OPTIONS_H
#define NOTIFY_DELIVERY_OPTIONS_H

#include "claimd/base/buf.h"
#include "claimd/base/bytes.h"
#include "claimd/json/scan.h"
#include "claimd/store/retry_policy.h"

/* Texts are the insides of JSON strings, or absent. All are borrowed from the options. */
struct delivery_options {
    struct bytes post_headers; /* a JSON object */
    struct bytes post_data, from, subject;
};

void delivery_options_read(struct bytes options, struct delivery_options *out);

/* Appends a text of the options with its escapes decoded. */
void option_text_write(struct buf *out, struct bytes inside);

enum { HEADERS_MOST = 64, HEADER_LINE_MOST = 8192 };

/*
 * Calls `add` with the line of each header, in the form of libcurl (NUL-terminated, in
 * `line`). Omits invalid headers, and those that would change the meaning or the sender
 * of the request. False: `add` returned false, or there is no memory.
 */
bool option_headers(struct bytes post_headers, struct buf *line,
                    bool (*add)(void *ctx, const char *line), void *ctx);

/*
 * When a failed notification is retried:
 *
 *     attempt,  at once ... minimum_delay ... growing delays ... maximum_delay ...
 *               permanent failure
 *
 * The policy in the options of the subscription counts, or else that in the metadata of
 * the queue. The API has checked both. Invalid values that come from elsewhere count as
 * the default policy, and numbers are limited to useful ones: a message does not live
 * longer than 14 days. Computing a delay costs O(1).
 */
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

/* Reads the policy that counts. Options and metadata are JSON objects. */
void
retry_policy_read(struct bytes options, struct bytes metadata, struct retry_policy *out);

/* The delay after `failed` failed attempts (at least 1). False: no further attempt. */
bool retry_wait(const struct retry_policy *p, uint32_t failed, int64_t *wait_ms);

#endif
