/*
 * At a fixed rate, the load generator sends at equal distances that do not drift, so that
 * a slow server cannot delay the requests that measure it. Declared in
 * tests/bench/load/plan.h.
 */
#include "load/plan.h"

#include "support/check_main.h"

START_TEST(requests_are_due_at_equal_distances_in_the_order_of_the_connections)
{
    /* 1000 a second over 4 connections: one every millisecond. */
    struct pace p = {.rate = 1000, .start_ns = 5 * STOPWATCH_SECOND, .connections = 4};
    int64_t due = p.start_ns;

    for (uint64_t round = 0; round < 100; round++) {
        for (unsigned c = 0; c < 4; c++, due += 1000000)
            ck_assert_int_eq(pace_due(&p, c, round), due);
    }
}

START_TEST(the_distance_does_not_drift_over_a_day)
{
    /* 30000 a second do not divide a second into whole nanoseconds. */
    struct pace p = {.rate = 30000, .start_ns = 0, .connections = 16};
    uint64_t rounds_a_day = UINT64_C(30000) * 86400 / 16;

    ck_assert_int_eq(pace_due(&p, 0, rounds_a_day), 86400 * STOPWATCH_SECOND);
}

START_TEST(requests_that_are_due_before_a_time_can_be_counted)
{
    static const double rates[] = {0.3, 3, 7, 1000, 29999.5, 1000000};

    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        struct pace p = {.rate = rates[i], .start_ns = 77, .connections = 3};

        ck_assert_int_eq(pace_count(&p, 0), 0);
        ck_assert_int_eq(pace_count(&p, 77), 0);
        ck_assert_int_eq(pace_count(&p, 78), 1);
        for (uint64_t n = 1; n < 1000; n++) { /* requests 0 .. n-1 */
            int64_t due = pace_due(&p, (unsigned)(n % 3), n / 3);

            ck_assert_int_eq(pace_count(&p, due), (int64_t)n);
            ck_assert_int_eq(pace_count(&p, due + 1), (int64_t)n + 1);
        }
    }
}
