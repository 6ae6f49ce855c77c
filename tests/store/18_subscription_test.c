/* Subscriptions of any store: making, showing, changing, confirming and ending them. */
#include "support/store_fixture.h"
#include "support/subscriptions.h"

#include <stdio.h>

STORE_CASE("subscriptions");

STORE_TEST(a_subscription_makes_its_queue_and_shows_its_settings)
{
    struct store_subscription *seen;
    struct store_id id;

    id = subscribe(f, "http://a", 3600);
    wait_s(f, 7);
    seen = see_subscription(f, id);
    ck_assert_str_eq(seen->id.text, id.text);
    ck_assert(bytes_equal(seen->subscriber, bytes_str("http://a")));
    ck_assert(bytes_equal(seen->options, bytes_str("{\"x\":1}")));
    ck_assert_int_eq(seen->ttl_s, 3600);
    ck_assert_int_eq(seen->age_s, 7);
    ck_assert(!seen->confirmed);
    expect_stats(f, 0, 0); /* of a queue that is there */
}

STORE_TEST(a_subscriber_has_one_subscription_a_queue)
{
    struct store_id id, other;

    id = subscribe(f, "http://a", 3600);
    ck_assert(id_same(resubscribe(f, "http://a", false), id));
    confirm(f, id, true);
    ck_assert(id_same(resubscribe(f, "http://a", true), id));
    use(f, "other");
    other = subscribe(f, "http://a", 3600);
    ck_assert(!id_same(id, other));
    ck_assert_status(find_subscription(f, id), ST_NOT_FOUND);
}

STORE_TEST(a_subscription_has_one_id_only)
{
    enum { NUMBER_AT = 12 };
    struct store_id id, other, marker;

    id = subscribe(f, "http://a", 3600);
    for (size_t i = 0; i < LENIENT_BEGINS; i++) {
        other = lenient_id(id, NUMBER_AT, lenient_begins[i]);
        ck_assert_status(find_subscription(f, other), ST_NOT_FOUND);
        unsubscribe(f, other); /* there is none */
        ck_assert_uint_eq(list_subscriptions(f, other.text, 5, &marker), 1);
    }
}

STORE_TEST(they_are_listed_page_by_page_in_the_order_of_creation)
{
    struct store_id a, b, c, marker;

    ck_assert_uint_eq(list_subscriptions(f, "", 5, &marker), 0);
    ck_assert(id_empty(marker));
    a = subscribe(f, "http://a", 3600);
    b = subscribe(f, "http://b", 3600);
    c = subscribe(f, "http://c", 3600);
    ck_assert_uint_eq(list_subscriptions(f, "", 2, &marker), 2);
    expect_listed(f, 0, a);
    expect_listed(f, 1, b);
    unsubscribe(f, b);
    ck_assert_uint_eq(list_subscriptions(f, marker.text, 2, &marker), 1);
    expect_listed(f, 0, c);
    ck_assert_uint_eq(list_subscriptions(f, marker.text, 2, &marker), 0);
    ck_assert_uint_eq(list_subscriptions(f, a.text, 2, &marker), 1);
    expect_listed(f, 0, c);
    ck_assert_uint_eq(list_subscriptions(f, c.text, 2, &marker), 0);
    ck_assert_uint_eq(list_subscriptions(f, "nonsense", 5, &marker), 2);
    ck_assert_uint_eq(list_subscriptions(f, "99999", 5, &marker), 2);
}

/* An SDK that sorts the ids that it was given may take any of them for a marker. */
STORE_TEST(ids_sort_in_the_order_of_subscribing)
{
    enum { COUNT = 30 };
    struct store_id last = {""}, id, first = {""}, marker;
    char address[32];

    for (int i = 0; i < COUNT; i++) {
        snprintf(address, sizeof(address), "http://%d", i);
        id = subscribe(f, address, 3600);
        ck_assert_uint_eq(strlen(id.text), 24);
        ck_assert_msg(strcmp(last.text, id.text) < 0, "%s, then %s", last.text, id.text);
        if (i % 7 == 3)
            unsubscribe(f, id); /* the newest one */
        if (i % 7 == 5)
            fixture_restart(f);
        if (i % 7 != 3)
            last = id;
        if (i == 0)
            first = id;
    }
    ck_assert_uint_eq(list_subscriptions(f, first.text, COUNT, &marker), COUNT - 5);
}

STORE_TEST(members_left_out_stay_unchanged)
{
    struct store_subscription *seen;
    struct store_id id;

    id = subscribe(f, "http://a", 600);
    wait_s(f, 100);
    ck_assert_status(change(f, id, NULL, "{}", STORE_UNSET), ST_OK);
    seen = see_subscription(f, id);
    ck_assert(bytes_equal(seen->subscriber, bytes_str("http://a")));
    ck_assert(bytes_equal(seen->options, bytes_str("{}")));
    ck_assert_int_eq(seen->age_s, 100);
    ck_assert_status(change(f, id, "http://b", NULL, 700), ST_OK);
    seen = see_subscription(f, id);
    ck_assert(bytes_equal(seen->subscriber, bytes_str("http://b")));
    ck_assert(bytes_equal(seen->options, bytes_str("{}")));
    ck_assert_int_eq(seen->ttl_s, 700);
    ck_assert_int_eq(seen->age_s, 0); /* a new ttl counts from now */
    subscribe(f, "http://a", 600);    /* the address is free again */
}

STORE_TEST(a_subscriber_cannot_change_to_an_existing_address)
{
    struct store_id a;

    a = subscribe(f, "http://a", 600);
    subscribe(f, "http://b", 60);
    ck_assert_status(change(f, a, "http://b", "{}", 999), ST_CONFLICT);
    ck_assert_int_eq(see_subscription(f, a)->ttl_s, 600); /* nothing has changed */
    ck_assert_status(change(f, a, "http://a", NULL, STORE_UNSET), ST_OK); /* its own */
    wait_s(f, 60);
    ck_assert_status(change(f, a, "http://b", NULL, STORE_UNSET), ST_OK);
}

STORE_TEST(it_ends_when_its_time_is_over_and_leaves_no_trace)
{
    struct store_id id, marker, again;

    id = subscribe(f, "http://a", 60);
    confirm(f, id, true);
    wait_ms(f, 59999);
    ck_assert_status(find_subscription(f, id), ST_OK);
    wait_ms(f, 1);
    ck_assert_status(find_subscription(f, id), ST_NOT_FOUND);
    ck_assert_status(change(f, id, "http://b", NULL, STORE_UNSET), ST_NOT_FOUND);
    ck_assert_status(confirm_status(f, id, true), ST_NOT_FOUND);
    unsubscribe(f, id);
    again = subscribe(f, "http://a", 60); /* no conflict with what has gone */
    ck_assert(!id_same(id, again));
    wait_s(f, 60);
    ck_assert_uint_eq(list_subscriptions(f, "", 5, &marker), 0);
}

STORE_TEST(a_longer_life_is_given_from_now_on)
{
    struct store_id id;

    id = subscribe(f, "http://a", 60);
    wait_s(f, 59);
    ck_assert_status(change(f, id, NULL, NULL, 100), ST_OK);
    wait_s(f, 99);
    ck_assert_status(find_subscription(f, id), ST_OK);
    wait_s(f, 1);
    ck_assert_status(find_subscription(f, id), ST_NOT_FOUND);
}

STORE_TEST(subscriptions_go_with_their_queue_and_with_a_purge_of_them)
{
    struct store_id id, marker;

    id = subscribe(f, "http://a", 600);
    post(f, 2);
    purge(f); /* of messages only */
    ck_assert_status(find_subscription(f, id), ST_OK);
    post(f, 2);
    purge_what(f, STORE_PURGE_SUBSCRIPTIONS);
    ck_assert_status(find_subscription(f, id), ST_NOT_FOUND);
    expect_stats(f, 0, 2);
    id = subscribe(f, "http://a", 600);
    purge_what(f, STORE_PURGE_BOTH);
    ck_assert_status(find_subscription(f, id), ST_NOT_FOUND);
    expect_stats(f, 0, 0);
    id = subscribe(f, "http://a", 600);
    delete_queue(f);
    ck_assert_uint_eq(list_subscriptions(f, "", 5, &marker), 0);
    make_queue(f, NULL);
    ck_assert_status(find_subscription(f, id), ST_NOT_FOUND);
}

STORE_TEST(ids_that_were_never_given_name_nothing)
{
    static const char *const nonsense[] = {"",
                                           "1",
                                           "nonsense",
                                           "aaaaaaaaaaaaaaaaaaaaaaaa",
                                           "a00000000000000000000001",
                                           "ffffffffffffffffffffffffffffffff"};

    subscribe(f, "http://a", 600);
    for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
        struct store_id id;

        memset(&id, 0, sizeof(id));
        memcpy(id.text, nonsense[i],
               strlen(nonsense[i]) < STORE_ID_CAP ? strlen(nonsense[i])
                                                  : STORE_ID_CAP - 1);
        ck_assert_status(find_subscription(f, id), ST_NOT_FOUND);
        ck_assert_status(confirm_status(f, id, true), ST_NOT_FOUND);
        ck_assert_status(change(f, id, "http://c", NULL, 60), ST_NOT_FOUND);
        unsubscribe(f, id);
    }
}
