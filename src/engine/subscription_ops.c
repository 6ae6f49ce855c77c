/* The store's operations on subscriptions. */
#include "engine/subscription.h"
#include "engine/visit.h"

static size_t
draft_bytes(const struct store_subscription_draft *draft)
{
    return sizeof(struct subscription) + sizeof(struct address) + draft->subscriber.len +
           draft->options.len;
}

/* ------------------------------------------------------------------ create */

/* Whatever can fail, fails here, while nothing has changed. *made: the feed, if it is new. */
static enum status
reserve_new(struct visit *v, struct subscription *s, struct feed **made)
{
    struct shard *sh = v->shard;
    enum status st = entropy_reserve(&sh->entropy, IDENT_ENTROPY);
    struct feed *f;

    if (st == ST_OK && v->queue == NULL)
        st = visit_make_queue(v, NULL);
    if (st != ST_OK)
        return st;
    f = v->queue->feed;
    if (f == NULL)
        f = *made = feed_new(v->engine->core.mem);
    if (f == NULL)
        return ST_NO_MEMORY;
    st = subscription_reserve(sh, f, v->queue->last_subscription + 1);
    if (st == ST_OK)
        st = visit_reserve_queue(v);
    return st == ST_OK
               ? visit_reserve(v, STORE_CHANGE_SUBSCRIPTION, 0, address_bytes(s->address))
               : st;
}

/* Nothing can fail any more. */
static void
enter_new(struct visit *v, struct subscription *s, int64_t ttl_s, struct feed *made)
{
    struct queue *q = v->queue;
    struct ident id = ident_subscription(&v->shard->entropy, subscription_newest(q->feed),
                                         q->last_subscription + 1);

    if (visit_link_queue(v))
        changelog_queue(q, STORE_CHANGE_QUEUE, v->now_ms);
    if (made != NULL)
        feed_open(v->shard, q, made);
    q->last_subscription++;
    s->id_high = id.high;
    s->id_low = id.low;
    s->started_ms = v->now_ms;
    s->ttl_s = ttl_s;
    subscription_enter(v->shard, q->feed, s);
    if (v->engine->core.config.require_confirmation)
        s->pending = STORE_PENDING_CONFIRM;
    subscription_attach(v->shard, s, q->last_seq);
    subscription_rest(v->shard, s);
    subscription_arm(v->shard, s);
    changelog_subscription(v->queue, STORE_CHANGE_SUBSCRIPTION, s, v->now_ms);
}

/* It has one already: an unconfirmed one is asked again. */
static enum status
ask_again(struct visit *v, struct subscription *s)
{
    enum status st;

    if (s->confirmed || !v->engine->core.config.require_confirmation)
        return ST_OK;
    st = visit_reserve(v, STORE_CHANGE_SUBSCRIPTION, 0, address_bytes(s->address));
    if (st != ST_OK)
        return st;
    subscription_notify(v->shard, s, STORE_PENDING_CONFIRM);
    changelog_subscription(v->queue, STORE_CHANGE_SUBSCRIPTION, s, v->now_ms);
    return ST_OK;
}

/* The live subscription of a subscriber; one that has expired has gone. */
static struct subscription *
find_live(const struct visit *v, struct bytes subscriber)
{
    struct subscription *s =
        v->queue == NULL ? NULL : subscription_of(v->shard, v->queue->feed, subscriber);

    if (s == NULL || subscription_live(s, v->now_ms))
        return s;
    subscription_remove(v->shard, s);
    feed_tidy(v->shard, v->queue->feed);
    return NULL;
}

enum status
engine_subscription_create(struct store *s, struct store_visit *outer,
                           const struct store_queue *where,
                           const struct store_subscription_draft *draft,
                           struct store_subscribed *out)
{
    struct engine *e = engine_of(s);
    struct subscription *fresh, *there;
    struct feed *made = NULL;
    struct address *address;
    struct visit v;
    enum status st;

    housekeep_pay(e, outer->now_ms, 1, draft_bytes(draft));
    if (!mem_admits(e->core.mem, draft_bytes(draft)))
        return ST_OVER_BUDGET;
    address = address_new(e->core.mem, where, draft->subscriber, draft->options);
    fresh = address == NULL ? NULL : subscription_new(e->core.mem, address);
    if (fresh == NULL)
        return ST_NO_MEMORY;
    (void)visit_enter(&v, s, outer, where, EXPIRE_NOTHING); /* which cannot fail */
    there = find_live(&v, draft->subscriber);
    st = there == NULL ? reserve_new(&v, fresh, &made) : ask_again(&v, there);
    if (there == NULL && st == ST_OK) {
        enter_new(&v, fresh, draft->ttl_s, made);
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
    visit_leave(&v);
    if (fresh != NULL)
        subscription_free(e->core.mem, fresh);
    return st;
}

/* ------------------------------------------------------------------ read */

/* Enters a queue for the subscription with this id; NULL: there is none. Its end is compared, so
 * nothing expires. */
static struct subscription *
enter_subscription(struct visit *v, struct store *s, struct store_visit *outer,
                   const struct store_queue *where, struct bytes id)
{
    (void)visit_enter(v, s, outer, where, EXPIRE_NOTHING); /* which cannot fail */
    return v->queue == NULL ? NULL : subscription_find(v->queue->feed, id, v->now_ms);
}

static void
view_subscription(struct subscription *s, int64_t now_ms, struct store_subscription *out)
{
    *out = (struct store_subscription){
        .subscriber = s->address->subscriber,
        .options = s->address->options,
        .ttl_s = s->ttl_s,
        .age_s = (now_ms - s->started_ms) / 1000,
        .confirmed = s->confirmed,
        .progress = {.delivered = s->delivered,
                     .given_up = s->given_up,
                     .fallen_out = s->fallen_out,
                     .behind = feed_behind(s->feed, &s->cursor),
                     .failures = s->failures,
                     .failed = subscription_failed(s),
                     .lent = s->state == SUBSCRIPTION_LEASED,
                     .next_try_ms = s->state == SUBSCRIPTION_WAITS ? s->again_ms : 0},
        .pin = address_pin(s->address),
    };
    ident_write(&out->id, subscription_ident(s));
}

static enum status
open_views(struct store *s, size_t room, struct store_subscriptions *out)
{
    *out = STORE_SUBSCRIPTIONS_INIT;
    out->views = mem_alloc(engine_of(s)->core.mem, room * sizeof(*out->views));
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
engine_subscription_get(struct store *s, struct store_visit *outer,
                        const struct store_queue *where, struct bytes id,
                        struct store_subscriptions *out)
{
    struct store_subscriptions views;
    struct subscription *found;
    struct visit v;
    enum status st = open_views(s, 1, &views);

    if (st != ST_OK)
        return st;
    found = enter_subscription(&v, s, outer, where, id);
    if (found != NULL)
        view_subscription(found, v.now_ms, &views.views[views.count++]);
    visit_leave(&v);
    if (found == NULL) {
        store_subscriptions_release(&views);
        return ST_NOT_FOUND;
    }
    *out = views;
    return ST_OK;
}

static void
list_page(const struct visit *v, struct bytes marker, size_t limit,
          struct store_subscriptions *out)
{
    struct subscription *s;
    uint64_t number = 0;
    struct ident id;

    /* SDKs pass the last id that they have seen. */
    if (ident_read(marker, &id))
        number = ident_claim_number(id);
    else if (!bytes_to_u64(marker, &number))
        number = 0;
    number = number <= v->queue->last_subscription ? number + 1 : 1;
    for (; out->count < limit &&
           (s = seqmap_next_live(&v->queue->feed->subscriptions, &number)) != NULL;
         number++) {
        view_subscription(s, v->now_ms, &out->views[out->count++]);
        ident_write_marker(&out->next, number);
    }
}

enum status
engine_subscription_list(struct store *s, struct store_visit *outer,
                         const struct store_queue *where, struct bytes marker,
                         size_t limit, struct store_subscriptions *out)
{
    struct store_subscriptions views;
    size_t budget = EXPIRE_SLICE;
    struct visit v;
    enum status st;

    ENSURE(limit > 0);
    st = open_views(s, limit, &views);
    if (st != ST_OK)
        return st;
    (void)visit_enter(&v, s, outer, where, EXPIRE_NOTHING);
    if (!expire_subscriptions(v.shard, v.now_ms, &budget))
        st = ST_AGAIN;
    else if (v.queue != NULL && v.queue->feed != NULL)
        list_page(&v, marker, limit, &views);
    visit_leave(&v);
    if (st == ST_OK)
        *out = views;
    else
        store_subscriptions_release(&views);
    return st;
}

/* ------------------------------------------------------------------ change */

/*
 * Changes the visit's subscription, whose address is to be `fresh`: made from `old`. Takes the
 * pin of fresh if it returns ST_OK.
 */
static enum status
change_subscription(struct visit *v, struct bytes id,
                    const struct store_subscription_draft *draft,
                    const struct address *old, struct address *fresh)
{
    struct subscription *s = subscription_find(v->queue->feed, id, v->now_ms), *other;
    bool moves;
    enum status st;

    if (s == NULL)
        return ST_NOT_FOUND;
    if (s->address != old)
        return ST_AGAIN; /* somebody else was faster */
    other = find_live(v, fresh->subscriber);
    if (other != NULL && other != s)
        return ST_CONFLICT;
    st = visit_reserve(v, STORE_CHANGE_SUBSCRIPTION, 0, address_bytes(fresh));
    if (st != ST_OK)
        return st;
    moves = !bytes_equal(old->subscriber, fresh->subscriber);
    subscription_move(v->shard, s, fresh);
    if (draft->ttl_s != STORE_UNSET) {
        s->ttl_s = draft->ttl_s;
        s->started_ms = v->now_ms;
    }
    if (moves) { /* the other subscriber had confirmed, and failed */
        if (v->engine->core.config.require_confirmation) {
            s->confirmed = false;
            subscription_attach(v->shard, s, v->queue->last_seq);
            subscription_notify(v->shard, s, STORE_PENDING_CONFIRM);
        }
        s->failed = 0;
        if (s->state == SUBSCRIPTION_WAITS)
            subscription_rest(v->shard, s);
    }
    subscription_arm(v->shard, s);
    changelog_subscription(v->queue, STORE_CHANGE_SUBSCRIPTION, s, v->now_ms);
    return ST_OK;
}

enum status
engine_subscription_update(struct store *s, struct store_visit *outer,
                           const struct store_queue *where, struct bytes id,
                           const struct store_subscription_draft *draft)
{
    struct engine *e = engine_of(s);
    const struct subscription *found;
    struct address *old, *fresh;
    struct visit v;
    enum status st;

    if (!mem_admits(e->core.mem, draft_bytes(draft)))
        return ST_OVER_BUDGET;
    found = enter_subscription(&v, s, outer, where, id);
    old = found == NULL ? NULL : address_pin(found->address);
    visit_leave(&v);
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
    (void)visit_enter(&v, s, outer, where, EXPIRE_NOTHING);
    st = v.queue == NULL || v.queue->feed == NULL
             ? ST_NOT_FOUND
             : change_subscription(&v, id, draft, old, fresh);
    visit_leave(&v);
    if (st != ST_OK)
        address_unpin(e->core.mem, fresh);
    address_unpin(e->core.mem, old);
    return st;
}

enum status
engine_subscription_confirm(struct store *s, struct store_visit *outer,
                            const struct store_queue *where, struct bytes id,
                            bool confirmed)
{
    struct subscription *found;
    enum status st = ST_NOT_FOUND;
    struct visit v;

    found = enter_subscription(&v, s, outer, where, id);
    if (found != NULL)
        st = visit_reserve(&v, STORE_CHANGE_SUBSCRIPTION, 0,
                           address_bytes(found->address));
    if (st == ST_OK) {
        found->confirmed = confirmed;
        subscription_attach(v.shard, found, v.queue->last_seq);
        if (!confirmed)
            subscription_notify(v.shard, found, STORE_PENDING_UNSUBSCRIBED);
        else if (found->pending == STORE_PENDING_CONFIRM)
            subscription_notify(v.shard, found, STORE_PENDING_NONE);
        feed_tidy(v.shard, v.queue->feed);
        changelog_subscription(v.queue, STORE_CHANGE_SUBSCRIPTION, found, v.now_ms);
    }
    visit_leave(&v);
    return st;
}

enum status
engine_subscription_delete(struct store *s, struct store_visit *outer,
                           const struct store_queue *where, struct bytes id)
{
    struct subscription *found;
    enum status st = ST_OK;
    struct visit v;

    found = enter_subscription(&v, s, outer, where, id);
    if (found != NULL)
        st = visit_reserve(&v, STORE_CHANGE_SUBSCRIPTION_GONE, 0, 0);
    if (found != NULL && st == ST_OK) {
        changelog_subscription(v.queue, STORE_CHANGE_SUBSCRIPTION_GONE, found, v.now_ms);
        subscription_remove(v.shard, found);
        feed_tidy(v.shard, v.queue->feed);
    }
    visit_leave(&v);
    return st;
}
