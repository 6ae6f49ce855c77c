/*
 * An observer is told of every change once and in order (store/log.h): a replica that
 * is made of nothing but what was told is at any time what the engine shows. What an
 * observer refuses has not happened, and what an operation has seen it waits for.
 */
#include "claimd/store/log.h"

#include "model/story.h"
#include "support/patient.h"

#include <inttypes.h>
#include <stdio.h>

enum { QUEUES = STORY_QUEUES, ROOM = 4096, CLAIMS = 1024, MEMBERS = 512 };
enum { KINDS = STORE_CHANGE_KINDS };

/* ---------------------------------------------------------------------- the replica */

struct copy {
    struct store_message_record m; /* without body and checksum */
    char body[24];
    uint8_t sum; /* first byte of its checksum; 0: none */
    uint64_t claim;
};

struct lease {
    struct store_id id;
    uint64_t number;
    int64_t started_ms, ends_ms;
};

struct member {
    uint64_t number;
    char subscriber[24];
    int64_t ends_ms;
    bool confirmed, attached;
    uint64_t after, delivered, permanent_failures;
};

struct replica_queue {
    bool there;
    uint32_t tag;
    uint64_t fence_base, last_number, last_claim;
    char json[32];
    int64_t max_claim_count;
    bool transient;
    char dead_letter[8];
    struct copy messages[ROOM]; /* in the order of their numbers */
    size_t message_count;
    struct lease leases[CLAIMS];
    size_t lease_count;
    struct member members[MEMBERS]; /* also those whose time is over */
    size_t member_count;
};

struct replica {
    struct store_log observer;
    struct replica_queue queues[QUEUES];
    uint64_t lsn;          /* of the latest change */
    uint64_t seen[QUEUES]; /* LSN of the latest change of a queue of this address */
    unsigned granted[KINDS];
    size_t room[KINDS]; /* messages of the latest grant */
    size_t set_aside;   /* and not used or given back yet: one for each grant */
    uint64_t changes;   /* but for what time did */
    uint64_t told[KINDS], told_transient;
    uint64_t flushed; /* LSN when it was flushed last */
    struct random *random;
    unsigned refuse; /* percent */
    bool refused;    /* in the operation under way */
};

static struct replica_queue *
known_queue(struct replica *r, const struct store_queue *queue, uint32_t tag)
{
    struct replica_queue *q = &r->queues[story_index(queue)];

    ck_assert(q->there);
    ck_assert_uint_eq(q->tag, tag);
    return q;
}

static struct copy *
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

/* A claim that has lost its last message is over without a word. */
static void
drop_copy(struct replica_queue *q, uint64_t number)
{
    struct copy *c = find_copy(q, number);
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
set_copy(struct copy *c, const struct store_message_record *m)
{
    c->m = *m;
    ck_assert_uint_lt(m->body.len, sizeof(c->body));
    memcpy(c->body, m->body.data, m->body.len);
    c->body[m->body.len] = '\0';
    c->sum = m->checksum == NULL ? 0 : m->checksum->digest[0];
    c->m.body = BYTES_NONE;
    c->m.checksum = NULL;
}

/* What does not change in the life of a message has not. */
static void
same_message(const struct copy *c, const struct store_message_record *m)
{
    struct copy now = *c;

    set_copy(&now, m);
    ck_assert_str_eq(now.body, c->body);
    ck_assert_uint_eq(now.sum, c->sum);
    ck_assert_uint_eq(now.m.client, c->m.client);
    ck_assert_str_eq(now.m.id.text, c->m.id.text);
}

static void
add_copy(struct replica_queue *q, const struct store_message_record *m)
{
    struct copy *c = &q->messages[q->message_count++];

    ck_assert_uint_lt(q->message_count, ROOM);
    ck_assert_uint_gt(m->number, q->last_number);
    q->last_number = m->number;
    *c = (struct copy){.claim = 0};
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

static struct lease *
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
    ck_assert_uint_lt(q->lease_count, CLAIMS);
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
    size_t held = 0, count = change->count, told = 0;

    *lease_of(q, change) =
        (struct lease){change->claim.id, store_id_number(&change->claim.id),
                       change->claim.started_ms, change->claim.ends_ms};
    for (size_t i = 0; i < q->message_count; i++)
        held += q->messages[i].claim == store_id_number(&change->claim.id);
    while (change->next(change, &m)) {
        struct copy *c = find_copy(q, m.number);

        same_message(c, &m);
        ck_assert_uint_eq(c->claim, fresh ? 0 : store_id_number(&change->claim.id));
        set_copy(c, &m);
        c->claim = over ? 0 : store_id_number(&change->claim.id);
        told++;
    }
    ck_assert_uint_eq(told, count);
    if (!fresh)
        ck_assert_uint_eq(told, held);
    if (over)
        drop_lease(q, store_id_number(&change->claim.id));
}

static void
change_messages(struct replica *r, struct store_change *change)
{
    struct replica_queue *q = known_queue(r, &change->queue, change->tag);
    struct store_message_record m;
    size_t count = change->count, told = 0;

    for (; change->next(change, &m); told++) {
        struct replica_queue *target;
        struct copy *c;

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
            ck_assert_uint_eq(m.claim_count, 0);
            drop_copy(q, m.old_number);
            target = known_queue(r, &change->target, change->target_tag);
            add_copy(target, &m);
            break;
        default: /* DELETE, EXPIRED */
            same_message(find_copy(q, m.number), &m);
            drop_copy(q, m.number);
        }
    }
    ck_assert_uint_eq(told, count);
    ck_assert_uint_gt(told, 0);
}

/* The one with this number; a new one if it was told of as such. */
static struct member *
member_of(struct replica_queue *q, const struct store_change *change)
{
    for (size_t i = 0; i < q->member_count; i++)
        if (q->members[i].number == change->subscription->number)
            return &q->members[i];
    if (change->kind != STORE_CHANGE_SUBSCRIPTION)
        ck_abort_msg("subscription %" PRIu64 " is not in the replica",
                     change->subscription->number);
    ck_assert_uint_lt(q->member_count, MEMBERS);
    q->members[q->member_count] =
        (struct member){change->subscription->number, "", 0, false, false, 0, 0, 0};
    return &q->members[q->member_count++];
}

/* SUBSCRIPTION, SUBSCRIPTION_GONE, CURSOR. */
static void
change_member(struct replica *r, const struct store_change *change)
{
    struct replica_queue *q = known_queue(r, &change->queue, change->tag);
    const struct store_subscription_record *told = change->subscription;
    struct member *m = member_of(q, change);

    ck_assert_uint_ge(told->after, m->after);
    ck_assert_uint_ge(told->delivered, m->delivered);
    ck_assert_uint_ge(told->permanent_failures, m->permanent_failures);
    if (change->kind == STORE_CHANGE_SUBSCRIPTION_GONE) {
        *m = q->members[--q->member_count];
        return;
    }
    m->after = told->after;
    m->delivered = told->delivered;
    m->permanent_failures = told->permanent_failures;
    if (change->kind == STORE_CHANGE_CURSOR)
        return;
    ck_assert_uint_lt(told->subscriber.len, sizeof(m->subscriber));
    memset(m->subscriber, 0, sizeof(m->subscriber));
    memcpy(m->subscriber, told->subscriber.data, told->subscriber.len);
    m->ends_ms = told->started_ms + told->ttl_s * 1000;
    m->confirmed = told->confirmed;
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

static enum status
reserve(struct store_log *observer, enum store_change_kind kind, bool checkpoint,
        size_t count, size_t bytes, size_t *room)
{
    struct replica *r = (struct replica *)observer;

    (void)bytes;
    ck_assert(!by_time(kind) && !checkpoint);
    if (random_chance(r->random, r->refuse)) {
        r->refused = true;
        return ST_UNAVAILABLE;
    }
    r->granted[kind]++;
    r->room[kind] = count;
    r->set_aside++;
    ++*room;
    return ST_OK;
}

static void
unreserve(struct store_log *observer, size_t room)
{
    struct replica *r = (struct replica *)observer;

    ck_assert_uint_le(room, r->set_aside);
    r->set_aside -= room;
}

/* Whether queues are transient is said with each change. */
static void
expect_transient(const struct replica *r, const struct store_change *change)
{
    ck_assert_int_eq(change->transient, r->queues[story_index(&change->queue)].transient);
    if (change->kind == STORE_CHANGE_MOVE)
        ck_assert_int_eq(change->target_transient,
                         r->queues[story_index(&change->target)].transient);
}

/* True for what time does, and for messages of transient queues. */
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
commit(struct store_log *observer, struct store_change *change, size_t *room)
{
    struct replica *r = (struct replica *)observer;
    size_t count = change->count;

    r->told[change->kind]++;
    if (change->kind != STORE_CHANGE_QUEUE)
        expect_transient(r, change);
    if (is_about_member(change->kind))
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
    r->told_transient += change->transient;
    if (unasked(change))
        return 0;
    ck_assert_uint_gt(*room, 0);
    --*room;
    r->set_aside--;
    ck_assert_uint_gt(r->granted[change->kind], 0);
    r->granted[change->kind]--;
    ck_assert_uint_le(count, r->room[change->kind]);
    r->seen[story_index(&change->queue)] = ++r->lsn;
    if (change->kind == STORE_CHANGE_MOVE)
        r->seen[story_index(&change->target)] = r->lsn;
    return r->lsn;
}

/* ---------------------------------------------------------------------- comparing */

static const struct lease *
holder(const struct replica_queue *q, const struct copy *c)
{
    for (size_t i = 0; i < q->lease_count; i++)
        if (q->leases[i].number == c->claim)
            return &q->leases[i];
    ck_assert_uint_eq(c->claim, 0);
    return NULL;
}

static void
compare_message(const struct fixture *f, const struct replica_queue *q,
                const struct copy *c, const struct store_message *m)
{
    const struct lease *lease = holder(q, c);

    ck_assert_str_eq(m->id.text, c->m.id.text);
    ck_assert_str_eq(m->claim_id.text, lease == NULL ? "" : lease->id.text);
    ck_assert(bytes_equal(m->body, bytes_str(c->body)));
    ck_assert_int_eq(m->ttl_s, (c->m.expires_ms - c->m.posted_ms) / 1000);
    ck_assert_int_eq(m->age_s, (f->now_ms - c->m.posted_ms) / 1000);
    ck_assert_uint_eq(m->claim_count, c->m.claim_count);
    ck_assert_uint_eq(m->checksum == NULL ? 0 : m->checksum->digest[0], c->sum);
}

static void
compare_claims(struct fixture *f, const struct replica_queue *q)
{
    for (size_t i = 0; i < q->lease_count; i++) {
        const struct lease *lease = &q->leases[i];
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
                                             BYTES_NONE, MEMBERS, &shown),
                     ST_OK);
    for (size_t i = 0; i < q->member_count; i++) {
        const struct member *m = &q->members[i];
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
    const struct store_filter all = {
        .limit = q->message_count + 1, .include_claimed = true, .include_delayed = true};
    const struct store_filter prompt = {.limit = all.limit, .include_claimed = true};
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
    list(f, &all); /* what is due happens, and is told */
    ck_assert_uint_eq(f->seen.count, q->message_count);
    for (size_t k = 0; k < q->message_count; k++)
        compare_message(f, q, &q->messages[k], &f->seen.messages[k]);
    list(f, &prompt);
    ck_assert_uint_eq(f->seen.count, q->message_count - count_delayed(q));
    compare_claims(f, q);
    compare_members(f, q);
}

static void
compare(struct fixture *f, struct replica *r)
{
    struct store_totals totals = {0};
    uint64_t queues = 0, messages = 0, claimed = 0;

    for (size_t i = 0; i < QUEUES; i++)
        compare_queue(f, r, i);
    for (size_t i = 0; i < QUEUES; i++) {
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

/* ---------------------------------------------------------------------- histories */

struct history {
    struct story story;
    struct replica r;
    unsigned fail_memory; /* percent */
};

/* What was granted is used at once, or never. */
static void
expect_grants_used(struct replica *r)
{
    for (size_t i = 0; i < KINDS; i++)
        ck_assert_msg(r->granted[i] == 0 || (r->refused && (i == STORE_CHANGE_QUEUE ||
                                                            i == STORE_CHANGE_PURGE)),
                      "a change of kind %zu was granted in vain", i);
}

static void
step(struct history *h)
{
    struct store_op op;
    size_t queue = story_below(&h->story, QUEUES);
    uint64_t changes = h->r.changes, moves = h->r.told[STORE_CHANGE_MOVE];
    enum status st;

    story_move_time(&h->story);
    op = (struct store_op){.now_ms = h->story.f.now_ms};
    h->r.refused = false;
    if (random_chance(&h->story.random, h->fail_memory))
        mem_fail_nth(h->story.f.mem, 1 + story_below(&h->story, 12));
    st = story_operate(&h->story, &op, queue);
    mem_fail_nth(h->story.f.mem, 0);
    ck_assert(store_audit(h->story.f.store));
    if (st == ST_UNAVAILABLE)
        ck_assert(h->r.refused);
    /* But for dead letters, which may have moved, a refusal changes nothing. */
    if (st != ST_OK && moves == h->r.told[STORE_CHANGE_MOVE])
        ck_assert_uint_eq(changes, h->r.changes);
    ck_assert_uint_le(op.lsn, h->r.lsn);
    if (st != ST_NO_MEMORY) /* which it may have said before it saw anything */
        ck_assert_msg(op.lsn >= h->r.seen[queue],
                      "at %" PRIu64 " it has seen %" PRIu64 ": %s", op.lsn,
                      h->r.seen[queue], status_name(st));
    expect_grants_used(&h->r);
    ck_assert_uint_eq(h->r.set_aside, 0);
    memset(h->r.granted, 0, sizeof(h->r.granted));
}

static void
flush(struct store_log *observer)
{
    struct replica *r = container_of(observer, struct replica, observer);

    r->flushed = r->lsn;
}

static void
open_observed(struct history *h, uint64_t seed)
{
    struct engine_config config;

    memset(h, 0, sizeof(*h));
    h->story.f.now_ms = START_MS;
    h->story.f.mem = mem_new(0);
    config = fixture_config(h->story.f.mem);
    config.log = &h->r.observer;
    h->story.random.state = seed;
    h->r.random = &h->story.random;
    h->r.observer.reserve = reserve;
    h->r.observer.append = commit;
    h->r.observer.flush = flush;
    h->r.observer.unreserve = unreserve;
    ck_assert_status(engine_open(&config, &h->story.f.store), ST_OK);
    h->story.f.store = patient_open(h->story.f.store);
    h->story.f.queue = story_queue(0);
}

/* A kind of change that no history had so far; KINDS: there is none. Nothing takes a
 * checkpoint here. */
static size_t
missing_kind(const uint64_t told[KINDS])
{
    for (size_t i = STORE_CHANGE_QUEUE; i < KINDS; i++) {
        if (i == STORE_CHANGE_STATE)
            i = STORE_CHANGE_EXPIRED;
        if (told[i] == 0)
            return i;
    }
    return KINDS;
}

/* Plays histories, and a few more if they did not have all kinds of changes by chance. */
static void
run(const char *test, unsigned refuse, unsigned fail_memory)
{
    enum { HISTORY = 2000, MORE = 20 };

    struct random seeds = {random_seed(test)};
    const uint64_t operations = random_operations(6000);
    static struct history h;
    uint64_t told[KINDS] = {0}, told_transient = 0;

    for (uint64_t done = 0;
         done < operations || ((missing_kind(told) < KINDS || told_transient == 0) &&
                               done < operations + MORE * HISTORY);) {
        open_observed(&h, random_next(&seeds));
        h.r.refuse = refuse;
        h.fail_memory = fail_memory;
        for (uint64_t i = 1; i <= HISTORY; i++, done++) {
            step(&h);
            if (i % 10 == 0)
                compare(&h.story.f, &h.r);
        }
        compare(&h.story.f, &h.r);
        for (size_t i = 0; i < KINDS; i++)
            told[i] += h.r.told[i];
        told_transient += h.r.told_transient;
        fixture_close(&h.story.f);
    }
    ck_assert_msg(missing_kind(told) == KINDS, "no history had a change of kind %zu",
                  missing_kind(told));
    ck_assert_uint_gt(told_transient, 0);
}

START_TEST(a_replica_of_what_was_told_is_what_the_engine_shows)
{
    run("observer", 0, 0);
}

START_TEST(a_change_refused_by_the_observer_has_not_happened)
{
    run("observer that refuses", 20, 0);
}

START_TEST(changes_refused_for_memory_are_not_observed)
{
    run("observer without memory", 5, 20);
}

START_TEST(a_list_of_queues_waits_for_what_it_shows)
{
    struct store_queues queues = STORE_QUEUES_INIT;
    struct store_page page = {.project = bytes_str("p"), .limit = 10};
    static struct history h;
    struct store_op op;

    open_observed(&h, 1);
    for (int i = 0; i < 4; i++) {
        h.story.f.queue = story_queue((size_t)i);
        make_queue(&h.story.f, NULL);
        op = (struct store_op){.now_ms = h.story.f.now_ms};
        ck_assert_status(store_queue_list(h.story.f.store, &op, &page, &queues), ST_OK);
        ck_assert_uint_eq(queues.count, (size_t)i + 1);
        ck_assert_uint_eq(op.lsn, h.r.lsn);
        store_queues_release(&queues);
    }
    delete_queue(&h.story.f); /* that something has gone is seen, too */
    op = (struct store_op){.now_ms = h.story.f.now_ms};
    ck_assert_status(store_queue_list(h.story.f.store, &op, &page, &queues), ST_OK);
    ck_assert_uint_eq(op.lsn, h.r.lsn);
    store_queues_release(&queues);
    post(&h.story.f, 1);
    op = (struct store_op){.now_ms = h.story.f.now_ms};
    ck_assert_status(store_totals(h.story.f.store, &op, &(struct store_totals){0}),
                     ST_OK);
    ck_assert_uint_eq(op.lsn, h.r.lsn);
    fixture_close(&h.story.f);
}

START_TEST(an_operation_flushes_unless_the_caller_does_it_later)
{
    struct store_draft draft = {bytes_str("1"), 3600, 0};
    struct store_post one = {.drafts = &draft, .count = 1, .create_queue = true};
    struct store_op op;
    struct store_id id;
    static struct history h;

    open_observed(&h, 1);
    h.story.f.queue = story_queue(0);
    op = (struct store_op){.now_ms = h.story.f.now_ms, .flush_later = true};
    ck_assert_status(
        store_message_post(h.story.f.store, &op, &h.story.f.queue, &one, &id), ST_OK);
    ck_assert_uint_eq(op.lsn, 2);
    ck_assert_uint_eq(h.r.flushed, 0);
    store_log_flush(&h.r.observer);
    ck_assert_uint_eq(h.r.flushed, 2);
    op.flush_later = false;
    ck_assert_status(
        store_message_post(h.story.f.store, &op, &h.story.f.queue, &one, &id), ST_OK);
    ck_assert_uint_eq(h.r.flushed, 3);
    fixture_close(&h.story.f);
}

START_TEST(an_operation_without_changes_waits_for_no_commit)
{
    struct store_op op;
    static struct history h;

    open_observed(&h, 1);
    h.story.f.queue = story_queue(0);
    op = (struct store_op){.now_ms = h.story.f.now_ms};
    ck_assert_status(store_queue_stats(h.story.f.store, &op, &h.story.f.queue,
                                       &(struct store_stats){0}),
                     ST_NOT_FOUND);
    ck_assert_uint_eq(op.lsn, 0);
    post(&h.story.f, 1);
    h.story.f.queue = story_queue(1); /* another one */
    make_queue(&h.story.f, NULL);
    h.story.f.queue = story_queue(0);
    op = (struct store_op){.now_ms = h.story.f.now_ms};
    ck_assert_status(store_queue_stats(h.story.f.store, &op, &h.story.f.queue,
                                       &(struct store_stats){0}),
                     ST_OK);
    ck_assert_uint_eq(op.lsn, 2); /* the queue, and its message */
    fixture_close(&h.story.f);
}
