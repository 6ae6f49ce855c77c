/* Messages of any store by their ids: get, delete (docs/api.md 8.6), bulk delete, pop. */
#include "support/delete.h"
#include "support/store_fixture.h"

#define NO_ID ((struct store_id){""})

/* Deletes the messages with these numbers; claims NULL: any claim. */
static enum status
delete_many(struct fixture *f, const int *numbers, size_t count,
            const struct store_id *claims, size_t claim_count)
{
    struct bytes ids[32], claim_ids[8];
    enum status st;

    for (size_t i = 0; i < count; i++)
        ids[i] = id_of(f, numbers[i]);
    for (size_t i = 0; claims != NULL && i < claim_count; i++)
        claim_ids[i] = store_id_bytes(&claims[i]);
    st = delete_messages(f->store, STORE_AT(f->now_ms), &f->queue, ids, count,
                         claims == NULL ? NULL : claim_ids, claim_count);
    ck_assert(store_audit(f->store));
    return st;
}

/* ---------------------------------------------------------------------- get */

STORE_CASE("get");

STORE_TEST(messages_are_got_in_the_order_of_the_request)
{
    post(f, 4);
    get(f, 3, 1, 4);
    expect(f, 3, 1, 4);
}

STORE_TEST(claimed_delayed_and_own_messages_are_got_too)
{
    struct store_id claim;

    post(f, 1);
    post_with(f, 300, 60);
    claim = take(f, 5);
    get(f, 1, 2);
    expect(f, 1, 2);
    ck_assert(id_same(f->seen.messages[0].claim_id, claim));
    ck_assert(id_empty(f->seen.messages[1].claim_id));
}

STORE_TEST(ids_that_are_unknown_or_malformed_are_left_out)
{
    struct bytes ids[7];

    post(f, 3);
    delete_unclaimed(f, 2);
    ids[0] = bytes_str("nonsense");
    ids[1] = id_of(f, 3);
    ids[2] = bytes_str("");
    ids[3] = id_of(f, 2);
    ids[4] = bytes_str("ffffffffffffffffffffffff");
    ids[5] = bytes_of(id_of(f, 1).data, id_of(f, 1).len - 1); /* cut */
    ids[6] = id_of(f, 1);
    ck_assert_status(
        store_message_get(f->store, STORE_AT(f->now_ms), &f->queue, ids, 7, &f->seen),
        ST_OK);
    expect(f, 3, 1);
}

STORE_TEST(ids_belong_to_one_queue_of_one_project)
{
    post(f, 2);
    use(f, "other");
    get(f, 1);
    expect_nothing(f); /* the queue does not exist */
    post(f, 2);
    get(f, 1, 3, 2);
    expect(f, 3);
    ck_assert_status(delete_unclaimed(f, 1), ST_OK);
    ck_assert_status(delete_many(f, (const int[]){1, 2}, 2, NULL, 0), ST_OK);
    use(f, "q");
    use_project(f, "p2");
    post(f, 1);
    get(f, 1, 5);
    expect(f, 5);
    use_project(f, "p");
    list_all(f);
    expect(f, 1, 2);
}

/* ---------------------------------------------------------------------- delete one */

STORE_CASE("delete");

STORE_TEST(a_ready_message_is_deleted_without_a_claim_id)
{
    post(f, 3);
    ck_assert_status(delete_unclaimed(f, 2), ST_OK);
    list_all(f);
    expect(f, 1, 3);
}

STORE_TEST(a_message_has_one_id_only)
{
    enum { NUMBER_AT = 8 };

    post(f, 1);
    for (size_t i = 0; i < LENIENT_BEGINS; i++) {
        f->ids[2] = lenient_id(f->ids[1], NUMBER_AT, lenient_begins[i]);
        get(f, 2);
        expect_nothing(f);
        ck_assert_status(delete_unclaimed(f, 2), ST_OK); /* there is none */
        expect_stats(f, 0, 1);
    }
}

STORE_TEST(a_ready_message_is_not_deleted_with_any_claim_id)
{
    struct store_id live, old, released;

    post(f, 2);
    old = take_for(f, 1, 60, 60);
    wait_s(f, 60);
    released = take(f, 1);
    release(f, released);
    live = take(f, 1); /* 1; message 2 is ready */
    expect(f, 1);
    ck_assert_status(delete_claimed(f, 2, live), ST_NOT_CLAIMED);
    ck_assert_status(delete_claimed(f, 2, old), ST_NOT_CLAIMED);
    ck_assert_status(delete_claimed(f, 2, released), ST_NOT_CLAIMED);
    ck_assert_status(delete_claimed(f, 2, text_id("nonsense")), ST_NOT_CLAIMED);
    list_all(f);
    expect(f, 1, 2);
}

STORE_TEST(a_claimed_message_is_deleted_only_with_its_live_claim)
{
    struct store_id holder, rival, elsewhere, released, expired;

    use(f, "other");
    post(f, 1);
    elsewhere = take(f, 1);
    use(f, "q");
    post(f, 4);
    expired = take_for(f, 1, 60, 60);
    wait_s(f, 60);
    released = take(f, 1);
    release(f, released);
    holder = take(f, 2); /* 2 3 */
    expect(f, 2, 3);
    rival = take(f, 1); /* 4 */
    ck_assert_status(delete_unclaimed(f, 2), ST_CLAIMED);
    ck_assert_status(delete_claimed(f, 2, rival), ST_CLAIMED);
    ck_assert_status(delete_claimed(f, 2, elsewhere), ST_NOT_CLAIMED);
    ck_assert_status(delete_claimed(f, 2, expired), ST_NOT_CLAIMED);
    ck_assert_status(delete_claimed(f, 2, released), ST_NOT_CLAIMED);
    ck_assert_status(delete_claimed(f, 2, f->ids[2]), ST_NOT_CLAIMED);
    ck_assert_status(delete_claimed(f, 2, text_id("x")), ST_NOT_CLAIMED);
    ck_assert_status(delete_claimed(f, 2, NO_ID), ST_NOT_CLAIMED); /* present, empty */
    list_all(f);
    expect(f, 2, 3, 4, 5);
    ck_assert_status(delete_claimed(f, 2, holder), ST_OK);
    list_all(f);
    expect(f, 3, 4, 5);
}

STORE_TEST(deleting_what_does_not_exist_is_fine_whatever_the_claim_id)
{
    struct store_id claim, expired;

    ck_assert_status(delete_unclaimed(f, 9), ST_OK); /* malformed id, unknown queue */
    post(f, 2);
    post_with(f, 60, 0); /* 3 */
    expired = take_for(f, 1, 60, 60);
    claim = take(f, 1);
    ck_assert_status(delete_claimed(f, 1, expired), ST_OK);
    wait_s(f, 60); /* 3 is gone, and so is a claim */
    for (int gone = 1; gone <= 3; gone += 2) {
        ck_assert_status(delete_unclaimed(f, gone), ST_OK);
        ck_assert_status(delete_claimed(f, gone, claim), ST_OK);
        ck_assert_status(delete_claimed(f, gone, expired), ST_OK);
        ck_assert_status(delete_claimed(f, gone, text_id("x")), ST_OK);
    }
    use(f, "unknown");
    ck_assert_status(delete_claimed(f, 2, claim), ST_OK);
    use(f, "q");
    get(f, 2);
    expect(f, 2);
}

STORE_TEST(a_late_worker_learns_that_its_claim_is_over)
{
    struct store_id late, second;

    post(f, 1);
    late = take_for(f, 1, 60, 60);
    wait_s(f, 60);
    ck_assert_status(delete_claimed(f, 1, late), ST_NOT_CLAIMED); /* ready again */
    second = take(f, 1);
    ck_assert_status(delete_claimed(f, 1, late), ST_NOT_CLAIMED); /* held again */
    ck_assert_status(delete_claimed(f, 1, second), ST_OK);
    ck_assert_status(delete_claimed(f, 1, late), ST_OK); /* gone */
}

STORE_TEST(a_delayed_message_can_be_deleted)
{
    post_with(f, 300, 60);
    ck_assert_status(delete_unclaimed(f, 1), ST_OK);
    wait_s(f, 60);
    list_all(f);
    expect_nothing(f);
}

/* ---------------------------------------------------------------------- delete many */

STORE_CASE("bulk delete");

STORE_TEST(bulk_delete_removes_ready_claimed_and_delayed_messages)
{
    struct store_id claim;

    post(f, 5);
    post_with(f, 300, 60); /* 6 */
    claim = take(f, 2);
    ck_assert_status(delete_many(f, (const int[]){6, 1, 4, 4}, 4, NULL, 0), ST_OK);
    list_all(f);
    expect(f, 2, 3, 5);
    ck_assert_status(query(f, claim), ST_OK);
    expect(f, 2);
}

STORE_TEST(bulk_delete_ignores_unknown_ids_and_queues)
{
    struct bytes ids[3] = {bytes_str("nonsense"), BYTES_NONE, bytes_str("")};

    ck_assert_status(
        delete_messages(f->store, STORE_AT(f->now_ms), &f->queue, ids, 1, NULL, 0),
        ST_OK);
    post(f, 2);
    ids[1] = id_of(f, 2);
    ck_assert_status(
        delete_messages(f->store, STORE_AT(f->now_ms), &f->queue, ids, 3, NULL, 0),
        ST_OK);
    list_all(f);
    expect(f, 1);
}

STORE_TEST(checked_bulk_delete_needs_every_message_held_by_a_claim_named)
{
    struct store_id claims[2];

    post(f, 6);
    claims[0] = take(f, 2); /* 1 2 */
    claims[1] = take(f, 2); /* 3 4 */
    ck_assert_status(delete_many(f, (const int[]){1, 3}, 2, claims, 1), ST_CLAIMED);
    ck_assert_status(delete_many(f, (const int[]){1, 5}, 2, claims, 2), ST_NOT_CLAIMED);
    ck_assert_status(delete_many(f, (const int[]){1}, 1, claims, 0), ST_NOT_CLAIMED);
    list_all(f);
    expect(f, 1, 2, 3, 4, 5, 6); /* nothing was removed */
    ck_assert_status(delete_many(f, (const int[]){1, 3}, 2, claims, 2), ST_OK);
    ck_assert_status(delete_many(f, (const int[]){2}, 1, &claims[0], 1), ST_OK);
    list_all(f);
    expect(f, 4, 5, 6);
}

STORE_TEST(checked_bulk_delete_ignores_messages_that_do_not_exist)
{
    struct store_id claim;

    post(f, 3);
    delete_unclaimed(f, 1);
    claim = take(f, 1);
    ck_assert_status(delete_many(f, (const int[]){1, 2, 900}, 3, &claim, 1), ST_OK);
    list_all(f);
    expect(f, 3);
}

STORE_TEST(checked_bulk_delete_does_not_accept_an_expired_claim)
{
    struct store_id claim;

    post(f, 1);
    claim = take_for(f, 1, 60, 60);
    wait_ms(f, 59999);
    wait_ms(f, 1);
    ck_assert_status(delete_many(f, (const int[]){1}, 1, &claim, 1), ST_NOT_CLAIMED);
    expect_stats(f, 0, 1);
    take(f, 1); /* another worker has it */
    ck_assert_status(delete_many(f, (const int[]){1}, 1, &claim, 1), ST_NOT_CLAIMED);
    expect_stats(f, 1, 0);
}

/* ---------------------------------------------------------------------- pop */

STORE_CASE("pop");

STORE_TEST(pop_removes_and_shows_the_oldest_messages)
{
    post(f, 5);
    wait_s(f, 7);
    pop(f, 2);
    expect(f, 1, 2);
    ck_assert_int_eq(f->seen.messages[0].ttl_s, 3600);
    ck_assert_int_eq(f->seen.messages[0].age_s, 7);
    ck_assert_uint_eq(f->seen.messages[0].claim_count, 0);
    ck_assert(id_empty(f->seen.messages[0].claim_id));
    pop(f, 10);
    expect(f, 3, 4, 5);
    pop(f, 10);
    expect_nothing(f);
    get(f, 1, 5);
    expect_nothing(f);
}

STORE_TEST(pop_leaves_claimed_and_delayed_messages)
{
    struct store_id claim;

    post(f, 1);
    post_with(f, 300, 60);
    post(f, 1);
    claim = take(f, 1);
    pop(f, 5);
    expect(f, 3);
    release(f, claim);
    pop(f, 5);
    expect(f, 1);
    ck_assert_uint_eq(f->seen.messages[0].claim_count, 1);
    wait_s(f, 60);
    pop(f, 5);
    expect(f, 2);
}

STORE_TEST(pop_of_an_unknown_queue_is_empty)
{
    pop(f, 3);
    expect_nothing(f);
    make_queue(f, NULL); /* it was not made */
}

STORE_TEST(pop_takes_nothing_when_the_caller_has_too_little_space)
{
    post(f, 12); /* bodies of 1 byte, the last three of 2 */
    f->seen.capacity = 14;
    ck_assert_status(
        store_message_pop(f->store, STORE_AT(f->now_ms), &f->queue, 20, &f->seen),
        ST_OVER_CAPACITY);
    ck_assert_uint_eq(f->seen.count, 0);
    ck_assert_uint_eq(f->seen.capacity, 15);
    expect_stats(f, 0, 12);
    ck_assert_status(
        store_message_pop(f->store, STORE_AT(f->now_ms), &f->queue, 20, &f->seen), ST_OK);
    expect(f, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
}
