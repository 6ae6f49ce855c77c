#include "claimd/schedule/recurrence.h"

#include <inttypes.h>
#include <string.h>

enum { MS = 1000 };

enum status
recurrence_of_cron(struct bytes expression, struct bytes zone, struct recurrence *out,
                   struct reason *why)
{
    static const struct bytes utc = BYTES_LIT("UTC");
    struct recurrence r = {.every_s = 0};
    enum status st;
    char *to = r.zone;

    if (!bytes_present(zone))
        zone = utc;
    st = cron_parse(expression, &r.cron, why);
    if (st == ST_OK)
        st = zone_check_name(zone, why);
    if (st != ST_OK)
        return st;
    (void)bytes_copy_to(&to, zone); /* all is zero behind it */
    *out = r;
    return ST_OK;
}

enum status
recurrence_of_interval(int64_t every_s, int64_t start_s, struct recurrence *out,
                       struct reason *why)
{
    if (every_s < 1 || every_s > RECURRENCE_EVERY_MOST)
        return reason_give(why, ST_BAD_VALUE,
                           "interval is %" PRId64
                           " seconds. The allowed range is 1 to %d",
                           every_s, RECURRENCE_EVERY_MOST);
    if (start_s < 0 || start_s > CALENDAR_LAST)
        return reason_give(why, ST_BAD_VALUE,
                           "start is %" PRId64
                           " seconds since 1970. The allowed range is "
                           "0 to %" PRId64,
                           start_s, CALENDAR_LAST);
    *out = (struct recurrence){.every_s = every_s, .start_s = start_s};
    return ST_OK;
}

/* Without their padding, which has any value. */
static bool
cron_equal(const struct cron *a, const struct cron *b)
{
    return a->minutes == b->minutes && a->hours == b->hours && a->days == b->days &&
           a->months == b->months && a->weekdays == b->weekdays &&
           a->any_day == b->any_day && a->any_weekday == b->any_weekday;
}

bool
recurrence_equal(const struct recurrence *a, const struct recurrence *b)
{
    if (a->every_s != b->every_s)
        return false;
    return a->every_s != 0
               ? a->start_s == b->start_s
               : cron_equal(&a->cron, &b->cron) && strcmp(a->zone, b->zone) == 0;
}

/* ------------------------------------------------------------------ due times */

/* The first due time of an interval after a second. */
static int64_t
interval_next(const struct recurrence *r, int64_t after)
{
    int64_t due = r->start_s;

    if (after >= CALENDAR_LAST)
        return RECURRENCE_NEVER;
    if (after >= r->start_s)
        due = after - (after - r->start_s) % r->every_s + r->every_s;
    return due > CALENDAR_LAST ? RECURRENCE_NEVER : due;
}

static int64_t
next_second(const struct recurrence *r, const struct zone *zone, int64_t after)
{
    return r->every_s > 0 ? interval_next(r, after) : cron_next(&r->cron, zone, after);
}

static int64_t
to_ms(int64_t second)
{
    return second == RECURRENCE_NEVER ? second : second * MS;
}

int64_t
recurrence_next(const struct recurrence *r, const struct zone *zone, int64_t after_ms)
{
    return to_ms(next_second(r, zone, calendar_floor(after_ms, MS)));
}

/* The latest due time up to `until`. The due time after `low` is one of them. The first
 * second after which the next due time is too late is a due time itself. */
static int64_t
latest_second(const struct recurrence *r, const struct zone *zone, int64_t low,
              int64_t until)
{
    int64_t high = until;

    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;

        if (next_second(r, zone, middle) <= until)
            low = middle;
        else
            high = middle;
    }
    return high;
}

/* The number of due times after `after` up to `latest`, which is one of them. */
static uint64_t
count_seconds(const struct recurrence *r, const struct zone *zone, int64_t after,
              int64_t latest, uint64_t most)
{
    uint64_t count = 0;

    if (r->every_s > 0) {
        count = (uint64_t)((latest - interval_next(r, after)) / r->every_s) + 1;
        return count < most ? count : most;
    }
    while (count < most && after < latest) {
        after = next_second(r, zone, after);
        count++;
    }
    return count;
}

int64_t
recurrence_latest(const struct recurrence *r, const struct zone *zone, int64_t after_ms,
                  int64_t until_ms, uint64_t most, uint64_t *count)
{
    int64_t after = calendar_floor(after_ms, MS), until = calendar_floor(until_ms, MS);
    int64_t latest;

    *count = 0;
    /* The search halves the time between, so both are near. */
    after = after < CALENDAR_FIRST ? CALENDAR_FIRST : after;
    until = until > CALENDAR_LAST ? CALENDAR_LAST : until;
    if (after >= until || next_second(r, zone, after) > until)
        return RECURRENCE_NEVER;
    latest = latest_second(r, zone, after, until);
    *count = count_seconds(r, zone, after, latest, most);
    return to_ms(latest);
}
