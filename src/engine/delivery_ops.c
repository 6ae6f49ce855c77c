/*
 * delivery_ops: the store's operations for the delivery to subscribers
 * (claimd/store/subscription.h). Declared in txn.h.
 *
 *     1. shard_leave() notifies the listener of engine_delivery_watch() that a
 *        subscription is due.
 *     2. engine_delivery_next() searches the shards in turns. lease_next_delivery()
 *        leases the notice or the message at the cursor of a due subscription, with its
 *        body pinned.
 *     3. engine_delivery_done() returns it. finish_delivery() moves the cursor on, and
 *        schedule_retry() keeps it there until a later time.
 *     4. log_cursor() logs the progress, but not each time. So after a crash a few
 *        deliveries repeat.
 *     5. subscription_arm() puts the time of a retry into the wheel of the
 *        subscriptions.
 *
 * Read notify/notifier.c next.
 */
#include "claimd/base/sometimes.h"
#include "engine/subscription.h"
#include "engine/txn.h"

/*
 * SCAN_MAX: subscriptions and expired messages that one call reads. UNLOGGED_MAX:
 * deliveries of a subscription that may be repeated after a crash. GONE_AGAIN_MS: retry
 * if the removal of a subscription could not be logged.
 */
enum { SCAN_MAX = 256, UNLOGGED_MAX = 16, GONE_AGAIN_MS = 10000 };

static void
lease_subscription(struct shard *sh, struct subscription *s, struct store_delivery *out)
{
    const struct queue *q = s->feed->queue;
    struct address *address = address_pin(s->address);
    struct metadata *metadata = metadata_pin(q->metadata);

    ENSURE(s->state == SUBSCRIPTION_RESTS && !list_linked(&s->link));

    *out = (struct store_delivery){
        .queue = address->queue,
        .subscriber = address->subscriber,
        .options = address->options,
        .metadata = metadata->document.json,
        .expires_ms = subscription_ends_ms(s),
        .failed = subscription_failed(s),
        .lsn = q->lsn,
        .pins = {address, metadata, NULL},
    };
    ident_write(&out->subscription, subscription_ident(s));
    s->failed = out->failed;
    s->state = SUBSCRIPTION_LEASED;
    subscription_arm(sh, s);
}

static void
lease_message(struct shard *sh, struct subscription *s, const struct feed_entry *entry,
              uint64_t number, struct store_delivery *out)
{
    lease_subscription(sh, s, out);
    s->leased_notice = STORE_PENDING_NONE;
    message_pin(entry->message);
    out->notice = STORE_NOTICE_MESSAGE;
    out->body = message_body(entry->message);
    out->ttl_s = entry->ttl_s;
    out->delay_s = entry->delay_s;
    out->number = number;
    out->ordinal = entry->ordinal;
    out->pins[2] = entry->message;
}

static void
advance_cursor(struct subscription *s, uint64_t number, uint64_t ordinal)
{
    s->failed = 0;
    if (s->cursor.attached && number > s->cursor.after)
        s->dropped += feed_advance(s->feed, &s->cursor, number, ordinal);
}

/* The first message in front of the cursor that has not expired; NULL: there is none, or
 * the budget is used up. */
static struct feed_entry *
find_live_entry(struct shard *sh, struct subscription *s, int64_t now_ms, size_t *budget,
                uint64_t *number)
{
    struct feed_entry *entry;

    while ((entry = feed_next(s->feed, &s->cursor, number)) != NULL &&
           now_ms >= entry->expires_ms && *budget > 0) {
        --*budget;
        SOMETIMES(DELIVERY_EXPIRED);
        advance_cursor(s, *number, entry->ordinal);
        s->dropped++;
        metrics_count(&sh->metrics, STORE_COUNT_FEED_DROPPED, 1);
    }
    return *budget > 0 ? entry : NULL;
}

/* Leases the next delivery of a due subscription; false: there is none. */
static bool
lease_next_delivery(struct shard *sh, struct subscription *s, int64_t now_ms,
                    size_t *budget, struct store_delivery *out)
{
    struct feed *f = s->feed;
    struct feed_entry *entry;
    uint64_t number;

    if (!subscription_live(s, now_ms)) {
        SOMETIMES(SUBSCRIPTION_ENDS_DUE);
        subscription_remove(sh, s);
        feed_tidy(sh, f);
        return false;
    }
    if (s->pending != STORE_PENDING_NONE) {
        enum store_pending pending = s->pending;

        s->pending = STORE_PENDING_NONE;
        lease_subscription(sh, s, out);
        s->leased_notice = pending;
        out->notice = (enum store_notice)(pending - 1);
        return true;
    }
    entry = find_live_entry(sh, s, now_ms, budget, &number);
    if (entry != NULL)
        lease_message(sh, s, entry, number, out);
    else
        subscription_rest(sh, s);
    feed_tidy(sh, f);
    return entry != NULL;
}

static enum status
find_delivery_in_shard(struct shard *sh, int64_t now_ms, struct store_delivery *out)
{
    size_t budget = SCAN_MAX;
    bool found = false;

    now_ms = shard_enter(sh, now_ms);
    while (!found && budget > 0 && !list_empty(&sh->due_feeds)) {
        struct feed *f = container_of(sh->due_feeds.next, struct feed, link);
        struct list *link = list_pop(&f->due);

        list_remove(&f->link);
        if (!list_empty(&f->due)) /* the other feeds come first */
            list_add_before(&sh->due_feeds, &f->link);
        budget--;
        found = link != NULL &&
                lease_next_delivery(sh, container_of(link, struct subscription, link),
                                    now_ms, &budget, out);
    }
    if (list_empty(&sh->due_feeds))
        atomic_store(&sh->has_due_feeds, false);
    sh->delivery_due = false; /* this caller is the listener */
    shard_leave(sh);
    if (found)
        return ST_OK;
    return budget == 0 ? ST_AGAIN : ST_NOT_FOUND;
}

/* Searches the shards, from the one where the last search ended. */
static enum status
find_delivery(struct engine *e, int64_t now_ms, struct store_delivery *out)
{
    size_t start = atomic_load_explicit(&e->delivery_shard, memory_order_relaxed);

    for (size_t i = 0; i <= e->shard_mask; i++) {
        size_t at = (start + i) & e->shard_mask;
        enum status st;

        if (!atomic_load(&e->shards[at].has_due_feeds))
            continue;
        atomic_store_explicit(&e->delivery_shard, at + 1, memory_order_relaxed);
        st = find_delivery_in_shard(&e->shards[at], now_ms, out);
        if (st != ST_NOT_FOUND)
            return st;
    }
    return ST_NOT_FOUND;
}

enum status
engine_delivery_next(struct store *s, struct store_op *op, struct store_delivery *out)
{
    struct engine *e = engine_of(s);
    enum status st = find_delivery(e, op->now_ms, out);

    if (st == ST_NOT_FOUND) {
        /* Subscriptions that become due from here on notify the listener. The second
         * search finds those that became due before. */
        atomic_store(&e->core.delivery_notified, false);
        st = find_delivery(e, op->now_ms, out);
    }
    if (st != ST_OK)
        return st;
    out->store = s;
    if (op->lsn < out->lsn)
        op->lsn = out->lsn;
    return ST_OK;
}

/* Logs the progress of a subscription every UNLOGGED_MAX deliveries, and when it becomes
 * idle. If that fails, more deliveries are repeated after a crash. */
static void
log_cursor(struct txn *t, struct subscription *s)
{
    uint64_t number;

    if (!has_log(&t->engine->core) || queue_transient(t->queue))
        return; /* after a restart it starts behind all messages */
    if (++s->unlogged < UNLOGGED_MAX && s->state == SUBSCRIPTION_RESTS &&
        feed_next(s->feed, &s->cursor, &number) != NULL)
        return;
    if (txn_reserve(t, STORE_CHANGE_CURSOR, 0, 0) != ST_OK) {
        SOMETIMES(CURSOR_NOT_LOGGED);
        return;
    }
    s->unlogged = 0;
    changelog_subscription(t->queue, STORE_CHANGE_CURSOR, s, t->now_ms);
}

/* Schedules the next try of a delivery at again_ms. */
static void
schedule_retry(struct txn *t, struct subscription *s, const struct store_delivery *d,
               bool failed, int64_t again_ms)
{
    bool same = s->address == d->pins[0];
    bool other = s->pending != STORE_PENDING_NONE; /* which is sent first, at once */
    bool overtaken = d->notice == STORE_NOTICE_CONFIRM && s->confirmed;

    if (failed) {
        s->failures++;
        s->failed = same && !other && !overtaken ? s->failed + 1 : 0;
        s->failed_at = d->notice == STORE_NOTICE_MESSAGE ? d->number : 0;
        metrics_count(&t->shard->metrics, STORE_COUNT_FAILED, 1);
    }
    if (d->notice != STORE_NOTICE_MESSAGE && !other && !overtaken)
        s->pending = (enum store_pending)(1 + d->notice);
    if (again_ms <= t->now_ms || !same || other) {
        subscription_rest(t->shard, s);
        return;
    }
    s->state = SUBSCRIPTION_WAITS;
    s->again_ms = again_ms;
}

static void
finish_delivery(struct txn *t, struct subscription *s, const struct store_delivery *d,
                bool delivered)
{
    s->failed = 0;
    if (d->notice == STORE_NOTICE_MESSAGE) {
        advance_cursor(s, d->number, d->ordinal);
        *(delivered ? &s->delivered : &s->permanent_failures) += 1;
        metrics_count(&t->shard->metrics,
                      delivered ? STORE_COUNT_NOTIFIED : STORE_COUNT_PERMANENT_FAILURES,
                      1);
    }
    subscription_rest(t->shard, s);
    log_cursor(t, s);
}

static void
apply_outcome(struct txn *t, struct subscription *s, const struct store_delivery *d,
              enum store_outcome outcome, int64_t again_ms)
{
    switch (outcome) {
    case STORE_OUTCOME_GONE:
        if (txn_reserve(t, STORE_CHANGE_SUBSCRIPTION_GONE, 0, 0) == ST_OK) {
            changelog_subscription(t->queue, STORE_CHANGE_SUBSCRIPTION_GONE, s,
                                   t->now_ms);
            subscription_remove(t->shard, s);
            return;
        }
        schedule_retry(t, s, d, false, t->now_ms + GONE_AGAIN_MS); /* the log is full */
        break;
    case STORE_OUTCOME_FAILED:
    case STORE_OUTCOME_BACKED_OFF:
        schedule_retry(t, s, d, outcome == STORE_OUTCOME_FAILED, again_ms);
        break;
    default:
        finish_delivery(t, s, d, outcome == STORE_OUTCOME_DELIVERED);
    }
    subscription_arm(t->shard, s);
}

void
engine_delivery_done(struct store *store, struct store_op *op,
                     struct store_delivery *delivery, enum store_outcome outcome,
                     int64_t again_ms)
{
    struct mem *mem = engine_of(store)->core.mem;
    struct subscription *s;
    struct txn t;

    (void)txn_begin(&t, store, op, &delivery->queue, EXPIRE_NOTHING);
    s = t.queue == NULL
            ? NULL
            : subscription_find(t.queue->feed, store_id_bytes(&delivery->subscription),
                                t.now_ms);
    SOMETIMES_IF(s == NULL, DELIVERY_ORPHANED);
    if (s != NULL && s->state == SUBSCRIPTION_LEASED) {
        apply_outcome(&t, s, delivery, outcome, again_ms);
        feed_tidy(t.shard, t.queue->feed);
    }
    txn_end(&t);
    address_unpin(mem, delivery->pins[0]);
    metadata_unpin(mem, delivery->pins[1]);
    if (delivery->pins[2] != NULL)
        message_unpin(mem, delivery->pins[2]);
    *delivery = (struct store_delivery){.store = NULL};
}

void
engine_delivery_watch(struct store *s, struct store_listener *listener)
{
    struct engine *e = engine_of(s);

    atomic_store(&e->core.delivery_notified, false);
    atomic_store(&e->core.delivery_listener, listener);
    for (size_t i = 0; i <= e->shard_mask;
         i++) { /* the previous listener may have been notified */
        struct shard *sh = &e->shards[i];

        lock_acquire(&sh->lock);
        sh->delivery_due = !list_empty(&sh->due_feeds);
        shard_leave(sh);
    }
}
