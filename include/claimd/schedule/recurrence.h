/*
 * recurrence: due times that repeat, by a cron expression or at a fixed interval.
 *
 * An interval is a number of seconds. Due times are start_s, start_s + every_s and so on,
 * in UTC seconds since 1970, whatever the time zone. With start_s 0 they are the
 * multiples of the interval. So all servers and all restarts agree on them.
 *
 *   Cost     recurrence_next(): a few microseconds at most (claimd/schedule/cron.h)
 *   Memory   none: a plain value, to copy as it is
 *   Threads  any: no state
 */
#ifndef CLAIMD_SCHEDULE_RECURRENCE_H
#define CLAIMD_SCHEDULE_RECURRENCE_H

#include "claimd/schedule/cron.h"

enum { RECURRENCE_EVERY_MOST = 366 * SECONDS_OF_DAY }; /* seconds; the least is 1 */

/* Later than any time: no due time up to the year 9999. */
#define RECURRENCE_NEVER INT64_MAX

struct recurrence {
    int64_t every_s;               /* 0: by cron and zone */
    int64_t start_s;               /* the first due time; with every_s only */
    struct cron cron;              /* without every_s only */
    char zone[ZONE_NAME_MOST + 1]; /* its name, with cron only; else empty */
};

/* Makes a recurrence from a cron expression and the name of a zone (absent: UTC). Checks
 * the form of the name, not that the zone exists: zones_get() does. ST_BAD_VALUE. */
enum status recurrence_of_cron(struct bytes expression, struct bytes zone,
                               struct recurrence *out, struct reason *why);

/* Makes one from an interval of 1 to RECURRENCE_EVERY_MOST seconds, and the second since
 * 1970 of its first due time, 0 to CALENDAR_LAST. ST_BAD_VALUE. */
enum status recurrence_of_interval(int64_t every_s, int64_t start_s,
                                   struct recurrence *out, struct reason *why);

/* True if both have the same due times for the same reason: the same interval and start,
 * or an expression with the same sets and the same zone. */
bool recurrence_equal(const struct recurrence *a, const struct recurrence *b);

/*
 * The first due time after after_ms, or RECURRENCE_NEVER, in milliseconds since 1970.
 * `zone` is what zones_get() returns for r->zone. With an interval it may be NULL.
 */
int64_t
recurrence_next(const struct recurrence *r, const struct zone *zone, int64_t after_ms);

/*
 * The latest due time after after_ms and not after until_ms, for runs that were missed.
 * *count is the number of due times there, but at most `most`. RECURRENCE_NEVER and 0:
 * there is none.
 *
 *   Cost     that of recurrence_next() times the count plus 50. With an interval O(1)
 */
int64_t
recurrence_latest(const struct recurrence *r, const struct zone *zone, int64_t after_ms,
                  int64_t until_ms, uint64_t most, uint64_t *count);

#endif
