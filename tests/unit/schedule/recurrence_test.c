/*
 * Due times that repeat, in milliseconds, and those that were missed. Read
 * claimd/schedule/recurrence.h next.
 */
#include "claimd/schedule/recurrence.h"

#include "support/check_main.h"
#include "support/due.h"

#include <string.h>

static struct recurrence
by_cron(const char *expression, const char *zone)
{
    struct reason why = {""};
    struct recurrence r;
    enum status st = recurrence_of_cron(bytes_str(expression), bytes_str(zone), &r, &why);

    ck_assert_msg(st == ST_OK, "%s", why.text);
    return r;
}

static struct recurrence
by_interval(int64_t every_s, int64_t start_s)
{
    struct reason why = {""};
    struct recurrence r;
    enum status st = recurrence_of_interval(every_s, start_s, &r, &why);

    ck_assert_msg(st == ST_OK, "%s", why.text);
    return r;
}

/* ------------------------------------------------------------------ making */

START_TEST(zone_is_utc_unless_named)
{
    struct recurrence r = by_cron("@daily", NULL);

    ck_assert_str_eq(r.zone, "UTC");
    ck_assert_int_eq(r.every_s, 0);
    r = by_cron("@daily", "America/Argentina/ComodRivadavia");
    ck_assert_str_eq(r.zone, "America/Argentina/ComodRivadavia");
    r = by_interval(60, 0);
    ck_assert_str_eq(r.zone, "");
}

START_TEST(malformed_parts_are_refused)
{
    struct reason why = {""};
    struct recurrence r;

    ck_assert_int_eq(recurrence_of_cron(bytes_str("@dayly"), BYTES_NONE, &r, &why),
                     ST_BAD_VALUE);
    ck_assert_str_eq(why.text, "cron expression: @dayly is unknown. Write @daily");
    ck_assert_int_eq(
        recurrence_of_cron(bytes_str("@daily"), bytes_str("../etc/passwd"), &r, &why),
        ST_BAD_VALUE);
    ck_assert_int_eq(recurrence_of_cron(bytes_str("@daily"), bytes_str(""), &r, &why),
                     ST_BAD_VALUE);
    ck_assert_int_eq(recurrence_of_interval(0, 0, &r, &why), ST_BAD_VALUE);
    ck_assert_str_eq(why.text,
                     "interval is 0 seconds. The allowed range is 1 to 31622400");
    ck_assert_int_eq(recurrence_of_interval(RECURRENCE_EVERY_MOST + 1, 0, &r, &why),
                     ST_BAD_VALUE);
    ck_assert_int_eq(recurrence_of_interval(1, -1, &r, &why), ST_BAD_VALUE);
    ck_assert_int_eq(recurrence_of_interval(1, CALENDAR_LAST + 1, &r, &why),
                     ST_BAD_VALUE);
}

START_TEST(recurrences_are_equal_if_their_parts_are)
{
    const struct recurrence daily = by_cron("0 0 * * *", "Europe/Berlin");
    const struct recurrence minute = by_interval(60, 5);
    struct recurrence others[] = {by_cron("0 0 * * *", "Europe/Paris"),
                                  by_cron("1 0 * * *", "Europe/Berlin"),
                                  by_cron("0 1 * * *", "Europe/Berlin"),
                                  by_cron("0 0 1 * *", "Europe/Berlin"),
                                  by_cron("0 0 * 1 *", "Europe/Berlin"),
                                  by_cron("0 0 * * 1", "Europe/Berlin"),
                                  by_cron("0 0 1-31 * *", "Europe/Berlin"),
                                  by_cron("0 0 * * 0-6", "Europe/Berlin"),
                                  by_interval(60, 6),
                                  by_interval(61, 5)};
    struct recurrence padded;

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        ck_assert(!recurrence_equal(&daily, &others[i]));
        ck_assert(!recurrence_equal(&others[i], &minute));
        ck_assert(recurrence_equal(&others[i], &others[i]));
    }
    memset(&padded, 0xff, sizeof(padded));
    ck_assert_int_eq(recurrence_of_cron(bytes_str("@daily"), bytes_str("Europe/Berlin"),
                                        &padded, NULL),
                     ST_OK);
    ck_assert(recurrence_equal(&daily, &padded));
}

/* ------------------------------------------------------------------ next */

START_TEST(intervals_are_multiples_since_1970)
{
    const struct recurrence r = by_interval(300, 0);

    ck_assert_int_eq(recurrence_next(&r, NULL, 0), 300000);
    ck_assert_int_eq(recurrence_next(&r, NULL, 299999), 300000);
    ck_assert_int_eq(recurrence_next(&r, NULL, 300000), 600000);
    ck_assert_int_eq(recurrence_next(&r, NULL, -1), 0);
    ck_assert_int_eq(recurrence_next(&r, NULL, -500000), 0);
}

START_TEST(an_interval_begins_at_its_start)
{
    const struct recurrence r = by_interval(3600, 1000);

    ck_assert_int_eq(recurrence_next(&r, NULL, 0), 1000000);
    ck_assert_int_eq(recurrence_next(&r, NULL, 999999), 1000000);
    ck_assert_int_eq(recurrence_next(&r, NULL, 1000000), 4600000);
    ck_assert_int_eq(recurrence_next(&r, NULL, 4599999), 4600000);
}

START_TEST(due_times_end_with_the_calendar)
{
    const struct recurrence r = by_interval(1, CALENDAR_LAST - 1);

    ck_assert_int_eq(recurrence_next(&r, NULL, 0), (CALENDAR_LAST - 1) * 1000);
    ck_assert_int_eq(recurrence_next(&r, NULL, CALENDAR_LAST * 1000 - 1),
                     CALENDAR_LAST * 1000);
    ck_assert_int_eq(recurrence_next(&r, NULL, CALENDAR_LAST * 1000), RECURRENCE_NEVER);
    ck_assert_int_eq(recurrence_next(&r, NULL, INT64_MAX), RECURRENCE_NEVER);
    ck_assert_int_eq(recurrence_next(&r, NULL, INT64_MIN), (CALENDAR_LAST - 1) * 1000);
}

START_TEST(a_cron_expression_is_due_in_milliseconds)
{
    const struct recurrence r = by_cron("*/10 * * * *", NULL);

    ck_assert_int_eq(recurrence_next(&r, NULL, 0), 600000);
    ck_assert_int_eq(recurrence_next(&r, NULL, 599999), 600000);
    ck_assert_int_eq(recurrence_next(&r, NULL, 600000), 1200000);
    ck_assert_int_eq(recurrence_next(&r, NULL, -1), 0);
}

/* ------------------------------------------------------------------ missed */

static void
assert_latest(const struct recurrence *r, int64_t after_ms, int64_t until_ms,
              int64_t latest, uint64_t expected)
{
    uint64_t count = 99;

    ck_assert_int_eq(recurrence_latest(r, NULL, after_ms, until_ms, 50, &count), latest);
    ck_assert_uint_eq(count, expected);
}

START_TEST(missed_intervals_are_counted)
{
    const struct recurrence r = by_interval(10, 5);

    assert_latest(&r, 0, 4999, RECURRENCE_NEVER, 0);
    assert_latest(&r, 0, 5000, 5000, 1);
    assert_latest(&r, 5000, 14999, RECURRENCE_NEVER, 0);
    assert_latest(&r, 4999, 15000, 15000, 2);
    assert_latest(&r, 5000, 105000, 105000, 10);
    assert_latest(&r, 5000, 104999, 95000, 9);
    assert_latest(&r, 0, 495999, 495000, 50);
    assert_latest(&r, 0, 505000, 505000, 50); /* of 51 */
    assert_latest(&r, 7000, 7000, RECURRENCE_NEVER, 0);
    assert_latest(&r, 50000, 7000, RECURRENCE_NEVER, 0);
    assert_latest(&r, INT64_MIN, INT64_MAX, (CALENDAR_LAST - 4) * 1000, 50);
}

START_TEST(missed_cron_times_are_counted_up_to_the_most)
{
    const struct recurrence minutes = by_cron("* * * * *", NULL);
    const struct recurrence january = by_cron("30 12 * 1 *", NULL);
    const int64_t begin = due_utc("2026-01-01 00:00") * 1000;

    assert_latest(&minutes, begin, begin + 59999, RECURRENCE_NEVER, 0);
    assert_latest(&minutes, begin, begin + 60000, begin + 60000, 1);
    assert_latest(&minutes, begin, begin + 49 * 60000 + 1, begin + 49 * 60000, 49);
    /* A year of minutes: the count ends, and the latest is right. */
    assert_latest(&minutes, begin, due_utc("2027-01-01 00:00") * 1000 + 59999,
                  due_utc("2027-01-01 00:00") * 1000, 50);
    assert_latest(&january, begin, due_utc("2026-12-31 00:00") * 1000,
                  due_utc("2026-01-31 12:30") * 1000, 31);
    assert_latest(&january, begin, due_utc("2027-01-20 00:00") * 1000,
                  due_utc("2027-01-19 12:30") * 1000, 50);
    assert_latest(&january, due_utc("2026-02-01 00:00") * 1000,
                  due_utc("2026-12-31 23:59") * 1000, RECURRENCE_NEVER, 0);
}

START_TEST(missed_times_of_a_gap_are_one)
{
    const struct recurrence r = by_cron("*/10 2 * * *", "Europe/Berlin");
    struct mem *mem = mem_new(0);
    struct zone *berlin = due_zone(mem, r.zone);
    const int64_t gap = due_utc("2027-03-28 01:00") * 1000;
    uint64_t count;

    ck_assert_int_eq(
        recurrence_latest(&r, berlin, gap - 3600000, gap + 3600000, 50, &count), gap);
    ck_assert_uint_eq(count, 1);
    zone_unref(berlin);
    mem_destroy(mem);
}
