/*
 * subscription_ops: subscriptions of queues on Redis (store/subscription.h).
 * delivery_ops.h has the deliveries to their subscribers.
 */
#ifndef REDIS_SUBSCRIPTION_OPS_H
#define REDIS_SUBSCRIPTION_OPS_H

#include "redis/call.h"

/* A response with subscriptions has the time and SUB_WORDS words for each
 * (lib/subscriptions.lua). */
enum {
    SUB_NOW = 1,
    SUB_FIRST,
    SUB_NUMBER = 0,
    SUB_ID,
    SUB_SUBSCRIBER,
    SUB_OPTIONS,
    SUB_STARTED,
    SUB_TTL,
    SUB_CONFIRMED,
    SUB_CONFIRM_PENDING,
    SUB_DELIVERED,
    SUB_PERMANENT_FAILURES,
    SUB_DROPPED,
    SUB_BEHIND,
    SUB_MISSED,
    SUB_FAILURES,
    SUB_FAILED,
    SUB_LEASED,
    SUB_RETRY_AT,
    SUB_WORDS
};

/* The number of subscriptions in a response with ST_OK. */
size_t subscription_response_count(const struct call *c);

#endif
