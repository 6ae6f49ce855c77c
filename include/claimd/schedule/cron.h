/*
 * cron: due times of a cron expression in a time zone.
 *
 * An expression has five fields, separated by spaces or tabs:
 *
 *     minute        0-59
 *     hour          0-23
 *     day of month  1-31
 *     month         1-12, or jan to dec
 *     weekday       0-7, or sun to sat (0 and 7 are Sunday)
 *
 * A field is "*" or a list of values, ranges (mon-fri) and steps (*\/15, 8-18/2). Case
 * does not matter. @yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly
 * stand for whole expressions. Real schedulers disagree about all else, so cron_parse()
 * refuses it and says what to write instead.
 *
 * Days. A field is unrestricted if it is exactly "*". If day of month and weekday are
 * both restricted, a day matches if either does (POSIX). A step on "*" in one of them is
 * refused if the other is restricted.
 *
 * Clock changes. An expression for every hour of the day follows the wall clock: it is
 * due whenever the clock shows a minute that matches. So it is due in both passes of a
 * fold, and goes on in a gap without a pause. Any other expression is due when the wall
 * clock first shows a matching time or a later one:
 *
 *     gap   times in the gap are due once, together, at the end of the gap
 *     fold  times in the fold are due in the first pass only
 *
 * A zone that skips a whole day has a gap of 24 hours.
 *
 *   Cost     cron_parse(): O(length). cron_next(): a few microseconds at most, because
 *            any expression matches at least once in eight years
 *   Memory   none
 *   Threads  any: no state
 */
#ifndef CLAIMD_SCHEDULE_CRON_H
#define CLAIMD_SCHEDULE_CRON_H

#include "claimd/json/reason.h"
#include "claimd/schedule/zone.h"

enum { CRON_TEXT_MOST = 256 }; /* characters */

/* Later than any time: no due time up to the year 9999. */
#define CRON_NEVER INT64_MAX

/* A plain value, to copy as it is. Each set has bit n for the value n. */
struct cron {
    uint64_t minutes; /* 0-59 */
    uint32_t hours;   /* 0-23 */
    uint32_t days;    /* 1-31 */
    uint16_t months;  /* 1-12 */
    uint8_t weekdays; /* 0-6 */
    bool any_day;     /* the field is "*" */
    bool any_weekday; /* likewise */
};

/* Parses an expression. ST_BAD_VALUE: refused, with the reason and a remedy. Only then
 * *why changes. */
enum status cron_parse(struct bytes text, struct cron *out, struct reason *why);

/* The first due time after `after`, both in UTC seconds, or CRON_NEVER. */
int64_t cron_next(const struct cron *cron, const struct zone *zone, int64_t after);

/* True if the expression has every hour of the day, so that it follows the wall clock. */
bool cron_is_hourly(const struct cron *cron);

#endif
