/*
 * Days and dates, compared with a calendar that counts one day after another. Read
 * claimd/schedule/calendar.h next.
 */
#include "claimd/schedule/calendar.h"

#include "support/check_main.h"

/* The number of days of a month, as the rule of the calendar says it. */
static int
month_days(int64_t year, int month)
{
    if (month == 2)
        return year % 400 == 0 || (year % 4 == 0 && year % 100 != 0) ? 29 : 28;
    return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

START_TEST(days_and_dates_agree_with_counting)
{
    struct date d = {.year = 1583, .month = 1, .day = 1};
    int64_t day = calendar_day(1583, 1, 1);

    while (d.year < 2401) {
        const struct date found = calendar_date(day);

        if (found.year != d.year || found.month != d.month || found.day != d.day ||
            calendar_day(d.year, d.month, d.day) != day)
            ck_abort_msg("day %lld is %lld-%d-%d", (long long)day, (long long)d.year,
                         d.month, d.day);
        if (d.day == 1)
            ck_assert_int_eq(calendar_month_days(d.year, d.month),
                             month_days(d.year, d.month));
        day++;
        if (++d.day > month_days(d.year, d.month)) {
            d.day = 1;
            d.month = d.month == 12 ? 1 : d.month + 1;
            d.year += d.month == 1;
        }
    }
}

START_TEST(known_days_have_their_dates_and_weekdays)
{
    enum { SUNDAY, MONDAY, TUESDAY, WEDNESDAY, THURSDAY, FRIDAY, SATURDAY };

    ck_assert_int_eq(calendar_day(1970, 1, 1), 0);
    ck_assert_int_eq(calendar_day(1969, 12, 31), -1);
    ck_assert_int_eq(calendar_day(2000, 3, 1), 11017);
    ck_assert_int_eq(calendar_day(2026, 2, 31), calendar_day(2026, 3, 3));
    ck_assert_int_eq(calendar_weekday(0), THURSDAY);
    ck_assert_int_eq(calendar_weekday(-1), WEDNESDAY);
    ck_assert_int_eq(calendar_weekday(-4), SUNDAY);
    ck_assert_int_eq(calendar_weekday(-5), SATURDAY);
    ck_assert_int_eq(calendar_weekday(calendar_day(2026, 11, 30)), MONDAY);
    ck_assert_int_eq(calendar_weekday(calendar_day(2100, 2, 28)), SUNDAY);
    ck_assert_int_eq(calendar_weekday(calendar_day(1899, 12, 29)), FRIDAY);
    ck_assert_int_eq(calendar_weekday(calendar_day(2024, 2, 29)), THURSDAY);
    ck_assert_int_eq(calendar_weekday(calendar_day(2030, 1, 1)), TUESDAY);
}

START_TEST(limits_are_the_years_1_and_9999)
{
    ck_assert_int_eq(calendar_day(1, 1, 1) * SECONDS_OF_DAY, CALENDAR_FIRST);
    ck_assert_int_eq(calendar_day(10000, 1, 1) * SECONDS_OF_DAY - 1, CALENDAR_LAST);
    ck_assert_int_eq(calendar_date(calendar_day(-9999, 3, 1)).year, -9999);
    ck_assert_int_eq(calendar_date(calendar_day(9999, 12, 31)).day, 31);
}

START_TEST(wall_times_before_1970_round_down)
{
    ck_assert_int_eq(calendar_wall_day(-1), -1);
    ck_assert_int_eq(calendar_wall_second(-1), SECONDS_OF_DAY - 1);
    ck_assert_int_eq(calendar_wall_day(-SECONDS_OF_DAY), -1);
    ck_assert_int_eq(calendar_wall_second(-SECONDS_OF_DAY), 0);
    ck_assert_int_eq(calendar_wall_second(SECONDS_OF_DAY + 5), 5);
}
