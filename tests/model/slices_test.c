/*
 * The engine's work in slices: no call does more than a slice of what has fallen due, of
 * dead letters, or of what a listing leaves out. An operation that adds data frees
 * garbage first, so that it never grows. Counted in calls and bytes, without
 * housekeeping.
 */
#include "support/delete.h"
#include "support/patient.h"
#include "support/store_fixture.h"
#include "support/subscriptions.h"

#include <stdio.h>

enum { MANY = 5000, BATCH = 500 };

/* Messages of this life, in posts of BATCH; their ids are not kept. */
static void
fill(struct fixture *f, int count, int64_t ttl_s)
{
    static struct store_id ids[BATCH];
    static struct store_draft drafts[BATCH];
    const struct store_post post = {
        .drafts = drafts, .count = BATCH, .client = 7, .create_queue = true};

    for (int i = 0; i < BATCH; i++)
        drafts[i] = (struct store_draft){BYTES_LIT("\"0123456789\""), ttl_s, 0};
    for (int i = 0; i < count / BATCH; i++)
        ck_assert_status(
            store_message_post(f->store, STORE_AT(f->now_ms), &f->queue, &post, ids),
            ST_OK);
}

/* The engine itself, which does not hide ST_AGAIN. */
static struct store *
engine(const struct fixture *f)
{
    return patient_inside(f->store);
}

TEST_CASE("slices");

STORE_TEST_WITH(a_claim_settles_a_slice_at_a_time, fixture_open(f, 1))
{
    const struct store_terms terms = {300, 60};
    struct store_batch batch = STORE_BATCH_INIT;
    enum status st;
    int calls = 0;

    fill(f, MANY, 60);
    fill(f, BATCH, 300);
    wait_s(f, 60); /* all at once */
    do {
        calls++;
        st = store_claim_create(engine(f), STORE_AT(f->now_ms), &f->queue, &terms, 3,
                                &batch);
    } while (st == ST_AGAIN);
    ck_assert_status(st, ST_OK);
    ck_assert_uint_eq(batch.count, 3);
    ck_assert_int_ge(calls, MANY / 1024);
    ck_assert_int_le(calls,
                     4 * MANY / 1024 + 2); /* a deadline moves down the wheel, too */
    store_batch_release(&batch);
    expect_stats(f, 3, BATCH - 3);
}

/* One call of each operation that depends on what is due. */
static enum status
call_one(struct fixture *f, int which)
{
    struct store_filter filter = {.limit = 5};
    struct bytes id = bytes_str("b00000000000000000000001");
    struct store_batch batch = STORE_BATCH_INIT;
    const struct store_terms terms = {300, 60};
    struct store_totals totals;
    struct store_stats stats;
    enum status st;

    switch (which) {
    case 0:
        st = store_message_list(engine(f), STORE_AT(f->now_ms), &f->queue, &filter,
                                &batch);
        break;
    case 1:
        st = store_message_get(engine(f), STORE_AT(f->now_ms), &f->queue, &id, 1, &batch);
        break;
    case 2:
        st = delete_message(engine(f), STORE_AT(f->now_ms), &f->queue, id, BYTES_NONE);
        break;
    case 3:
        st = delete_messages(engine(f), STORE_AT(f->now_ms), &f->queue, &id, 1, NULL, 0);
        break;
    case 4:
        st = store_message_pop(engine(f), STORE_AT(f->now_ms), &f->queue, 5, &batch);
        break;
    case 5:
        st = store_claim_get(engine(f), STORE_AT(f->now_ms), &f->queue, id, &batch);
        break;
    case 6:
        st = store_claim_renew(engine(f), STORE_AT(f->now_ms), &f->queue, id, &terms,
                               &(uint64_t){0});
        break;
    case 7:
        st = store_claim_release(engine(f), STORE_AT(f->now_ms), &f->queue, id,
                                 STORE_RELEASED);
        break;
    case 8:
        st = store_queue_stats(engine(f), STORE_AT(f->now_ms), &f->queue, &stats);
        break;
    default:
        st = store_totals(engine(f), STORE_AT(f->now_ms), &totals);
        break;
    }
    store_batch_release(&batch);
    return st;
}

/* Claims each by itself for a minute. The store is audited once, and not after each. */
static void
take_one_by_one(struct fixture *f)
{
    const struct store_terms terms = {60, 60};

    for (int i = 0; i < MANY; i++) {
        struct store_batch batch = STORE_BATCH_INIT;

        ck_assert_status(store_claim_create(f->store, STORE_AT(f->now_ms), &f->queue,
                                            &terms, 1, &batch),
                         ST_OK);
        ck_assert_uint_eq(batch.count, 1);
        store_batch_release(&batch);
    }
    expect_stats(f, MANY, 0);
}

LOOP_TEST(every_operation_that_settles_does_so_in_slices, 10)
{
    struct fixture f;

    fixture_open(&f, 1);
    fill(&f, MANY, 3600);
    take_one_by_one(&f); /* as many claims, all of which end at once */
    wait_s(&f, 60);
    ck_assert_status(call_one(&f, _i), ST_AGAIN);
    for (int calls = 0; call_one(&f, _i) == ST_AGAIN; calls++)
        ck_assert_int_lt(calls, 2 * MANY / 256); /* ends, however the slices are cut */
    expect_stats(&f, 0, _i == 4 ? MANY - 5 : MANY);
    fixture_close(&f);
}

/* Claims all messages, and gives them back as in Zaqar. */
static void
wear_out_all(struct fixture *f)
{
    static struct store_id claims[MANY / BATCH];

    for (size_t i = 0; i < MANY / BATCH; i++)
        claims[i] = take(f, BATCH);
    for (size_t i = 0; i < MANY / BATCH; i++)
        release(f, claims[i]);
}

STORE_TEST_WITH(dead_letters_of_expired_claims_leave_in_slices, fixture_open(f, 1))
{
    struct store_settings set = STORE_SETTINGS_INIT;
    struct store_stats stats;
    enum status st;
    int calls = 0;

    set.max_claim_count = 1;
    set.dead_letter = bytes_str("dead");
    make_queue(f, &set);
    fill(f, MANY, 3600);
    for (int i = 0; i < MANY / BATCH; i++)
        take_for(f, BATCH, 60, 60);
    wait_s(f, 60);
    do {
        calls++;
        st = store_queue_stats(engine(f), STORE_AT(f->now_ms), &f->queue, &stats);
    } while (st == ST_AGAIN);
    ck_assert_status(st, ST_OK);
    ck_assert_uint_eq(stats.total, 0);
    ck_assert_int_ge(calls, MANY / 1024);
    use(f, "dead");
    expect_stats(f, 0, MANY);
}

STORE_TEST_WITH(dead_letters_leave_in_slices, fixture_open(f, 1))
{
    struct store_settings set = STORE_SETTINGS_INIT;
    const struct store_terms terms = {300, 60};
    struct store_batch batch = STORE_BATCH_INIT;
    enum status st;
    int calls = 0;

    set.max_claim_count = 1;
    set.dead_letter = bytes_str("dead");
    make_queue(f, &set);
    fill(f, MANY, 3600);
    wear_out_all(f);
    expect_stats(f, 0, MANY);
    do {
        calls++;
        st = store_claim_create(engine(f), STORE_AT(f->now_ms), &f->queue, &terms, MANY,
                                &batch);
    } while (st == ST_AGAIN);
    ck_assert_status(st, ST_OK);
    ck_assert_uint_eq(batch.count, 0);
    store_batch_release(&batch);
    ck_assert_int_ge(calls, MANY / 1024);
    expect_stats(f, 0, 0);
    use(f, "dead");
    expect_stats(f, 0, MANY);
}

STORE_TEST_WITH(a_listing_looks_at_a_slice_and_goes_on_where_it_stood, fixture_open(f, 1))
{
    struct store_filter filter = {.limit = 5, .hide_client = true, .client = 7};
    struct store_batch batch = STORE_BATCH_INIT;
    enum status st;
    int calls = 0;

    fill(f, MANY, 3600); /* client 7 posts these */
    post(f, 2);
    do {
        calls++;
        st = store_message_list(engine(f), STORE_AT(f->now_ms), &f->queue, &filter,
                                &batch);
    } while (st == ST_AGAIN);
    ck_assert_status(st, ST_OK);
    ck_assert_uint_eq(batch.count, 2);
    ck_assert_int_eq(calls, MANY / 1024 + 1);
    store_batch_release(&batch);
}

STORE_TEST_WITH(a_page_that_shows_something_ends_early_and_leads_on, fixture_open(f, 1))
{
    struct store_filter filter = {.limit = 20, .hide_client = true, .client = 7};
    struct store_batch batch = STORE_BATCH_INIT;
    struct store_id marker;

    post(f, 1);
    fill(f, MANY, 3600);
    post(f, 1);
    ck_assert_status(
        store_message_list(engine(f), STORE_AT(f->now_ms), &f->queue, &filter, &batch),
        ST_OK);
    ck_assert_uint_eq(batch.count, 1);
    marker = batch.next;
    store_batch_release(&batch);
    filter.marker = store_id_bytes(&marker);
    list(f, &filter);
    expect(f, 2);
}

STORE_TEST_WITH(a_listing_ends_with_its_queue_even_if_there_is_a_new_one,
                fixture_open(f, 1))
{
    struct store_filter filter = {.limit = 5, .hide_client = true, .client = 7};
    struct store_batch batch = STORE_BATCH_INIT;

    fill(f, MANY, 3600);
    ck_assert_status(
        store_message_list(engine(f), STORE_AT(f->now_ms), &f->queue, &filter, &batch),
        ST_AGAIN);
    delete_queue(f);
    post(f, 3);
    ck_assert_status(
        store_message_list(engine(f), STORE_AT(f->now_ms), &f->queue, &filter, &batch),
        ST_OK);
    ck_assert_uint_eq(batch.count, 0);
    store_batch_release(&batch);
}

/* ---------------------------------------------------------------------- garbage */

TEST_CASE("garbage");

/* The most memory: one and a half of the live messages' share, and a little. */
static void
expect_no_garbage(const struct fixture *f, size_t most)
{
    ck_assert_msg(mem_used(f->mem) <= most + most / 2, "%zu bytes, not %zu",
                  mem_used(f->mem), most + most / 2);
}

/* Fills queues again and again after make_garbage has made their messages garbage. */
static void
expect_paid_for(int64_t ttl_s, void (*make_garbage)(struct fixture *f))
{
    struct fixture f;
    size_t full;

    fixture_open(&f, 1);
    fill(&f, MANY, ttl_s);
    full = mem_used(f.mem);
    for (int i = 0; i < 50; i++) {
        make_garbage(&f);
        /* It need not be the queue, nor the shard, that has the garbage. */
        use(&f, i % 2 == 0 ? "other" : "q");
        fill(&f, MANY, ttl_s);
        expect_no_garbage(&f, full);
    }
    fixture_close(&f);
}

static void
wait_a_minute(struct fixture *f)
{
    wait_s(f, 60);
}

START_TEST(a_post_frees_purged_messages)
{
    expect_paid_for(3600, purge);
}

START_TEST(a_post_frees_messages_of_deleted_queues)
{
    expect_paid_for(3600, delete_queue);
}

START_TEST(a_post_frees_messages_that_expired_unread)
{
    expect_paid_for(60, wait_a_minute);
}

STORE_TEST_WITH(garbage_is_no_reason_to_refuse_a_post, fixture_open(f, 1))
{
    fill(f, MANY, 3600);
    /* Spare nodes and the like; a quarter of it is not for messages. */
    mem_set_budget(f->mem, (mem_used(f->mem) + (128 << 10)) / 3 * 4);
    for (int i = 0; i < 20; i++) {
        purge(f);
        fill(f, MANY, 3600); /* asserts that each is taken */
    }
}

STORE_TEST_WITH(a_small_post_pays_little, fixture_open(f, 1))
{
    size_t before;

    fill(f, MANY, 3600);
    purge(f);
    before = mem_used(f->mem);
    post(f, 1);
    /* It has freed some messages, but by far not all. */
    ck_assert_uint_lt(mem_used(f->mem), before);
    ck_assert_uint_gt(mem_used(f->mem), before - 100 * 300);
}

/* ---------------------------------------------------------------------- subscribers */

enum { CROWD = 100000, SLICES = 2 * 256 }; /* bounds of a call, by time and by garbage */

TEST_CASE("subscribers");

/* So many subscribe to the queue for a minute; the store is not audited after each. */
static void
crowd(struct fixture *f)
{
    struct store_subscribed out;
    char subscriber[32];

    for (int i = 0; i < CROWD; i++) {
        const struct store_subscription_draft draft = {
            bytes_of(subscriber,
                     (size_t)snprintf(subscriber, sizeof(subscriber), "http://a/%d", i)),
            bytes_str("{}"), 60};

        ck_assert_status(store_subscription_create(f->store, STORE_AT(f->now_ms),
                                                   &f->queue, &draft, &out),
                         ST_OK);
        ck_assert(out.created);
    }
}

/* Nothing of the crowd has been freed at once, and each call of housekeeping frees a
 * slice. */
static void
expect_freed_in_slices(struct fixture *f, size_t full)
{
    size_t each = full / CROWD, before = mem_used(f->mem);
    int64_t next_ms;
    int calls = 0, large = 0;

    ck_assert_uint_gt(before, full - SLICES * 2 * each);
    do {
        before = mem_used(f->mem);
        store_housekeep(engine(f), f->now_ms, &next_ms);
        large += before - mem_used(f->mem) > SLICES * 2 * each;
        calls++;
    } while (next_ms <= f->now_ms);
    ck_assert_int_ge(calls, CROWD / SLICES);
    ck_assert_int_le(large, 1); /* the table of their addresses, which is one block */
    ck_assert_uint_lt(mem_used(f->mem), full / 10);
}

LOOP_TEST(a_crowd_goes_in_slices, 3)
{
    struct fixture f;
    size_t empty, full;

    fixture_open(&f, 1);
    make_queue(&f, NULL);
    empty = mem_used(f.mem);
    crowd(&f);
    full = mem_used(f.mem) - empty;
    switch (_i) {
    case 0:
        ck_assert_status(store_queue_delete(engine(&f), STORE_AT(f.now_ms), &f.queue),
                         ST_OK);
        break;
    case 1:
        ck_assert_status(store_queue_purge(engine(&f), STORE_AT(f.now_ms), &f.queue,
                                           STORE_PURGE_SUBSCRIPTIONS),
                         ST_OK);
        break;
    default:
        f.now_ms += 60000;
    }
    expect_freed_in_slices(&f, full);
    fixture_close(&f);
}

static void
housekeep_to_the_end(struct fixture *f)
{
    int64_t next_ms;

    do
        store_housekeep(engine(f), f->now_ms, &next_ms);
    while (next_ms <= f->now_ms);
}

STORE_TEST_WITH(posts_for_a_subscriber_that_is_gone_are_freed, fixture_open(f, 1))
{
    struct store_id slow;
    size_t empty, full;

    slow = subscribe(f, "http://slow", 600);
    empty = mem_used(f->mem);
    fill(f, MANY, 3600);
    purge(f);
    housekeep_to_the_end(f);
    (void)subscribe(f, "http://new", 600);
    full = mem_used(f->mem) - empty;
    unsubscribe(f, slow);
    housekeep_to_the_end(f);
    ck_assert_uint_lt(mem_used(f->mem) - empty, full / 10);
}

STORE_TEST_WITH(the_cost_of_a_post_does_not_depend_on_the_number_of_waiters,
                fixture_open(f, 1))
{
    struct store_delivery d;
    uint64_t attempts, alone;

    (void)subscribe(f, "http://alone", 600);
    post(f, 1);
    attempts = mem_attempts(f->mem);
    fill(f, BATCH, 60);
    alone = mem_attempts(f->mem) - attempts;
    use(f, "crowded");
    crowd(f);
    fill(f, BATCH, 60);
    attempts = mem_attempts(f->mem);
    fill(f, BATCH, 60);
    ck_assert_uint_le(mem_attempts(f->mem) - attempts, alone + BATCH / 10);
    for (int i = 0; i < 1000;
         i++) { /* no thread is behind for long, and none waits for others */
        ck_assert_status(store_delivery_next(engine(f), STORE_AT(f->now_ms), &d), ST_OK);
        store_delivery_done(engine(f), STORE_AT(f->now_ms), &d, STORE_OUTCOME_DELIVERED,
                            0);
    }
    f->now_ms += 60000;
}
