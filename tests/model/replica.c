#include "model/replica.h"

#include <inttypes.h>
#include <stdio.h>

static struct replica_queue *
known_queue(struct replica *r, const struct store_queue *queue, uint32_t tag)
{
    struct replica_queue *q = &r->queues[story_index(queue)];

    ck_assert(q->there);
    ck_assert_uint_eq(q->tag, tag);
    return q;
}

static struct replica_message *
find_copy(struct replica_queue *q, uint64_t number)
{
    for (size_t i = 0; i < q->message_count; i++)
        if (q->messages[i].m.number == number)
            return &q->messages[i];
    ck_abort_msg("message %" PRIu64 " is not in the replica", number);
}

static void
drop_lease(struct replica_queue *q, uint64_t number)
{
    size_t i = 0;

    while (i < q->lease_count && q->leases[i].number != number)
        i++;
    ck_assert_uint_lt(i, q->lease_count);
    q->lease_count--;
    memmove(&q->leases[i], &q->leases[i + 1],
            (q->lease_count - i) * sizeof(q->leases[0]));
}

/* A claim that loses its last message ends, and no change says so. */
static void
drop_copy(struct replica_queue *q, uint64_t number)
{
    struct replica_message *c = find_copy(q, number);
    size_t at = (size_t)(c - q->messages), left = 0;
    uint64_t claim = c->claim;

    q->message_count--;
    memmove(c, c + 1, (q->message_count - at) * sizeof(*c));
    for (size_t i = 0; claim != 0 && i < q->message_count; i++)
        left += q->messages[i].claim == claim;
    if (claim != 0 && left == 0)
        drop_lease(q, claim);
}

static void
keep_text(char *to, size_t cap, struct bytes text)
{
    ck_assert_uint_lt(text.len, cap);
    memset(to, 0, cap);
    if (text.len > 0)
        memcpy(to, text.data, text.len);
}

static struct known_details
know_details(const struct store_details *recorded)
{
    struct known_details d;

    memset(&d, 0, sizeof(d));
    if (recorded == NULL)
        return d;
    keep_text(d.reason, sizeof(d.reason), recorded->reason);
    keep_text(d.client, sizeof(d.client), recorded->client);
    keep_text(d.origin, sizeof(d.origin), recorded->origin);
    d.released_ms = recorded->released_ms;
    d.dead_lettered_ms = recorded->dead_lettered_ms;
    return d;
}

static void
set_copy(struct replica_message *c, const struct store_message_record *m)
{
    c->m = *m;
    ck_assert_uint_lt(m->body.len, sizeof(c->body));
    memcpy(c->body, m->body.data, m->body.len);
    c->body[m->body.len] = '\0';
    c->sum = m->checksum == NULL ? 0 : m->checksum->digest[0];
    c->m.body = BYTES_NONE;
    c->m.checksum = NULL;
    c->m.details = NULL;
}

/* Checks the parts of a message that never change. */
static void
same_message(const struct replica_message *c, const struct store_message_record *m)
{
    struct replica_message now = *c;

    set_copy(&now, m);
    ck_assert_str_eq(now.body, c->body);
    ck_assert_uint_eq(now.sum, c->sum);
    ck_assert_uint_eq(now.m.client, c->m.client);
    ck_assert_str_eq(now.m.id.text, c->m.id.text);
}

static void
add_copy(struct replica_queue *q, const struct store_message_record *m)
{
    struct replica_message *c = &q->messages[q->message_count++];

    ck_assert_uint_lt(q->message_count, REPLICA_MESSAGES);
    ck_assert_uint_gt(m->number, q->last_number);
    q->last_number = m->number;
    *c = (struct replica_message){.claim = 0};
    set_copy(c, m);
}

static void
set_metadata(struct replica_queue *q, const struct store_metadata *md)
{
    snprintf(q->json, sizeof(q->json), "%.*s", (int)md->json.len, md->json.data);
    snprintf(q->dead_letter, sizeof(q->dead_letter), "%.*s",
             (int)md->settings.dead_letter.len, md->settings.dead_letter.data);
    q->max_claim_count = md->settings.max_claim_count;
    q->transient = md->settings.transient;
}

static void
change_queue(struct replica *r, const struct store_change *change)
{
    struct replica_queue *q = &r->queues[story_index(&change->queue)];

    switch (change->kind) {
    case STORE_CHANGE_QUEUE:
        if (q->there && q->transient && q->tag == change->tag)
            break; /* it gets more numbers */
        ck_assert(!q->there);
        memset(q, 0, sizeof(*q));
        q->there = true;
        q->tag = change->tag;
        q->fence_base = change->fence_base;
        set_metadata(q, change->metadata);
        break;
    case STORE_CHANGE_META:
        set_metadata(known_queue(r, &change->queue, change->tag), change->metadata);
        break;
    case STORE_CHANGE_QUEUE_GONE:
        known_queue(r, &change->queue, change->tag)->there = false;
        break;
    case STORE_CHANGE_UNSUBSCRIBED:
        known_queue(r, &change->queue, change->tag)->member_count = 0;
        break;
    default: /* PURGE */
        q = known_queue(r, &change->queue, change->tag);
        q->message_count = q->lease_count = 0;
    }
    ck_assert_uint_eq(change->count, 0);
}

static struct replica_claim *
lease_of(struct replica_queue *q, const struct store_change *change)
{
    for (size_t i = 0; i < q->lease_count; i++)
        if (q->leases[i].number == store_id_number(&change->claim.id)) {
            ck_assert_str_eq(q->leases[i].id.text, change->claim.id.text);
            return &q->leases[i];
        }
    if (change->kind != STORE_CHANGE_CLAIM)
        ck_abort_msg("claim %" PRIu64 " is not in the replica",
                     store_id_number(&change->claim.id));
    ck_assert_uint_gt(store_id_number(&change->claim.id), q->last_claim);
    q->last_claim = store_id_number(&change->claim.id);
    ck_assert_uint_lt(q->lease_count, REPLICA_CLAIMS);
    return &q->leases[q->lease_count++];
}

/* CLAIM, RENEW, RELEASE, CLAIM_OVER. */
static void
change_claim(struct replica *r, struct store_change *change)
{
    struct replica_queue *q = known_queue(r, &change->queue, change->tag);
    bool over =
        change->kind == STORE_CHANGE_RELEASE || change->kind == STORE_CHANGE_CLAIM_OVER;
    bool fresh = change->kind == STORE_CHANGE_CLAIM;
    struct store_message_record m;
    size_t held = 0, count = change->count, recorded = 0;

    *lease_of(q, change) =
        (struct replica_claim){change->claim.id, store_id_number(&change->claim.id),
                               change->claim.started_ms, change->claim.ends_ms};
    for (size_t i = 0; i < q->message_count; i++)
        held += q->messages[i].claim == store_id_number(&change->claim.id);
    while (change->next(change, &m)) {
        struct replica_message *c = find_copy(q, m.number);

        same_message(c, &m);
        ck_assert_uint_eq(c->claim, fresh ? 0 : store_id_number(&change->claim.id));
        set_copy(c, &m);
        c->claim = over ? 0 : store_id_number(&change->claim.id);
        recorded++;
    }
    ck_assert_uint_eq(recorded, count);
    if (!fresh)
        ck_assert_uint_eq(recorded, held);
    if (over)
        drop_lease(q, store_id_number(&change->claim.id));
}

/* Its claim gave it back: it is delayed, or ready. */
static void
retry_copy(struct replica_queue *q, const struct store_message_record *m)
{
    struct replica_message *c = find_copy(q, m->number);
    uint64_t claim = c->claim;
    size_t left = 0;

    same_message(c, m);
    ck_assert_uint_ne(claim, 0);
    set_copy(c, m);
    c->claim = 0;
    for (size_t i = 0; i < q->message_count; i++)
        left += q->messages[i].claim == claim;
    if (left == 0)
        drop_lease(q, claim);
}

static void
change_messages(struct replica *r, struct store_change *change)
{
    struct replica_queue *q = known_queue(r, &change->queue, change->tag);
    struct store_message_record m;
    size_t count = change->count, recorded = 0;

    for (; change->next(change, &m); recorded++) {
        struct replica_queue *target;
        struct replica_message *c, moved;

        switch (change->kind) {
        case STORE_CHANGE_POST:
            add_copy(q, &m);
            break;
        case STORE_CHANGE_DELAY_OVER:
            c = find_copy(q, m.number);
            same_message(c, &m);
            ck_assert_int_ne(c->m.delayed_until_ms, 0);
            ck_assert_int_eq(m.delayed_until_ms, 0);
            set_copy(c, &m);
            break;
        case STORE_CHANGE_MOVE:
            same_message(find_copy(q, m.old_number), &m);
            moved = *find_copy(q, m.old_number);
            drop_copy(q, m.old_number);
            target = known_queue(r, &change->target, change->target_tag);
            add_copy(target, &m);
            find_copy(target, m.number)->details = moved.details;
            break;
        case STORE_CHANGE_RETRY:
            retry_copy(q, &m);
            break;
        case STORE_CHANGE_DETAILS:
            find_copy(q, m.number)->details = know_details(m.details);
            break;
        default: /* DELETE, EXPIRED */
            same_message(find_copy(q, m.number), &m);
            drop_copy(q, m.number);
        }
    }
    if (change->kind == STORE_CHANGE_DETAILS)
        ck_assert_uint_le(recorded, count);
    else
        ck_assert_uint_eq(recorded, count);
    ck_assert_uint_gt(recorded, 0);
}

/* KEY: no effect has one that was there within the window: one key, one effect. */
static void
change_key(struct replica *r, struct store_change *change)
{
    const struct store_key_record *record = change->key;
    struct store_message_record m;
    size_t count = change->count;

    (void)known_queue(r, &change->queue, change->tag);
    for (size_t i = 0; i < REPLICA_KEYS && i < r->key_count; i++) {
        const struct known_key *k = &r->keys[i];

        if (k->tag == change->tag && k->record.key.hash[0] == record->key.hash[0])
            ck_assert_int_ge(record->made_ms, k->record.made_ms + FIXTURE_KEY_S * 1000);
    }
    r->keys[r->key_count++ % REPLICA_KEYS] = (struct known_key){change->tag, *record};
    ck_assert_int_eq(record->made_ms, change->now_ms);
    ck_assert_int_eq(record->kind == STORE_KEY_POP, count > 0);
    while (change->next(change, &m))
        count--;
    ck_assert_uint_eq(count, 0);
}

/* The subscription with this number. Adds it if the change creates it. */
static struct replica_subscription *
member_of(struct replica_queue *q, const struct store_change *change)
{
    for (size_t i = 0; i < q->member_count; i++)
        if (q->members[i].number == change->subscription->number)
            return &q->members[i];
    if (change->kind != STORE_CHANGE_SUBSCRIPTION)
        ck_abort_msg("subscription %" PRIu64 " is not in the replica",
                     change->subscription->number);
    ck_assert_uint_lt(q->member_count, REPLICA_SUBSCRIPTIONS);
    q->members[q->member_count] = (struct replica_subscription){
        change->subscription->number, "", 0, false, false, 0, 0, 0};
    return &q->members[q->member_count++];
}

/* SUBSCRIPTION, SUBSCRIPTION_GONE, CURSOR. */
static void
change_member(struct replica *r, const struct store_change *change)
{
    struct replica_queue *q = known_queue(r, &change->queue, change->tag);
    const struct store_subscription_record *recorded = change->subscription;
    struct replica_subscription *m = member_of(q, change);

    ck_assert_uint_ge(recorded->after, m->after);
    ck_assert_uint_ge(recorded->delivered, m->delivered);
    ck_assert_uint_ge(recorded->permanent_failures, m->permanent_failures);
    if (change->kind == STORE_CHANGE_SUBSCRIPTION_GONE) {
        *m = q->members[--q->member_count];
        return;
    }
    m->after = recorded->after;
    m->delivered = recorded->delivered;
    m->permanent_failures = recorded->permanent_failures;
    if (change->kind == STORE_CHANGE_CURSOR)
        return;
    ck_assert_uint_lt(recorded->subscriber.len, sizeof(m->subscriber));
    memset(m->subscriber, 0, sizeof(m->subscriber));
    memcpy(m->subscriber, recorded->subscriber.data, recorded->subscriber.len);
    m->ends_ms = recorded->started_ms + recorded->ttl_s * 1000;
    m->confirmed = recorded->confirmed;
}

static bool
is_about_member(enum store_change_kind kind)
{
    return kind == STORE_CHANGE_SUBSCRIPTION || kind == STORE_CHANGE_SUBSCRIPTION_GONE ||
           kind == STORE_CHANGE_CURSOR;
}

static bool
by_time(enum store_change_kind kind)
{
    return kind == STORE_CHANGE_EXPIRED || kind == STORE_CHANGE_DELAY_OVER ||
           kind == STORE_CHANGE_CLAIM_OVER;
}

/* The store must return the reservations that it has not used, and may not use them
 * later. */
static void
forget_grants(struct replica *r)
{
    memset(r->granted, 0, sizeof(r->granted));
    memset(r->reserved, 0, sizeof(r->reserved));
}

/* An allocation does not notify the log when it fails. So the log asks first in each
 * call. */
static void
notice_failed_allocation(struct replica *r)
{
    if (r->failing == 0 || mem_attempts(r->mem) < r->failing)
        return;
    r->failing = 0;
    forget_grants(r);
}

void
replica_fail_nth(struct replica *r, uint64_t nth)
{
    notice_failed_allocation(r);
    r->failing = nth == 0 ? 0 : mem_attempts(r->mem) + nth;
    mem_fail_nth(r->mem, nth);
}

void
replica_end_step(struct replica *r, bool is_refused)
{
    notice_failed_allocation(r);
    ck_assert_uint_eq(r->set_aside, 0);
    for (size_t i = 0; i < STORE_CHANGE_KINDS; i++)
        ck_assert_msg(r->granted[i] == 0 || is_refused,
                      "%u changes of kind %zu were granted in vain", r->granted[i], i);
    forget_grants(r);
    r->refused = false;
}

static enum status
reserve(struct store_log *observer, enum store_change_kind kind, bool checkpoint,
        size_t count, size_t bytes, size_t *reserved)
{
    struct replica *r = (struct replica *)observer;

    (void)bytes;
    ck_assert(!by_time(kind) && !checkpoint);
    notice_failed_allocation(r);
    if (random_chance(r->random, r->refuse)) {
        r->refused = true;
        forget_grants(r);
        return ST_UNAVAILABLE;
    }
    r->granted[kind]++;
    r->reserved[kind] += count;
    r->set_aside++;
    ++*reserved;
    return ST_OK;
}

static void
unreserve(struct store_log *observer, size_t reserved)
{
    struct replica *r = (struct replica *)observer;

    notice_failed_allocation(r);
    ck_assert_uint_le(reserved, r->set_aside);
    r->set_aside -= reserved;
}

/* Each change says whether its queues are transient. */
static void
expect_transient(const struct replica *r, const struct store_change *change)
{
    ck_assert_int_eq(change->transient, r->queues[story_index(&change->queue)].transient);
    if (change->kind == STORE_CHANGE_MOVE)
        ck_assert_int_eq(change->target_transient,
                         r->queues[story_index(&change->target)].transient);
}

/* True for changes without a reservation: expiries, and messages of transient queues. */
static bool
unasked(const struct store_change *change)
{
    switch (change->kind) {
    case STORE_CHANGE_QUEUE:
    case STORE_CHANGE_META:
    case STORE_CHANGE_QUEUE_GONE:
    case STORE_CHANGE_SUBSCRIPTION:
    case STORE_CHANGE_SUBSCRIPTION_GONE:
    case STORE_CHANGE_UNSUBSCRIBED:
        return false;
    case STORE_CHANGE_MOVE:
        return change->transient && change->target_transient;
    default:
        return by_time(change->kind) || change->transient;
    }
}

static uint64_t
commit_one(struct replica *r, struct store_change *change, size_t *reserved)
{
    size_t count = change->count;

    r->recorded[change->kind]++;
    if (change->kind != STORE_CHANGE_QUEUE)
        expect_transient(r, change);
    if (change->kind == STORE_CHANGE_KEY)
        change_key(r, change);
    else if (is_about_member(change->kind))
        change_member(r, change);
    else if (change->kind <= STORE_CHANGE_PURGE ||
             change->kind == STORE_CHANGE_UNSUBSCRIBED)
        change_queue(r, change);
    else if (change->kind == STORE_CHANGE_CLAIM || change->kind == STORE_CHANGE_RENEW ||
             change->kind == STORE_CHANGE_RELEASE ||
             change->kind == STORE_CHANGE_CLAIM_OVER)
        change_claim(r, change);
    else
        change_messages(r, change);
    if (!by_time(change->kind))
        r->changes++;
    r->recorded_transient += change->transient;
    if (unasked(change))
        return 0;
    ck_assert_uint_gt(*reserved, 0);
    --*reserved;
    r->set_aside--;
    ck_assert_uint_gt(r->granted[change->kind], 0);
    r->granted[change->kind]--;
    ck_assert_uint_le(count, r->reserved[change->kind]);
    r->reserved[change->kind] -= count;
    r->seen[story_index(&change->queue)] = ++r->lsn;
    if (change->kind == STORE_CHANGE_MOVE)
        r->seen[story_index(&change->target)] = r->lsn;
    return r->lsn;
}

static uint64_t
commit(struct store_log *observer, struct store_change *change, size_t *reserved)
{
    struct replica *r = (struct replica *)observer;
    uint64_t lsn = 0;

    notice_failed_allocation(r);
    r->lone_keys += change->kind == STORE_CHANGE_KEY;
    for (; change != NULL; change = change->then) {
        uint64_t its = commit_one(r, change, reserved);

        lsn = its != 0 ? its : lsn;
    }
    return lsn;
}

/* ---------------------------------------------------------------------- comparing */

static const struct replica_claim *
holder(const struct replica_queue *q, const struct replica_message *c)
{
    for (size_t i = 0; i < q->lease_count; i++)
        if (q->leases[i].number == c->claim)
            return &q->leases[i];
    ck_assert_uint_eq(c->claim, 0);
    return NULL;
}

static void
compare_details(const struct store_details *shown, const struct known_details *known)
{
    struct known_details now = know_details(shown);

    ck_assert_str_eq(now.reason, known->reason);
    ck_assert_str_eq(now.client, known->client);
    ck_assert_str_eq(now.origin, known->origin);
    ck_assert_int_eq(now.released_ms, known->released_ms);
    ck_assert_int_eq(now.dead_lettered_ms, known->dead_lettered_ms);
}

static void
compare_message(const struct fixture *f, const struct replica_queue *q,
                const struct replica_message *c, const struct store_message *m)
{
    const struct replica_claim *lease = holder(q, c);

    ck_assert_str_eq(m->id.text, c->m.id.text);
    ck_assert_str_eq(m->claim_id.text, lease == NULL ? "" : lease->id.text);
    ck_assert(bytes_equal(m->body, bytes_str(c->body)));
    ck_assert_int_eq(m->ttl_s, (c->m.expires_ms - c->m.posted_ms) / 1000);
    ck_assert_int_eq(m->age_s, (f->now_ms - c->m.posted_ms) / 1000);
    ck_assert_uint_eq(m->claim_count, c->m.claim_count);
    ck_assert_int_eq(m->delayed_until_ms, c->m.delayed_until_ms);
    compare_details(m->details, &c->details);
    ck_assert_uint_eq(m->checksum == NULL ? 0 : m->checksum->digest[0], c->sum);
}

static void
compare_claims(struct fixture *f, const struct replica_queue *q)
{
    for (size_t i = 0; i < q->lease_count; i++) {
        const struct replica_claim *lease = &q->leases[i];
        size_t at = 0;

        ck_assert_status(query(f, lease->id), ST_OK);
        ck_assert_uint_eq(f->seen.claim_number, q->fence_base + lease->number);
        ck_assert_int_eq(f->seen.claim_ttl_s,
                         (lease->ends_ms - lease->started_ms) / 1000);
        ck_assert_int_eq(f->seen.claim_age_s, (f->now_ms - lease->started_ms) / 1000);
        for (size_t k = 0; k < q->message_count; k++) {
            if (q->messages[k].claim != lease->number)
                continue;
            ck_assert_uint_lt(at, f->seen.count);
            compare_message(f, q, &q->messages[k], &f->seen.messages[at++]);
        }
        ck_assert_uint_eq(at, f->seen.count);
    }
}

/* Which of the messages are delayed. */
static size_t
count_delayed(const struct replica_queue *q)
{
    size_t n = 0;

    for (size_t i = 0; i < q->message_count; i++)
        n += q->messages[i].m.delayed_until_ms != 0;
    return n;
}

static void
compare_members(const struct fixture *f, const struct replica_queue *q)
{
    struct store_subscriptions shown;
    size_t live = 0;

    ck_assert_status(store_subscription_list(f->store, STORE_AT(f->now_ms), &f->queue,
                                             BYTES_NONE, REPLICA_SUBSCRIPTIONS, &shown),
                     ST_OK);
    for (size_t i = 0; i < q->member_count; i++) {
        const struct replica_subscription *m = &q->members[i];
        size_t k = 0;

        if (m->ends_ms <= f->now_ms)
            continue;
        live++;
        while (k < shown.count &&
               !bytes_equal(shown.views[k].subscriber, bytes_str(m->subscriber)))
            k++;
        ck_assert_uint_lt(k, shown.count);
        ck_assert_int_eq(shown.views[k].confirmed, m->confirmed);
        ck_assert_uint_ge(shown.views[k].progress.delivered, m->delivered);
    }
    ck_assert_uint_eq(shown.count, live);
    store_subscriptions_release(&shown);
}

static void
compare_queue(struct fixture *f, struct replica *r, size_t i)
{
    const struct replica_queue *q = &r->queues[i];
    struct store_filter all = {
        .limit = q->message_count + 1, .include_claimed = true, .include_delayed = true};
    struct store_filter prompt = {.limit = all.limit, .include_claimed = true};
    struct store_queues shown = STORE_QUEUES_INIT;
    enum status st;

    f->queue = story_queue(i);
    st = store_queue_get(f->store, STORE_AT(f->now_ms), &f->queue, &shown);
    ck_assert_status(st, q->there ? ST_OK : ST_NOT_FOUND);
    if (!q->there)
        return;
    ck_assert(bytes_equal(shown.queues[0].metadata.json, bytes_str(q->json)));
    ck_assert_int_eq(shown.queues[0].metadata.settings.max_claim_count,
                     q->max_claim_count);
    ck_assert(bytes_equal(shown.queues[0].metadata.settings.dead_letter,
                          bytes_str(q->dead_letter)));
    ck_assert_int_eq(shown.queues[0].metadata.settings.transient, q->transient);
    store_queues_release(&shown);
    list(f, &all); /* what is due happens, and is logged. Dead letters may arrive then */
    all.limit = prompt.limit = q->message_count + 1;
    list(f, &all);
    ck_assert_uint_eq(f->seen.count, q->message_count);
    for (size_t k = 0; k < q->message_count; k++)
        compare_message(f, q, &q->messages[k], &f->seen.messages[k]);
    list(f, &prompt);
    ck_assert_uint_eq(f->seen.count, q->message_count - count_delayed(q));
    compare_claims(f, q);
    compare_members(f, q);
}

void
replica_compare(struct fixture *f, struct replica *r)
{
    struct store_totals totals = {0};
    uint64_t queues = 0, messages = 0, claimed = 0;

    for (size_t i = 0; i < STORY_QUEUES; i++)
        compare_queue(f, r, i);
    for (size_t i = 0; i < STORY_QUEUES; i++) {
        const struct replica_queue *q = &r->queues[i];

        if (!q->there)
            continue;
        queues++;
        messages += q->message_count;
        for (size_t k = 0; k < q->message_count; k++)
            claimed += q->messages[k].claim != 0;
    }
    ck_assert_status(store_totals(f->store, STORE_AT(f->now_ms), &totals), ST_OK);
    ck_assert_uint_eq(totals.queues, queues);
    ck_assert_uint_eq(totals.messages, messages);
    ck_assert_uint_eq(totals.claimed, claimed);
}

static void
flush(struct store_log *observer)
{
    struct replica *r = container_of(observer, struct replica, observer);

    r->flushed = r->lsn;
}

void
replica_init(struct replica *r, struct random *random, struct mem *mem)
{
    memset(r, 0, sizeof(*r));
    r->random = random;
    r->mem = mem;
    r->observer.reserve = reserve;
    r->observer.append = commit;
    r->observer.unreserve = unreserve;
    r->observer.flush = flush;
}
