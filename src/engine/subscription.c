#include "engine/subscription.h"
#include "claimd/base/invariant.h"

/* Entries that an operation frees at once when they are no longer needed. */
enum { TIDY_SLICE = 64 };

struct address *
address_new(struct mem *mem, const struct store_queue *queue, struct bytes subscriber,
            struct bytes options)
{
    struct address *a = mem_alloc(mem, sizeof(*a) + queue->project.len + queue->name.len +
                                           subscriber.len + options.len);
    char *to;

    if (a == NULL)
        return NULL;
    *a = (struct address){.queue = *queue};
    atomic_init(&a->pins, 1);
    to = a->text;
    a->queue.project = bytes_copy_to(&to, queue->project);
    a->queue.name = bytes_copy_to(&to, queue->name);
    a->subscriber = bytes_copy_to(&to, subscriber);
    a->options = bytes_copy_to(&to, options);
    return a;
}

struct address *
address_pin(struct address *a)
{
    atomic_fetch_add_explicit(&a->pins, 1, memory_order_relaxed);
    return a;
}

void
address_unpin(struct mem *mem, struct address *a)
{
    uint32_t pins = atomic_fetch_sub_explicit(&a->pins, 1, memory_order_acq_rel);

    ENSURE(pins > 0);
    if (pins == 1)
        mem_free(mem, a);
}

/* ------------------------------------------------------------------ coming and going */

struct subscription *
subscription_new(struct mem *mem, struct address *address)
{
    struct subscription *s = mem_alloc(mem, sizeof(*s));

    if (s == NULL) {
        address_unpin(mem, address);
        return NULL;
    }
    *s = (struct subscription){.address = address};
    return s;
}

void
subscription_free(struct mem *mem, struct subscription *s)
{
    address_unpin(mem, s->address);
    mem_free(mem, s);
}

static uint64_t
subscriber_hash(const struct shard *sh, struct bytes subscriber)
{
    return core_text_hash(sh->core, subscriber);
}

enum status
subscription_reserve(struct shard *sh, struct feed *f, uint64_t number)
{
    enum status st = hashmap_reserve(&f->subscribers, 1);

    lock_assert_held(&sh->lock);
    if (st == ST_OK && sh->subscription_wheel == NULL)
        sh->subscription_wheel = wheel_new(sh->core->mem, sh->now_ms);
    if (st == ST_OK && sh->subscription_wheel == NULL)
        st = ST_NO_MEMORY;
    if (st == ST_OK)
        st = seqmap_pool_stock(&sh->pool, seqmap_nodes_for(&f->subscriptions, number, 1));
    return st;
}

void
subscription_enter(struct shard *sh, struct feed *f, struct subscription *s)
{
    lock_assert_held(&sh->lock);
    ENSURE(s->feed == NULL);
    s->feed = f;
    seqmap_insert(&f->subscriptions, &sh->pool, subscription_number(s), s, false);
    hashmap_insert(&f->subscribers, &s->node,
                   subscriber_hash(sh, s->address->subscriber));
    sh->subscriptions += f->queue != NULL;
}

void
subscription_remove(struct shard *sh, struct subscription *s)
{
    struct feed *f = s->feed;

    lock_assert_held(&sh->lock);
    feed_detach(f, &s->cursor);
    if (list_linked(&s->link))
        list_remove(&s->link);
    if (sh->subscription_wheel != NULL)
        wheel_disarm(sh->subscription_wheel, &s->deadline);
    (void)seqmap_remove(&f->subscriptions, &sh->pool, subscription_number(s));
    hashmap_remove(&f->subscribers, &s->node);
    sh->subscriptions -= f->queue != NULL;
    subscription_free(sh->core->mem, s);
    seqmap_pool_trim(&sh->pool);
}

struct ident
subscription_newest(const struct feed *f)
{
    uint64_t number;
    const struct subscription *s =
        f == NULL ? NULL : seqmap_last(&f->subscriptions, &number);

    return s == NULL ? (struct ident){0, 0} : subscription_ident(s);
}

struct subscription *
subscription_find(const struct feed *f, struct bytes text, int64_t now_ms)
{
    struct subscription *s;
    struct ident id;

    if (f == NULL || !ident_read(text, &id))
        return NULL;
    s = seqmap_find(&f->subscriptions, ident_claim_number(id));
    return s != NULL && ident_equal(subscription_ident(s), id) &&
                   subscription_live(s, now_ms)
               ? s
               : NULL;
}

/* The notice that is still to be sent after a restart: also one that is leased now. */
static enum store_pending
subscription_notice(const struct subscription *s)
{
    bool overtaken = s->leased_notice == STORE_PENDING_CONFIRM && s->confirmed;

    return s->pending == STORE_PENDING_NONE && s->state == SUBSCRIPTION_LEASED &&
                   !overtaken
               ? s->leased_notice
               : s->pending;
}

uint32_t
subscription_failed(const struct subscription *s)
{
    uint64_t number;

    if (s->failed_at == 0 || s->state == SUBSCRIPTION_LEASED)
        return s->failed;
    return feed_next(s->feed, &s->cursor, &number) != NULL && number == s->failed_at
               ? s->failed
               : 0;
}

static bool
subscriber_equal(const struct hashnode *node, const void *key)
{
    return bytes_equal(
        container_of(node, const struct subscription, node)->address->subscriber,
        *(const struct bytes *)key);
}

struct subscription *
subscription_of(const struct shard *sh, const struct feed *f, struct bytes subscriber)
{
    struct hashnode *node;

    if (f == NULL)
        return NULL;
    node = hashmap_find(&f->subscribers, subscriber_hash(sh, subscriber),
                        subscriber_equal, &subscriber);
    return node == NULL ? NULL : container_of(node, struct subscription, node);
}

void
subscription_move(struct shard *sh, struct subscription *s, struct address *address)
{
    lock_assert_held(&sh->lock);
    hashmap_remove(&s->feed->subscribers, &s->node);
    address_unpin(sh->core->mem, s->address);
    s->address = address;
    hashmap_insert(&s->feed->subscribers, &s->node,
                   subscriber_hash(sh, address->subscriber));
}

/* ------------------------------------------------------------------ its next deadline */

void
subscription_arm(struct shard *sh, struct subscription *s)
{
    int64_t due_ms = subscription_ends_ms(s);

    if (s->state == SUBSCRIPTION_WAITS && s->again_ms < due_ms)
        due_ms = s->again_ms;
    wheel_arm(sh->subscription_wheel, &s->deadline, due_ms);
    shard_wake_at(sh, wheel_next_hint_ms(sh->subscription_wheel)); /* may be earlier */
}

/* Adds the feed, which has due subscriptions, to the shard's due feeds. */
static void
mark_feed_due(struct shard *sh, struct feed *f)
{
    if (f->queue == NULL)
        return; /* detached: nothing is delivered */
    if (!list_linked(&f->link))
        list_add_before(&sh->due_feeds, &f->link);
    atomic_store(&sh->has_due_feeds, true);
    sh->delivery_due = true;
}

void
subscription_rest(struct shard *sh, struct subscription *s)
{
    struct feed *f = s->feed;
    uint64_t number;

    lock_assert_held(&sh->lock);
    s->state = SUBSCRIPTION_RESTS;
    if (list_linked(&s->link))
        list_remove(&s->link);
    if (s->pending != STORE_PENDING_NONE || feed_next(f, &s->cursor, &number) != NULL) {
        list_add_before(&f->due, &s->link);
        mark_feed_due(sh, f);
    } else if (s->cursor.attached) {
        list_add_before(&f->idle, &s->link);
    }
}

void
subscription_notify(struct shard *sh, struct subscription *s, enum store_pending pending)
{
    s->pending = pending;
    s->failed = 0;
    if (s->state == SUBSCRIPTION_LEASED)
        return; /* the end of the lease makes it due */
    subscription_rest(sh, s);
    subscription_arm(sh, s);
}

void
subscription_attach(struct shard *sh, struct subscription *s, uint64_t last_seq)
{
    bool wanted = s->confirmed || !sh->core->config.require_confirmation;

    lock_assert_held(&sh->lock);

    if (wanted == s->cursor.attached)
        return;
    if (wanted)
        feed_attach(s->feed, &s->cursor, last_seq);
    else
        feed_detach(s->feed, &s->cursor);
    s->failed = 0;
    if (s->state == SUBSCRIPTION_LEASED)
        return;
    subscription_rest(sh, s);
    subscription_arm(sh, s);
}

/* ------------------------------------------------------------------ feeds in a shard */

void
feed_open(struct shard *sh, struct queue *q, struct feed *f)
{
    lock_assert_held(&sh->lock);
    ENSURE(q->feed == NULL && f->queue == NULL);
    q->feed = f;
    f->queue = q;
    feed_count_in(f, &sh->feed_bytes);
    sh->subscriptions += f->subscriptions.live;
}

void
feed_grown(struct shard *sh, struct feed *f)
{
    uint64_t most = sh->core->config.feed_bytes;

    lock_assert_held(&sh->lock);
    while (most != 0 && f->bytes > most && f->entries.live > 1)
        metrics_count(&sh->metrics, STORE_COUNT_FEED_DROPPED,
                      feed_drop(f, sh->core->mem, &sh->pool));
    if (!list_empty(&f->idle)) {
        list_move(&f->due, &f->idle);
        mark_feed_due(sh, f);
    }
}

static void
defer_feed(struct shard *sh, struct feed *f)
{
    if (!list_linked(&f->stale))
        list_add_before(&sh->stale_feeds, &f->stale);
    shard_wake_at(sh, sh->now_ms);
}

void
feed_tidy(struct shard *sh, struct feed *f)
{
    size_t budget = TIDY_SLICE;

    lock_assert_held(&sh->lock);

    if (f->subscriptions.live == 0 && f->queue != NULL)
        feed_detach_all(sh, f->queue);
    else if (!feed_trim(f, sh->core->mem, &sh->pool, &budget))
        defer_feed(sh, f);
}

void
feed_detach_all(struct shard *sh, struct queue *q)
{
    struct feed *f = q->feed;

    lock_assert_held(&sh->lock);
    if (f == NULL)
        return;
    ENSURE(f->queue == q && sh->subscriptions >= f->subscriptions.live);
    sh->subscriptions -= f->subscriptions.live;
    feed_count_in(f, NULL);
    q->feed = NULL;
    f->queue = NULL;
    if (list_linked(&f->link))
        list_remove(&f->link);
    defer_feed(sh, f);
}

/* Frees subscriptions and entries of a detached feed within the budget. True: the feed
 * was freed. */
static bool
free_feed_slice(struct shard *sh, struct feed *f, size_t *budget)
{
    struct subscription *s;
    uint64_t number = 0;

    while ((s = seqmap_next_live(&f->subscriptions, &number)) != NULL) {
        if (*budget == 0)
            return false;
        --*budget;
        subscription_remove(sh, s);
    }
    if (!feed_trim(f, sh->core->mem, &sh->pool, budget))
        return false;
    list_remove(&f->stale);
    feed_free(sh->core->mem, f);
    return true;
}

bool
feed_chores(struct shard *sh, int64_t now_ms, size_t *budget)
{
    (void)now_ms; /* nothing here depends on time */
    lock_assert_held(&sh->lock);
    while (*budget > 0 && !list_empty(&sh->stale_feeds)) {
        struct feed *f = container_of(sh->stale_feeds.next, struct feed, stale);

        --*budget;
        if (f->queue == NULL) {
            if (!free_feed_slice(sh, f, budget))
                return false;
        } else {
            if (!feed_trim(f, sh->core->mem, &sh->pool, budget))
                return false;
            list_remove(&f->stale);
        }
    }
    return list_empty(&sh->stale_feeds);
}

bool
expire_subscriptions(struct shard *sh, int64_t now_ms, size_t *budget)
{
    bool whole;

    if (sh->subscription_wheel == NULL)
        return true;
    whole = wheel_advance(sh->subscription_wheel, now_ms, *budget);
    while (*budget > 0) {
        struct deadline *d = wheel_drain(sh->subscription_wheel);
        struct subscription *s;
        struct feed *f;

        if (d == NULL)
            return whole;
        --*budget;
        s = container_of(d, struct subscription, deadline);
        f = s->feed;
        if (!subscription_live(s, now_ms)) {
            subscription_remove(sh, s);
            if (f->queue != NULL)
                feed_tidy(sh, f);
            continue;
        }
        if (s->state == SUBSCRIPTION_WAITS && s->again_ms <= now_ms)
            subscription_rest(sh, s);
        subscription_arm(sh, s);
    }
    return false;
}

/* ------------------------------------------------------------------ audit */

/* Counts the attached cursors whose next entry is this one (NULL: that have none). */
static size_t
count_in_front(const struct feed *f, const struct feed_entry *entry)
{
    const struct subscription *s;
    uint64_t at = 0, number;
    size_t count = 0;

    for (; (s = seqmap_next_live(&f->subscriptions, &at)) != NULL; at++)
        count += s->cursor.attached && feed_next(f, &s->cursor, &number) == entry;
    return count;
}

static bool
entries_audit(const struct feed *f)
{
    const struct feed_entry *entry;
    uint64_t number = 0, ordinal = 0, bytes = 0;

    for (; (entry = seqmap_next_live(&f->entries, &number)) != NULL; number++) {
        if (entry->ordinal <= ordinal || entry->waiting != count_in_front(f, entry))
            return false;
        ordinal = entry->ordinal;
        bytes += sizeof(*entry) + sizeof(struct message) + entry->message->body_len;
    }
    return ordinal <= f->last_ordinal && bytes == f->bytes &&
           f->at_end == count_in_front(f, NULL);
}

static size_t
list_length(const struct list *head)
{
    size_t count = 0;

    for (const struct list *at = head->next; at != head; at = at->next)
        count++;
    return count;
}

static bool
subscription_audit(const struct shard *sh, const struct feed *f,
                   const struct subscription *s, uint64_t number, size_t *linked)
{
    uint64_t next;

    *linked += list_linked(&s->link);
    if (s->feed != f || subscription_number(s) != number ||
        !deadline_armed(&s->deadline) ||
        subscription_of(sh, f, s->address->subscriber) != s ||
        s->deadline.due_ms > subscription_ends_ms(s))
        return false;
    if (s->state == SUBSCRIPTION_RESTS)
        return list_linked(&s->link) ==
               (s->cursor.attached || s->pending != STORE_PENDING_NONE ||
                feed_next(f, &s->cursor, &next) != NULL);
    return !list_linked(&s->link);
}

bool
feed_audit(const struct shard *sh, const struct feed *f)
{
    const struct subscription *s;
    uint64_t number = 0;
    size_t linked = 0;

    if (!seqmap_audit(&f->entries) || !seqmap_audit(&f->subscriptions) ||
        !hashmap_audit(&f->subscribers) || !entries_audit(f))
        return false;
    for (; (s = seqmap_next_live(&f->subscriptions, &number)) != NULL; number++)
        if (!subscription_audit(sh, f, s, number, &linked))
            return false;
    if (f->queue != NULL && !list_empty(&f->due) && !list_linked(&f->link))
        return false;
    return f->subscriptions.live == f->subscribers.count &&
           linked == list_length(&f->idle) + list_length(&f->due);
}

void
subscription_record(const struct subscription *s, struct store_subscription_record *out)
{
    uint64_t after;
    uint64_t missed = feed_missed(s->feed, &s->cursor, &after);

    *out = (struct store_subscription_record){
        .number = subscription_number(s),
        .subscriber = s->address->subscriber,
        .options = s->address->options,
        .started_ms = s->started_ms,
        .ttl_s = s->ttl_s,
        .confirmed = s->confirmed,
        .attached = s->cursor.attached,
        .after = after,
        .pending = subscription_notice(s),
        .delivered = s->delivered,
        .permanent_failures = s->permanent_failures,
        .dropped = s->dropped + missed,
    };
    ident_write(&out->id, subscription_ident(s));
}
