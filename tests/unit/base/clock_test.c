#include "claimd/base/clock.h"

#include "support/check_main.h"

#include <time.h>

START_TEST(a_manual_clock_stands_until_it_is_moved)
{
    struct clock c;

    clock_init_manual(&c, 1700000000000);
    ck_assert_int_eq(clock_now_ms(&c), 1700000000000);
    ck_assert_int_eq(clock_now_ms(&c), 1700000000000);
    clock_advance(&c, 60000);
    ck_assert_int_eq(clock_now_ms(&c), 1700000060000);
    clock_advance(&c, 0);
    ck_assert_int_eq(clock_now_ms(&c), 1700000060000);
}
END_TEST

START_TEST(the_system_clock_shows_milliseconds_since_1970_and_never_goes_back)
{
    struct clock c;
    int64_t last, wall = (int64_t)time(NULL) * 1000;

    clock_init_system(&c);
    last = clock_now_ms(&c);
    ck_assert_int_gt(last, wall - 86400000); /* the unit is right; no test of speed */
    ck_assert_int_lt(last, wall + 86400000);
    for (int i = 0; i < 10000; i++) {
        int64_t now = clock_now_ms(&c);

        ck_assert_int_ge(now, last);
        last = now;
    }
}
END_TEST

START_TEST(times_are_written_in_utc)
{
    static const struct {
        int64_t ms;
        const char *text;
    } rows[] = {
        {0, "1970-01-01T00:00:00Z"},
        {999, "1970-01-01T00:00:00Z"}, /* down to the second */
        {1000, "1970-01-01T00:00:01Z"},
        {-1, "1969-12-31T23:59:59Z"}, /* down, not towards zero */
        {-1000, "1969-12-31T23:59:59Z"},
        {951782400000, "2000-02-29T00:00:00Z"},
        {1700000000123, "2023-11-14T22:13:20Z"},
        {253402300799999, "9999-12-31T23:59:59Z"},
        {253402300800000, "9999-12-31T23:59:59Z"}, /* five digits have no room */
        {INT64_MAX, "9999-12-31T23:59:59Z"},
    };
    char text[CLOCK_TEXT_CAP];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        clock_text(rows[i].ms, text);
        ck_assert_str_eq(text, rows[i].text);
    }
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("clock");
    TCase *tc = test_case(suite, "clock");

    tcase_add_test(tc, a_manual_clock_stands_until_it_is_moved);
    tcase_add_test(tc,
                   the_system_clock_shows_milliseconds_since_1970_and_never_goes_back);
    tcase_add_test(tc, times_are_written_in_utc);
    return check_main(suite);
}
