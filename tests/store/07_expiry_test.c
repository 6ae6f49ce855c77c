/* Expiry in any store is exact to the millisecond, whatever the housekeeping has done. */
#include "support/store_fixture.h"

/* Does housekeeping until none is left. */
static void
housekeep_and_audit(struct fixture *f)
{
    int64_t next_ms;

    do {
        store_housekeep(f->store, f->now_ms, &next_ms);
        ck_assert(store_audit(f->store));
    } while (next_ms <= f->now_ms);
}

/* Message 1 is there (or not) for every way of looking at it that changes nothing. */
static void
expect_there(struct fixture *f, bool there)
{
    get(f, 1);
    ck_assert_uint_eq(f->seen.count, there);
    list_all(f);
    ck_assert_uint_eq(f->seen.count, there);
    expect_stats(f, 0, there);
}

STORE_CASE("exact");

STORE_TEST(a_message_lives_until_the_last_millisecond_of_its_ttl)
{
    post_with(f, 60, 0);
    wait_ms(f, 59999);
    expect_there(f, true);
    wait_ms(f, 1);
    expect_there(f, false);
    pop(f, 1);
    expect_nothing(f);
    ck_assert(id_empty(take(f, 1)));
}

START_TEST(each_operation_alone_sees_the_end_of_a_life)
{
    /* A fresh store each time: no operation has settled things for the next one. */
    for (int look = 0; look < 5; look++) {
        for (int64_t late = 0; late < 2; late++) {
            struct fixture f;

            fixture_open(&f, _i);
            post_with(&f, 60, 0);
            wait_ms(&f, 59999 + late);
            switch (look) {
            case 0:
                get(&f, 1);
                break;
            case 1:
                list_ready(&f);
                break;
            case 2:
                pop(&f, 1);
                break;
            case 3:
                take(&f, 1);
                break;
            default:
                expect_stats(&f, 0, late == 0);
                fixture_close(&f);
                continue;
            }
            ck_assert_uint_eq(f.seen.count, late == 0);
            fixture_close(&f);
        }
    }
}

STORE_TEST(a_claim_holds_until_its_last_millisecond)
{
    struct store_id claim;

    post(f, 2);
    claim = take_for(f, 1, 60, 60);
    wait_ms(f, 59999);
    ck_assert_status(query(f, claim), ST_OK);
    ck_assert_int_eq(f->seen.claim_age_s, 59);
    expect_stats(f, 1, 1);
    ck_assert_status(delete_unclaimed(f, 1), ST_CLAIMED);
    wait_ms(f, 1);
    expect_stats(f, 0, 2);
    ck_assert_status(query(f, claim), ST_NOT_FOUND);
    ck_assert_status(renew(f, claim, 60, 60), ST_NOT_FOUND);
    list_all(f);
    expect(f, 1, 2);
    ck_assert(id_empty(f->seen.messages[0].claim_id));
    take(f, 2);
    expect(f, 1, 2); /* at its old place */
}

/* The operations that may come first after a claim's last instant. True: it saw the
 * claim. */
static bool
claim_is_seen(struct fixture *f, int look, struct store_id claim)
{
    switch (look) {
    case 0:
        return query(f, claim) == ST_OK;
    case 1:
        return renew(f, claim, 60, 60) == ST_OK;
    case 2:
        return delete_claimed(f, 1, claim) == ST_OK;
    case 3:
        return delete_unclaimed(f, 1) == ST_CLAIMED;
    case 4:
        get(f, 1);
        return id_same(f->seen.messages[0].claim_id, claim);
    case 5:
        return stats(f).claimed == 1;
    case 6:
        list_ready(f);
        return f->seen.count == 0;
    case 7:
        take(f, 1);
        return f->seen.count == 0;
    default:
        pop(f, 1);
        return f->seen.count == 0;
    }
}

START_TEST(each_operation_alone_sees_the_end_of_a_claim)
{
    for (int look = 0; look < 9; look++) {
        for (int64_t late = 0; late < 2; late++) {
            struct store_id claim;
            struct fixture f;

            fixture_open(&f, _i);
            post(&f, 1);
            claim = take_for(&f, 1, 60, 60);
            wait_ms(&f, 59999 + late);
            ck_assert_int_eq(claim_is_seen(&f, look, claim), late == 0);
            fixture_close(&f);
        }
    }
}

STORE_TEST(a_delay_ends_at_its_millisecond)
{
    post_with(f, 300, 10);
    wait_ms(f, 9999);
    ck_assert(id_empty(take(f, 1)));
    pop(f, 1);
    expect_nothing(f);
    list_ready(f);
    expect_nothing(f);
    expect_there(f, true); /* it counts as free */
    wait_ms(f, 1);
    list_ready(f);
    expect(f, 1);
    take(f, 1);
    expect(f, 1);
}

STORE_TEST(a_delayed_message_takes_its_own_place_when_its_delay_is_over)
{
    post_with(f, 300, 0);
    post_with(f, 300, 10);
    post_with(f, 300, 5);
    post_with(f, 300, 0);
    wait_s(f, 10);
    take(f, 10);
    expect(f, 1, 2, 3, 4);
}

STORE_TEST(a_message_outlives_its_claim_by_the_grace)
{
    post_with(f, 60, 0);
    take_for(f, 1, 100, 60);
    wait_ms(f, 100000);
    expect_there(f, true); /* ready again */
    wait_ms(f, 59999);
    expect_there(f, true);
    wait_ms(f, 1);
    expect_there(f, false);
}

STORE_TEST(a_renewed_claim_does_not_end_at_its_old_time)
{
    struct store_id claim;

    post(f, 1);
    claim = take_for(f, 1, 60, 60);
    wait_ms(f, 59999);
    ck_assert_status(renew(f, claim, 60, 60), ST_OK);
    wait_ms(f, 1);
    housekeep_and_audit(f);
    ck_assert_status(query(f, claim), ST_OK);
    expect(f, 1);
    wait_ms(f, 59998);
    ck_assert_status(query(f, claim), ST_OK);
    wait_ms(f, 1);
    ck_assert_status(query(f, claim), ST_NOT_FOUND);
}

STORE_CASE("housekeeping");

STORE_TEST(housekeeping_never_comes_too_early)
{
    struct store_id claim;

    post_with(f, 120, 0);
    post_with(f, 300, 60);
    claim = take_for(f, 1, 60, 60);
    wait_ms(f, 59999);
    housekeep_and_audit(f);
    ck_assert_status(query(f, claim), ST_OK);
    expect(f, 1);
    ck_assert(id_empty(take(f, 1)));
    wait_ms(f, 1);
    housekeep_and_audit(f);
    list_ready(f);
    expect(f, 1, 2);
    wait_ms(f, 59999);
    housekeep_and_audit(f);
    list_ready(f);
    expect(f, 1, 2);
    wait_ms(f, 1);
    housekeep_and_audit(f);
    list_ready(f);
    expect(f, 2);
}

STORE_TEST(a_thousand_messages_expire_in_one_instant)
{
    int late;

    post(f, 500);
    late = post_with(f, 3601, 0);
    post(f, 500);
    wait_ms(f, 3600 * 1000 - 1);
    expect_stats(f, 0, 1001);
    wait_ms(f, 1);
    pop(f, 5);
    expect(f, late);
    expect_stats(f, 0, 0);
}

STORE_TEST(a_store_left_alone_for_months_is_right_at_the_first_question)
{
    struct store_id claim;

    post_with(f, 1209600, 900);
    post_with(f, 1209600, 0);
    claim = take_for(f, 1, 43200, 43200);
    wait_s(f, 1209599);
    ck_assert_status(query(f, claim), ST_NOT_FOUND);
    take(f, 5);
    expect(f, 1, 2);
    wait_s(f, 90 * 86400);
    expect_there(f, false);
    post(f, 1);
    take(f, 5);
    expect(f, 3);
}
