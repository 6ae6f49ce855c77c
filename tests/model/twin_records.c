/* The twin's records: one slice with copies of everything. */
#include "model/twin_state.h"

#include <stdio.h>
#include <stdlib.h>

/* ---------------------------------------------------------------------- reading */

static struct bytes
copied(const char *text, size_t len)
{
    return bytes_of(twin_copy(bytes_of(text, len)), len);
}

static void
free_text(struct bytes text)
{
    free((char *)(uintptr_t)text.data);
}

/* NULL: none. */
static struct store_details *
copy_details(const struct twin_message *m)
{
    const struct store_details *d = &m->details;
    struct store_details *copy;

    if (d->released_ms == 0 && d->dead_lettered_ms == 0 && d->unique.key.len == 0 &&
        !m->returned)
        return NULL;
    copy = twin_alloc(sizeof(*copy));
    *copy = (struct store_details){.released_ms = d->released_ms,
                                   .dead_lettered_ms = d->dead_lettered_ms,
                                   .cause = d->cause,
                                   .attempts = d->attempts,
                                   .unique.until_claimed = d->unique.until_claimed,
                                   .unique.due_ms = d->unique.due_ms};
    twin_set_text(&copy->unique.key, d->unique.key);
    twin_set_text(&copy->reason, d->reason);
    twin_set_text(&copy->client, d->client);
    twin_set_text(&copy->origin, d->origin);
    return copy;
}

static void
free_details(const struct store_details *d)
{
    if (d == NULL)
        return;
    free_text(d->reason);
    free_text(d->client);
    free_text(d->origin);
    free_text(d->unique.key);
    free((void *)(uintptr_t)d);
}

static void
twin_records_release(const struct store *s, struct store_records *records)
{
    (void)s; /* everything shown is a copy */
    for (size_t i = 0; i < records->count; i++) {
        struct store_record *r = &records->all[i];

        if (r->kind == STORE_RECORD_MESSAGE) {
            free_text(r->message.body);
            free((void *)(uintptr_t)r->message.checksum);
            free((void *)(uintptr_t)r->message.claim);
            free_details(r->message.details);
        } else if (r->kind == STORE_RECORD_SUBSCRIPTION) {
            free_text(r->subscription.subscriber);
            free_text(r->subscription.options);
        } else {
            free_text(r->metadata.json);
            free_text(r->metadata.settings.dead_letter);
            free_text(r->metadata.settings.paused_by);
        }
    }
    free(records->all);
}

static void
read_message(const struct twin_queue *q, const struct twin_message *m, int64_t now_ms,
             struct store_record *out)
{
    const struct twin_claim *c = twin_holder(q, m, now_ms);
    struct store_claim_record *claim = NULL;
    struct store_checksum *checksum = NULL;

    if (c != NULL) {
        claim = twin_alloc(sizeof(*claim));
        *claim =
            (struct store_claim_record){c->id, c->started_ms, c->started_ms + c->ttl_ms};
    }
    if (m->has_checksum) {
        checksum = twin_alloc(sizeof(*checksum));
        *checksum = m->checksum;
    }
    out->kind = STORE_RECORD_MESSAGE;
    out->message = (struct store_message_record){
        .id = m->id,
        .claim = claim,
        .body = copied(m->body, m->body_len),
        .checksum = checksum,
        .client = m->client,
        .posted_ms = m->posted_ms,
        .expires_ms = m->expires_ms,
        .delayed_until_ms = twin_message_delayed(m, now_ms) ? m->ready_ms : 0,
        .claim_count = m->claim_count,
        .details = copy_details(m),
    };
}

static void
read_subscription(const struct twin_subscription *s, struct store_record *out)
{
    out->kind = STORE_RECORD_SUBSCRIPTION;
    out->subscription = (struct store_subscription_record){
        .id = s->id,
        .subscriber = copied(s->subscriber, s->subscriber_len),
        .options = copied(s->options, s->options_len),
        .started_ms = s->started_ms,
        .ttl_s = s->ttl_s,
        .confirmed = s->confirmed,
        .pending = s->notice == STORE_PENDING_CONFIRM ? STORE_PENDING_CONFIRM : 0,
        .delivered = s->delivered,
        .permanent_failures = s->permanent_failures,
        .dropped = s->dropped,
    };
}

static void
read_queue(const struct twin_queue *q, struct store_record *out)
{
    out->kind = STORE_RECORD_QUEUE;
    out->metadata = (struct store_metadata){copied(q->json, q->json_len), q->settings};
    if (bytes_present(q->settings.dead_letter))
        out->metadata.settings.dead_letter =
            copied(q->settings.dead_letter.data, q->settings.dead_letter.len);
    if (bytes_present(q->settings.paused_by))
        out->metadata.settings.paused_by =
            copied(q->settings.paused_by.data, q->settings.paused_by.len);
}

static enum status
twin_read(struct store *s, struct store_op *op, const struct store_queue *where,
          struct store_records *records)
{
    const struct twin_queue *q = twin_find_queue(twin_of(s), where);
    struct store_records out = {.store = s};

    if (q == NULL)
        return ST_NOT_FOUND;
    out.all =
        twin_alloc((1 + q->message_count + q->subscription_count) * sizeof(*out.all));
    read_queue(q, &out.all[out.count++]);
    for (size_t i = 0; i < q->message_count; i++)
        if (twin_message_live(q->messages[i], op->now_ms))
            read_message(q, q->messages[i], op->now_ms, &out.all[out.count++]);
    for (size_t i = 0; i < q->subscription_count; i++) {
        const struct twin_subscription *sub = q->subscriptions[i];

        if (op->now_ms < sub->started_ms + sub->ttl_s * 1000)
            read_subscription(sub, &out.all[out.count++]);
    }
    *records = out;
    return ST_OK;
}

/* ---------------------------------------------------------------------- applying */

static bool
has_message(const struct twin_queue *q, const struct store_id *id)
{
    for (size_t i = 0; i < q->message_count; i++)
        if (id->text[0] != '\0' && strcmp(q->messages[i]->id.text, id->text) == 0)
            return true;
    return false;
}

/* Another message holds the key of these details. */
static bool
has_key(const struct twin_queue *q, const struct store_details *d, int64_t now_ms)
{
    return d != NULL && store_holds_key(d) &&
           twin_find_key(q, d->unique.key, now_ms) != NULL;
}

static bool
has_subscription(const struct twin_queue *q, const struct store_subscription_record *view)
{
    for (size_t i = 0; i < q->subscription_count; i++) {
        const struct twin_subscription *s = q->subscriptions[i];

        if (strcmp(s->id.text, view->id.text) == 0 ||
            bytes_equal(bytes_of(s->subscriber, s->subscriber_len), view->subscriber))
            return true;
    }
    return false;
}

/* Another claim than the one that goes on has the same number. */
static bool
has_number(const struct twin_queue *q, const struct store_claim_record *view)
{
    for (size_t i = 0; view != NULL && i < q->claim_count; i++)
        if (view->id.text[0] != '\0' &&
            strcmp(q->claims[i].id.text, view->id.text) != 0 &&
            store_id_number(&q->claims[i].id) == store_id_number(&view->id))
            return true;
    return false;
}

/* May these be applied to a queue that is there (NULL: that they make)? */
static enum status
check(const struct twin_queue *q, const struct store_settings *settings,
      const struct store_record *records, size_t count, int64_t now_ms)
{
    for (size_t i = 0; i < count; i++) {
        const struct store_record *r = &records[i];

        if (r->kind == STORE_RECORD_MESSAGE && settings->encrypt &&
            !store_is_sealed(r->message.body))
            return ST_NOT_SEALED;
    }
    for (size_t i = 0; q != NULL && i < count; i++) {
        const struct store_record *r = &records[i];

        if (r->kind == STORE_RECORD_MESSAGE &&
            (q->subscription_count > 0 || has_message(q, &r->message.id) ||
             has_key(q, r->message.details, now_ms) || has_number(q, r->message.claim)))
            return ST_CONFLICT;
        if (r->kind == STORE_RECORD_SUBSCRIPTION && has_subscription(q, &r->subscription))
            return ST_CONFLICT;
    }
    return ST_OK;
}

/* A claim of the records that has no id, and the number that it got. */
struct unnamed {
    const struct store_claim_record *record;
    uint64_t number;
};

/* The number of a claim, which is made unless there is one with its id, or from its
 * record. */
static uint64_t
load_claim(struct twin *t, struct twin_queue *q, const struct store_claim_record *view,
           struct unnamed *all, size_t *count)
{
    const struct store_terms terms = {.ttl_s = 1};
    struct twin_claim *c = NULL;

    for (size_t i = 0; view->id.text[0] == '\0' && i < *count; i++)
        if (all[i].record == view)
            return all[i].number;
    for (size_t i = 0; view->id.text[0] != '\0' && i < q->claim_count; i++)
        if (strcmp(q->claims[i].id.text, view->id.text) == 0)
            c = &q->claims[i];
    if (c == NULL)
        c = twin_add_claim(t, q, &terms, view->started_ms);
    if (view->id.text[0] != '\0')
        c->id = view->id;
    else
        all[(*count)++] = (struct unnamed){view, c->number};
    c->started_ms = view->started_ms;
    c->ttl_ms = view->ends_ms - view->started_ms;
    return c->number;
}

static void
load_message(struct twin_queue *q, const struct store_message_record *view,
             uint64_t claim)
{
    struct twin_message *m = twin_alloc(sizeof(*m));

    m->body = twin_copy(view->body);
    m->body_len = view->body.len;
    m->has_checksum = view->checksum != NULL;
    if (m->has_checksum)
        m->checksum = *view->checksum;
    m->client = view->client;
    m->posted_ms = view->posted_ms;
    m->expires_ms = view->expires_ms;
    m->ready_ms = view->delayed_until_ms;
    m->claim_count = view->claim_count;
    m->claim = claim;
    /* as one of those it came with its id, unless its details say that it went back */
    m->dead_letter = view->id.text[0] != '\0' &&
                     (view->details == NULL || view->details->dead_lettered_ms != 0);
    m->returned = view->details != NULL;
    if (view->details != NULL)
        twin_set_details(m, view->details);
    if (claim != 0)
        twin_free_key(m);
    twin_append(q, m);
    m->id = view->id;
    if (m->id.text[0] == '\0')
        twin_message_name(q, m);
}

static void
load_subscription(struct twin *t, struct twin_queue *q,
                  const struct store_subscription_record *view)
{
    struct twin_subscription *s = twin_alloc(sizeof(*s));

    s->id = view->id;
    s->number = ++q->last_subscription;
    if (s->id.text[0] == '\0')
        twin_subscription_name(t, s);
    s->subscriber = twin_copy(view->subscriber);
    s->subscriber_len = view->subscriber.len;
    s->options = twin_copy(view->options);
    s->options_len = view->options.len;
    s->started_ms = view->started_ms;
    s->ttl_s = view->ttl_s;
    s->confirmed = view->confirmed;
    if (view->pending == STORE_PENDING_CONFIRM && t->config.require_confirmation)
        s->notice = STORE_PENDING_CONFIRM;
    s->delivered = view->delivered;
    s->permanent_failures = view->permanent_failures;
    s->dropped = view->dropped;
    q->subscriptions =
        twin_grow(q->subscriptions, (q->subscription_count + 1) * sizeof(s));
    q->subscriptions[q->subscription_count++] = s;
}

static enum status
twin_apply(struct store *s, struct store_op *op, const struct store_queue *where,
           const struct store_record *records, size_t count)
{
    struct twin *t = twin_of(s);
    struct twin_queue *q = twin_find_queue(t, where);
    const bool makes = count > 0 && records[0].kind == STORE_RECORD_QUEUE;
    struct store_flaw flaw;
    enum status st = store_records_check(t->config.mem, records, count, &flaw);
    struct unnamed *unnamed;
    size_t unnamed_count = 0;

    if (st == ST_OK && makes && q != NULL)
        st = ST_CONFLICT;
    if (st == ST_OK && !makes && q == NULL)
        st = ST_NOT_FOUND;
    if (st == ST_OK && q != NULL)
        twin_forget(t, q, op->now_ms);
    if (st == ST_OK)
        st = check(q, q == NULL ? &records[0].metadata.settings : &q->settings, records,
                   count, op->now_ms);
    if (st != ST_OK)
        return st;
    if (q == NULL)
        q = twin_add_queue(t, where, &records[0].metadata);
    unnamed = twin_alloc((count + 1) * sizeof(*unnamed));
    for (size_t i = 0; i < count; i++) {
        const struct store_message_record *m = &records[i].message;

        if (records[i].kind == STORE_RECORD_MESSAGE)
            load_message(q, m,
                         m->claim == NULL
                             ? 0
                             : load_claim(t, q, m->claim, unnamed, &unnamed_count));
        else if (records[i].kind == STORE_RECORD_SUBSCRIPTION)
            load_subscription(t, q, &records[i].subscription);
    }
    free(unnamed);
    return ST_OK;
}

const struct store_state_vtable twin_state_ops = {
    .read = twin_read, .records_release = twin_records_release, .apply = twin_apply};
