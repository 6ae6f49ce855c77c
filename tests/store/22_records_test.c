/* Reading queues as records, and applying records to any store (store/state.h). */
#include "support/dead_letters.h"
#include "support/subscriptions.h"

STORE_CASE("records");

enum { SLICES = 16 };

/* All slices of a queue. */
struct set {
    struct store_records slices[SLICES];
    size_t count;
};

static void
read_all(struct fixture *f, struct set *set)
{
    struct store_records records = STORE_RECORDS_INIT;

    set->count = 0;
    do {
        ck_assert_uint_lt(set->count, SLICES);
        ck_assert_status(store_read(f->store, STORE_AT(f->now_ms), &f->queue, &records),
                         ST_OK);
        set->slices[set->count++] = records;
        records.store = NULL; /* the album's */
        store_records_release(&records);
    } while (set->slices[set->count - 1].more);
}

static void
throw_away(struct set *set)
{
    while (set->count > 0)
        store_records_release(&set->slices[--set->count]);
}

static enum status
apply(struct fixture *f, const struct store_record *records, size_t count)
{
    enum status st =
        store_apply(f->store, STORE_AT(f->now_ms), &f->queue, records, count);

    fixture_audit(f);
    return st;
}

static enum status
apply_slice(struct fixture *f, const struct store_records *slice)
{
    return apply(f, slice->all, slice->count);
}

/* Deletes the queue for good: restarts are tried only where no work is left. */
static void
delete_wholly(struct fixture *f)
{
    delete_queue(f);
    housekeep(f);
}

/* Deletes the queue, and loads what the album shows. */
static void
put_back(struct fixture *f, const struct set *set)
{
    delete_wholly(f);
    for (size_t i = 0; i < set->count; i++)
        ck_assert_status(apply_slice(f, &set->slices[i]), ST_OK);
}

static void
expect_same_id(const struct store_id *a, const struct store_id *b)
{
    ck_assert_str_eq(a->text, b->text);
}

static void
expect_same_message(const struct store_message_record *m,
                    const struct store_message_record *n)
{
    expect_same_id(&m->id, &n->id);
    ck_assert(bytes_equal(m->body, n->body));
    ck_assert_uint_eq(m->client, n->client);
    ck_assert_int_eq(m->posted_ms, n->posted_ms);
    ck_assert_int_eq(m->expires_ms, n->expires_ms);
    ck_assert_int_eq(m->delayed_until_ms, n->delayed_until_ms);
    ck_assert_uint_eq(m->claim_count, n->claim_count);
    ck_assert_int_eq(m->checksum == NULL, n->checksum == NULL);
    ck_assert_int_eq(m->claim == NULL, n->claim == NULL);
    if (m->claim != NULL) {
        expect_same_id(&m->claim->id, &n->claim->id);
        ck_assert_int_eq(m->claim->started_ms, n->claim->started_ms);
        ck_assert_int_eq(m->claim->ends_ms, n->claim->ends_ms);
    }
}

static void
expect_same_subscription(const struct store_subscription_record *s,
                         const struct store_subscription_record *t)
{
    expect_same_id(&s->id, &t->id);
    ck_assert(bytes_equal(s->subscriber, t->subscriber));
    ck_assert(bytes_equal(s->options, t->options));
    ck_assert_int_eq(s->started_ms, t->started_ms);
    ck_assert_int_eq(s->ttl_s, t->ttl_s);
    ck_assert_int_eq(s->confirmed, t->confirmed);
    ck_assert_uint_eq(s->pending, t->pending);
    ck_assert_uint_eq(s->delivered, t->delivered);
}

static void
expect_same_record(const struct store_record *r, const struct store_record *s)
{
    ck_assert_int_eq(r->kind, s->kind);
    if (r->kind == STORE_RECORD_MESSAGE)
        expect_same_message(&r->message, &s->message);
    else if (r->kind == STORE_RECORD_SUBSCRIPTION)
        expect_same_subscription(&r->subscription, &s->subscription);
    else
        ck_assert(bytes_equal(r->metadata.json, s->metadata.json));
}

/* The queue has what the album has. */
static void
expect_set(struct fixture *f, const struct set *a)
{
    struct set b;

    read_all(f, &b);
    ck_assert_uint_eq(a->count, b.count);
    for (size_t i = 0; i < a->count; i++) {
        ck_assert_uint_eq(a->slices[i].count, b.slices[i].count);
        for (size_t k = 0; k < a->slices[i].count; k++)
            expect_same_record(&a->slices[i].all[k], &b.slices[i].all[k]);
    }
    throw_away(&b);
}

/* A message as it was written. */
static struct store_record
written(const struct fixture *f, const char *body)
{
    return (struct store_record){.kind = STORE_RECORD_MESSAGE,
                                 .message = {.body = bytes_str(body),
                                             .posted_ms = f->now_ms - 5000,
                                             .expires_ms = f->now_ms + 60000}};
}

/* A queue without metadata. */
static struct store_record
plain_queue(void)
{
    return (struct store_record){.kind = STORE_RECORD_QUEUE,
                                 .metadata.settings = STORE_SETTINGS_INIT};
}

/* ---------------------------------------------------------------------- round */

STORE_TEST(dumped_records_can_be_loaded_and_are_equal)
{
    struct store_id first, second;
    struct set set;

    post(f, 6);
    post_with(f, 600, 60); /* 7 */
    first = take_for(f, 2, 120, 60);
    wait_s(f, 7);
    second = take_for(f, 1, 200, 60);
    ck_assert(!id_empty(first) && !id_empty(second));
    read_all(f, &set);
    put_back(f, &set);
    expect_set(f, &set);
    throw_away(&set);
}

STORE_TEST(a_claim_that_was_loaded_finishes_renews_and_releases_with_its_id)
{
    struct store_id a, b, c;
    struct set set;

    post(f, 6);
    a = take_for(f, 2, 120, 60); /* 1 2 */
    b = take_for(f, 2, 120, 60); /* 3 4 */
    read_all(f, &set);
    put_back(f, &set);
    throw_away(&set);
    ck_assert_status(delete_claimed(f, 1, a), ST_OK);
    ck_assert_status(delete_unclaimed(f, 2), ST_CLAIMED);
    ck_assert_status(renew(f, b, 300, 60), ST_OK);
    release(f, a);
    c = take(f, 10);
    expect(f, 2, 5, 6); /* each at its old place */
    ck_assert(!id_same(c, a) && !id_same(c, b));
    ck_assert_status(query(f, b), ST_OK);
    expect(f, 3, 4);
}

STORE_TEST(deadlines_that_were_loaded_come_as_before)
{
    struct set set;

    post_with(f, 100, STORE_UNSET); /* 1 */
    post_with(f, 600, 60);          /* 2 */
    post(f, 1);                     /* 3 */
    take_for(f, 1, 80, 60);         /* 1: lives 140 s now */
    wait_s(f, 10);
    read_all(f, &set);
    put_back(f, &set);
    throw_away(&set);
    expect_times(f, 1, 140, 10);
    wait_s(f, 49);
    list_ready(f);
    expect(f, 3);
    wait_s(f, 1);
    list_ready(f);
    expect(f, 2, 3);
    wait_s(f, 20);
    list_ready(f);
    expect(f, 1, 2, 3);
    wait_s(f, 60);
    list_all(f);
    expect(f, 2, 3);
}

STORE_TEST(claims_that_were_loaded_move_their_dead_letters_without_a_request)
{
    struct set set;

    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 1);
    take_for(f, 1, 60, 60);
    read_all(f, &set);
    put_back(f, &set);
    throw_away(&set);
    wait_s(f, 60);
    housekeep(f);
    use(f, "failed");
    list_ready(f);
    expect(f, 1);
}

STORE_TEST(changes_made_before_a_load_are_kept)
{
    struct set set;

    post_with(f, 100, STORE_UNSET); /* 1 */
    post(f, 1);                     /* 2 */
    wait_s(f, 1);
    take_for(f, 2, 60, 60);
    read_all(f, &set);
    delete_wholly(f);
    wait_s(f, 300);
    for (size_t i = 0; i < set.count; i++)
        ck_assert_status(apply_slice(f, &set.slices[i]), ST_OK);
    throw_away(&set);
    list_ready(f);
    expect(f, 2);
}

STORE_TEST(dead_letters_go_on_counting)
{
    struct set set;

    make_dead_lettering(f, "q", 3, "failed", STORE_UNSET);
    post(f, 2);
    wear_out(f, 2, 2);
    read_all(f, &set);
    put_back(f, &set);
    throw_away(&set);
    wear_out(f, 2, 1);
    take(f, 10); /* moves them */
    expect_nothing(f);
    expect_only_in(f, 1, "failed");
    expect_only_in(f, 2, "failed");
}

STORE_TEST(a_queue_of_many_slices_is_whole_and_so_is_a_claim_that_spans_them)
{
    struct store_id claim;
    struct set set;

    post(f, 400);
    claim = take_for(f, 300, 120, 60);
    read_all(f, &set);
    put_back(f, &set);
    expect_set(f, &set);
    throw_away(&set);
    ck_assert_status(query(f, claim), ST_OK);
    ck_assert_uint_eq(f->seen.count, 300);
    expect_stats(f, 300, 100);
    release(f, claim);
    expect_stats(f, 0, 400);
}

STORE_CASE("subscriptions in records");

static size_t
count_subscriptions(const struct set *set)
{
    size_t count = 0;

    for (size_t i = 0; i < set->count; i++)
        for (size_t k = 0; k < set->slices[i].count; k++)
            count += set->slices[i].all[k].kind == STORE_RECORD_SUBSCRIPTION;
    return count;
}

STORE_TEST(subscriptions_are_shown_and_loaded_behind_all_that_is_there)
{
    struct store_delivery delivery;
    struct store_id id;
    struct set set;

    id = subscribe(f, "http://a", 600);
    subscribe(f, "http://b", 60);
    post(f, 1);
    wait_s(f, 60); /* b has gone */
    read_all(f, &set);
    ck_assert_uint_eq(count_subscriptions(&set), 1);
    put_back(f, &set);
    expect_set(f, &set);
    throw_away(&set);
    expect_nothing_due(f);
    post(f, 1);
    expect_next(f, &delivery, id, 2);
    delivered(f, &delivery);
}

STORE_TEST_WITH(an_unconfirmed_subscriber_gets_another_confirmation,
                fixture_open_confirming(f, _i))
{
    struct store_delivery delivery;
    struct store_id id;
    struct set set;

    id = subscribe(f, "http://a", 600);
    read_all(f, &set);
    put_back(f, &set);
    throw_away(&set);
    expect_notice(f, &delivery, id, STORE_NOTICE_CONFIRM);
    delivered(f, &delivery);
    read_all(f, &set);
    put_back(f, &set);
    throw_away(&set);
    expect_nothing_due(f);
    confirm(f, id, true);
}

STORE_CASE("no queue");

STORE_TEST(a_queue_that_is_not_there_has_no_records)
{
    struct store_records records = STORE_RECORDS_INIT;

    ck_assert_status(store_read(f->store, STORE_AT(f->now_ms), &f->queue, &records),
                     ST_NOT_FOUND);
}

/* ------------------------------------------------------------------- written by hand */

STORE_CASE("applying");

STORE_TEST(ids_that_are_left_out_are_made)
{
    struct store_claim_record claim = {.id = {""}};
    struct store_record records[4];
    struct store_id held;

    claim.started_ms = f->now_ms - 1000;
    claim.ends_ms = f->now_ms + 30000;
    records[0] = plain_queue();
    for (int i = 1; i <= 3; i++)
        records[i] = written(f, "{}");
    records[2].message.claim = &claim;
    ck_assert_status(apply(f, records, 4), ST_OK);
    list_all(f);
    ck_assert_uint_eq(f->seen.count, 3);
    ck_assert_int_eq(f->seen.messages[0].age_s, 5);
    ck_assert_int_eq(f->seen.messages[0].ttl_s, 65);
    held = f->seen.messages[1].claim_id;
    ck_assert(!id_empty(held) && id_empty(f->seen.messages[0].claim_id));
    ck_assert_status(query(f, held), ST_OK);
    ck_assert_uint_eq(f->seen.count, 1);
}

STORE_TEST(messages_with_one_claim_record_share_a_claim)
{
    struct store_claim_record claims[2] = {{.id = {""}}, {.id = {""}}};
    struct store_record records[5];

    for (size_t i = 0; i < 2; i++) {
        claims[i].started_ms = f->now_ms;
        claims[i].ends_ms = f->now_ms + 30000;
    }
    records[0] = plain_queue();
    for (size_t i = 0; i < 4; i++) {
        records[1 + i] = written(f, "{}");
        records[1 + i].message.claim = &claims[i % 2];
    }
    ck_assert_status(apply(f, records, 5), ST_OK);
    list_all(f);
    ck_assert(id_same(f->seen.messages[0].claim_id, f->seen.messages[2].claim_id));
    ck_assert(id_same(f->seen.messages[1].claim_id, f->seen.messages[3].claim_id));
    ck_assert(!id_same(f->seen.messages[0].claim_id, f->seen.messages[1].claim_id));
}

static struct store_record
written_subscription(const struct fixture *f, const char *subscriber, const char *id)
{
    return (struct store_record){.kind = STORE_RECORD_SUBSCRIPTION,
                                 .subscription = {.id = text_id(id),
                                                  .subscriber = bytes_str(subscriber),
                                                  .options = bytes_str("{}"),
                                                  .started_ms = f->now_ms,
                                                  .ttl_s = 600}};
}

STORE_TEST(ids_of_subscriptions_sort_behind_those_that_were_loaded)
{
    struct store_record records[4];
    struct store_id last = {""}, marker;

    records[0] = plain_queue();
    records[1] = written_subscription(f, "http://a", "c00000000000000000000007");
    records[2] = written_subscription(f, "http://b", "");
    records[3] = written_subscription(f, "http://c", "");
    ck_assert_status(apply(f, records, 4), ST_OK);
    subscribe(f, "http://d", 600);
    ck_assert_uint_eq(list_subscriptions(f, "", 5, &marker), 4);
    for (size_t i = 0; i < 4; i++) {
        const struct store_id id = f->subscriptions.views[i].id;

        ck_assert_msg(strcmp(last.text, id.text) < 0, "%s, then %s", last.text, id.text);
        last = id;
    }
}

STORE_TEST(numbers_of_claims_go_on_behind_the_largest_one)
{
    struct store_claim_record claim = {.id = text_id("abcdefabcdef000000001000")};
    struct store_record records[2];
    uint64_t number;

    claim.started_ms = f->now_ms;
    claim.ends_ms = f->now_ms + 60000;
    records[0] = plain_queue();
    records[1] = written(f, "1");
    records[1].message.claim = &claim;
    ck_assert_status(apply(f, records, 2), ST_OK);
    ck_assert_status(query(f, claim.id), ST_OK);
    number = f->seen.claim_number;
    post(f, 1);
    take(f, 1);
    ck_assert_uint_gt(f->seen.claim_number, number);
}

STORE_TEST(claims_and_subscriptions_may_have_numbers_far_apart)
{
    static const char *const claim_ids[] = {"abcdefabcdef000000000001",
                                            "bbcdefabcdef000000001000",
                                            "cbcdefabcdef000001000000"};
    static const char *const subscription_ids[] = {"c00000000000000000000001",
                                                   "c00000000001000000001000",
                                                   "c00000000002000001000000"};
    struct store_claim_record claims[3];
    struct store_record records[7];

    records[0] = plain_queue();
    for (size_t i = 0; i < 3; i++) {
        claims[i] = (struct store_claim_record){.id = text_id(claim_ids[i]),
                                                .started_ms = f->now_ms,
                                                .ends_ms = f->now_ms + 60000};
        records[1 + i] = written(f, "1");
        records[1 + i].message.claim = &claims[i];
    }
    records[4] = written_subscription(f, "http://a", subscription_ids[0]);
    records[5] = written_subscription(f, "http://b", subscription_ids[1]);
    records[6] = written_subscription(f, "http://c", subscription_ids[2]);
    ck_assert_status(apply(f, records, 7), ST_OK);
    for (size_t i = 0; i < 3; i++)
        ck_assert_status(query(f, claims[i].id), ST_OK);
}

/* Applies a first slice without the queue. */
static enum status
apply_messages(struct fixture *f, const struct store_records *slice)
{
    return apply(f, slice->all + 1, slice->count - 1);
}

STORE_TEST(an_existing_record_is_a_conflict_and_nothing_changes)
{
    struct set set;

    post(f, 2);
    take(f, 1);
    read_all(f, &set);
    ck_assert_status(apply_slice(f, &set.slices[0]), ST_CONFLICT);
    ck_assert_status(apply_messages(f, &set.slices[0]), ST_CONFLICT); /* its ids */
    expect_stats(f, 1, 1);
    delete_queue(f);
    ck_assert_status(apply_messages(f, &set.slices[0]), ST_NOT_FOUND);
    throw_away(&set);
}

STORE_CASE("subscribed");

STORE_TEST(loaded_messages_are_not_sent_to_subscribers)
{
    struct set set;

    post(f, 1);
    read_all(f, &set);
    delete_queue(f);
    subscribe(f, "http://a", 600);
    ck_assert_status(apply_messages(f, &set.slices[0]), ST_CONFLICT);
    throw_away(&set);
}

/* The log of an engine gets them in several changes. */
START_TEST(many_large_records_are_applied_at_once)
{
    enum { MESSAGES = 1000 };
    static struct store_record records[1 + MESSAGES];
    static char body[1000];
    struct fixture f;

    fixture_open(&f, _i);
    memset(body, '1', sizeof(body) - 1);
    records[0] = plain_queue();
    for (int i = 1; i <= MESSAGES; i++)
        records[i] = written(&f, body);
    ck_assert_status(apply(&f, records, 1 + MESSAGES), ST_OK);
    fixture_restart(&f);
    ck_assert_uint_eq(stats(&f).total, MESSAGES);
    fixture_close(&f);
}

STORE_CASE("refusals");

STORE_TEST(an_encrypting_queue_takes_sealed_bodies_only)
{
    struct store_record records[2];

    records[0] = plain_queue();
    records[0].metadata.settings.encrypt = true;
    records[1] = written(f, "1");
    ck_assert_status(apply(f, records, 2), ST_NOT_SEALED);
    records[1].message.body = bytes_str("\x01"
                                        "abc");
    ck_assert_status(apply(f, records, 2), ST_OK);
    use(f, "other"); /* the fixture itself posts to q */
    use(f, "q");
    delete_queue(f);
}

/* A queue and two messages, the second of them held by a claim. */
struct sample {
    struct store_record records[3];
    struct store_claim_record claim;
};

static void
two_ids(struct sample *s, int64_t now_ms)
{
    (void)now_ms;
    s->records[1].message.id = s->records[2].message.id =
        text_id("abcdefabcdef000000001000");
}

static void
no_id(struct sample *s, int64_t now_ms)
{
    (void)now_ms;
    s->records[2].message.id = text_id("ABCDEFABCDEF000000001000");
}

static void
queue_in_the_middle(struct sample *s, int64_t now_ms)
{
    (void)now_ms;
    s->records[1] = plain_queue();
}

static void
held_and_delayed(struct sample *s, int64_t now_ms)
{
    s->records[1].message.claim = &s->claim;
    s->records[1].message.delayed_until_ms = now_ms + 1;
}

static void
no_number(struct sample *s, int64_t now_ms)
{
    (void)now_ms;
    s->claim.id = text_id("abcdefabcdef000000000000");
}

static void
backwards(struct sample *s, int64_t now_ms)
{
    s->claim.ends_ms = now_ms - 1;
}

static void
endless(struct sample *s, int64_t now_ms)
{
    (void)now_ms;
    s->records[1].message.expires_ms = INT64_MAX;
}

static void
long_delay(struct sample *s, int64_t now_ms)
{
    (void)now_ms;
    s->records[1].message.delayed_until_ms = s->records[1].message.expires_ms + 1;
}

static void
no_body(struct sample *s, int64_t now_ms)
{
    (void)now_ms;
    s->records[2].message.body = bytes_str("");
}

static void
two_subscriptions(struct sample *s, int64_t now_ms)
{
    for (size_t i = 1; i <= 2; i++)
        s->records[i] = (struct store_record){
            .kind = STORE_RECORD_SUBSCRIPTION,
            .subscription = {
                .subscriber = bytes_str("http://a"), .started_ms = now_ms, .ttl_s = 1}};
}

static const struct store_details keyed = {.unique = {.key = BYTES_LIT("k")}};

static void
two_keys(struct sample *s, int64_t now_ms)
{
    (void)now_ms;
    s->records[1].message.details = s->records[2].message.details = &keyed;
}

static void
long_key(struct sample *s, int64_t now_ms)
{
    static char key[STORE_UNIQUE_MAX + 1];
    static const struct store_details details = {.unique = {.key = {key, sizeof(key)}}};

    (void)now_ms;
    memset(key, 'k', sizeof(key));
    s->records[1].message.details = &details;
}

static const struct {
    void (*spoil)(struct sample *s, int64_t now_ms);
    const char *member;
    size_t index;
} flaws[] = {
    {two_ids, "id", 2},
    {no_id, "id", 2},
    {held_and_delayed, "claim", 1},
    {no_number, "claim.id", 2},
    {backwards, "claim.ttl", 2},
    {endless, "ttl", 1},
    {long_delay, "delay", 1},
    {no_body, "body", 2},
    {queue_in_the_middle, "metadata", 1},
    {two_subscriptions, "subscriber", 2},
    {two_keys, "details.unique", 2},
    {long_key, "details.unique", 1},
};

STORE_TEST(records_that_make_no_sense_are_refused_and_the_flaw_is_reported)
{
    for (size_t i = 0; i < sizeof(flaws) / sizeof(flaws[0]); i++) {
        struct sample s = {{plain_queue(), written(f, "1"), written(f, "2")},
                           {.started_ms = f->now_ms, .ends_ms = f->now_ms + 1000}};
        struct store_flaw flaw;

        s.records[2].message.claim = &s.claim;
        flaws[i].spoil(&s, f->now_ms);
        ck_assert_status(store_records_check(f->mem, s.records, 3, &flaw), ST_BAD_VALUE);
        ck_assert_str_eq(flaw.member, flaws[i].member);
        ck_assert_uint_eq(flaw.index, flaws[i].index);
        ck_assert_status(apply(f, s.records, 3), ST_BAD_VALUE);
    }
}
