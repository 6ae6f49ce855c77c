#include "claimd/schedule/calendar.h"

/*
 * A year begins on the first of March here, so that a leap day is its last. Then months
 * have 31 30 31 30 31 days, twice, and the rest: 153 days for each five months. An era is
 * 400 years, after which all repeats (Howard Hinnant, "chrono-Compatible Low-Level Date
 * Algorithms").
 */
enum { ERA_YEARS = 400, ERA_DAYS = 146097, DAYS_TO_1970 = 719468 }; /* from 0000-03-01 */

int64_t
calendar_day(int64_t year, int month, int day)
{
    const int64_t y = month > 2 ? year : year - 1;
    const int64_t era = calendar_floor(y, ERA_YEARS);
    const int64_t of_era = y - era * ERA_YEARS;
    const int64_t from_march = month > 2 ? month - 3 : month + 9;
    const int64_t of_year = (153 * from_march + 2) / 5 + day - 1;

    return era * ERA_DAYS + of_era * 365 + of_era / 4 - of_era / 100 + of_year -
           DAYS_TO_1970;
}

struct date
calendar_date(int64_t day)
{
    const int64_t from_0000 = day + DAYS_TO_1970;
    const int64_t era = calendar_floor(from_0000, ERA_DAYS);
    const int64_t of_era = from_0000 - era * ERA_DAYS;
    const int64_t y =
        (of_era - of_era / 1460 + of_era / 36524 - of_era / (ERA_DAYS - 1)) / 365;
    const int64_t of_year = of_era - (365 * y + y / 4 - y / 100);
    const int64_t from_march = (5 * of_year + 2) / 153;
    const int64_t month = from_march < 10 ? from_march + 3 : from_march - 9;

    return (struct date){.year = y + era * ERA_YEARS + (month <= 2),
                         .month = (int)month,
                         .day = (int)(of_year - (153 * from_march + 2) / 5 + 1)};
}

int
calendar_weekday(int64_t day)
{
    const int64_t from_sunday = day + 4; /* 1970-01-01 was a Thursday */

    return (int)(from_sunday - calendar_floor(from_sunday, 7) * 7);
}

static bool
is_leap(int64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

int
calendar_month_days(int64_t year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    return days[month - 1] + (month == 2 && is_leap(year));
}

int64_t
calendar_wall_day(int64_t wall)
{
    return calendar_floor(wall, SECONDS_OF_DAY);
}

int64_t
calendar_wall_second(int64_t wall)
{
    return wall - calendar_floor(wall, SECONDS_OF_DAY) * SECONDS_OF_DAY;
}
