/*
 * The waits between attempts, for each function of a retry policy (docs/api.md 7.9),
 * compared with those that were recorded from Zaqar. Declared in
 * src/notify/delivery_options.h.
 */
#include "notify/delivery_options.h"

#include "support/check_main.h"

#include <stdio.h>

/* Waits, in seconds, until the permanent failure, are exactly these; ends with -1. */
static void
expect_waits(const struct retry_policy *p, const int *waits)
{
    uint32_t failed = 1;
    int64_t wait_ms;

    for (; *waits >= 0; waits++, failed++) {
        ck_assert_msg(retry_wait(p, failed, &wait_ms), "failed for good after %u",
                      failed);
        ck_assert_int_eq(wait_ms, *waits * 1000);
    }
    ck_assert(!retry_wait(p, failed, &wait_ms));
    ck_assert(!retry_wait(p, UINT32_MAX, &wait_ms));
}

#define EXPECT_WAITS(p, ...) expect_waits((p), (const int[]){__VA_ARGS__, -1})

static struct retry_policy
read_both(const char *options, const char *metadata)
{
    struct retry_policy p;

    retry_policy_read(bytes_str(options), bytes_str(metadata), &p);
    return p;
}

static struct retry_policy
only(const char *function)
{
    char options[256];

    (void)snprintf(options, sizeof(options),
                   "{\"_retry_policy\":{\"retries_with_no_delay\":0,"
                   "\"minimum_delay_retries\":0,\"maximum_delay_retries\":0,"
                   "\"retry_backoff_function\":\"%s\"}}",
                   function);
    return read_both(options, "{}");
}

TEST_CASE("delays");

START_TEST(those_that_grow_are_as_they_were_recorded)
{
    struct retry_policy linear = only("linear"), arithmetic = only("arithmetic");
    struct retry_policy geometric = only("geometric"), exponential = only("exponential");

    EXPECT_WAITS(&linear, 5, 10, 15, 20, 25);
    EXPECT_WAITS(&arithmetic, 5, 7, 12, 20, 30);
    EXPECT_WAITS(&geometric, 5, 7, 12, 19, 30);
    EXPECT_WAITS(&exponential, 5, 7, 12, 19, 30);
}

START_TEST(by_default_there_are_four_phases)
{
    struct retry_policy p = read_both("{}", "{}");

    EXPECT_WAITS(&p, 0, 0, 0, 5, 5, 5, 5, 10, 15, 20, 25, 30, 30, 30);
}

START_TEST(linear_ones_stay_below_the_maximum)
{
    struct retry_policy p = only("linear");

    p.minimum_delay = 1;
    p.maximum_delay = 12;
    EXPECT_WAITS(&p, 1, 6, 11);
    p.maximum_delay = 11;
    EXPECT_WAITS(&p, 1, 6);
}

START_TEST(of_the_smallest_span_there_are_two)
{
    struct retry_policy p = only("arithmetic");

    p.minimum_delay = 0;
    p.maximum_delay = 10;
    EXPECT_WAITS(&p, 0, 10);
    p = only("geometric");
    p.minimum_delay = 0;
    p.maximum_delay = 10;
    EXPECT_WAITS(&p, 1, 10);
    p.maximum_delay = 19; /* three whole steps */
    EXPECT_WAITS(&p, 1, 4, 19);
    p.maximum_delay = 16; /* 1, 4, 16: whole ones are not rounded down */
    EXPECT_WAITS(&p, 1, 4, 16);
}

START_TEST(the_largest_numbers_overflow_nothing)
{
    static const char *const names[] = {"linear", "arithmetic", "geometric"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct retry_policy p = only(names[i]);
        int64_t wait_ms, before = 0;
        uint32_t failed = 1;

        p.maximum_delay = RETRY_DELAY_MOST_S;
        for (; retry_wait(&p, failed, &wait_ms); failed++) {
            ck_assert_int_ge(wait_ms, before);
            ck_assert_int_le(wait_ms, (int64_t)RETRY_DELAY_MOST_S * 1000);
            before = wait_ms;
        }
        ck_assert_uint_eq(failed - 1, (RETRY_DELAY_MOST_S - 5) / 5);
    }
}

TEST_CASE("policies");

#define POLICY(members) "{\"x\":[1],\"_retry_policy\":{" members "}}"
#define NONE_AT_ONCE    "\"retries_with_no_delay\":0"

START_TEST(that_of_the_subscription_counts_or_else_the_queue_s)
{
    struct retry_policy p =
        read_both(POLICY("\"minimum_delay\":7"), POLICY("\"minimum_delay\":9"));

    ck_assert_int_eq(p.minimum_delay, 7);
    p = read_both("{}", POLICY("\"minimum_delay\":9"));
    ck_assert_int_eq(p.minimum_delay, 9);
    p = read_both(POLICY(""), POLICY("\"minimum_delay\":9"));
    ck_assert_int_eq(p.minimum_delay, 5); /* it has one: the default */
    p = read_both(NULL, NULL);
    ck_assert_int_eq(p.minimum_delay, 5);
}

START_TEST(either_can_say_that_the_queue_s_counts)
{
    static const char ignored[] =
        POLICY("\"minimum_delay\":7,\"ignore_subscription_override\":true");
    struct retry_policy p = read_both(ignored, POLICY("\"minimum_delay\":9"));

    ck_assert_int_eq(p.minimum_delay, 9);
    p = read_both(POLICY("\"minimum_delay\":9"), ignored);
    ck_assert_int_eq(p.minimum_delay, 7);
    p = read_both(ignored, "{}");
    ck_assert_int_eq(p.minimum_delay, 5);
    p = read_both(POLICY("\"minimum_delay\":7,\"ignore_subscription_override\":null"),
                  ignored);
    ck_assert_int_eq(p.minimum_delay, 7);
}

START_TEST(null_is_the_default_of_a_member)
{
    struct retry_policy p = read_both(
        POLICY("\"minimum_delay\":null,\"retry_backoff_function\":null," NONE_AT_ONCE),
        "{}");

    EXPECT_WAITS(&p, 5, 5, 5, 5, 10, 15, 20, 25, 30, 30, 30);
}

START_TEST(an_invalid_policy_is_the_default)
{
    static const char *const bad[] = {
        "{",
        "[]",
        "",
        "{\"_retry_policy\":[]}",
        "{\"_retry_policy\":null}",
        "{\"_retry_policy\":1}",
        POLICY(NONE_AT_ONCE ",\"minimum_delay\":\"5\""),
        POLICY(NONE_AT_ONCE ",\"minimum_delay\":2.5"),
        POLICY(NONE_AT_ONCE ",\"minimum_delay\":21"),
        POLICY(NONE_AT_ONCE ",\"retry_backoff_function\":\"LINEAR\""),
        POLICY(NONE_AT_ONCE ",\"retry_backoff_function\":1"),
        POLICY(NONE_AT_ONCE ",\"ignore_subscription_override\":1"),
        "{\"_retry_policy\":{" NONE_AT_ONCE ",}}",
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct retry_policy p = read_both(bad[i], bad[i]);

        ck_assert_msg(p.retries_with_no_delay == 3 && p.minimum_delay == 5 &&
                          p.maximum_delay == 30 && !p.queue_decides,
                      "%s", bad[i]);
    }
}

START_TEST(numbers_are_cut_to_what_makes_sense)
{
    struct retry_policy p =
        read_both(POLICY("\"retries_with_no_delay\":-1,\"minimum_delay\":-100,"
                         "\"maximum_delay\":9223372036854775807,"
                         "\"maximum_delay_retries\":9223372036854775807"),
                  "{}");

    ck_assert_int_eq(p.retries_with_no_delay, 0);
    ck_assert_int_eq(p.minimum_delay, 0);
    ck_assert_int_eq(p.maximum_delay, RETRY_DELAY_MOST_S);
    ck_assert_int_eq(p.maximum_delay_retries, RETRY_RETRIES_MOST);
}
