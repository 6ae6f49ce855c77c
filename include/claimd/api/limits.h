/*
 * limits: what an operator may set about the API (docs/api.md 5.1).
 *
 * Plain values; main fills them from the options table, the handlers read them.
 */
#ifndef CLAIMD_API_LIMITS_H
#define CLAIMD_API_LIMITS_H

#include "claimd/base/bytes.h"

#include <stdbool.h>
#include <stdint.h>

/* Whom a subscription may name, by the scheme of its URI. */
enum subscriber_type {
    SUBSCRIBER_HTTP,
    SUBSCRIBER_HTTPS,
    SUBSCRIBER_MAILTO,
    SUBSCRIBER_TYPES /* also: none of them */
};

#define SUBSCRIBER_TYPE_WORDS "http|https|mailto"

struct api_limits {
    int64_t max_queues_per_page;
    int64_t max_messages_per_page;
    int64_t max_messages_per_claim_or_pop;
    int64_t max_subscriptions_per_page;
    int64_t default_page;           /* 10: see limits_page() */
    int64_t max_queue_metadata;     /* bytes */
    int64_t max_messages_post_size; /* bytes */
    int64_t default_message_ttl;    /* seconds, as all that follow */
    int64_t min_message_ttl, max_message_ttl;
    int64_t default_message_delay, max_message_delay;
    int64_t dead_letter_ttl; /* at least */
    int64_t default_claim_ttl, min_claim_ttl, max_claim_ttl;
    int64_t default_claim_grace, min_claim_grace, max_claim_grace;
    int64_t default_subscription_ttl;
    int64_t max_wait;                                   /* of Prefer: wait; 0: none */
    bool client_id_strict;                              /* client_id_uuid_safe = strict */
    int64_t min_length_client_id, max_length_client_id; /* characters, when not strict */
    unsigned subscriber_types; /* a bit an enum subscriber_type */
    bool message_delete_with_claim_id;
    bool enable_checksum;
    bool admin_mode;
    bool enable_v1, enable_v1_1;
};

/* The length of a page that may have `most` items, when nobody asks for one. */
static inline int64_t
limits_page(const struct api_limits *l, int64_t most)
{
    return l->default_page < most ? l->default_page : most;
}

/* The defaults of the contract. */
extern const struct api_limits api_limits_default;

#endif
