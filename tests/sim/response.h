/*
 * response: what a response of the server says, taken apart.
 */
#ifndef TESTS_SIM_RESPONSE_H
#define TESTS_SIM_RESPONSE_H

#include "sim/operation.h"

/* A message as it is shown; a pop shows no href, the others no claim count. */
struct seen_message {
    struct store_id id;
    struct store_id claim; /* in the href; empty: none */
    int64_t ttl_s, age_s;
    int64_t claim_count;
    struct bytes body; /* borrowed from the response's text */
};

struct seen_end {
    struct store_id id; /* empty: not shown */
    int64_t age_s;
    char created[32];
};

/* A subscription as it is listed; progress: as operators see it. */
struct seen_subscription {
    struct store_id id;
    struct bytes subscriber, options; /* borrowed */
    int64_t ttl_s, age_s;
    bool confirmed, leased;
    int64_t delivered, permanent_failures, dropped, behind, failures, failed;
    char next_try[32]; /* empty: null */
};

struct seen_schedule {
    int number;
    struct schedule_terms terms;
    int64_t posted, missed, skipped;
    int64_t next_ms; /* 0: none */
};

struct sim_response {
    int code;
    bool retry_after;         /* the header is there */
    bool replayed;            /* Idempotent-Replay is there */
    int64_t applied_s;        /* of Preference-Applied: wait=N; 0: it is not there */
    uint64_t claim_number;    /* 0: the header is not there */
    struct store_id location; /* last part of the Location */
    struct seen_message messages[IDS_MAX];
    size_t count;
    struct store_id posted[DRAFTS_MAX];
    size_t posted_count;
    bool existing[POSTS_MAX]; /* of a post, or the posts of a finish */
    int64_t claim_age_s, claim_ttl_s;
    struct store_id marker;            /* of the next link; empty: no link */
    struct store_id finished[IDS_MAX]; /* of a finish, as they were named */
    char results[IDS_MAX];             /* first letters; 'n': it was not held */
    size_t result_count;
    bool says_renewed, renewed;
    int64_t moved, remaining, without_origin, key_held; /* of a redrive */
    unsigned paused;                                    /* of enum store_pause */
    int64_t claimed, free, total;
    struct seen_end oldest, newest;
    struct bytes queues[PLACES]; /* names */
    size_t queue_count;
    int64_t queue_total;
    int64_t settings[SETTING_COUNT]; /* STORE_UNSET: null */
    struct store_id subscribed;
    struct seen_subscription subscriptions[SUBSCRIBERS];
    size_t subscription_count;
    struct seen_schedule schedules[SCHEDULES];
    size_t schedule_count;
};

/* Takes a response apart; false if it is not the document of the operation. */
bool response_read(const struct operation *op, const struct response *res,
                   struct sim_response *out);

#endif
