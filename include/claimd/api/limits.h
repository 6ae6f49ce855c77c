/*
 * limits: the options of the API (docs/api.md 5.1). main fills them from the option
 * table, and the handlers read them.
 *
 *   Threads  any: constant after the start
 */
#ifndef CLAIMD_API_LIMITS_H
#define CLAIMD_API_LIMITS_H

#include "claimd/base/bytes.h"

#include <stdbool.h>
#include <stdint.h>

/* The kinds of subscribers, by the scheme of their URI. */
enum subscriber_type {
    SUBSCRIBER_HTTP,
    SUBSCRIBER_HTTPS,
    SUBSCRIBER_MAILTO,
    SUBSCRIBER_TYPES /* also: none of them */
};

#define SUBSCRIBER_TYPE_WORDS "http|https|mailto"

/* X(name, default): the numbers, named after their options. Only default_page has no
 * option. */
#define API_LIMIT_LIST(X)                                                                \
    X(max_queues_per_page, 20)                                                           \
    X(max_messages_per_page, 20)                                                         \
    X(max_messages_per_claim_or_pop, 20)                                                 \
    X(max_subscriptions_per_page, 20)                                                    \
    X(default_page, 10)               /* see limits_page() */                            \
    X(max_schedules, 10000)           /* of a project */                                 \
    X(max_queue_metadata, 65536)      /* bytes */                                        \
    X(max_messages_post_size, 262144) /* bytes */                                        \
    X(default_message_ttl, 3600)      /* seconds, as all that follow */                  \
    X(min_message_ttl, 60)                                                               \
    X(max_message_ttl, 1209600)                                                          \
    X(default_message_delay, 0)                                                          \
    X(max_message_delay, 43200)                                                          \
    X(max_release_delay, 43200)                                                          \
    X(dead_letter_ttl, 1209600) /* minimum */                                            \
    X(default_claim_ttl, 300)                                                            \
    X(min_claim_ttl, 60)                                                                 \
    X(max_claim_ttl, 43200)                                                              \
    X(default_claim_grace, 60)                                                           \
    X(min_claim_grace, 60)                                                               \
    X(max_claim_grace, 43200)                                                            \
    X(default_subscription_ttl, 3600)                                                    \
    X(max_wait, 45)             /* of Prefer: wait; 0: none */                           \
    X(idempotency_window, 600)  /* 0: no Idempotency-Key */                              \
    X(min_length_client_id, 10) /* characters, when not strict */                        \
    X(max_length_client_id, 36)

struct api_limits {
#define API_LIMIT_MEMBER(name, value) int64_t name;
    API_LIMIT_LIST(API_LIMIT_MEMBER)
#undef API_LIMIT_MEMBER
    bool require_headers;      /* refuse requests without Client-ID or X-Project-ID */
    bool client_id_strict;     /* client_id_uuid_safe = strict */
    unsigned subscriber_types; /* a bit an enum subscriber_type */
    bool message_delete_with_claim_id;
    bool enable_checksum;
    bool admin_mode;
    bool enable_v1, enable_v1_1;
    bool ui; /* serve the page */
};

/* The default length of a page that may have `most` items. */
static inline int64_t
limits_page(const struct api_limits *l, int64_t most)
{
    return l->default_page < most ? l->default_page : most;
}

/* The defaults of the contract. */
extern const struct api_limits api_limits_default;

#endif
