/*
 * store/subscription: subscribers that get each message posted to a queue, and their progress.
 *
 * A queue that somebody is subscribed to keeps a log of its posts, its feed; a subscription has a
 * cursor in it. A post costs the same whatever their number, and delivery never touches the
 * message: that may be claimed and deleted long before (docs/adr/0011-subscriptions.md).
 *
 *              subscribed, somebody posts           store_delivery_next()
 *     rests  ----------------------------->  due  ------------------------> leased
 *       ^                                     ^ ^                             | | store_delivery_done()
 *       |                again_ms has come    | +---- more in the feed -------+ |
 *       |           waits --------------------+                               | |
 *       |             ^----------------------- FAILED, PUT_OFF ---------------+ |
 *       +---------------------------- nothing more in the feed -----------------+
 *
 *   Order      a subscription gets the messages of its queue in their order, one at a time
 *   At least   once: what was leased when the server was killed is leased again
 *   Bounded    a feed has at most so many bytes (engine_config.feed_bytes), and an entry lives no
 *              longer than its message would; what goes before it was delivered has fallen out,
 *              and is counted
 *   Whom       a subscription that is not confirmed, where that is required, gets notices only;
 *              once it is confirmed, what is posted from then on
 */
#ifndef CLAIMD_STORE_SUBSCRIPTION_H
#define CLAIMD_STORE_SUBSCRIPTION_H

#include "claimd/store/types.h"

/* Texts that a log and an answer can hold; the caller sees to that. */
enum { STORE_SUBSCRIBER_MOST = 60000 };

/* A subscription as it is to be, or as it is to be changed. */
struct store_subscription_draft {
    struct bytes subscriber; /* URI; update: absent, it stays as it is */
    struct bytes options;    /* JSON object, kept verbatim; update: likewise */
    int64_t ttl_s;           /* from now on; update: STORE_UNSET likewise */
};

/* What has become of a subscription that was asked for. */
struct store_subscribed {
    struct store_id id;
    bool created;   /* false: the subscriber has had one */
    bool confirmed; /* of that one: nothing was done */
};

/* How far a subscription has come. Counts survive a restart if the queue's messages do. */
struct store_progress {
    uint64_t delivered; /* messages */
    uint64_t given_up;
    uint64_t fallen_out; /* of the feed, before they were delivered */
    uint64_t behind;     /* messages still to get, those that it is about to lose too */
    uint64_t failures;   /* tries that failed, of this process */
    uint32_t failed;     /* tries of what it gets next that failed */
    bool lent;           /* leased: it is being delivered to just now */
    int64_t next_try_ms; /* 0: now, or when something is posted */
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
    const struct store *store; /* who must release it; NULL: nothing to release */
    struct store_subscription *views;
    size_t count;
    struct store_id next; /* marker to go on behind; empty: none shown */
};

#define STORE_SUBSCRIPTIONS_INIT ((struct store_subscriptions){.store = NULL})

/* What a subscriber gets. */
enum store_notice {
    STORE_NOTICE_MESSAGE,     /* was posted */
    STORE_NOTICE_CONFIRM,     /* a question whether it wants messages */
    STORE_NOTICE_UNSUBSCRIBED /* it has been unsubscribed */
};

/* Something to be delivered, leased to the caller until store_delivery_done(). */
struct store_delivery {
    const struct store *store; /* that leases it; NULL: nothing is leased */
    enum store_notice notice;
    struct store_queue queue; /* texts, also those below, are valid while it is leased */
    struct store_id subscription;
    struct bytes subscriber, options; /* as they were when it was leased */
    struct bytes metadata;            /* the queue's document, as it was then */
    int64_t expires_ms;               /* end of the subscription */
    struct bytes body;                /* MESSAGE, as are these */
    int64_t ttl_s, delay_s;           /* delay_s: 0 without */
    uint32_t failed;                  /* tries of it that failed */
    uint64_t lsn;                     /* in the log: no delivery before it is durable */
    uint64_t number, ordinal;         /* private to the store, as are the pins */
    void *pins[3];
};

/* What has become of it. */
enum store_outcome {
    STORE_OUTCOME_DELIVERED,
    STORE_OUTCOME_FAILED,   /* it is leased again at again_ms, with `failed` one more */
    STORE_OUTCOME_PUT_OFF,  /* was not tried: it is leased again at again_ms */
    STORE_OUTCOME_GIVEN_UP, /* goes on with the next one */
    STORE_OUTCOME_GONE /* the subscriber wants no more: the subscription is deleted */
};

#endif
