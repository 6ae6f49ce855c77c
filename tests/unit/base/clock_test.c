/*
 * The time of claimd never goes back, and a restart does not move a deadline (docs/api.md
 * 1.4), although the clocks of the system are set or a process is stopped between two
 * readings. Read claimd/base/clock.h next.
 */
#include "claimd/base/clock.h"

#include "support/check_main.h"

#include <time.h>

static const int64_t MS_NS = 1000000;

/*
 * This program is linked with --wrap=clock_gettime: the system's clocks show what they
 * show, or what a test sets.
 */
int __real_clock_gettime(clockid_t which, struct timespec *out);
int __wrap_clock_gettime(clockid_t which, struct timespec *out);

static struct {
    bool set;
    int64_t wall_ns, monotonic_ns;
    /* A reading of the next clock comes so much later, for the last time. */
    int64_t slow_ns;
} faked;

int
__wrap_clock_gettime(clockid_t which, struct timespec *out)
{
    int64_t ns = which == CLOCK_REALTIME ? faked.wall_ns : faked.monotonic_ns;

    if (!faked.set)
        return __real_clock_gettime(which, out);
    *out = (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    faked.wall_ns += faked.slow_ns;
    faked.monotonic_ns += faked.slow_ns;
    faked.slow_ns /= 2;
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
    clock_advance_to(&c, at_ms + 61000);
    clock_advance_to(&c, at_ms); /* it never goes back */
    ck_assert_int_eq(clock_now_ms(&c), at_ms + 61000);
    clock_start(&c);
    clock_start(&c);
    ck_assert(!clock_stands(&c));
}

START_TEST(setting_the_wall_clock_moves_nothing)
{
    struct clock c;

    faked.set = true;
    faked.wall_ns = 1700000000123 * MS_NS;
    faked.monotonic_ns = 5000 * MS_NS;
    clock_init_system(&c);
    ck_assert_int_eq(clock_now_ms(&c), 1700000000123);
    faked.wall_ns += 3600000 * MS_NS; /* an administrator sets it forward */
    ck_assert_int_eq(clock_now_ms(&c), 1700000000123);
    faked.wall_ns -= 86400000 * MS_NS; /* and back, while time goes on */
    faked.monotonic_ns += 250 * MS_NS;
    ck_assert_int_eq(clock_now_ms(&c), 1700000000373);
    ck_assert_int_eq(clock_stopwatch_ns(), 5250 * MS_NS);
    clock_advance(&c, 7); /* it is moved while it runs, and goes on from where it stood */
    clock_advance_to(&c, 1700000000400);
    ck_assert_int_eq(clock_now_ms(&c), 1700000000400);
    clock_stop(&c);
    faked.monotonic_ns += 5000 * MS_NS;
    clock_advance(&c, 60000);
    clock_start(&c);
    ck_assert_int_eq(clock_now_ms(&c), 1700000060400);
    faked.monotonic_ns += 10 * MS_NS;
    ck_assert_int_eq(clock_now_ms(&c), 1700000060410);
    faked.set = false;
}

static void
let_pass(int64_t ns)
{
    faked.wall_ns += ns;
    faked.monotonic_ns += ns;
}

/* Processes that start one after the other, at any fraction of a millisecond of either
 * clock. */
START_TEST(a_restart_moves_no_deadline)
{
    faked.set = true;
    faked.wall_ns = 1700000000123 * MS_NS + 999999;
    faked.monotonic_ns = 5000 * MS_NS + 1;
    for (int i = 0; i < 5000; i++) {
        struct clock c;

        clock_init_system(&c);
        for (int j = 0; j < 20; j++) {
            ck_assert_int_eq(clock_now_ms(&c), faked.wall_ns / MS_NS);
            let_pass(77777);
        }
        let_pass(1234567);
        if (i % 100 == 0)
            faked.monotonic_ns = i * INT64_C(1234567); /* the machine was booted */
    }
    faked.set = false;
}

START_TEST(a_clock_is_never_ahead_though_the_process_is_held_up_between_readings)
{
    faked.set = true;
    for (int64_t slow_ns = 1; slow_ns < 3000 * MS_NS; slow_ns = slow_ns * 3 / 2 + 1) {
        struct clock c;

        faked.wall_ns = 1700000000123 * MS_NS + 654321;
        faked.monotonic_ns = 5000 * MS_NS + slow_ns % MS_NS;
        faked.slow_ns = slow_ns;
        clock_init_system(&c);
        faked.slow_ns = 0;
        let_pass(MS_NS - faked.wall_ns % MS_NS -
                 1); /* the wall clock's last nanosecond of it */
        ck_assert_int_eq(clock_now_ms(&c), faked.wall_ns / MS_NS);
        let_pass(
            1000); /* the next one has begun, for a clock that is less than 1 us late */
        ck_assert_int_eq(clock_now_ms(&c), faked.wall_ns / MS_NS);
    }
    faked.set = false;
}

START_TEST(a_clock_can_begin_a_millisecond_at_a_given_moment)
{
    faked.set = true;
    for (int64_t at_ns = -3 * MS_NS / 2; at_ns < 2 * MS_NS; at_ns += 99999) {
        struct clock c;

        clock_init_since(&c, 1700000000123, at_ns);
        faked.monotonic_ns = at_ns + 5 * MS_NS;
        faked.wall_ns = 1700000000128 * MS_NS;
        ck_assert_int_eq(clock_now_ms(&c), 1700000000128);
        faked.monotonic_ns--;
        faked.wall_ns--;
        ck_assert_int_eq(clock_now_ms(&c), 1700000000127);
    }
    faked.set = false;
}

START_TEST(a_running_clock_knows_its_distance_from_the_wall_clock)
{
    struct clock c;

    faked.set = true;
    faked.monotonic_ns = 5000 * MS_NS + 700000;
    faked.wall_ns = 1700000000123 * MS_NS + 456789;
    clock_init_system(&c);
    ck_assert_int_eq(clock_wall_ahead_ms(&c), 0);
    ck_assert_int_eq(clock_to_wall_ms(&c, 1000), 1000);
    faked.monotonic_ns += 60000 * MS_NS;
    faked.wall_ns += (60000 + 3 * 3600 * 1000) * MS_NS; /* set three hours forward */
    ck_assert_int_eq(clock_now_ms(&c), 1700000060123);
    ck_assert_int_eq(clock_wall_ahead_ms(&c), 3 * 3600 * 1000);
    ck_assert_int_eq(clock_wall_ms(&c), 1700000060123 + 3 * 3600 * 1000);
    ck_assert_int_eq(clock_to_wall_ms(&c, 1000), 1000 + 3 * 3600 * 1000);
    faked.wall_ns -= 6 * 3600 * 1000 * MS_NS + 700 * MS_NS; /* and back */
    ck_assert_int_eq(clock_wall_ahead_ms(&c), -3 * 3600 * 1000 - 700);
    ck_assert_int_eq(clock_to_wall_ms(&c, 0), -3 * 3600 * 1000 - 1000);
    clock_advance(&c, 1000);
    ck_assert_int_eq(clock_wall_ahead_ms(&c), -3 * 3600 * 1000 - 1700);
    faked.set = false;
}

START_TEST(small_steps_of_the_wall_clock_do_not_change_the_times_that_are_shown)
{
    struct clock c;

    faked.set = true;
    clock_init_system(&c);
    faked.wall_ns += 400 * MS_NS;
    ck_assert_int_eq(clock_wall_ahead_ms(&c), 400);
    ck_assert_int_eq(clock_to_wall_ms(&c, 5000), 5000);
    faked.set = false;
}

START_TEST(a_standing_clock_has_the_distance_that_a_test_sets)
{
    struct clock c;

    clock_init_manual(&c, 1700000000000);
    ck_assert_int_eq(clock_wall_ahead_ms(&c), 0);
    ck_assert_int_eq(clock_wall_ms(&c), 1700000000000);
    c.wall_ahead_ms = 5000;
    clock_advance(&c, 100);
    ck_assert_int_eq(clock_wall_ahead_ms(&c), 5000);
    ck_assert_int_eq(clock_wall_ms(&c), 1700000005100);
    ck_assert_int_eq(clock_to_wall_ms(&c, 7), 5007);
    ck_assert_int_eq(clock_to_wall_ms(NULL, 7), 7);
}

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
        {253402300800000, "9999-12-31T23:59:59Z"}, /* five digits have no space */
        {INT64_MAX, "9999-12-31T23:59:59Z"},
    };
    char text[CLOCK_TEXT_CAP], http[CLOCK_HTTP_CAP];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        clock_text(rows[i].ms, text);
        ck_assert_str_eq(text, rows[i].text);
    }
    clock_http_text(784111777999, http); /* the example of RFC 9110 */
    ck_assert_str_eq(http, "Sun, 06 Nov 1994 08:49:37 GMT");
    clock_http_text(INT64_MAX, http);
    ck_assert_str_eq(http, "Fri, 31 Dec 9999 23:59:59 GMT");
}
