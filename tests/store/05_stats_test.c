/* Statistics of any store (docs/api.md 7.7). */
#include "support/store_fixture.h"

STORE_CASE("stats");

STORE_TEST(an_unknown_queue_has_zeros_and_says_so)
{
    struct store_stats out = {.total = 9, .claimed = 9};

    ck_assert_status(store_queue_stats(f->store, STORE_AT(f->now_ms), &f->queue, &out),
                     ST_NOT_FOUND);
    ck_assert_uint_eq(out.total, 0);
    ck_assert_uint_eq(out.claimed, 0);
}

STORE_TEST(claimed_and_free_messages_are_counted_apart)
{
    struct store_id claim;

    post(f, 5);
    post_with(f, 300, 60); /* delayed: free */
    expect_stats(f, 0, 6);
    claim = take(f, 3);
    expect_stats(f, 3, 3);
    delete_claimed(f, 1, claim);
    expect_stats(f, 2, 3);
    delete_unclaimed(f, 5);
    expect_stats(f, 2, 2);
    release(f, claim);
    expect_stats(f, 0, 4);
    pop(f, 1);
    expect_stats(f, 0, 3);
}

STORE_TEST(oldest_and_newest_go_by_the_order_of_the_queue)
{
    struct store_stats now;

    post(f, 1);
    wait_ms(f, 10 * 1000 + 1);
    post(f, 1);
    wait_ms(f, 1999);
    post_with(f, 300, 60); /* delayed ones count */
    wait_ms(f, 2500);
    take(f, 1); /* claimed ones too */
    now = stats(f);
    ck_assert_uint_eq(now.total, 3);
    ck_assert(id_same(now.oldest.id, f->ids[1]));
    ck_assert_int_eq(now.oldest.age_s, 14);
    ck_assert_int_eq(now.oldest.created_ms, START_MS);
    ck_assert(id_same(now.newest.id, f->ids[3]));
    ck_assert_int_eq(now.newest.age_s, 2);
    ck_assert_int_eq(now.newest.created_ms, START_MS + 12000);
}

STORE_TEST(a_single_message_is_both_oldest_and_newest)
{
    struct store_stats now;

    post(f, 3);
    delete_unclaimed(f, 1);
    delete_unclaimed(f, 3);
    now = stats(f);
    ck_assert_uint_eq(now.total, 1);
    ck_assert(id_same(now.oldest.id, f->ids[2]));
    ck_assert(id_same(now.newest.id, f->ids[2]));
}

STORE_TEST(expired_messages_are_neither_counted_nor_shown)
{
    struct store_stats now;

    post_with(f, 60, 0);
    post_with(f, 120, 0);
    post_with(f, 180, 0);
    post_with(f, 60, 0);
    post_with(f, 90, 80);
    wait_ms(f, 89999);
    now = stats(f);
    ck_assert_uint_eq(now.total, 3);
    ck_assert(id_same(now.oldest.id, f->ids[2]));
    ck_assert(id_same(now.newest.id, f->ids[5]));
    wait_ms(f, 1);
    now = stats(f);
    ck_assert_uint_eq(now.total, 2);
    ck_assert(id_same(now.newest.id, f->ids[3]));
    wait_s(f, 90);
    ck_assert_uint_eq(stats(f).total, 0);
}

STORE_TEST(the_end_of_a_claim_changes_the_counts_at_once)
{
    post(f, 3);
    take_for(f, 2, 60, 60);
    wait_ms(f, 59999);
    expect_stats(f, 2, 1);
    wait_ms(f, 1);
    expect_stats(f, 0, 3);
}

STORE_CASE("totals");

STORE_TEST(totals_count_all_queues_of_all_projects)
{
    struct store_totals totals;

    post(f, 5);
    take(f, 2);
    post_with(f, 60, 30);
    use(f, "r");
    post(f, 3);
    use_project(f, "another");
    post(f, 2);
    take(f, 1);
    ck_assert_status(store_totals(f->store, STORE_AT(f->now_ms), &totals), ST_OK);
    ck_assert_uint_eq(totals.queues, 3);
    ck_assert_uint_eq(totals.messages, 11);
    ck_assert_uint_eq(totals.claimed, 3);
    purge(f);
    wait_s(f, 60); /* the delayed message is gone */
    ck_assert_status(store_totals(f->store, STORE_AT(f->now_ms), &totals), ST_OK);
    ck_assert_uint_eq(totals.queues, 3);
    ck_assert_uint_eq(totals.messages, 8);
    ck_assert_uint_eq(totals.claimed, 2);
    wait_s(f, 300); /* the claims have ended */
    ck_assert_status(store_totals(f->store, STORE_AT(f->now_ms), &totals), ST_OK);
    ck_assert_uint_eq(totals.claimed, 0);
}
