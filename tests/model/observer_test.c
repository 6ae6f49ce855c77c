/*
 * An observer is told of every change once and in order (store/observer.h): a replica that
 * is made of nothing but what was told is at any time what the engine shows. What an
 * observer refuses has not happened, and what an operation has seen it waits for.
 */
#include "claimd/store/observer.h"

#include "support/patient.h"
#include "support/random.h"
#include "support/store_fixture.h"

#include <inttypes.h>
#include <stdio.h>

enum { QUEUES = 8, ROOM = 4096, CLAIMS = 1024, KNOWN = 64 };
enum { KINDS = STORE_CHANGE_IMAGE_QUEUE }; /* nobody sweeps here */

/* ---------------------------------------------------------------------- the replica */

struct copy {
    struct store_changed_message m; /* without body and checksum */
    char body[16];
    uint8_t sum; /* first byte of its checksum; 0: none */
    uint64_t claim;
};

struct lease {
    struct store_id id;
    uint64_t number;
    int64_t started_ms, ends_ms;
};

struct replica_queue {
    bool there;
    uint32_t tag;
    uint64_t fence_base, last_number, last_claim;
    char json[32];
    int64_t max_claim_count;
    char dead_letter[8];
    struct copy messages[ROOM]; /* in the order of their numbers */
    size_t message_count;
    struct lease leases[CLAIMS];
    size_t lease_count;
};

struct replica {
    struct store_observer observer;
    struct replica_queue queues[QUEUES];
    uint64_t position;     /* of the latest change */
    uint64_t seen[QUEUES]; /* position of the latest change of a queue of this address */
    unsigned granted[KINDS];
    size_t room[KINDS]; /* messages of the latest grant */
    size_t set_aside;   /* and not used or given back yet: one for each grant */
    uint64_t changes;   /* but for what time did */
    uint64_t told[KINDS];
    struct random *random;
    unsigned refuse; /* percent */
    bool refused;    /* in the operation under way */
};

static const char *const names[QUEUES] = {"a", "b", "c", "d", "a", "b", "c", "d"};

static struct store_queue
address(size_t i)
{
    return (struct store_queue){.project = bytes_str(i < 4 ? "p" : "r"),
                                .name = bytes_str(names[i])};
}

static size_t
index_of(const struct store_queue *queue)
{
    for (size_t i = 0; i < QUEUES; i++) {
        struct store_queue at = address(i);

        if (bytes_equal(at.project, queue->project) && bytes_equal(at.name, queue->name))
            return i;
    }
    ck_abort_msg("an unknown queue %.*s", (int)queue->name.len, queue->name.data);
}

static struct replica_queue *
known_queue(struct replica *r, const struct store_queue *queue, uint32_t tag)
{
    struct replica_queue *q = &r->queues[index_of(queue)];

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
set_copy(struct copy *c, const struct store_changed_message *m)
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
same_message(const struct copy *c, const struct store_changed_message *m)
{
    struct copy now = *c;

    set_copy(&now, m);
    ck_assert_str_eq(now.body, c->body);
    ck_assert_uint_eq(now.sum, c->sum);
    ck_assert_uint_eq(now.m.client, c->m.client);
    ck_assert_str_eq(now.m.id.text, c->m.id.text);
}

static void
add_copy(struct replica_queue *q, const struct store_changed_message *m)
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
}

static void
change_queue(struct replica *r, const struct store_change *change)
{
    struct replica_queue *q = &r->queues[index_of(&change->queue)];

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
        if (q->leases[i].number == change->claim_number) {
            ck_assert_str_eq(q->leases[i].id.text, change->claim_id.text);
            return &q->leases[i];
        }
    if (change->kind != STORE_CHANGE_CLAIM)
        ck_abort_msg("claim %" PRIu64 " is not in the replica", change->claim_number);
    ck_assert_uint_gt(change->claim_number, q->last_claim);
    q->last_claim = change->claim_number;
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
    struct store_changed_message m;
    size_t held = 0, count = change->count, told = 0;

    *lease_of(q, change) =
        (struct lease){change->claim_id, change->claim_number, change->claim_started_ms,
                       change->claim_ends_ms};
    for (size_t i = 0; i < q->message_count; i++)
        held += q->messages[i].claim == change->claim_number;
    while (change->next(change, &m)) {
        struct copy *c = find_copy(q, m.number);

        same_message(c, &m);
        ck_assert_uint_eq(c->claim, fresh ? 0 : change->claim_number);
        set_copy(c, &m);
        c->claim = over ? 0 : change->claim_number;
        told++;
    }
    ck_assert_uint_eq(told, count);
    if (!fresh)
        ck_assert_uint_eq(told, held);
    if (over)
        drop_lease(q, change->claim_number);
}

static void
change_messages(struct replica *r, struct store_change *change)
{
    struct replica_queue *q = known_queue(r, &change->queue, change->tag);
    struct store_changed_message m;
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

static bool
by_time(enum store_change_kind kind)
{
    return kind == STORE_CHANGE_EXPIRED || kind == STORE_CHANGE_DELAY_OVER ||
           kind == STORE_CHANGE_CLAIM_OVER;
}

static enum status
reserve(struct store_observer *observer, enum store_change_kind kind, size_t count,
        size_t bytes, size_t *room)
{
    struct replica *r = (struct replica *)observer;

    (void)bytes;
    ck_assert(!by_time(kind));
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
give_back(struct store_observer *observer, size_t room)
{
    struct replica *r = (struct replica *)observer;

    ck_assert_uint_le(room, r->set_aside);
    r->set_aside -= room;
}

static uint64_t
commit(struct store_observer *observer, struct store_change *change, size_t *room)
{
    struct replica *r = (struct replica *)observer;
    size_t count = change->count;

    r->told[change->kind]++;
    if (change->kind <= STORE_CHANGE_PURGE)
        change_queue(r, change);
    else if (change->kind == STORE_CHANGE_CLAIM || change->kind == STORE_CHANGE_RENEW ||
             change->kind == STORE_CHANGE_RELEASE ||
             change->kind == STORE_CHANGE_CLAIM_OVER)
        change_claim(r, change);
    else
        change_messages(r, change);
    if (by_time(change->kind))
        return 0;
    ck_assert_uint_gt(*room, 0);
    --*room;
    r->set_aside--;
    ck_assert_uint_gt(r->granted[change->kind], 0);
    r->granted[change->kind]--;
    ck_assert_uint_le(count, r->room[change->kind]);
    r->changes++;
    r->seen[index_of(&change->queue)] = ++r->position;
    if (change->kind == STORE_CHANGE_MOVE)
        r->seen[index_of(&change->target)] = r->position;
    return r->position;
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
compare_queue(struct fixture *f, struct replica *r, size_t i)
{
    const struct replica_queue *q = &r->queues[i];
    const struct store_filter all = {
        .limit = q->message_count + 1, .include_claimed = true, .include_delayed = true};
    const struct store_filter prompt = {.limit = all.limit, .include_claimed = true};
    struct store_queues shown = STORE_QUEUES_INIT;
    enum status st;

    f->queue = address(i);
    st = store_queue_get(f->store, STORE_AT(f->now_ms), &f->queue, &shown);
    ck_assert_status(st, q->there ? ST_OK : ST_NOT_FOUND);
    if (!q->there)
        return;
    ck_assert(bytes_equal(shown.queues[0].metadata.json, bytes_str(q->json)));
    ck_assert_int_eq(shown.queues[0].metadata.settings.max_claim_count,
                     q->max_claim_count);
    ck_assert(bytes_equal(shown.queues[0].metadata.settings.dead_letter,
                          bytes_str(q->dead_letter)));
    store_queues_release(&shown);
    list(f, &all); /* what is due happens, and is told */
    ck_assert_uint_eq(f->seen.count, q->message_count);
    for (size_t k = 0; k < q->message_count; k++)
        compare_message(f, q, &q->messages[k], &f->seen.messages[k]);
    list(f, &prompt);
    ck_assert_uint_eq(f->seen.count, q->message_count - count_delayed(q));
    compare_claims(f, q);
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
    struct fixture f;
    struct replica r;
    struct random random;
    struct store_id messages[KNOWN], claims[KNOWN];
    size_t message_queues[KNOWN], claim_queues[KNOWN];
    uint64_t message_count, claim_count, bodies;
    unsigned fail_memory; /* percent */
};

static uint64_t
below(struct history *h, uint64_t n)
{
    return random_below(&h->random, n);
}

static struct bytes
some_id(struct history *h, const struct store_id *ids, const size_t *queues,
        uint64_t known, size_t queue)
{
    size_t i = 0;

    if (known > KNOWN)
        known = KNOWN;
    if (known == 0 || below(h, 30) == 0)
        return bytes_str("nonsense");
    for (int tries = 0; tries < 8; tries++) {
        i = below(h, known);
        if (queues[i] == queue)
            break;
    }
    return store_id_bytes(&ids[i]);
}

static struct bytes
some_message(struct history *h, size_t queue)
{
    return some_id(h, h->messages, h->message_queues, h->message_count, queue);
}

static struct bytes
some_claim(struct history *h, size_t queue)
{
    return some_id(h, h->claims, h->claim_queues, h->claim_count, queue);
}

static struct store_metadata
some_metadata(struct history *h)
{
    static const char *const documents[] = {"", "{}", "{\"a\":1}"};
    struct store_metadata md = {bytes_str(documents[below(h, 3)]), STORE_SETTINGS_INIT};

    if (below(h, 2) == 0)
        return md;
    md.settings.max_claim_count = 1 + (int64_t)below(h, 2);
    md.settings.dead_letter = bytes_str(names[below(h, 4)]); /* perhaps itself */
    if (below(h, 2) == 0)
        md.settings.dead_letter_ttl_s = 1 + (int64_t)below(h, 100);
    return md;
}

static enum status
do_post(struct history *h, struct store_visit *visit, size_t queue)
{
    struct store_queue where = address(queue);
    struct store_draft drafts[4];
    struct store_checksum sums[4];
    struct store_id ids[4];
    char bodies[4][16];
    struct store_post post = {.drafts = drafts,
                              .count = 1 + below(h, 4),
                              .client = below(h, 3),
                              .create_queue = below(h, 10) > 0};
    enum status st;

    for (size_t i = 0; i < post.count; i++) {
        snprintf(bodies[i], sizeof(bodies[i]), "%" PRIu64, h->bodies++);
        drafts[i].body = bytes_str(bodies[i]);
        drafts[i].ttl_s = 1 + (int64_t)below(h, 300);
        drafts[i].delay_s = below(h, 3) == 0 ? (int64_t)below(h, 40) : 0;
    }
    if (below(h, 4) == 0) {
        memset(sums, (int)(1 + below(h, 255)), sizeof(sums));
        post.checksums = sums;
    }
    st = store_message_post(h->f.store, visit, &where, &post, ids);
    for (size_t i = 0; st == ST_OK && i < post.count; i++) {
        size_t at = h->message_count++ % KNOWN;

        h->messages[at] = ids[i];
        h->message_queues[at] = queue;
    }
    return st;
}

static enum status
do_claim(struct history *h, struct store_visit *visit, size_t queue)
{
    const struct store_terms terms = {1 + (int64_t)below(h, 100),
                                      1 + (int64_t)below(h, 100)};
    struct store_batch batch = STORE_BATCH_INIT;
    struct store_queue where = address(queue);
    enum status st =
        store_claim_create(h->f.store, visit, &where, &terms, 1 + below(h, 5), &batch);

    if (st == ST_OK && batch.count > 0) {
        size_t at = h->claim_count++ % KNOWN;

        h->claims[at] = batch.claim_id;
        h->claim_queues[at] = queue;
        ck_assert_uint_gt(batch.claim_number, 0);
    }
    store_batch_release(&batch);
    return st;
}

static enum status
do_delete_many(struct history *h, struct store_visit *visit, size_t queue)
{
    struct store_queue where = address(queue);
    struct bytes ids[6], claim = some_claim(h, queue);
    size_t count = 1 + below(h, 6);
    bool strict = below(h, 3) == 0;

    for (size_t i = 0; i < count; i++)
        ids[i] = some_message(h, queue); /* some of them perhaps twice */
    return store_message_delete_many(h->f.store, visit, &where, ids, strict ? 1 : count,
                                     strict ? &claim : NULL, strict);
}

static enum status
do_update(struct history *h, struct store_visit *visit, size_t queue)
{
    struct store_metadata md = some_metadata(h);
    struct store_queues shown = STORE_QUEUES_INIT;
    struct store_queue where = address(queue);
    enum status st = store_queue_get(h->f.store, visit, &where, &shown);
    uint64_t version;

    if (st != ST_OK)
        return st;
    version = shown.queues[0].version;
    store_queues_release(&shown);
    return store_queue_update(h->f.store, visit, &where, version, &md);
}

static enum status
do_look(struct history *h, struct store_visit *visit, size_t queue)
{
    const struct store_filter filter = {.limit = 5};
    struct store_batch batch = STORE_BATCH_INIT;
    struct store_queue where = address(queue);
    struct bytes id = some_message(h, queue);
    enum status st;

    switch (below(h, 4)) {
    case 0:
        st = store_message_list(h->f.store, visit, &where, &filter, &batch);
        break;
    case 1:
        st = store_message_get(h->f.store, visit, &where, &id, 1, &batch);
        break;
    case 2:
        st = store_claim_get(h->f.store, visit, &where, some_claim(h, queue), &batch);
        break;
    default:
        return store_queue_stats(h->f.store, visit, &where, &(struct store_stats){0});
    }
    if (st == ST_OK)
        store_batch_release(&batch);
    return st;
}

static enum status
operate(struct history *h, struct store_visit *visit, size_t queue)
{
    const struct store_terms terms = {1 + (int64_t)below(h, 100), 10};
    struct store_queue where = address(queue);
    struct store *s = h->f.store;
    struct store_batch batch = STORE_BATCH_INIT;
    struct bytes claim = some_claim(h, queue);
    struct store_metadata md = some_metadata(h);
    uint64_t number;
    bool created;
    enum status st;

    switch (below(h, 30)) {
    case 0:
        return store_queue_create(s, visit, &where, &md, &created);
    case 1:
        return do_update(h, visit, queue);
    case 2:
        return store_queue_purge(s, visit, &where);
    case 3:
        if (below(h, 3) == 0)
            return store_queue_delete(s, visit, &where);
        return do_look(h, visit, queue);
    case 4:
    case 5:
        return store_message_delete(s, visit, &where, some_message(h, queue),
                                    below(h, 2) == 0 ? claim : BYTES_NONE);
    case 6:
        return do_delete_many(h, visit, queue);
    case 7:
        st = store_message_pop(s, visit, &where, 1 + below(h, 3), &batch);
        store_batch_release(&batch);
        return st;
    case 8:
        return store_claim_renew(s, visit, &where, claim, &terms, &number);
    case 9:
    case 10:
        return store_claim_release(s, visit, &where, claim);
    case 11:
        return store_claim_give_back(s, visit, &where, claim, below(h, 2) == 0);
    case 12:
    case 13:
    case 14:
        return do_look(h, visit, queue);
    case 15:
    case 16:
    case 17:
    case 18:
    case 19:
    case 20:
    case 21:
        return do_claim(h, visit, queue);
    default:
        return do_post(h, visit, queue);
    }
}

static void
move_time(struct history *h)
{
    int64_t next_ms = store_next_ms(h->f.store);

    switch (below(h, 8)) {
    case 0:
        h->f.now_ms += 1 + (int64_t)below(h, 20000);
        return;
    case 1:
        if (next_ms != INT64_MAX && next_ms > h->f.now_ms)
            h->f.now_ms = next_ms;
        return;
    case 2:
        store_housekeep(h->f.store, h->f.now_ms, &next_ms);
        return;
    default:
        return;
    }
}

/* What was granted is used at once, or never. */
static void
expect_grants_used(struct replica *r)
{
    for (size_t i = 0; i < KINDS; i++)
        ck_assert_msg(r->granted[i] == 0 || (r->refused && i == STORE_CHANGE_QUEUE),
                      "a change of kind %zu was granted in vain", i);
}

static void
step(struct history *h)
{
    struct store_visit visit;
    size_t queue = below(h, QUEUES);
    uint64_t changes = h->r.changes, moves = h->r.told[STORE_CHANGE_MOVE];
    enum status st;

    move_time(h);
    visit = (struct store_visit){.now_ms = h->f.now_ms};
    h->r.refused = false;
    if (below(h, 100) < h->fail_memory)
        mem_fail_nth(h->f.mem, 1 + below(h, 12));
    st = operate(h, &visit, queue);
    mem_fail_nth(h->f.mem, 0);
    ck_assert(store_audit(h->f.store));
    if (st == ST_UNAVAILABLE)
        ck_assert(h->r.refused);
    /* But for dead letters, which may have moved, a refusal changes nothing. */
    if (st != ST_OK && moves == h->r.told[STORE_CHANGE_MOVE])
        ck_assert_uint_eq(changes, h->r.changes);
    ck_assert_uint_le(visit.position, h->r.position);
    if (st != ST_NO_MEMORY) /* which it may have said before it saw anything */
        ck_assert_msg(visit.position >= h->r.seen[queue],
                      "at %" PRIu64 " it has seen %" PRIu64 ": %s", visit.position,
                      h->r.seen[queue], status_name(st));
    expect_grants_used(&h->r);
    ck_assert_uint_eq(h->r.set_aside, 0);
    memset(h->r.granted, 0, sizeof(h->r.granted));
}

static void
open_observed(struct history *h, uint64_t seed)
{
    struct engine_config config;

    memset(h, 0, sizeof(*h));
    h->f.now_ms = START_MS;
    h->f.mem = mem_new(0);
    config = fixture_config(h->f.mem);
    config.observer = &h->r.observer;
    h->random.state = seed;
    h->r.random = &h->random;
    h->r.observer.reserve = reserve;
    h->r.observer.commit = commit;
    h->r.observer.give_back = give_back;
    ck_assert_status(engine_open(&config, &h->f.store), ST_OK);
    h->f.store = patient_open(h->f.store);
    h->f.queue = address(0);
}

static void
run(const char *test, unsigned refuse, unsigned fail_memory)
{
    struct random seeds = {random_seed(test)};
    uint64_t left = random_operations(20000);
    static struct history h;
    uint64_t told[KINDS] = {0};

    while (left > 0) {
        open_observed(&h, random_next(&seeds));
        h.r.refuse = refuse;
        h.fail_memory = fail_memory;
        for (uint64_t i = 1; i <= 2000 && left > 0; i++, left--) {
            step(&h);
            if (i % 10 == 0)
                compare(&h.f, &h.r);
        }
        compare(&h.f, &h.r);
        for (size_t i = 0; i < KINDS; i++)
            told[i] += h.r.told[i];
        fixture_close(&h.f);
    }
    for (size_t i = 0; i < KINDS; i++)
        ck_assert_msg(told[i] > 0, "no history had a change of kind %zu", i);
}

START_TEST(a_replica_of_what_was_told_is_what_the_engine_shows)
{
    run("observer", 0, 0);
}
END_TEST

START_TEST(what_the_observer_refuses_has_not_happened)
{
    run("observer that refuses", 20, 0);
}
END_TEST

START_TEST(what_has_no_memory_is_not_told)
{
    run("observer without memory", 5, 20);
}
END_TEST

START_TEST(a_list_of_queues_waits_for_what_it_shows)
{
    struct store_queues queues = STORE_QUEUES_INIT;
    struct store_page page = {.project = bytes_str("p"), .limit = 10};
    static struct history h;
    struct store_visit visit;

    open_observed(&h, 1);
    for (int i = 0; i < 4; i++) {
        h.f.queue = address((size_t)i);
        make_queue(&h.f, NULL);
        visit = (struct store_visit){.now_ms = h.f.now_ms};
        ck_assert_status(store_queue_list(h.f.store, &visit, &page, &queues), ST_OK);
        ck_assert_uint_eq(queues.count, (size_t)i + 1);
        ck_assert_uint_eq(visit.position, h.r.position);
        store_queues_release(&queues);
    }
    delete_queue(&h.f); /* that something has gone is seen, too */
    visit = (struct store_visit){.now_ms = h.f.now_ms};
    ck_assert_status(store_queue_list(h.f.store, &visit, &page, &queues), ST_OK);
    ck_assert_uint_eq(visit.position, h.r.position);
    store_queues_release(&queues);
    post(&h.f, 1);
    visit = (struct store_visit){.now_ms = h.f.now_ms};
    ck_assert_status(store_totals(h.f.store, &visit, &(struct store_totals){0}), ST_OK);
    ck_assert_uint_eq(visit.position, h.r.position);
    fixture_close(&h.f);
}
END_TEST

START_TEST(who_sees_nothing_new_waits_for_nothing)
{
    struct store_visit visit;
    static struct history h;

    open_observed(&h, 1);
    h.f.queue = address(0);
    visit = (struct store_visit){.now_ms = h.f.now_ms};
    ck_assert_status(
        store_queue_stats(h.f.store, &visit, &h.f.queue, &(struct store_stats){0}),
        ST_NOT_FOUND);
    ck_assert_uint_eq(visit.position, 0);
    post(&h.f, 1);
    h.f.queue = address(1); /* another one */
    make_queue(&h.f, NULL);
    h.f.queue = address(0);
    visit = (struct store_visit){.now_ms = h.f.now_ms};
    ck_assert_status(
        store_queue_stats(h.f.store, &visit, &h.f.queue, &(struct store_stats){0}),
        ST_OK);
    ck_assert_uint_eq(visit.position, 2); /* the queue, and its message */
    fixture_close(&h.f);
}
END_TEST
