/* How messages become dead letters, in any store (docs/api.md 10). */
#include "support/dead_letters.h"

STORE_CASE("moving");

STORE_TEST(a_message_is_handed_out_at_most_as_often_as_its_queue_allows)
{
    make_dead_lettering(f, "q", 3, "failed", STORE_UNSET);
    post(f, 1);
    for (int i = 0; i < 3; i++) {
        struct store_id claim = take(f, 1);

        expect(f, 1);
        release(f, claim);
    }
    expect_only_in(f, 1, "q"); /* a release as in Zaqar: it moves at the next claim */
    ck_assert(id_empty(take(f, 1)));
    expect_only_in(f, 1, "failed");
    expect_stats(f, 0, 0);
}

STORE_TEST(expired_claims_count_like_released_ones)
{
    make_dead_lettering(f, "q", 2, "failed", STORE_UNSET);
    post(f, 1);
    for (int i = 0; i < 2; i++) {
        take_for(f, 1, 60, 60);
        expect(f, 1);
        wait_s(f, 60);
    }
    ck_assert(id_empty(take(f, 1)));
    expect_only_in(f, 1, "failed");
}

STORE_TEST(the_dead_letter_queue_is_made_on_demand)
{
    struct store_queues queues = STORE_QUEUES_INIT;

    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 1);
    use(f, "failed");
    ck_assert_status(store_queue_get(f->store, STORE_AT(f->now_ms), &f->queue, &queues),
                     ST_NOT_FOUND);
    use(f, "q");
    wear_out(f, 1, 1);
    take(f, 1);
    use(f, "failed");
    ck_assert_status(store_queue_get(f->store, STORE_AT(f->now_ms), &f->queue, &queues),
                     ST_OK);
    ck_assert_uint_eq(queues.queues[0].metadata.json.len, 0);
    ck_assert_int_eq(queues.queues[0].metadata.settings.max_claim_count, STORE_UNSET);
    store_queues_release(&queues);
}

STORE_TEST(a_dead_letter_stays_in_its_project)
{
    use_project(f, "p2");
    use(f, "failed");
    make_queue(f, NULL);
    use_project(f, "p");
    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 1);
    wear_out(f, 1, 1);
    take(f, 1);
    expect_only_in(f, 1, "failed");
    use_project(f, "p2");
    use(f, "failed");
    expect_stats(f, 0, 0);
}

STORE_TEST(dead_letters_go_to_the_end_of_the_new_queue_in_their_order)
{
    use(f, "failed");
    post(f, 2); /* 1 2 */
    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 3); /* 3 4 5 */
    wear_out(f, 3, 1);
    take(f, 3);
    expect_nothing(f);
    use(f, "failed");
    post(f, 1); /* 6 */
    list_ready(f);
    expect(f, 1, 2, 3, 4, 5, 6);
    take(f, 4);
    expect(f, 1, 2, 3, 4);
}

STORE_TEST(moved_messages_do_not_use_up_the_limit)
{
    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 4); /* 1 2 3 4 */
    wear_out(f, 4, 1);
    post(f, 2); /* 5 6 */
    take(f, 2);
    expect(f, 5, 6);
    use(f, "failed");
    list_ready(f);
    expect(f, 1, 2, 3, 4);
}

STORE_TEST(dead_letters_move_as_claims_come_upon_them)
{
    struct store_id first, second;

    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 4);
    first = take(f, 1);  /* 1 */
    second = take(f, 1); /* 2 */
    take(f, 1);          /* 3 */
    release(f, first);
    release(f, second); /* worn out: 1 2; held: 3; fresh: 4 */
    take(f, 1);
    expect(f, 4);
    post(f, 1); /* 5 */
    wait_s(f, 300);
    post(f, 1); /* 6; worn out: 3 4 */
    take(f, 1);
    expect(f, 5);
    list_all(f);
    expect(f, 5, 6);
    use(f, "failed");
    list_all(f);
    expect(f, 1, 2, 3, 4);
}

STORE_TEST(a_claim_that_is_full_does_not_look_further)
{
    struct store_id worn;

    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post_with(f, 3600, 60); /* 1: fresh and older than the dead letter */
    post(f, 1);             /* 2 */
    worn = take(f, 1);
    expect(f, 2);
    release(f, worn);
    wait_s(f, 60);
    take(f, 1);
    expect(f, 1);
    expect_only_in(f, 2, "q");
    ck_assert(id_empty(take(f, 1)));
    expect_only_in(f, 2, "failed");
}

STORE_TEST(hundreds_of_dead_letters_move_in_one_claim)
{
    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 500);
    wear_out(f, 500, 1);
    post(f, 1);
    take(f, 1);
    expect(f, 501);
    use(f, "failed");
    expect_stats(f, 0, 500);
    get(f, 1, 250, 500);
    expect(f, 1, 250, 500);
}

STORE_TEST(pop_does_not_look_at_the_count)
{
    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 1);
    wear_out(f, 1, 1);
    pop(f, 1);
    expect(f, 1);
    ck_assert_uint_eq(f->seen.messages[0].claim_count, 1);
}

STORE_TEST(both_settings_are_needed)
{
    struct store_settings settings = STORE_SETTINGS_INIT;

    settings.max_claim_count = 1;
    make_queue(f, &settings);
    post(f, 1);
    wear_out(f, 1, 3);
    take(f, 1);
    expect(f, 1);
    settings.max_claim_count = STORE_UNSET;
    settings.dead_letter = bytes_str("failed");
    use(f, "q2");
    make_queue(f, &settings);
    post(f, 1);
    wear_out(f, 1, 3);
    take(f, 1);
    expect(f, 2);
}

STORE_TEST(claims_are_counted_before_the_queue_has_a_limit)
{
    struct store_metadata metadata = {BYTES_NONE, STORE_SETTINGS_INIT};
    struct store_queues queues = STORE_QUEUES_INIT;

    post(f, 1);
    wear_out(f, 1, 3);
    ck_assert_status(store_queue_get(f->store, STORE_AT(f->now_ms), &f->queue, &queues),
                     ST_OK);
    metadata.settings.max_claim_count = 3;
    metadata.settings.dead_letter = bytes_str("failed");
    ck_assert_status(store_queue_update(f->store, STORE_AT(f->now_ms), &f->queue,
                                        queues.queues[0].version, &metadata),
                     ST_OK);
    store_queues_release(&queues);
    ck_assert(id_empty(take(f, 1)));
    expect_only_in(f, 1, "failed");
}

STORE_TEST(a_held_message_is_not_moved)
{
    struct store_id claim;

    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 1);
    claim = take(f, 1);
    ck_assert(id_empty(take(f, 1)));
    expect_only_in(f, 1, "q");
    ck_assert_status(delete_claimed(f, 1, claim), ST_OK);
}
