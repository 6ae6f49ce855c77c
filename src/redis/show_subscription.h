/*
 * show_subscription: views of subscriptions out of the answers of scripts
 * (scripts/lib/subscriptions.lua). The views keep the answer.
 */
#ifndef REDIS_SHOW_SUBSCRIPTION_H
#define REDIS_SHOW_SUBSCRIPTION_H

#include "redis/call.h"

/* Words of an answer: now, then so many of each. */
enum {
    SHOWN_NOW = 1,
    SHOWN_FIRST,
    SHOWN_NUMBER = 0,
    SHOWN_ID,
    SHOWN_SUBSCRIBER,
    SHOWN_OPTIONS,
    SHOWN_STARTED,
    SHOWN_TTL,
    SHOWN_CONFIRMED,
    SHOWN_ASKED,
    SHOWN_DELIVERED,
    SHOWN_GIVEN_UP,
    SHOWN_FALLEN_OUT,
    SHOWN_BEHIND,
    SHOWN_MISSED,
    SHOWN_FAILURES,
    SHOWN_FAILED,
    SHOWN_LENT,
    SHOWN_AGAIN,
    SHOWN_WORDS
};

/* How many the answer shows, which is ST_OK. */
size_t show_subscription_count(const struct call *c);

void show_subscription_id(struct bytes text, struct store_id *out);

/* Shows them, and the marker behind the last one. The views take the answer over. ST_NO_MEMORY. */
enum status show_subscriptions(struct call *c, const struct store_visit *visit,
                               struct store_subscriptions *out);

#endif
