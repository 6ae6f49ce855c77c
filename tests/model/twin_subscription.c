/* The twin's subscriptions: each has a list of its own of what it has still to get. */
#include "model/twin.h"
#include "model/twin_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ------------------------------------------------------------------ at a moment */

static int64_t
ends_ms(const struct twin_subscription *s)
{
    return s->started_ms + s->ttl_s * 1000;
}

static struct bytes
subscriber_of(const struct twin_subscription *s)
{
    return bytes_of(s->subscriber, s->subscriber_len);
}

static void
free_entry(struct twin_entry *entry)
{
    free(entry->body);
}

static void
clear(struct twin_subscription *s)
{
    for (size_t i = 0; i < s->entry_count; i++)
        free_entry(&s->entries[i]);
    s->entry_count = 0;
    s->leased_entry = false;
}

static void
free_subscription(struct twin_subscription *s)
{
    clear(s);
    free(s->entries);
    free(s->subscriber);
    free(s->options);
    free(s);
}

static void
remove_at(struct twin_queue *q, size_t i)
{
    free_subscription(q->subscriptions[i]);
    for (q->subscription_count--; i < q->subscription_count; i++)
        q->subscriptions[i] = q->subscriptions[i + 1];
}

void
twin_unsubscribe_all(struct twin_queue *q)
{
    while (q->subscription_count > 0)
        remove_at(q, q->subscription_count - 1);
    free(q->subscriptions);
    q->subscriptions = NULL;
}

/* Those that have expired are gone. */
static void
forget_expired(struct twin_queue *q, int64_t now_ms)
{
    for (size_t i = 0; i < q->subscription_count;)
        if (now_ms >= ends_ms(q->subscriptions[i]))
            remove_at(q, i);
        else
            i++;
}

/* Index of one; subscription_count if there is none. */
static size_t
find(struct twin_queue *q, struct bytes id, int64_t now_ms)
{
    size_t i = 0;

    forget_expired(q, now_ms);
    while (i < q->subscription_count &&
           !bytes_equal(store_id_bytes(&q->subscriptions[i]->id), id))
        i++;
    return i;
}

static struct twin_subscription *
find_of(struct twin_queue *q, struct bytes subscriber, int64_t now_ms)
{
    forget_expired(q, now_ms);
    for (size_t i = 0; i < q->subscription_count; i++)
        if (bytes_equal(subscriber_of(q->subscriptions[i]), subscriber))
            return q->subscriptions[i];
    return NULL;
}

/* Has it a message to get? Expired messages were dropped, and it need not wait for
 * them. */
static bool
has_something(const struct twin_subscription *s)
{
    return s->notice != 0 || s->entry_count > 0;
}

static bool
is_due(const struct twin_subscription *s, int64_t now_ms)
{
    return !s->leased && has_something(s) && now_ms >= s->again_ms;
}

/* ------------------------------------------------------------------ posts */

static struct twin_entry *
add_entry(struct twin_subscription *s)
{
    s->entries = twin_grow(s->entries, (s->entry_count + 1) * sizeof(*s->entries));
    return &s->entries[s->entry_count++];
}

void
twin_feed(struct twin *t, struct twin_queue *q, const struct twin_message *m)
{
    for (size_t i = 0; i < q->subscription_count; i++) {
        struct twin_subscription *s = q->subscriptions[i];

        if (!s->confirmed && t->config.require_confirmation)
            continue;
        *add_entry(s) = (struct twin_entry){
            .body = twin_copy(bytes_of(m->body, m->body_len)),
            .body_len = m->body_len,
            .expires_ms = m->expires_ms,
            .ttl_s = (m->expires_ms - m->posted_ms) / 1000,
            .delay_s = m->delay_s,
        };
    }
}

static void
drop_first(struct twin_subscription *s)
{
    free_entry(&s->entries[0]);
    s->entry_count--;
    memmove(s->entries, s->entries + 1, s->entry_count * sizeof(*s->entries));
}

/* ------------------------------------------------------------------ operations */

static void
set_texts(struct twin_subscription *s, const struct store_subscription_draft *draft)
{
    if (bytes_present(draft->subscriber)) {
        free(s->subscriber);
        s->subscriber = twin_copy(draft->subscriber);
        s->subscriber_len = draft->subscriber.len;
    }
    if (bytes_present(draft->options)) {
        free(s->options);
        s->options = twin_copy(draft->options);
        s->options_len = draft->options.len;
    }
}

static void
set_notice(struct twin_subscription *s, enum store_notice notice)
{
    s->notice = 1 + notice;
    s->failed = 0;
    s->again_ms = 0;
}

void
twin_subscription_name(struct twin *t, struct twin_subscription *s)
{
    snprintf(s->id.text, sizeof(s->id.text), "d%011d%012" PRIx64, 0,
             ++t->subscriptions_made);
}

static struct twin_subscription *
add(struct twin *t, struct twin_queue *q, const struct store_subscription_draft *draft,
    int64_t now_ms)
{
    struct twin_subscription *s = twin_alloc(sizeof(*s));

    twin_subscription_name(t, s);
    s->number = ++q->last_subscription;
    set_texts(s, draft);
    s->started_ms = now_ms;
    s->ttl_s = draft->ttl_s;
    if (t->config.require_confirmation)
        set_notice(s, STORE_NOTICE_CONFIRM);
    q->subscriptions = twin_grow(q->subscriptions,
                                 (q->subscription_count + 1) * sizeof(*q->subscriptions));
    q->subscriptions[q->subscription_count++] = s;
    return s;
}

enum status
twin_subscription_create(struct store *store, struct store_op *op,
                         const struct store_queue *where,
                         const struct store_subscription_draft *draft,
                         struct store_subscribed *out)
{
    struct twin *t = twin_of(store);
    struct twin_queue *q = twin_find_queue(t, where);
    struct twin_subscription *s;

    if (q == NULL)
        q = twin_add_queue(t, where, NULL);
    s = find_of(q, draft->subscriber, op->now_ms);
    *out = (struct store_subscribed){.created = s == NULL};
    if (s == NULL)
        s = add(t, q, draft, op->now_ms);
    else if (!s->confirmed && t->config.require_confirmation)
        set_notice(s, STORE_NOTICE_CONFIRM);
    out->id = s->id;
    out->confirmed = s->confirmed;
    return ST_OK;
}

static void
show(struct store_subscriptions *out, const struct twin_subscription *s, int64_t now_ms)
{
    struct store_subscription *view = &out->views[out->count++];

    *view = (struct store_subscription){
        .id = s->id,
        .subscriber = bytes_of(twin_copy(subscriber_of(s)), s->subscriber_len),
        .options =
            bytes_of(twin_copy(bytes_of(s->options, s->options_len)), s->options_len),
        .ttl_s = s->ttl_s,
        .age_s = (now_ms - s->started_ms) / 1000,
        .confirmed = s->confirmed,
        .progress = {.delivered = s->delivered,
                     .permanent_failures = s->permanent_failures,
                     .dropped = s->dropped,
                     .behind = s->entry_count,
                     .failures = s->failures,
                     .failed = s->failed,
                     .leased = s->leased,
                     .next_try_ms = s->again_ms > now_ms ? s->again_ms : 0},
    };
    snprintf(out->next.text, sizeof(out->next.text), "%" PRIu64, s->number);
}

static struct store_subscriptions
open_views(const struct store *s, size_t capacity)
{
    struct store_subscriptions out = STORE_SUBSCRIPTIONS_INIT;

    out.store = s;
    out.views = twin_alloc(capacity * sizeof(*out.views));
    return out;
}

void
twin_subscriptions_release(const struct store *s, struct store_subscriptions *out)
{
    (void)s; /* everything shown is a copy */
    for (size_t i = 0; i < out->count; i++) {
        free((char *)(uintptr_t)out->views[i].subscriber.data);
        free((char *)(uintptr_t)out->views[i].options.data);
    }
    free(out->views);
}

enum status
twin_subscription_get(struct store *store, struct store_op *op,
                      const struct store_queue *where, struct bytes id,
                      struct store_subscriptions *out)
{
    struct twin_queue *q = twin_find_queue(twin_of(store), where);
    size_t i = q == NULL ? 0 : find(q, id, op->now_ms);

    if (q == NULL || i == q->subscription_count)
        return ST_NOT_FOUND;
    *out = open_views(store, 1);
    show(out, q->subscriptions[i], op->now_ms);
    return ST_OK;
}

enum status
twin_subscription_list(struct store *store, struct store_op *op,
                       const struct store_queue *where, struct bytes marker, size_t limit,
                       struct store_subscriptions *out)
{
    struct twin_queue *q = twin_find_queue(twin_of(store), where);
    uint64_t behind;

    *out = open_views(store, limit);
    if (q == NULL)
        return ST_OK;
    if (!bytes_to_u64(marker, &behind) || behind > q->last_subscription)
        behind = 0;
    forget_expired(q, op->now_ms);
    for (size_t i = 0; i < q->subscription_count; i++)
        if (bytes_equal(store_id_bytes(&q->subscriptions[i]->id), marker))
            behind = q->subscriptions[i]->number;
    for (size_t i = 0; i < q->subscription_count && out->count < limit; i++)
        if (q->subscriptions[i]->number > behind)
            show(out, q->subscriptions[i], op->now_ms);
    return ST_OK;
}

enum status
twin_subscription_update(struct store *store, struct store_op *op,
                         const struct store_queue *where, struct bytes id,
                         const struct store_subscription_draft *draft)
{
    struct twin *t = twin_of(store);
    struct twin_queue *q = twin_find_queue(t, where);
    size_t i = q == NULL ? 0 : find(q, id, op->now_ms);
    struct twin_subscription *s, *other;
    bool moves;

    if (q == NULL || i == q->subscription_count)
        return ST_NOT_FOUND;
    s = q->subscriptions[i];
    moves = bytes_present(draft->subscriber) &&
            !bytes_equal(draft->subscriber, subscriber_of(s));
    other = moves ? find_of(q, draft->subscriber, op->now_ms) : NULL;
    if (other != NULL)
        return ST_CONFLICT;
    set_texts(s, draft);
    if (draft->ttl_s != STORE_UNSET) {
        s->ttl_s = draft->ttl_s;
        s->started_ms = op->now_ms;
    }
    s->changed = true;
    if (!moves)
        return ST_OK;
    s->failed = 0;
    s->again_ms = 0;
    if (t->config.require_confirmation) {
        s->confirmed = false;
        clear(s);
        set_notice(s, STORE_NOTICE_CONFIRM);
    }
    return ST_OK;
}

enum status
twin_subscription_confirm(struct store *store, struct store_op *op,
                          const struct store_queue *where, struct bytes id,
                          bool confirmed)
{
    struct twin *t = twin_of(store);
    struct twin_queue *q = twin_find_queue(t, where);
    size_t i = q == NULL ? 0 : find(q, id, op->now_ms);
    struct twin_subscription *s;

    if (q == NULL || i == q->subscription_count)
        return ST_NOT_FOUND;
    s = q->subscriptions[i];
    if (t->config.require_confirmation && s->confirmed != confirmed) {
        clear(s);
        s->failed = 0;
        s->again_ms = 0;
    }
    s->confirmed = confirmed;
    if (confirmed && s->notice == 1 + STORE_NOTICE_CONFIRM) {
        s->notice = 0;
        s->again_ms = 0;
    }
    if (!confirmed)
        set_notice(s, STORE_NOTICE_UNSUBSCRIBED);
    return ST_OK;
}

enum status
twin_subscription_delete(struct store *store, struct store_op *op,
                         const struct store_queue *where, struct bytes id)
{
    struct twin_queue *q = twin_find_queue(twin_of(store), where);
    size_t i = q == NULL ? 0 : find(q, id, op->now_ms);

    if (q != NULL && i < q->subscription_count)
        remove_at(q, i);
    return ST_OK;
}

/* ------------------------------------------------------------------ delivery */

static struct store_delivery
lease(struct store *store, const struct twin_queue *q, struct twin_subscription *s)
{
    struct store_delivery out = {.store = store, .subscription = s->id};

    out.pins[0] = twin_copy(bytes_of(q->project, q->project_len));
    out.pins[1] = twin_copy(bytes_of(q->name, q->name_len));
    out.queue.project = bytes_of(out.pins[0], q->project_len);
    out.queue.name = bytes_of(out.pins[1], q->name_len);
    out.subscriber = bytes_of(twin_copy(subscriber_of(s)), s->subscriber_len);
    out.options =
        bytes_of(twin_copy(bytes_of(s->options, s->options_len)), s->options_len);
    out.pins[2] = twin_copy(bytes_of(q->json, q->json_len));
    out.metadata = bytes_of(out.pins[2], q->json_len);
    out.expires_ms = ends_ms(s);
    out.failed = s->failed;
    s->leased = true;
    s->changed = false;
    s->again_ms = 0;
    s->leased_entry = s->notice == 0;
    if (s->notice != 0) {
        out.notice = (enum store_notice)(s->notice - 1);
        s->notice = 0;
    } else {
        const struct twin_entry *entry = &s->entries[0];

        out.notice = STORE_NOTICE_MESSAGE;
        out.body =
            bytes_of(twin_copy(bytes_of(entry->body, entry->body_len)), entry->body_len);
        out.ttl_s = entry->ttl_s;
        out.delay_s = entry->delay_s;
    }
    return out;
}

bool
twin_lease(struct store *store, const struct store_queue *where, struct bytes id,
           int64_t now_ms, struct store_delivery *out)
{
    struct twin_queue *q = twin_find_queue(twin_of(store), where);
    struct twin_subscription *s;
    size_t i = q == NULL ? 0 : find(q, id, now_ms);

    if (q == NULL || i == q->subscription_count || !is_due(q->subscriptions[i], now_ms))
        return false;
    s = q->subscriptions[i];
    while (s->notice == 0 && s->entry_count > 0 && now_ms >= s->entries[0].expires_ms) {
        drop_first(s);
        s->dropped++;
        s->failed = 0;
    }
    if (!has_something(s))
        return false;
    *out = lease(store, q, s);
    return true;
}

enum status
twin_delivery_next(struct store *store, struct store_op *op, struct store_delivery *out)
{
    struct twin *t = twin_of(store);

    for (size_t i = 0; i < t->queue_count; i++) {
        struct twin_queue *q = t->queues[i];
        const struct store_queue where = {.project = bytes_of(q->project, q->project_len),
                                          .name = bytes_of(q->name, q->name_len)};

        forget_expired(q, op->now_ms);
        for (size_t k = 0; k < q->subscription_count; k++) {
            struct store_id id = q->subscriptions[k]->id;

            if (twin_lease(store, &where, store_id_bytes(&id), op->now_ms, out))
                return ST_OK;
        }
    }
    return ST_NOT_FOUND;
}

/* It failed, or was not tried: it comes again. */
static void
back_off(struct twin_subscription *s, const struct store_delivery *d, bool failed,
         int64_t again_ms)
{
    bool other = s->notice != 0;
    bool overtaken = d->notice == STORE_NOTICE_CONFIRM && s->confirmed;
    bool gone = d->notice == STORE_NOTICE_MESSAGE && !s->leased_entry;

    if (failed) {
        s->failures++;
        s->failed = s->changed || other || overtaken || gone ? 0 : s->failed + 1;
    }
    if (d->notice != STORE_NOTICE_MESSAGE && !other && !overtaken)
        s->notice = 1 + d->notice;
    s->again_ms = s->changed || other ? 0 : again_ms;
}

static void
take_back(struct twin_queue *q, size_t i, const struct store_delivery *d,
          enum store_outcome outcome, int64_t again_ms)
{
    struct twin_subscription *s = q->subscriptions[i];

    if (!s->leased)
        return;
    s->leased = false;
    if (outcome == STORE_OUTCOME_GONE) {
        remove_at(q, i);
    } else if (outcome == STORE_OUTCOME_FAILED || outcome == STORE_OUTCOME_BACKED_OFF) {
        back_off(s, d, outcome == STORE_OUTCOME_FAILED, again_ms);
    } else {
        s->failed = 0;
        if (d->notice == STORE_NOTICE_MESSAGE && s->entry_count > 0 && s->leased_entry)
            drop_first(s);
        if (d->notice == STORE_NOTICE_MESSAGE)
            *(outcome == STORE_OUTCOME_DELIVERED ? &s->delivered
                                                 : &s->permanent_failures) += 1;
    }
}

void
twin_delivery_done(struct store *store, struct store_op *op, struct store_delivery *d,
                   enum store_outcome outcome, int64_t again_ms)
{
    struct twin_queue *q = twin_find_queue(twin_of(store), &d->queue);
    size_t i = q == NULL ? 0 : find(q, store_id_bytes(&d->subscription), op->now_ms);

    if (q != NULL && i < q->subscription_count)
        take_back(q, i, d, outcome, again_ms);
    for (int k = 0; k < 3; k++)
        free(d->pins[k]);
    free((char *)(uintptr_t)d->subscriber.data);
    free((char *)(uintptr_t)d->options.data);
    free((char *)(uintptr_t)d->body.data);
    *d = (struct store_delivery){.store = NULL};
}

bool
twin_has_due(struct store *store, int64_t now_ms)
{
    struct twin *t = twin_of(store);

    for (size_t i = 0; i < t->queue_count; i++) {
        struct twin_queue *q = t->queues[i];

        forget_expired(q, now_ms);
        for (size_t k = 0; k < q->subscription_count; k++) {
            const struct twin_subscription *s = q->subscriptions[k];
            bool live = s->notice != 0;

            for (size_t m = 0; m < s->entry_count; m++)
                live = live || now_ms < s->entries[m].expires_ms;
            if (live && is_due(s, now_ms))
                return true;
        }
    }
    return false;
}

static void
consider(int64_t at_ms, int64_t now_ms, int64_t *next_ms)
{
    if (at_ms > now_ms && at_ms < *next_ms)
        *next_ms = at_ms;
}

void
twin_consider_subscriptions(const struct twin_queue *q, int64_t now_ms, int64_t *next_ms)
{
    for (size_t i = 0; i < q->subscription_count; i++) {
        const struct twin_subscription *s = q->subscriptions[i];

        if (now_ms >= ends_ms(s))
            continue;
        consider(ends_ms(s), now_ms, next_ms);
        if (!s->leased && has_something(s))
            consider(s->again_ms, now_ms, next_ms);
    }
}
