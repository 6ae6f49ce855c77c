#include "claimd/schedule/cron.h"

enum {
    MINUTES_OF_HOUR = 60,
    HOURS_OF_DAY = 24,
    /* The rarest date, 29 February, has at most eight years between (1896 and 1904). */
    DAYS_MOST = 9 * 366
};

#define EVERY_HOUR ((UINT32_C(1) << HOURS_OF_DAY) - 1)

bool
cron_is_hourly(const struct cron *cron)
{
    return cron->hours == EVERY_HOUR;
}

/* ------------------------------------------------------------------ wall times */

static bool
has_bit(uint64_t set, int value)
{
    return (set >> value & 1) != 0;
}

static bool
day_matches(const struct cron *cron, int64_t day, struct date date)
{
    const bool by_day = has_bit(cron->days, date.day);
    const bool by_weekday = has_bit(cron->weekdays, calendar_weekday(day));

    /* An unrestricted field has all bits. */
    return cron->any_day || cron->any_weekday ? by_day && by_weekday
                                              : by_day || by_weekday;
}

/* The first minute of a day that matches, from this one on; -1: none. */
static int
minute_of_day(const struct cron *cron, int from)
{
    const int hour = from / MINUTES_OF_HOUR, minute = from % MINUTES_OF_HOUR;
    const uint64_t minutes = cron->minutes >> minute;
    const uint32_t hours = cron->hours >> hour & ~UINT32_C(1); /* later ones */

    if (has_bit(cron->hours, hour) && minutes != 0)
        return from + __builtin_ctzll(minutes);
    if (hours == 0)
        return -1;
    return (hour + __builtin_ctz(hours)) * MINUTES_OF_HOUR +
           __builtin_ctzll(cron->minutes);
}

/* The first wall time after this one that matches. */
static int64_t
next_match(const struct cron *cron, int64_t wall)
{
    const int64_t begin =
        (calendar_floor(wall, SECONDS_OF_MINUTE) + 1) * SECONDS_OF_MINUTE;
    const int64_t first = calendar_wall_day(begin);
    int from = (int)calendar_wall_second(begin) / SECONDS_OF_MINUTE;
    int64_t day = first;

    while (day - first <= DAYS_MOST) {
        const struct date date = calendar_date(day);
        int minute = -1;

        if (!has_bit(cron->months, date.month)) {
            day += calendar_month_days(date.year, date.month) - date.day + 1;
            from = 0;
            continue;
        }
        if (day_matches(cron, day, date))
            minute = minute_of_day(cron, from);
        if (minute >= 0)
            return day * SECONDS_OF_DAY + minute * SECONDS_OF_MINUTE;
        day++;
        from = 0;
    }
    return CRON_NEVER;
}

/* ------------------------------------------------------------------ due times */

/* When the wall clock next shows a time that matches. */
static int64_t
next_shown(const struct cron *cron, const struct zone *zone, int64_t after)
{
    int64_t from = after + 1, wall;

    for (;;) {
        const struct zone_span span = zone_span(zone, from);

        wall = next_match(cron, from + span.offset - 1);
        if (wall == CRON_NEVER || wall - span.offset < span.end)
            return wall == CRON_NEVER ? CRON_NEVER : wall - span.offset;
        from = span.end;
    }
}

/* When the wall clock first shows the next time that matches, or a later one. Times up to
 * the latest that it has shown are over. */
static int64_t
next_reached(const struct cron *cron, const struct zone *zone, int64_t after)
{
    const int64_t wall = next_match(cron, zone_latest_wall(zone, after));

    return wall == CRON_NEVER ? CRON_NEVER : zone_reaches(zone, wall);
}

int64_t
cron_next(const struct cron *cron, const struct zone *zone, int64_t after)
{
    int64_t due;

    if (after >= CALENDAR_LAST)
        return CRON_NEVER;
    if (after < CALENDAR_FIRST)
        after = CALENDAR_FIRST;
    due = cron_is_hourly(cron) ? next_shown(cron, zone, after)
                               : next_reached(cron, zone, after);
    return due > CALENDAR_LAST ? CRON_NEVER : due;
}
