/* Purging and deleting queues of any store, and what comes after. */
#include "support/store_fixture.h"

STORE_CASE("purge");

STORE_TEST(a_purge_removes_ready_claimed_and_delayed_messages)
{
    post(f, 4);
    post_with(f, 300, 60);
    take(f, 2);
    purge(f);
    list_all(f);
    expect_nothing(f);
    get(f, 1, 3, 5);
    expect_nothing(f);
    expect_stats(f, 0, 0);
}

STORE_TEST(a_purge_leaves_the_queue_and_its_metadata)
{
    struct store_queues queues = STORE_QUEUES_INIT;
    struct store_settings settings = STORE_SETTINGS_INIT;

    settings.message_ttl_s = 77;
    make_queue(f, &settings);
    post(f, 1);
    purge(f);
    ck_assert_status(store_queue_get(f->store, STORE_AT(f->now_ms), &f->queue, &queues),
                     ST_OK);
    ck_assert_int_eq(queues.queues[0].metadata.settings.message_ttl_s, 77);
    store_queues_release(&queues);
}

STORE_TEST(a_claim_is_over_with_the_purge_of_its_messages)
{
    struct store_id claim;

    post(f, 3);
    claim = take(f, 2);
    purge(f);
    ck_assert_status(query(f, claim), ST_NOT_FOUND);
    post(f, 3);
    ck_assert_status(query(f, claim), ST_NOT_FOUND);
    ck_assert_status(renew(f, claim, 3000, 3000), ST_NOT_FOUND);
    expect_times(f, 4, 3600, 0);
    release(f, claim);
    expect_stats(f, 0, 3);
    take(f, 5);
    expect(f, 4, 5, 6);
}

STORE_TEST(a_purge_of_an_unknown_queue_makes_none)
{
    purge(f);
    make_queue(f, NULL);
    purge(f); /* nor does an empty one mind */
}

STORE_TEST(messages_posted_after_a_purge_have_new_ids)
{
    post(f, 3);
    purge(f);
    post(f, 3);
    get(f, 1, 2, 3, 4, 5, 6);
    expect(f, 4, 5, 6);
}

STORE_CASE("delete");

STORE_TEST(a_deleted_queue_is_gone_with_all_it_had)
{
    struct store_queues queues = STORE_QUEUES_INIT;
    struct store_stats out;
    struct store_id claim;

    post(f, 3);
    claim = take(f, 1);
    delete_queue(f);
    ck_assert_status(store_queue_get(f->store, STORE_AT(f->now_ms), &f->queue, &queues),
                     ST_NOT_FOUND);
    ck_assert_status(store_queue_stats(f->store, STORE_AT(f->now_ms), &f->queue, &out),
                     ST_NOT_FOUND);
    list_all(f);
    expect_nothing(f);
    get(f, 1, 2);
    expect_nothing(f);
    ck_assert_status(query(f, claim), ST_NOT_FOUND);
    ck_assert_status(delete_claimed(f, 1, claim), ST_OK);
    ck_assert(id_empty(take(f, 3)));
    delete_queue(f); /* again: fine */
}

STORE_TEST(a_queue_made_again_knows_nothing_of_the_old_one)
{
    struct store_id claim;

    post(f, 3);
    claim = take(f, 1);
    delete_queue(f);
    post(f, 3); /* 4 5 6, in the same places as 1 2 3 */
    get(f, 1, 2, 3);
    expect_nothing(f);
    ck_assert_status(delete_unclaimed(f, 2), ST_OK);
    ck_assert_status(query(f, claim), ST_NOT_FOUND);
    ck_assert_status(renew(f, claim, 300, 60), ST_NOT_FOUND);
    ck_assert_status(delete_claimed(f, 4, claim), ST_NOT_CLAIMED);
    release(f, claim);
    list_ready(f);
    expect(f, 4, 5, 6);
}

STORE_TEST(an_old_message_id_is_no_marker_in_a_queue_made_again)
{
    struct store_filter filter = {.limit = 10};

    post(f, 2);
    delete_queue(f);
    post(f, 2);
    filter.marker = id_of(f, 1);
    list(f, &filter);
    expect(f, 3, 4);
}

STORE_TEST(claims_of_a_deleted_queue_end_without_harm)
{
    int64_t next_ms;

    for (int i = 0; i < 20; i++) {
        post(f, 4);
        take_for(f, 1, 60, 60);
        take_for(f, 1, 120, 60);
        if (i % 3 == 0)
            purge(f);
        delete_queue(f);
        wait_s(f, 7);
        if (i % 4 == 0)
            store_housekeep(f->store, f->now_ms, &next_ms);
        ck_assert(store_audit(f->store));
    }
    wait_s(f, 4000);
    store_housekeep(f->store, f->now_ms, &next_ms);
    list_all(f);
    expect_nothing(f);
}

START_TEST(a_store_is_closed_with_everything_still_in_it)
{
    struct fixture f;

    fixture_open(&f, _i);
    post(&f, 100);
    take(&f, 10);
    use(&f, "other");
    post(&f, 100);
    take(&f, 10);
    purge(&f);
    post(&f, 10);
    use(&f, "q");
    delete_queue(&f);
    post(&f, 10);
    fixture_close(&f); /* gives back all memory */
}
