#include "claimd/base/clock.h"

#include "support/check_main.h"

#include <time.h>

/*
 * This program is linked with --wrap=clock_gettime: the system's clocks show what they
 * show, or what a test sets.
 */
int __real_clock_gettime(clockid_t which, struct timespec *out);
int __wrap_clock_gettime(clockid_t which, struct timespec *out);

static struct {
    bool set;
    int64_t wall_ms, monotonic_ms;
} faked;

int
__wrap_clock_gettime(clockid_t which, struct timespec *out)
{
    int64_t ms = which == CLOCK_REALTIME ? faked.wall_ms : faked.monotonic_ms;

    if (!faked.set)
        return __real_clock_gettime(which, out);
    *out = (struct timespec){(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
    return 0;
}

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

START_TEST(a_clock_that_was_stopped_shows_what_it_is_moved_to)
{
    struct clock c;
    int64_t at_ms;

    clock_init_system(&c);
    ck_assert(!clock_stands(&c));
    clock_stop(&c);
    clock_stop(&c); /* it stands */
    ck_assert(clock_stands(&c));
    at_ms = clock_now_ms(&c);
    clock_advance(&c, 60000);
    clock_reach(&c, at_ms + 61000);
    clock_reach(&c, at_ms); /* it never goes back */
    ck_assert_int_eq(clock_now_ms(&c), at_ms + 61000);
    clock_start(&c);
    clock_start(&c);
    ck_assert(!clock_stands(&c));
}
END_TEST

START_TEST(setting_the_wall_clock_moves_nothing)
{
    struct clock c;

    faked.set = true;
    faked.wall_ms = 1700000000123;
    faked.monotonic_ms = 5000;
    clock_init_system(&c);
    ck_assert_int_eq(clock_now_ms(&c), 1700000000123);
    faked.wall_ms += 3600000; /* an administrator sets it forward */
    ck_assert_int_eq(clock_now_ms(&c), 1700000000123);
    faked.wall_ms -= 86400000; /* and back, while time goes on */
    faked.monotonic_ms += 250;
    ck_assert_int_eq(clock_now_ms(&c), 1700000000373);
    ck_assert_int_eq(clock_stopwatch_ns(), INT64_C(5250) * 1000000);
    clock_advance(&c, 7); /* it is moved while it runs, and goes on from where it stood */
    clock_reach(&c, 1700000000400);
    ck_assert_int_eq(clock_now_ms(&c), 1700000000400);
    clock_stop(&c);
    faked.monotonic_ms += 5000;
    clock_advance(&c, 60000);
    clock_start(&c);
    ck_assert_int_eq(clock_now_ms(&c), 1700000060400);
    faked.monotonic_ms += 10;
    ck_assert_int_eq(clock_now_ms(&c), 1700000060410);
    faked.set = false;
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
