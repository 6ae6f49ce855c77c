/*
 * store/subscription: subscribers that get each message posted to a queue, and their
 * progress.
 *
 * A queue with subscriptions keeps a log of its posts, its feed. A subscription has a
 * cursor in the feed. The cost of a post does not depend on the number of subscriptions.
 * A delivery never changes the message, which may be claimed and deleted before
 * (docs/adr/0011-subscriptions.md).
 *
 *         subscribed, a post          store_delivery_next()
 *     rests  --------------------->  due  ------------------> leased
 *       ^                             ^ ^                       | | store_delivery_done()
 *       |        again_ms has come    | +- more in the feed ----+ |
 *       |   waits --------------------+                           |
 *       |     ^------------------------ FAILED, BACKED_OFF -------+
 *       +-------------------- nothing more in the feed -----------+
 *
 *   Order      a subscription gets the messages of its queue in their order, one at a
 *              time
 *   At least   once: a delivery that was leased when the server was killed is leased
 *              again
 *   Bounded    a feed has at most engine_config.feed_bytes, and an entry lives no longer
 *              than its message would. An entry that goes before its delivery is dropped
 *              and counted
 *   Confirmed  if confirmation is required, a subscription gets notices only until it is
 *              confirmed, and then the messages that are posted from then on
 */
#ifndef CLAIMD_STORE_SUBSCRIPTION_H
#define CLAIMD_STORE_SUBSCRIPTION_H

#include "claimd/store/types.h"

/* Limit of subscriber and options, which a log and a response can hold. The caller checks
 * it. */
enum { STORE_SUBSCRIBER_MOST = 60000 };

/* A new subscription, or changes of one. */
struct store_subscription_draft {
    struct bytes subscriber; /* URI; update: absent: no change */
    struct bytes options;    /* JSON object, kept verbatim; update: absent: no change */
    int64_t ttl_s;           /* from now on; update: STORE_UNSET: no change */
};

/* The result of store_subscription_create(). */
struct store_subscribed {
    struct store_id id;
    bool created;   /* false: the subscriber had one */
    bool confirmed; /* the subscription is confirmed */
};

/* The progress of a subscription. Counts survive a restart if the queue's messages do. */
struct store_progress {
    uint64_t delivered; /* messages */
    uint64_t permanent_failures;
    uint64_t dropped;    /* messages dropped from the feed before their delivery */
    uint64_t behind;     /* messages still to receive, or missed */
    uint64_t failures;   /* failed tries since the start of the process */
    uint32_t failed;     /* failed tries of the next delivery */
    bool leased;         /* a delivery is leased now */
    int64_t next_try_ms; /* 0: now, or with the next post */
};

/* A subscription as it was at `now_ms`. */
struct store_subscription {
    struct store_id id;
    struct bytes subscriber, options; /* valid until the views are released */
    int64_t ttl_s, age_s;
    bool confirmed;
    struct store_progress progress;
    void *pin; /* private to the store */
};

struct store_subscriptions {
    const struct store *store; /* that releases it; NULL: nothing to release */
    struct store_subscription *views;
    size_t count;
    struct store_id next; /* marker of the next page; empty: the page is empty */
};

#define STORE_SUBSCRIPTIONS_INIT ((struct store_subscriptions){.store = NULL})

/* The kinds of deliveries. */
enum store_notice {
    STORE_NOTICE_MESSAGE,     /* a message of the queue */
    STORE_NOTICE_CONFIRM,     /* asks the subscriber to confirm */
    STORE_NOTICE_UNSUBSCRIBED /* tells the subscriber that it was unsubscribed */
};

/* A delivery, leased to the caller until store_delivery_done(). */
struct store_delivery {
    const struct store *store; /* that leases it; NULL: none */
    enum store_notice notice;
    struct store_queue queue; /* its texts, and those below, are valid during the lease */
    struct store_id subscription;
    struct bytes subscriber, options; /* at the time of the lease */
    struct bytes metadata;            /* of the queue at that time */
    int64_t expires_ms;               /* end of the subscription */
    struct bytes body;                /* of a MESSAGE, like these */
    int64_t ttl_s, delay_s;           /* delay_s: 0 without */
    uint32_t failed;                  /* failed tries of it */
    uint64_t lsn;                     /* must be durable before the delivery */
    uint64_t number, ordinal;         /* private to the store, as are the pins */
    void *pins[3];
};

/* The outcome of a delivery. */
enum store_outcome {
    STORE_OUTCOME_DELIVERED,
    STORE_OUTCOME_FAILED,            /* retry at again_ms, with `failed` one more */
    STORE_OUTCOME_BACKED_OFF,        /* not tried; retry at again_ms */
    STORE_OUTCOME_PERMANENT_FAILURE, /* permanent failure; the next delivery follows */
    STORE_OUTCOME_GONE               /* the subscriber is gone: delete the subscription */
};

#endif
