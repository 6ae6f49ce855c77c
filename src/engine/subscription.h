/*
 * subscription: a subscriber that receives the messages of a queue
 * (store/subscription.h).
 *
 * Its queue's feed has it under its number, which also orders subscriptions, and under
 * its subscriber, which has one subscription per queue. The list that a subscription is
 * in says what it waits for: `due`, `idle`, or none if it is leased or waits for a retry.
 * An expired subscription that is still there counts as gone.
 *
 *   Cost     each function O(levels of a tree)
 *   Threads  the shard's lock; an address never changes, and its readers pin it
 */
#ifndef ENGINE_SUBSCRIPTION_H
#define ENGINE_SUBSCRIPTION_H

#include "engine/feed.h"
#include "engine/shard.h"

/* The queue and the subscriber, as texts that may outlive the subscription. */
struct address {
    _Atomic uint32_t pins;
    struct store_queue queue; /* texts point behind this structure */
    struct bytes subscriber, options;
    char text[];
};

/* Makes an address with one pin and copies of the texts. NULL without memory. */
struct address *address_new(struct mem *mem, const struct store_queue *queue,
                            struct bytes subscriber, struct bytes options);
struct address *address_pin(struct address *a);
void address_unpin(struct mem *mem, struct address *a);

/* Bytes of the subscriber and options, for the log. */
static inline size_t
address_bytes(const struct address *a)
{
    return a->subscriber.len + a->options.len;
}

enum subscription_state {
    SUBSCRIPTION_RESTS, /* in `idle` or `due`, or in no list (not confirmed) */
    SUBSCRIPTION_LEASED,
    SUBSCRIPTION_WAITS /* until again_ms */
};

struct subscription {
    struct deadline deadline; /* end of its wait, or of its life */
    struct hashnode node;     /* in feed->subscribers */
    struct list link;         /* in feed->idle or feed->due */
    struct feed *feed;
    struct address *address; /* owned pin */
    struct cursor cursor;
    uint64_t id_low; /* of the id, which contains the number */
    uint32_t id_high;
    uint32_t failed; /* failed tries of the next delivery, unless it was dropped */
    enum subscription_state state;
    enum store_pending pending;
    enum store_pending leased_notice; /* if LEASED; NONE: a message */
    bool confirmed;
    bool follows;     /* during a replay: cursor.after is valid */
    uint8_t unlogged; /* deliveries since the last CURSOR */
    int64_t started_ms, ttl_s;
    int64_t again_ms;   /* WAITS */
    uint64_t failed_at; /* number of the message that failed; 0: a notice failed */
    uint64_t delivered, permanent_failures, dropped, failures;
};

static inline struct ident
subscription_ident(const struct subscription *s)
{
    return (struct ident){s->id_high, s->id_low};
}

static inline uint64_t
subscription_number(const struct subscription *s)
{
    return ident_claim_number(subscription_ident(s));
}

static inline int64_t
subscription_ends_ms(const struct subscription *s)
{
    return s->started_ms + s->ttl_s * 1000;
}

static inline bool
subscription_live(const struct subscription *s, int64_t now_ms)
{
    return now_ms < subscription_ends_ms(s);
}

/* The id of the newest subscription of a feed; zero: there is none. */
struct ident subscription_newest(const struct feed *f);

/* Makes a subscription outside any feed. Takes the address's pin, also on failure. NULL
 * without memory. */
struct subscription *subscription_new(struct mem *mem, struct address *address);

/* Frees a subscription that is in no feed. */
void subscription_free(struct mem *mem, struct subscription *s);

/* Reserves memory for subscription_enter(). Valid until the lock is released.
 * ST_NO_MEMORY. */
enum status subscription_reserve(struct shard *sh, struct feed *f, uint64_t number);

/* Adds a subscription to the feed, under the number in its id. The caller arms its
 * deadline. */
void subscription_enter(struct shard *sh, struct feed *f, struct subscription *s);

/* Failed tries of the current or next delivery. */
uint32_t subscription_failed(const struct subscription *s);

/* Removes and frees a subscription. The caller calls feed_tidy() or frees the feed. */
void subscription_remove(struct shard *sh, struct subscription *s);

/* The live subscription with this id; NULL if there is none. f may be NULL. */
struct subscription *
subscription_find(const struct feed *f, struct bytes id, int64_t now_ms);

/* The subscription of this subscriber, live or not; NULL if there is none. f may be
 * NULL. */
struct subscription *
subscription_of(const struct shard *sh, const struct feed *f, struct bytes subscriber);

/* Gives a subscription another address, whose pin it takes. The new subscriber must have
 * no other subscription here. */
void subscription_move(struct shard *sh, struct subscription *s, struct address *address);

void subscription_arm(struct shard *sh, struct subscription *s);

/* Makes it rest: adds it to `due` or `idle`, or to no list if it receives nothing. */
void subscription_rest(struct shard *sh, struct subscription *s);

/* Makes this notice the next delivery, due at once. */
void
subscription_notify(struct shard *sh, struct subscription *s, enum store_pending pending);

/* Attaches the cursor behind last_seq if the subscription receives messages (it is
 * confirmed, or need not be), or detaches it. */
void subscription_attach(struct shard *sh, struct subscription *s, uint64_t last_seq);

/* Gives a queue without a feed this one. */
void feed_open(struct shard *sh, struct queue *q, struct feed *f);

/* Call after feed_append(): idle subscriptions become due, and the feed is kept within
 * its limit. */
void feed_grown(struct shard *sh, struct feed *f);

/* Frees entries that no subscription needs: a slice now, the rest in housekeeping. */
void feed_tidy(struct shard *sh, struct feed *f);

/* Detaches the feed with all subscriptions from the queue. Housekeeping frees them. */
void feed_detach_all(struct shard *sh, struct queue *q);

/* Tasks of housekeeping, as far as the budget goes. True: nothing is left to do. */
bool feed_chores(struct shard *sh, int64_t now_ms, size_t *budget);

bool expire_subscriptions(struct shard *sh, int64_t now_ms, size_t *budget);

/* True if every invariant of a feed and its subscriptions holds. */
bool feed_audit(const struct shard *sh, const struct feed *f);

/* Describes a subscription as a record. Its texts are valid as long as its address. */
void
subscription_record(const struct subscription *s, struct store_subscription_record *out);

#endif
