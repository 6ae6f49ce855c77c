/*
 * delivery_options: what the options of a subscription say of its deliveries (docs/api.md 20.2, 20.4, 20.5).
 *
 *     {"post_headers": {"X-Token": "a"}, "post_data": "...", "from": "...", "subject": "..."}
 *
 * Members of other types count as left out.
 *
 *   Cost     O(length), without memory
 */
#ifndef NOTIFY_DELIVERY_OPTIONS_H
#define NOTIFY_DELIVERY_OPTIONS_H

#include "claimd/base/buf.h"
#include "claimd/base/bytes.h"
#include "claimd/json/scan.h"
#include "claimd/store/retry_policy.h"

/* Texts are insides of JSON strings, absent if they are left out; they borrow the options. */
struct delivery_options {
    struct bytes post_headers; /* an object, verbatim */
    struct bytes post_data, from, subject;
};

void delivery_options_read(struct bytes options, struct delivery_options *out);

/* Appends a text of the options, its escapes undone. */
void option_text_write(struct buf *out, struct bytes inside);

enum { HEADERS_MOST = 64, HEADER_LINE_MOST = 8192 };

/*
 * Calls `take` with each header of the object that may be sent, as the line that libcurl wants
 * (NUL-terminated, in `line`), until it says false, which is then returned; also without memory.
 * Omits invalid headers, and those that would change the meaning or the sender of the request.
 */
bool option_headers(struct bytes post_headers, struct buf *line,
                    bool (*take)(void *ctx, const char *line), void *ctx);

/*
 * When a failed notification is retried:
 *
 *     try  at once ...  minimum_delay ...  delays that grow ...  maximum_delay ...  given up
 *
 * The policy in the subscription's options counts, or else that in the queue's metadata. Both were checked when
 * they came in. A value that is no policy nevertheless is the default one, and numbers are cut to useful ones: a
 * message does not live longer than 14 days. A wait is computed in O(1).
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

/* What counts of a subscription's options and its queue's metadata, two JSON objects. */
void
retry_policy_read(struct bytes options, struct bytes metadata, struct retry_policy *out);

/*
 * After `failed` tries, at least one, have failed: *wait_ms to the next one. False: it is given
 * up.
 */
bool retry_wait(const struct retry_policy *p, uint32_t failed, int64_t *wait_ms);

#endif
