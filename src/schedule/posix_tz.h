/*
 * posix_tz: the rule at the end of a zone's file, a TZ string of POSIX with the
 * extensions of RFC 9636, 3.3.1 (times of -167 to 167 hours):
 *
 *     CET-1CEST,M3.5.0,M10.5.0/3       <+0630>-6:30       IST-1GMT0,M10.5.0,M3.5.0/1
 *
 * "Daylight" is the second of the two names, whichever of them has the larger offset:
 * that of Dublin is behind.
 *
 *   Input    untrusted
 *   Cost     O(1): the changes of five years
 *   Threads  any: no state
 */
#ifndef SCHEDULE_POSIX_TZ_H
#define SCHEDULE_POSIX_TZ_H

#include "claimd/base/bytes.h"
#include "claimd/schedule/zone_span.h"

/* The day of a change, and the wall time before the change. */
struct posix_tz_change {
    enum {
        CHANGE_WEEKDAY,  /* Mm.w.d: weekday d of week w (5: the last) of month m */
        CHANGE_DAY,      /* n: 0 to 365, counts 29 February */
        CHANGE_DAY_NO_29 /* Jn: 1 to 365, never 29 February */
    } form;
    int month, week; /* of CHANGE_WEEKDAY */
    int day;         /* d or n */
    int64_t second;  /* of the day; may be negative or beyond the day */
};

struct posix_tz {
    int64_t standard, daylight; /* seconds ahead of UTC */
    bool changes;               /* false: always standard */
    struct posix_tz_change to_daylight, to_standard;
};

/* False: the text is no such string, or has daylight time without rules. */
bool posix_tz_parse(struct bytes text, struct posix_tz *out);

/* The span of a UTC second between CALENDAR_FIRST and CALENDAR_LAST, with a few years
 * around. */
struct zone_span posix_tz_span(const struct posix_tz *tz, int64_t utc);

#endif
