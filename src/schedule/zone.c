#include "schedule/zone_private.h"

/* Limits of what is computed, beyond the calendar: sums stay in their type. Searches that
 * begin within the first end within the second. */
#define WALL_MOST (CALENDAR_LAST + CALENDAR_LAST / 2)
#define UTC_MOST  (2 * CALENDAR_LAST)

/* Two offsets differ by less. */
enum { JUMP_MOST = 2 * ZONE_OFFSET_MOST };

/* True for parts of these characters, separated by slashes. */
static bool
is_name(struct bytes name)
{
    char before = '/';

    for (size_t i = 0; i < name.len; i++) {
        const char c = name.data[i];
        const bool word = is_unreserved(c) && c != '.' && c != '~';

        if (!word && c != '+' && c != '/')
            return false;
        if (before == '/' && (c == '/' || c == '-'))
            return false;
        before = c;
    }
    return before != '/';
}

enum status
zone_check_name(struct bytes name, struct reason *why)
{
    if (name.len == 0 || name.len > ZONE_NAME_MOST)
        return reason_give(why, ST_BAD_VALUE,
                           "time zone is %zu characters long. The allowed range is 1 to "
                           "%d",
                           name.len, ZONE_NAME_MOST);
    if (!is_name(name))
        return reason_give(why, ST_BAD_VALUE,
                           "time zone is \"%s\". A name of tzdata is needed, such as "
                           "Europe/Berlin or UTC",
                           received(name).text);
    return ST_OK;
}

struct zone *
zone_new(struct mem *mem, uint32_t count)
{
    struct zone *zone =
        mem_calloc(mem, 1, sizeof(*zone) + count * sizeof(zone->changes[0]));

    if (zone == NULL)
        return NULL;
    zone->mem = mem;
    atomic_init(&zone->refs, 1);
    return zone;
}

struct zone *
zone_ref(struct zone *zone)
{
    if (zone != NULL)
        atomic_fetch_add_explicit(&zone->refs, 1, memory_order_relaxed);
    return zone;
}

void
zone_unref(struct zone *zone)
{
    if (zone != NULL &&
        atomic_fetch_sub_explicit(&zone->refs, 1, memory_order_acq_rel) == 1)
        mem_free(zone->mem, zone);
}

/* ------------------------------------------------------------------ spans */

static int64_t
clamp(int64_t second, int64_t most)
{
    return second < -most ? -most : second > most ? most : second;
}

/* The number of changes up to a UTC second. */
static uint32_t
changes_until(const struct zone *zone, int64_t utc)
{
    uint32_t low = 0, high = zone->count;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;

        if (zone->changes[middle].at <= utc)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct zone_span
zone_span(const struct zone *zone, int64_t utc)
{
    struct zone_span span = {INT64_MIN, INT64_MAX, 0};
    uint32_t passed;

    if (zone == NULL)
        return span;
    utc = clamp(utc, UTC_MOST);
    passed = changes_until(zone, utc);
    if (passed == zone->count && zone->has_rule)
        span = posix_tz_span(&zone->rule, utc);
    else
        span.offset = passed == 0 ? zone->first_offset : zone->changes[passed - 1].offset;
    if (passed > 0 && span.begin < zone->changes[passed - 1].at)
        span.begin = zone->changes[passed - 1].at;
    if (passed < zone->count)
        span.end = zone->changes[passed].at;
    return span;
}

int64_t
zone_offset(const struct zone *zone, int64_t utc)
{
    return zone_span(zone, utc).offset;
}

int64_t
zone_wall(const struct zone *zone, int64_t utc)
{
    return clamp(utc, UTC_MOST) + zone_offset(zone, utc);
}

/* ------------------------------------------------------------------ wall times */

unsigned
zone_moments(const struct zone *zone, int64_t wall, int64_t moments[ZONE_SHOWN_MOST])
{
    struct zone_span span;
    unsigned count = 0;
    int64_t at;

    wall = clamp(wall, WALL_MOST);
    at = wall - ZONE_OFFSET_MOST;
    do {
        span = zone_span(zone, at);
        if (wall - span.offset >= span.begin && wall - span.offset < span.end)
            moments[count++] = wall - span.offset;
        at = span.end;
    } while (at <= wall + ZONE_OFFSET_MOST && count < ZONE_SHOWN_MOST);
    return count;
}

int64_t
zone_reaches(const struct zone *zone, int64_t wall)
{
    struct zone_span span;

    wall = clamp(wall, WALL_MOST);
    span = zone_span(zone, wall - ZONE_OFFSET_MOST);
    while (wall - span.offset >= span.end)
        span = zone_span(zone, span.end);
    return wall - span.offset > span.begin ? wall - span.offset : span.begin;
}

int64_t
zone_latest_wall(const struct zone *zone, int64_t utc)
{
    struct zone_span span;
    int64_t latest, shown;

    utc = clamp(utc, WALL_MOST);
    span = zone_span(zone, utc);
    latest = utc + span.offset;
    while (span.begin > utc - JUMP_MOST) {
        const int64_t before = span.begin - 1;

        span = zone_span(zone, before);
        shown = before + span.offset;
        latest = shown > latest ? shown : latest;
    }
    return latest;
}
