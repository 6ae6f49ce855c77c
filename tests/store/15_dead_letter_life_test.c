/* Dead letters and their queues after the move, in any store (docs/api.md 10). */
#include "support/dead_letters.h"
#include "support/delete.h"

STORE_CASE("life after death");

STORE_TEST(a_dead_letter_is_ready_and_its_count_starts_again)
{
    struct store_id claim;

    make_dead_lettering(f, "q", 2, "failed", STORE_UNSET);
    post(f, 1);
    wear_out(f, 1, 2);
    take(f, 1);
    use(f, "failed");
    get(f, 1);
    ck_assert_uint_eq(f->seen.messages[0].claim_count, 0);
    ck_assert(id_empty(f->seen.messages[0].claim_id));
    claim = take(f, 1);
    expect(f, 1);
    ck_assert_uint_eq(f->seen.messages[0].claim_count, 1);
    ck_assert_status(query(f, claim), ST_OK);
    expect(f, 1);
    ck_assert_status(delete_claimed(f, 1, claim), ST_OK);
    expect_stats(f, 0, 0);
}

STORE_TEST(a_dead_letter_keeps_its_lifetime_without_a_ttl_for_dead_letters)
{
    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post_with(f, 500, 0);
    wait_s(f, 100);
    wear_out(f, 1, 1); /* 300 + 60 from now: until 460 */
    wait_s(f, 50);
    take(f, 1);
    use(f, "failed");
    expect_times(f, 1, 500, 150);
    wait_ms(f, 349999);
    expect_times(f, 1, 500, 499);
    wait_ms(f, 1);
    get(f, 1);
    expect_nothing(f);
}

STORE_TEST(a_dead_letter_that_would_expire_soon_lives_on)
{
    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post_with(f, 360, 0);
    wear_out(f, 1, 1);
    wait_s(f, 330);
    ck_assert(id_empty(take(f, 1))); /* 30 s before its end */
    use(f, "failed");
    expect_times(f, 1, 330 + FIXTURE_DEAD_LETTER_S, 330);
    wait_ms(f, FIXTURE_DEAD_LETTER_S * 1000 - 1);
    list_all(f);
    expect(f, 1);
    wait_ms(f, 1);
    list_all(f);
    expect_nothing(f);
}

STORE_TEST(a_dead_letter_gets_a_new_life_with_a_ttl_for_dead_letters)
{
    make_dead_lettering(f, "q", 1, "failed", 120);
    post_with(f, 5000, 0);
    post_with(f, 60, 0);
    wait_s(f, 30);
    wear_out(f, 2, 1);
    wait_ms(f, 50 * 1000 + 500);
    take(f, 2);
    use(f, "failed");
    expect_times(f, 1, 120, 0);
    expect_times(f, 2, 120, 0);
    ck_assert_int_eq(stats(f).oldest.created_ms, f->now_ms);
    wait_ms(f, 119999);
    expect_times(f, 1, 120, 119);
    expect_times(f, 2, 120, 119);
    wait_ms(f, 1);
    list_all(f);
    expect_nothing(f);
}

STORE_TEST(a_dead_letter_is_reached_by_its_old_id_through_the_new_queue_only)
{
    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 3);
    wear_out(f, 3, 1);
    take(f, 3);
    ck_assert_status(delete_unclaimed(f, 1), ST_OK); /* through q: nothing there */
    expect_only_in(f, 1, "failed");
    use(f, "failed");
    get(f, 3, 1, 2);
    expect(f, 3, 1, 2);
    ck_assert_status(delete_unclaimed(f, 1), ST_OK);
    get(f, 1);
    expect_nothing(f);
    list_all(f);
    expect(f, 2, 3);
    ck_assert(id_same(stats(f).oldest.id, f->ids[2]));
}

/* The id that numbers its queue's messages would have given to the one behind `id`. */
static struct store_id
id_behind(struct bytes id)
{
    struct store_id next = {""};

    memcpy(next.text, id.data, id.len);
    ck_assert_int_ne(next.text[id.len - 1],
                     '9'); /* the test is written for few messages */
    ck_assert_int_ne(next.text[id.len - 1], 'f');
    next.text[id.len - 1]++;
    return next;
}

STORE_TEST(a_dead_letter_is_not_reached_by_an_id_of_its_new_place)
{
    struct store_batch found = STORE_BATCH_INIT;
    struct store_id id;
    struct bytes text;

    use(f, "failed");
    post(f, 1); /* the letter's place is behind this one */
    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 1);
    wear_out(f, 1, 2);
    expect_only_in(f, 2, "failed");
    use(f, "failed");
    id = id_behind(id_of(f, 1));
    text = bytes_str(id.text);
    ck_assert_status(
        store_message_get(f->store, STORE_AT(f->now_ms), &f->queue, &text, 1, &found),
        ST_OK);
    ck_assert_uint_eq(found.count, 0);
    store_batch_release(&found);
    ck_assert_status(
        delete_message(f->store, STORE_AT(f->now_ms), &f->queue, text, BYTES_NONE),
        ST_OK);
    expect_stats(f, 0, 2);
}

STORE_TEST(the_kept_id_is_a_marker_in_the_new_queue)
{
    struct store_filter filter = {.limit = 10};

    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 3);
    wear_out(f, 3, 1);
    take(f, 3);
    use(f, "failed");
    post(f, 1); /* 4 */
    filter.marker = id_of(f, 2);
    list(f, &filter);
    expect(f, 3, 4);
}

STORE_TEST(bulk_delete_and_pop_reach_dead_letters)
{
    struct bytes ids[2];

    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 4);
    wear_out(f, 4, 1);
    take(f, 4);
    use(f, "failed");
    ids[0] = id_of(f, 2);
    ids[1] = id_of(f, 3);
    ck_assert_status(
        delete_messages(f->store, STORE_AT(f->now_ms), &f->queue, ids, 2, NULL, 0),
        ST_OK);
    pop(f, 5);
    expect(f, 1, 4);
    expect_stats(f, 0, 0);
}

STORE_CASE("queues of dead letters");

STORE_TEST(a_dead_letter_queue_may_have_its_own)
{
    make_dead_lettering(f, "failed", 2, "deeper", 600);
    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 1);
    wear_out(f, 1, 1);
    take(f, 1);
    expect_only_in(f, 1, "failed");
    use(f, "failed");
    wear_out(f, 1, 2);
    expect_only_in(f, 1, "failed");
    ck_assert(id_empty(take(f, 1)));
    expect_only_in(f, 1, "deeper");
    use(f, "deeper");
    expect_times(f, 1, 600, 0);
    take(f, 1);
    expect(f, 1);
}

STORE_TEST(two_queues_may_be_each_others_dead_letter_queues)
{
    make_dead_lettering(f, "failed", 1, "q", STORE_UNSET);
    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 2);
    for (int i = 0; i < 3; i++) { /* there and back again, always with the same ids */
        use(f, "q");
        wear_out(f, 2, 1);
        ck_assert(id_empty(take(f, 2)));
        use(f, "failed");
        get(f, 1, 2);
        expect(f, 1, 2);
        wear_out(f, 2, 1);
        ck_assert(id_empty(take(f, 2)));
        use(f, "q");
        get(f, 2, 1);
        expect(f, 2, 1);
    }
    list_ready(f);
    expect(f, 1, 2);
}

STORE_TEST(a_queue_may_be_its_own_dead_letter_queue)
{
    struct store_id claim;

    make_dead_lettering(f, "q", 1, "q", STORE_UNSET);
    post(f, 3);
    wear_out(f, 1, 1); /* 1 has a count of 1 */
    claim = take(f, 2);
    expect(f, 2, 3); /* 1 went to the end */
    list_all(f);
    expect(f, 2, 3, 1);
    get(f, 1);
    expect(f, 1);
    ck_assert_uint_eq(f->seen.messages[0].claim_count, 0);
    take(f, 1);
    expect(f, 1);
    release(f, claim);
    delete_unclaimed(f, 2);
    list_all(f);
    expect(f, 3, 1);
}

STORE_TEST(deleting_the_old_queue_leaves_its_dead_letters_alone)
{
    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 2);
    wear_out(f, 1, 1);
    take(f, 1); /* moves 1, holds 2 */
    expect(f, 2);
    delete_queue(f);
    post(f, 1); /* 3, in a queue made anew */
    use(f, "failed");
    list_all(f);
    expect(f, 1);
    get(f, 1);
    expect(f, 1);
}

STORE_TEST(a_dead_letter_queue_can_be_purged_and_deleted)
{
    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    for (int round = 0; round < 2; round++) {
        use(f, "q");
        post(f, 2);
        wear_out(f, 2, 1);
        take(f, 2);
        use(f, "failed");
        expect_stats(f, 0, 2);
        take(f, 1);
        if (round == 0)
            purge(f);
        else
            delete_queue(f);
        get(f, 1, 2);
        expect_nothing(f);
        expect_only_in(f, 2 * round + 1, "nowhere");
    }
    use(f, "q");
    post(f, 1); /* 5 */
    wear_out(f, 1, 1);
    take(f, 1);
    expect_only_in(f, 5, "failed");
}
