/*
 * calendar: days and dates of the proleptic Gregorian calendar.
 *
 * A day is the number of days since 1970-01-01, negative before. A wall time is the
 * number of seconds since 1970-01-01T00:00:00 that a clock on a wall shows, without any
 * zone. So the wall time of a zone is UTC seconds plus the offset of the zone.
 *
 *   Cost     O(1), no division by a variable
 *   Range    years -9999 to 9999
 *   Threads  any: no state
 */
#ifndef CLAIMD_SCHEDULE_CALENDAR_H
#define CLAIMD_SCHEDULE_CALENDAR_H

#include <stdbool.h>
#include <stdint.h>

enum { SECONDS_OF_DAY = 86400, SECONDS_OF_HOUR = 3600, SECONDS_OF_MINUTE = 60 };

/* 9999-12-31T23:59:59, the last wall time and the last UTC second of this layer. */
#define CALENDAR_LAST INT64_C(253402300799)

/* 0001-01-01T00:00:00, the first one. */
#define CALENDAR_FIRST INT64_C(-62135596800)

/* The quotient, rounded down. The divisor is positive. */
static inline int64_t
calendar_floor(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

struct date {
    int64_t year;
    int month; /* 1 to 12 */
    int day;   /* 1 to 31 */
};

/* The number of the day with this date. A day beyond its month counts on. */
int64_t calendar_day(int64_t year, int month, int day);

/* The date of a day. */
struct date calendar_date(int64_t day);

/* 0 (Sunday) to 6. */
int calendar_weekday(int64_t day);

/* 28 to 31. */
int calendar_month_days(int64_t year, int month);

/* The day of a wall time, and its second of the day (0 to 86399). */
int64_t calendar_wall_day(int64_t wall);
int64_t calendar_wall_second(int64_t wall);

#endif
