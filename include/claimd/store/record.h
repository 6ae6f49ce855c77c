/*
 * store/record: the changes of a store and what it contains, as records.
 *
 * A record has the values after the change, never a difference: absolute counts, times and
 * numbers. So a checkpoint and a log are made of the same records, and applying one twice does
 * no harm.
 *
 *   POST, CLAIM, RENEW, RELEASE, DELETE, MOVE   messages, one by one with next()
 *   QUEUE, META                                 the queue, with its metadata
 *   QUEUE_GONE, PURGE                           the queue; what it had goes without saying
 *   SUBSCRIPTION, SUBSCRIPTION_GONE             one subscription, as it is (as it was)
 *   UNSUBSCRIBED                                the queue: all of its subscriptions have gone
 *   CURSOR                                      how far a subscription has come; logged now
 *                                               and then, and no response waits for it
 *   EXPIRED, DELAY_OVER, CLAIM_OVER             what time did; never refused, and no
 *                                               response waits for it
 *
 *   IMAGE_QUEUE, IMAGE_CLAIM, IMAGE,              not changes: what a sweep shows
 *   IMAGE_SUBSCRIPTION, IMAGE_FEED
 *                                               (store/durable.h)
 *
 * A claim that loses its last message is over without a word of its own, and a message
 * whose claim is over is free.
 */
#ifndef CLAIMD_STORE_RECORD_H
#define CLAIMD_STORE_RECORD_H

#include "claimd/store/store.h"

enum store_change_kind {
    STORE_CHANGE_QUEUE,
    STORE_CHANGE_META,
    STORE_CHANGE_QUEUE_GONE,
    STORE_CHANGE_PURGE,
    STORE_CHANGE_POST,
    STORE_CHANGE_DELETE, /* also popped ones */
    STORE_CHANGE_CLAIM,
    STORE_CHANGE_RENEW,
    STORE_CHANGE_RELEASE, /* also given back */
    STORE_CHANGE_MOVE,    /* dead letters: to `target` */
    STORE_CHANGE_SUBSCRIPTION,
    STORE_CHANGE_SUBSCRIPTION_GONE,
    STORE_CHANGE_UNSUBSCRIBED,
    STORE_CHANGE_CURSOR,
    STORE_CHANGE_EXPIRED,
    STORE_CHANGE_DELAY_OVER,
    STORE_CHANGE_CLAIM_OVER,
    STORE_CHANGE_IMAGE_QUEUE,
    STORE_CHANGE_IMAGE_CLAIM,
    STORE_CHANGE_IMAGE,
    STORE_CHANGE_IMAGE_SUBSCRIPTION,
    STORE_CHANGE_IMAGE_FEED, /* messages that subscribers have still to get */
    STORE_CHANGE_KINDS
};

/* What must never come back though no queue shows it. */
struct store_marks {
    uint64_t tag_start, tags_used; /* queues' tags are made of these */
    uint64_t fence;                /* largest claim number of a queue that is gone */
};

/* A message as it is after the change (DELETE, EXPIRED: as it was). */
struct store_message_record {
    uint64_t number;     /* in its queue; MOVE: in the target */
    uint64_t old_number; /* MOVE: in the source */
    uint64_t claim;      /* number of the claim that holds it; 0: free */
    struct store_id id;
    bool foreign;                          /* it came with its id from another queue */
    struct bytes body;                     /* valid during the call */
    const struct store_checksum *checksum; /* likewise; NULL: none */
    uint64_t client;
    int64_t posted_ms, expires_ms;
    int64_t delayed_until_ms; /* 0: not delayed */
    uint32_t claim_count;
};

/* A subscription as it is after the change (CURSOR: without its texts and its times). */
struct store_subscription_record {
    uint64_t number; /* in its queue */
    struct store_id id;
    struct bytes subscriber, options; /* valid during the call */
    int64_t started_ms, ttl_s;
    bool confirmed;
    bool attached;  /* it gets messages, */
    uint64_t after; /* those behind this number */
    uint32_t
        pending; /* a notice that it has still to get: 1 + enum store_notice; 0: none */
    uint64_t delivered, given_up, fallen_out;
};

struct store_change {
    enum store_change_kind kind;
    int64_t now_ms;
    const struct store_actor *actor; /* who has asked for it, or has found what time did;
                                        NULL: nobody is known */
    struct store_queue queue;
    uint32_t tag;        /* of the queue's incarnation */
    bool transient;      /* the queue is not to survive a restart with what it has */
    uint64_t fence_base; /* what its claim numbers start behind */
    uint64_t last_number, last_claim; /* of its messages and claims, used up so far; of a
                                         transient one: those that may be used meanwhile */
    struct store_marks marks;         /* QUEUE, IMAGE_QUEUE, QUEUE_GONE */
    const struct store_metadata *metadata; /* QUEUE, IMAGE_QUEUE, META */
    struct store_queue target;             /* MOVE */
    uint32_t target_tag;
    bool target_transient;
    struct store_id claim_id; /* CLAIM, RENEW, RELEASE, CLAIM_OVER */
    uint64_t claim_number;    /* in its queue, without the base */
    int64_t claim_started_ms, claim_ends_ms;
    const struct store_subscription_record
        *subscription; /* the kinds that are about one */
    size_t count;      /* messages */

    /* The next message; false: there is none. Private: at, from. */
    bool (*next)(struct store_change *change, struct store_message_record *out);
    uint64_t at;
    const void *from[2];
};

#endif
