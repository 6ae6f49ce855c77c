/*
 * subscription_ops: the store's operations on subscriptions
 * (claimd/store/subscription.h). Declared in txn.h. Their delivery is in delivery_ops.c.
 * Read subscription.h next.
 */
#include "engine/subscription.h"
#include "engine/txn.h"

static size_t
draft_bytes(const struct store_subscription_draft *draft)
{
    return sizeof(struct subscription) + sizeof(struct address) + draft->subscriber.len +
           draft->options.len;
}

/* ------------------------------------------------------------------ create */

/* Does everything that can fail, before anything changes. *made: the feed, if it is
 * new. */
static enum status
reserve_new_subscription(struct txn *t, struct subscription *s, struct feed **made)
{
    struct shard *sh = t->shard;
    enum status st = entropy_reserve(&sh->entropy, IDENT_ENTROPY);
    struct feed *f;

    if (st == ST_OK && t->queue == NULL)
        st = txn_make_queue(t, NULL);
    if (st != ST_OK)
        return st;
    f = t->queue->feed;
    if (f == NULL)
        f = *made = feed_new(t->engine->core.mem);
    if (f == NULL)
        return ST_NO_MEMORY;
    st = subscription_reserve(sh, f, t->queue->last_subscription + 1);
    if (st == ST_OK)
        st = txn_reserve_queue(t);
    return st == ST_OK
               ? txn_reserve(t, STORE_CHANGE_SUBSCRIPTION, 0, address_bytes(s->address))
               : st;
}

/* Cannot fail: everything is reserved. */
static void
commit_subscription(struct txn *t, struct subscription *s, int64_t ttl_s,
                    struct feed *made)
{
    struct queue *q = t->queue;
    struct ident id = ident_subscription(&t->shard->entropy, subscription_newest(q->feed),
                                         q->last_subscription + 1);

    if (txn_link_queue(t))
        changelog_queue(q, STORE_CHANGE_QUEUE, t->now_ms);
    if (made != NULL)
        feed_open(t->shard, q, made);
    q->last_subscription++;
    s->id_high = id.high;
    s->id_low = id.low;
    s->started_ms = t->now_ms;
    s->ttl_s = ttl_s;
    subscription_enter(t->shard, q->feed, s);
    if (t->engine->core.config.require_confirmation)
        s->pending = STORE_PENDING_CONFIRM;
    subscription_attach(t->shard, s, q->last_seq);
    subscription_rest(t->shard, s);
    subscription_arm(t->shard, s);
    changelog_subscription(t->queue, STORE_CHANGE_SUBSCRIPTION, s, t->now_ms);
}

/* Asks for the confirmation of an existing subscription again, if that is needed. */
static enum status
ask_confirmation_again(struct txn *t, struct subscription *s)
{
    enum status st;

    if (s->confirmed || !t->engine->core.config.require_confirmation)
        return ST_OK;
    st = txn_reserve(t, STORE_CHANGE_SUBSCRIPTION, 0, address_bytes(s->address));
    if (st != ST_OK)
        return st;
    subscription_notify(t->shard, s, STORE_PENDING_CONFIRM);
    changelog_subscription(t->queue, STORE_CHANGE_SUBSCRIPTION, s, t->now_ms);
    return ST_OK;
}

/* The live subscription of a subscriber. Removes an expired one. */
static struct subscription *
find_live_subscription(const struct txn *t, struct bytes subscriber)
{
    struct subscription *s =
        t->queue == NULL ? NULL : subscription_of(t->shard, t->queue->feed, subscriber);

    if (s == NULL || subscription_live(s, t->now_ms))
        return s;
    subscription_remove(t->shard, s);
    feed_tidy(t->shard, t->queue->feed);
    return NULL;
}

enum status
engine_subscription_create(struct store *s, struct store_op *op,
                           const struct store_queue *where,
                           const struct store_subscription_draft *draft,
                           struct store_subscribed *out)
{
    struct engine *e = engine_of(s);
    struct subscription *fresh, *there;
    struct feed *made = NULL;
    struct address *address;
    struct txn t;
    enum status st;

    housekeep_pay(e, op->now_ms, 1, draft_bytes(draft));
    if (!mem_admits(e->core.mem, draft_bytes(draft)))
        return ST_OVER_BUDGET;
    address = address_new(e->core.mem, where, draft->subscriber, draft->options);
    fresh = address == NULL ? NULL : subscription_new(e->core.mem, address);
    if (fresh == NULL)
        return ST_NO_MEMORY;
    (void)txn_begin(&t, s, op, where, EXPIRE_NOTHING); /* which cannot fail */
    there = find_live_subscription(&t, draft->subscriber);
    st = there == NULL ? reserve_new_subscription(&t, fresh, &made)
                       : ask_confirmation_again(&t, there);
    if (there == NULL && st == ST_OK) {
        commit_subscription(&t, fresh, draft->ttl_s, made);
        there = fresh;
        fresh = NULL;
    } else if (made != NULL) {
        feed_free(e->core.mem, made);
    }
    if (st == ST_OK) {
        *out = (struct store_subscribed){.created = fresh == NULL,
                                         .confirmed = there->confirmed};
        ident_write(&out->id, subscription_ident(there));
    }
    txn_end(&t);
    if (fresh != NULL)
        subscription_free(e->core.mem, fresh);
    return st;
}

/* ------------------------------------------------------------------ read */

/* Begins a transaction on the subscription with this id; NULL: there is none. Expires
 * nothing: the end of the subscription is compared with now. */
static struct subscription *
txn_begin_subscription(struct txn *t, struct store *s, struct store_op *op,
                       const struct store_queue *where, struct bytes id)
{
    (void)txn_begin(t, s, op, where, EXPIRE_NOTHING); /* which cannot fail */
    return t->queue == NULL ? NULL : subscription_find(t->queue->feed, id, t->now_ms);
}

static void
fill_subscription_view(struct subscription *s, int64_t now_ms,
                       struct store_subscription *out)
{
    *out = (struct store_subscription){
        .subscriber = s->address->subscriber,
        .options = s->address->options,
        .ttl_s = s->ttl_s,
        .age_s = (now_ms - s->started_ms) / 1000,
        .confirmed = s->confirmed,
        .progress = {.delivered = s->delivered,
                     .permanent_failures = s->permanent_failures,
                     .dropped = s->dropped,
                     .behind = feed_behind(s->feed, &s->cursor),
                     .failures = s->failures,
                     .failed = subscription_failed(s),
                     .leased = s->state == SUBSCRIPTION_LEASED,
                     .next_try_ms = s->state == SUBSCRIPTION_WAITS ? s->again_ms : 0},
        .pin = address_pin(s->address),
    };
    ident_write(&out->id, subscription_ident(s));
}

static enum status
alloc_subscription_views(struct store *s, size_t count, struct store_subscriptions *out)
{
    *out = STORE_SUBSCRIPTIONS_INIT;
    out->views = mem_alloc(engine_of(s)->core.mem, count * sizeof(*out->views));
    if (out->views == NULL)
        return ST_NO_MEMORY;
    out->store = s;
    return ST_OK;
}

void
engine_subscriptions_release(const struct store *s, struct store_subscriptions *out)
{
    struct mem *mem = ((const struct engine *)s)->core.mem;

    for (size_t i = 0; i < out->count; i++)
        address_unpin(mem, out->views[i].pin);
    mem_free(mem, out->views);
}

enum status
engine_subscription_get(struct store *s, struct store_op *op,
                        const struct store_queue *where, struct bytes id,
                        struct store_subscriptions *out)
{
    struct store_subscriptions views;
    struct subscription *found;
    struct txn t;
    enum status st = alloc_subscription_views(s, 1, &views);

    if (st != ST_OK)
        return st;
    found = txn_begin_subscription(&t, s, op, where, id);
    if (found != NULL)
        fill_subscription_view(found, t.now_ms, &views.views[views.count++]);
    txn_end(&t);
    if (found == NULL) {
        store_subscriptions_release(&views);
        return ST_NOT_FOUND;
    }
    *out = views;
    return ST_OK;
}

static void
fill_subscription_page(const struct txn *t, struct bytes marker, size_t limit,
                       struct store_subscriptions *out)
{
    struct subscription *s;
    uint64_t number = 0;
    struct ident id;

    /* SDKs pass the id of the last subscription that they have read. */
    if (ident_read(marker, &id))
        number = ident_claim_number(id);
    else if (!bytes_to_u64(marker, &number))
        number = 0;
    number = number <= t->queue->last_subscription ? number + 1 : 1;
    for (; out->count < limit &&
           (s = seqmap_next_live(&t->queue->feed->subscriptions, &number)) != NULL;
         number++) {
        fill_subscription_view(s, t->now_ms, &out->views[out->count++]);
        ident_write_marker(&out->next, number);
    }
}

enum status
engine_subscription_list(struct store *s, struct store_op *op,
                         const struct store_queue *where, struct bytes marker,
                         size_t limit, struct store_subscriptions *out)
{
    struct store_subscriptions views;
    size_t budget = EXPIRE_SLICE;
    struct txn t;
    enum status st;

    ENSURE(limit > 0);
    st = alloc_subscription_views(s, limit, &views);
    if (st != ST_OK)
        return st;
    (void)txn_begin(&t, s, op, where, EXPIRE_NOTHING);
    if (!expire_subscriptions(t.shard, t.now_ms, &budget))
        st = ST_AGAIN;
    else if (t.queue != NULL && t.queue->feed != NULL)
        fill_subscription_page(&t, marker, limit, &views);
    txn_end(&t);
    if (st == ST_OK)
        *out = views;
    else
        store_subscriptions_release(&views);
    return st;
}

/* ------------------------------------------------------------------ change */

/* Changes a subscription, whose new address `fresh` was made from `old`. Takes the pin of
 * fresh if it returns ST_OK. */
static enum status
change_subscription(struct txn *t, struct bytes id,
                    const struct store_subscription_draft *draft,
                    const struct address *old, struct address *fresh)
{
    struct subscription *s = subscription_find(t->queue->feed, id, t->now_ms), *other;
    bool moves;
    enum status st;

    if (s == NULL)
        return ST_NOT_FOUND;
    if (s->address != old)
        return ST_AGAIN; /* another update was faster */
    other = find_live_subscription(t, fresh->subscriber);
    if (other != NULL && other != s)
        return ST_CONFLICT;
    st = txn_reserve(t, STORE_CHANGE_SUBSCRIPTION, 0, address_bytes(fresh));
    if (st != ST_OK)
        return st;
    moves = !bytes_equal(old->subscriber, fresh->subscriber);
    subscription_move(t->shard, s, fresh);
    if (draft->ttl_s != STORE_UNSET) {
        s->ttl_s = draft->ttl_s;
        s->started_ms = t->now_ms;
    }
    if (moves) { /* confirmation and failures were the old subscriber's */
        if (t->engine->core.config.require_confirmation) {
            s->confirmed = false;
            subscription_attach(t->shard, s, t->queue->last_seq);
            subscription_notify(t->shard, s, STORE_PENDING_CONFIRM);
        }
        s->failed = 0;
        if (s->state == SUBSCRIPTION_WAITS)
            subscription_rest(t->shard, s);
    }
    subscription_arm(t->shard, s);
    changelog_subscription(t->queue, STORE_CHANGE_SUBSCRIPTION, s, t->now_ms);
    return ST_OK;
}

enum status
engine_subscription_update(struct store *s, struct store_op *op,
                           const struct store_queue *where, struct bytes id,
                           const struct store_subscription_draft *draft)
{
    struct engine *e = engine_of(s);
    const struct subscription *found;
    struct address *old, *fresh;
    struct txn t;
    enum status st;

    if (!mem_admits(e->core.mem, draft_bytes(draft)))
        return ST_OVER_BUDGET;
    found = txn_begin_subscription(&t, s, op, where, id);
    old = found == NULL ? NULL : address_pin(found->address);
    txn_end(&t);
    if (old == NULL)
        return ST_NOT_FOUND;
    fresh = address_new(e->core.mem, where,
                        bytes_present(draft->subscriber) ? draft->subscriber
                                                         : old->subscriber,
                        bytes_present(draft->options) ? draft->options : old->options);
    if (fresh == NULL) {
        address_unpin(e->core.mem, old);
        return ST_NO_MEMORY;
    }
    (void)txn_begin(&t, s, op, where, EXPIRE_NOTHING);
    st = t.queue == NULL || t.queue->feed == NULL
             ? ST_NOT_FOUND
             : change_subscription(&t, id, draft, old, fresh);
    txn_end(&t);
    if (st != ST_OK)
        address_unpin(e->core.mem, fresh);
    address_unpin(e->core.mem, old);
    return st;
}

enum status
engine_subscription_confirm(struct store *s, struct store_op *op,
                            const struct store_queue *where, struct bytes id,
                            bool confirmed)
{
    struct subscription *found;
    enum status st = ST_NOT_FOUND;
    struct txn t;

    found = txn_begin_subscription(&t, s, op, where, id);
    if (found != NULL)
        st = txn_reserve(&t, STORE_CHANGE_SUBSCRIPTION, 0, address_bytes(found->address));
    if (st == ST_OK) {
        found->confirmed = confirmed;
        subscription_attach(t.shard, found, t.queue->last_seq);
        if (!confirmed)
            subscription_notify(t.shard, found, STORE_PENDING_UNSUBSCRIBED);
        else if (found->pending == STORE_PENDING_CONFIRM)
            subscription_notify(t.shard, found, STORE_PENDING_NONE);
        feed_tidy(t.shard, t.queue->feed);
        changelog_subscription(t.queue, STORE_CHANGE_SUBSCRIPTION, found, t.now_ms);
    }
    txn_end(&t);
    return st;
}

enum status
engine_subscription_delete(struct store *s, struct store_op *op,
                           const struct store_queue *where, struct bytes id)
{
    struct subscription *found;
    enum status st = ST_OK;
    struct txn t;

    found = txn_begin_subscription(&t, s, op, where, id);
    if (found != NULL)
        st = txn_reserve(&t, STORE_CHANGE_SUBSCRIPTION_GONE, 0, 0);
    if (found != NULL && st == ST_OK) {
        changelog_subscription(t.queue, STORE_CHANGE_SUBSCRIPTION_GONE, found, t.now_ms);
        subscription_remove(t.shard, found);
        feed_tidy(t.shard, t.queue->feed);
    }
    txn_end(&t);
    return st;
}
