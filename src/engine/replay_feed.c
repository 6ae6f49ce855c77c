#include "engine/replay_feed.h"
#include "claimd/base/invariant.h"

static struct subscription *
replayed_subscription(const struct feed *f,
                      const struct store_subscription_record *record)
{
    return f == NULL ? NULL : seqmap_find(&f->subscriptions, record->number);
}

/* Sets the fields that change with deliveries. */
static void
set_progress(struct subscription *s, const struct store_subscription_record *record)
{
    s->follows = record->attached;
    s->cursor.after = record->after;
    s->pending = (enum store_pending)record->pending;
    s->delivered = record->delivered;
    s->permanent_failures = record->permanent_failures;
    s->dropped = record->dropped;
}

static enum status
add_subscription(struct shard *sh, struct feed *f, struct address *address,
                 struct ident id)
{
    struct subscription *s = subscription_new(sh->core->mem, address);
    enum status st;

    if (s == NULL)
        return ST_NO_MEMORY;
    s->id_high = id.high;
    s->id_low = id.low;
    st = subscription_reserve(sh, f, subscription_number(s));
    if (st == ST_OK)
        subscription_enter(sh, f, s);
    else
        subscription_free(sh->core->mem, s);
    return st;
}

enum status
replay_feed_open(struct shard *sh, struct feed **feed)
{
    if (*feed == NULL)
        *feed = feed_new(sh->core->mem);
    return *feed == NULL ? ST_NO_MEMORY : ST_OK;
}

enum status
replay_feed_subscription(struct shard *sh, struct feed **feed,
                         const struct store_queue *where,
                         const struct store_subscription_record *record)
{
    struct mem *mem = sh->core->mem;
    struct subscription *s, *other;
    struct address *address;
    enum status st = ST_OK;
    struct ident id;

    if (!ident_read(store_id_bytes(&record->id), &id) || record->number == 0 ||
        ident_claim_number(id) != record->number || record->ttl_s <= 0 ||
        record->ttl_s >= INT64_MAX / 2000 ||
        (record->pending != STORE_PENDING_NONE &&
         record->pending != STORE_PENDING_CONFIRM &&
         record->pending != STORE_PENDING_UNSUBSCRIBED))
        return ST_BAD_VALUE;
    if (replay_feed_open(sh, feed) != ST_OK)
        return ST_NO_MEMORY;
    address = address_new(mem, where, record->subscriber, record->options);
    if (address == NULL)
        return ST_NO_MEMORY;
    other = subscription_of(sh, *feed, record->subscriber);
    s = replayed_subscription(*feed, record);
    if (other != NULL && other != s)
        subscription_remove(sh, other); /* the expiry of `other` is not logged */
    if (s != NULL)
        subscription_move(sh, s, address);
    else
        st = add_subscription(sh, *feed, address, id);
    if (st != ST_OK)
        return st;
    s = replayed_subscription(*feed, record);
    s->started_ms = record->started_ms;
    s->ttl_s = record->ttl_s;
    s->confirmed = record->confirmed;
    set_progress(s, record);
    return ST_OK;
}

void
replay_feed_cursor(const struct feed *f, const struct store_subscription_record *record)
{
    struct subscription *s = replayed_subscription(f, record);

    if (s != NULL && record->pending <= STORE_PENDING_UNSUBSCRIBED)
        set_progress(s, record);
}

void
replay_feed_gone(struct shard *sh, struct feed *f,
                 const struct store_subscription_record *record)
{
    struct subscription *s = replayed_subscription(f, record);

    if (s != NULL)
        subscription_remove(sh, s);
}

void
replay_feed_none(struct shard *sh, struct feed **feed)
{
    struct feed *f = *feed;
    struct subscription *s;
    size_t budget = SIZE_MAX;
    uint64_t number = 0;

    if (f == NULL)
        return;
    while ((s = seqmap_next_live(&f->subscriptions, &number)) != NULL)
        subscription_remove(sh, s);
    (void)feed_trim(f, sh->core->mem, &sh->pool, &budget);
    feed_free(sh->core->mem, f);
    *feed = NULL;
}

enum status
replay_feed_post(struct shard *sh, struct feed *f, struct message *m,
                 const struct store_message_record *record)
{
    const struct feed_entry as = {
        .expires_ms = record->expires_ms,
        .ttl_s = (record->expires_ms - record->posted_ms) / 1000,
        .delay_s = record->delayed_until_ms == 0
                       ? 0
                       : (record->delayed_until_ms - record->posted_ms) / 1000,
    };
    struct mem *mem = sh->core->mem;
    enum status st;

    if (f == NULL)
        return ST_OK;
    st = seqmap_pool_stock(&sh->pool, seqmap_nodes_for(&f->entries, record->number, 1));
    if (st == ST_OK)
        st = feed_stock(f, mem, 1);
    if (st != ST_OK)
        return st;
    feed_put(f, &sh->pool, m, record->number, &as);
    return feed_keep_newest(f, &sh->pool, sh->core->config.feed_bytes);
}

/* Attaches the cursor where it was, if there was one and it still may receive messages,
 * else behind all messages. */
static void
start_cursor(struct shard *sh, struct subscription *s, uint64_t last_seq)
{
    s->cursor.attached = false;
    if (!s->confirmed && sh->core->config.require_confirmation) {
        s->follows = false;
    } else if (s->follows) {
        s->dropped += feed_dropped_behind(s->feed, s->cursor.after);
        feed_attach(s->feed, &s->cursor, s->cursor.after);
    } else {
        feed_attach(s->feed, &s->cursor, last_seq);
    }
    subscription_rest(sh, s);
    subscription_arm(sh, s);
}

void
replay_feed_end(struct shard *sh, struct queue *q, struct feed *f)
{
    struct subscription *s;
    uint64_t number = 0;

    (void)seqmap_last(&f->subscriptions, &number);
    q->last_subscription = number;
    feed_number(f);
    feed_open(sh, q, f);
    for (number = 0; (s = seqmap_next_live(&f->subscriptions, &number)) != NULL; number++)
        start_cursor(sh, s, q->last_seq);
    feed_tidy(sh, f);
}
