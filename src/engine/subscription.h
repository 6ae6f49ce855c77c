/*
 * subscription: a subscriber that gets what is posted to a queue (store/subscription.h).
 *
 * It is in its queue's feed under its number, which finds it and orders it, and under its
 * subscriber, who has one of them. What it rests for is said by the list it is in: idle, due,
 * none when it is leased or waits. An expired one that is still there is treated as gone.
 *
 *   Cost     each function O(levels of a tree)
 *   Threads  the shard's lock; an address never changes, and is pinned by who reads it
 */
#ifndef ENGINE_SUBSCRIPTION_H
#define ENGINE_SUBSCRIPTION_H

#include "engine/feed.h"
#include "engine/shard.h"

/* Where messages go, and from which queue: texts that outlive the subscription. */
struct address {
    _Atomic uint32_t pins;
    struct store_queue queue; /* texts point behind this structure */
    struct bytes subscriber, options;
    char text[];
};

/* Makes copies, with one pin; NULL without memory. */
struct address *address_new(struct mem *mem, const struct store_queue *queue,
                            struct bytes subscriber, struct bytes options);
struct address *address_pin(struct address *a);
void address_unpin(struct mem *mem, struct address *a);

/* What the log has to keep of one, besides what it knows of any subscription. */
static inline size_t
address_bytes(const struct address *a)
{
    return a->subscriber.len + a->options.len;
}

enum subscription_state {
    SUBSCRIPTION_RESTS, /* idle or due, or not confirmed */
    SUBSCRIPTION_LEASED,
    SUBSCRIPTION_WAITS /* until again_ms */
};

struct subscription {
    struct deadline deadline; /* the end of its waiting, or of its life */
    struct hashnode node;     /* in its feed's subscribers */
    struct list link;         /* in its feed's idle or due ones */
    struct feed *feed;
    struct address *address; /* owned pin */
    struct cursor cursor;
    uint64_t id_low; /* of the id, which has the number in it */
    uint32_t id_high;
    uint32_t failed; /* tries of what is next that failed: unless that fell out */
    enum subscription_state state;
    enum store_pending pending;
    enum store_pending leased_notice; /* LEASED: STORE_PENDING_NONE: a message */
    bool confirmed;
    bool follows;   /* while a log is replayed: it had a cursor, which says where */
    uint8_t untold; /* deliveries that are not logged yet */
    int64_t started_ms, ttl_s;
    int64_t again_ms;   /* WAITS */
    uint64_t failed_at; /* number of the message that failed; 0: of a notice */
    uint64_t delivered, given_up, fallen_out, failures;
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

/* The id of the newest subscription in a feed; zero: there is none. */
struct ident subscription_newest(const struct feed *f);

/* Makes one that is nowhere yet; takes the address's pin, also on failure: NULL without memory. */
struct subscription *subscription_new(struct mem *mem, struct address *address);

/* Frees one that is nowhere (any more). */
void subscription_free(struct mem *mem, struct subscription *s);

/*
 * Makes sure that subscription_enter() has what it needs, and that the pool has `spare` nodes
 * besides. Holds until the lock is let go.
 */
enum status subscription_reserve(struct shard *sh, struct feed *f, uint64_t number);

/* Enters it in the feed, under the number in its id; arms nothing. */
void subscription_enter(struct shard *sh, struct feed *f, struct subscription *s);

/* The notice that it would still have to get after a restart: a leased one, too. */
enum store_pending subscription_untold(const struct subscription *s);

/* How many tries failed of what it gets, or gets next. */
uint32_t subscription_failed(const struct subscription *s);

/* Takes it out of everything, and frees it. The feed is left to who calls. */
void subscription_remove(struct shard *sh, struct subscription *s);

/* The one with this id; NULL if there is none. */
struct subscription *
subscription_find(const struct feed *f, struct bytes id, int64_t now_ms);

/* The one of this subscriber, live or not; NULL if there is none. */
struct subscription *
subscription_of(const struct shard *sh, const struct feed *f, struct bytes subscriber);

/* Gives it another address; takes the pin. Its subscriber has no other one. */
void subscription_move(struct shard *sh, struct subscription *s, struct address *address);

/* Arms its deadline. */
void subscription_arm(struct shard *sh, struct subscription *s);

/* One that rests goes where it belongs: it is due, or idle, or nothing is for it. */
void subscription_rest(struct shard *sh, struct subscription *s);

/* Sends this notice next, at once. */
void
subscription_notify(struct shard *sh, struct subscription *s, enum store_pending pending);

/*
 * Whether it gets messages follows from whether it is confirmed: attaches it behind last_seq,
 * or detaches it.
 */
void subscription_attach(struct shard *sh, struct subscription *s, uint64_t last_seq);

/* Gives the queue, which has none, its feed. */
void feed_open(struct shard *sh, struct queue *q, struct feed *f);

/* Drops the first entries until the feed keeps within its bytes. */
void feed_keep_within(struct shard *sh, struct feed *f);

/* Appended to a feed: those who were idle are due, and it keeps within its bytes. */
void feed_grown(struct shard *sh, struct feed *f);

/* Lets go of what nobody needs: a little now, the rest when time allows. */
void feed_tidy(struct shard *sh, struct feed *f);

/* The queue has nobody subscribed any more, whoever that was. */
void feed_detach_all(struct shard *sh, struct queue *q);

/* A part of housekeeping, as far as the budget goes: true when nothing of it is left. */
bool feed_chores(struct shard *sh, int64_t now_ms, size_t *budget);

/* What has fallen due of subscriptions, likewise. */
bool expire_subscriptions(struct shard *sh, int64_t now_ms, size_t *budget);

/* True if every invariant of a feed and its subscriptions holds. */
bool feed_audit(const struct shard *sh, const struct feed *f);

/* It as a record. Its texts are valid as long as its address. */
void
subscription_record(const struct subscription *s, struct store_subscription_record *out);

#endif
