/* Deliveries that any store leases to the notifier, their order, and their outcomes. */
#include "support/store_fixture.h"
#include "support/subscriptions.h"

STORE_CASE("delivery");

STORE_TEST(a_subscriber_gets_what_is_posted_from_then_on_in_order)
{
    struct store_delivery d;
    struct store_id id;

    post(f, 1);
    id = subscribe(f, "http://a", 600);
    expect_nothing_due(f);
    post(f, 2);
    post(f, 1);
    for (int number = 2; number <= 4; number++) {
        expect_next(f, &d, id, number);
        ck_assert_int_eq(d.ttl_s, 3600);
        ck_assert_int_eq(d.delay_s, 0);
        ck_assert_uint_eq(d.failed, 0);
        ck_assert(bytes_equal(d.subscriber, bytes_str("http://a")));
        expect_nothing_due(f); /* one at a time */
        delivered(f, &d);
    }
    expect_nothing_due(f);
    ck_assert_uint_eq(see_subscription(f, id)->progress.delivered, 3);
}

STORE_TEST(delivery_never_touches_the_message)
{
    struct store_delivery d;
    struct store_id id;

    id = subscribe(f, "http://a", 600);
    post(f, 3);
    list_ready(f);
    expect(f, 1, 2, 3);
    ck_assert_status(delete_unclaimed(f, 1), ST_OK);
    pop(f, 1);
    purge(f);
    expect_next(f, &d, id, 1); /* though all of them have gone */
    delivered(f, &d);
    expect_next(f, &d, id, 2);
    delivered(f, &d);
    expect_next(f, &d, id, 3);
    delivered(f, &d);
    expect_nothing_due(f);
}

STORE_TEST(subscribers_get_a_delayed_message_at_once_with_its_delay)
{
    struct store_delivery d;
    struct store_id id;

    id = subscribe(f, "http://a", 600);
    post_with(f, 500, 77);
    expect_next(f, &d, id, 1);
    ck_assert_int_eq(d.ttl_s, 500);
    ck_assert_int_eq(d.delay_s, 77);
    delivered(f, &d);
}

STORE_TEST(a_failed_notification_is_retried_and_delays_no_other)
{
    struct store_delivery slow, d;
    struct store_id a, b;

    a = subscribe(f, "http://a", 6000);
    post(f, 1);
    expect_next(f, &slow, a, 1);
    failed(f, &slow, 5000);
    b = subscribe(f, "http://b", 6000);
    post(f, 1);
    expect_next(f, &d, b, 2);
    delivered(f, &d);
    wait_ms(f, 4999);
    expect_nothing_due(f);
    ck_assert_int_eq(see_subscription(f, a)->progress.next_try_ms, f->now_ms + 1);
    wait_ms(f, 1);
    expect_next(f, &slow, a, 1);
    ck_assert_uint_eq(slow.failed, 1);
    failed(f, &slow, 0); /* again at once */
    expect_next(f, &slow, a, 1);
    ck_assert_uint_eq(slow.failed, 2);
    done(f, &slow, STORE_OUTCOME_BACKED_OFF, 1000); /* which was no try */
    wait_s(f, 1);
    expect_next(f, &slow, a, 1);
    ck_assert_uint_eq(slow.failed, 2);
    delivered(f, &slow);
    expect_next(f, &slow, a, 2);
    ck_assert_uint_eq(slow.failed, 0);
    ck_assert_uint_eq(see_subscription(f, a)->progress.failures, 2);
    delivered(f, &slow);
}

STORE_TEST(a_permanent_failure_is_counted_and_the_next_message_follows)
{
    struct store_subscription *seen;
    struct store_delivery d;
    struct store_id id;

    id = subscribe(f, "http://a", 600);
    post(f, 2);
    expect_next(f, &d, id, 1);
    ck_assert_uint_eq(see_subscription(f, id)->progress.behind, 2);
    done(f, &d, STORE_OUTCOME_PERMANENT_FAILURE, 0);
    seen = see_subscription(f, id);
    ck_assert_uint_eq(seen->progress.permanent_failures, 1);
    ck_assert_uint_eq(seen->progress.behind, 1);
    expect_next(f, &d, id, 2);
    delivered(f, &d);
    ck_assert_uint_eq(see_subscription(f, id)->progress.behind, 0);
}

STORE_TEST(a_subscriber_that_wants_no_more_is_unsubscribed)
{
    struct store_delivery d;
    struct store_id id;

    id = subscribe(f, "http://a", 600);
    post(f, 2);
    expect_next(f, &d, id, 1);
    done(f, &d, STORE_OUTCOME_GONE, 0);
    ck_assert_status(find_subscription(f, id), ST_NOT_FOUND);
    expect_nothing_due(f);
}

STORE_TEST(leased_messages_may_expire_meanwhile)
{
    struct store_delivery d;
    struct store_id id;

    id = subscribe(f, "http://a", 600);
    post(f, 2);
    expect_next(f, &d, id, 1);
    unsubscribe(f, id);
    ck_assert(bytes_equal(d.body, bytes_str("1"))); /* still there to be read */
    delivered(f, &d);
    id = subscribe(f, "http://a", 600);
    post(f, 1);
    expect_next(f, &d, id, 3);
    delete_queue(f);
    ck_assert(bytes_equal(d.queue.name, bytes_str("q")));
    failed(f, &d, 10);
    id = subscribe(f, "http://a", 60);
    post(f, 1);
    expect_next(f, &d, id, 4);
    wait_s(f, 60);
    failed(f, &d, 10); /* deleted or expired, that ends its tries */
    wait_s(f, 60);
    expect_nothing_due(f);
}

STORE_TEST(a_message_falls_out_when_its_life_is_over)
{
    struct store_subscription *seen;
    struct store_delivery d;
    struct store_id id;

    id = subscribe(f, "http://a", 6000);
    post_with(f, 60, 0);
    post_with(f, 600, 0);
    wait_ms(f, 59999);
    expect_next(f, &d, id, 1);
    failed(f, &d, 1);
    wait_ms(f, 1);
    expect_next(f, &d, id, 2);
    ck_assert_uint_eq(d.failed, 0);
    delivered(f, &d);
    seen = see_subscription(f, id);
    ck_assert_uint_eq(seen->progress.dropped, 1);
    ck_assert_uint_eq(seen->progress.delivered, 1);
    ck_assert_uint_eq(seen->progress.behind, 0);
}

STORE_TEST(a_new_address_is_tried_at_once_with_no_failures_of_the_old_one)
{
    struct store_delivery d;
    struct store_id id;

    id = subscribe(f, "http://a", 6000);
    post(f, 1);
    expect_next(f, &d, id, 1);
    failed(f, &d, 1000000);
    ck_assert_status(change(f, id, "http://b", NULL, STORE_UNSET), ST_OK);
    expect_next(f, &d, id, 1);
    ck_assert(bytes_equal(d.subscriber, bytes_str("http://b")));
    ck_assert_uint_eq(d.failed, 0);
    ck_assert_status(change(f, id, "http://c", NULL, STORE_UNSET), ST_OK);
    failed(f, &d, 1000000); /* the old one did */
    expect_next(f, &d, id, 1);
    ck_assert(bytes_equal(d.subscriber, bytes_str("http://c")));
    ck_assert_uint_eq(d.failed, 0);
    delivered(f, &d);
}

STORE_TEST(no_confirmation_is_requested_if_none_is_needed)
{
    struct store_delivery d;
    struct store_id id;

    id = subscribe(f, "http://a", 600);
    resubscribe(f, "http://a", false);
    expect_nothing_due(f);
    confirm(f, id, false); /* an unsubscribed one is notified all the same */
    expect_notice(f, &d, id, STORE_NOTICE_UNSUBSCRIBED);
    failed(f, &d, 1000);
    post(f, 1);
    expect_nothing_due(f);
    wait_s(f, 1);
    expect_notice(f, &d, id, STORE_NOTICE_UNSUBSCRIBED);
    ck_assert_uint_eq(d.failed, 1);
    delivered(f, &d);
    expect_next(f, &d, id, 1);
    delivered(f, &d);
}

STORE_CASE("confirmed deliveries");

STORE_TEST_WITH(nothing_is_delivered_before_it_is_confirmed,
                fixture_open_confirming(f, _i))
{
    struct store_delivery d;
    struct store_id id;

    id = subscribe(f, "http://a", 600);
    post(f, 1);
    expect_notice(f, &d, id, STORE_NOTICE_CONFIRM);
    delivered(f, &d);
    expect_nothing_due(f);
    resubscribe(f, "http://a", false); /* another confirmation is due */
    expect_notice(f, &d, id, STORE_NOTICE_CONFIRM);
    post(f, 1);
    confirm(f, id, true);
    delivered(f, &d);
    expect_nothing_due(f); /* earlier messages are not for it */
    post(f, 1);
    expect_next(f, &d, id, 3);
    delivered(f, &d);
}

STORE_TEST_WITH(a_confirmed_subscriber_gets_no_further_request,
                fixture_open_confirming(f, _i))
{
    struct store_delivery d;
    struct store_id id;

    id = subscribe(f, "http://a", 600);
    confirm(f, id, true);
    expect_nothing_due(f);
    id = subscribe(f, "http://b", 600);
    expect_notice(f, &d, id, STORE_NOTICE_CONFIRM);
    confirm(f, id, true);
    failed(f, &d, 0);
    expect_nothing_due(f);
}

STORE_TEST_WITH(an_unsubscribed_subscriber_is_notified_once,
                fixture_open_confirming(f, _i))
{
    struct store_delivery d;
    struct store_id id;

    id = subscribe(f, "http://a", 600);
    confirm(f, id, true);
    post(f, 2);
    expect_next(f, &d, id, 1);
    confirm(f, id, false);
    delivered(f, &d);
    expect_notice(f, &d, id, STORE_NOTICE_UNSUBSCRIBED);
    delivered(f, &d);
    expect_nothing_due(f);
    post(f, 1);
    expect_nothing_due(f);
    confirm(f, id, true);
    post(f, 1);
    expect_next(f, &d, id, 4);
    delivered(f, &d);
}

STORE_TEST_WITH(another_address_has_to_confirm_anew, fixture_open_confirming(f, _i))
{
    struct store_delivery d;
    struct store_id id;

    id = subscribe(f, "http://a", 600);
    confirm(f, id, true);
    post(f, 1);
    ck_assert_status(change(f, id, "http://b", NULL, STORE_UNSET), ST_OK);
    ck_assert(!see_subscription(f, id)->confirmed);
    expect_notice(f, &d, id, STORE_NOTICE_CONFIRM);
    ck_assert(bytes_equal(d.subscriber, bytes_str("http://b")));
    delivered(f, &d);
    expect_nothing_due(f);
}

STORE_TEST_WITH(failures_are_those_of_what_is_tried, fixture_open_confirming(f, _i))
{
    struct store_delivery d;
    struct store_id id;

    id = subscribe(f, "http://a", 600);
    expect_notice(f, &d, id, STORE_NOTICE_CONFIRM);
    confirm(f, id, true);
    post(f, 1);
    failed(f, &d, 0); /* the confirmation, which is not needed any more */
    expect_next(f, &d, id, 1);
    ck_assert_uint_eq(d.failed, 0);
    confirm(f, id, false);
    failed(f, &d, 0);
    expect_notice(f, &d, id, STORE_NOTICE_UNSUBSCRIBED);
    ck_assert_uint_eq(d.failed, 0);
    failed(f, &d, 0);
    expect_notice(f, &d, id, STORE_NOTICE_UNSUBSCRIBED);
    ck_assert_uint_eq(d.failed, 1);
    delivered(f, &d);
}

STORE_TEST_WITH(a_message_of_before_has_not_failed_for_those_of_after,
                fixture_open_confirming(f, _i))
{
    struct store_delivery d;
    struct store_id id;

    id = subscribe(f, "http://a", 600);
    confirm(f, id, true);
    post(f, 1);
    expect_next(f, &d, id, 1);
    confirm(f, id, false);
    confirm(f, id, true); /* begins anew */
    post(f, 1);
    failed(f, &d, 0);
    expect_notice(f, &d, id, STORE_NOTICE_UNSUBSCRIBED);
    delivered(f, &d);
    expect_next(f, &d, id, 2);
    ck_assert_uint_eq(d.failed, 0);
    delivered(f, &d);
}
