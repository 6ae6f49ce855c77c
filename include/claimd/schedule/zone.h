/*
 * zone: a time zone of tzdata, read from its file (TZif, RFC 9636).
 *
 * A zone is a list of spans. In a span, the wall clock differs from UTC by one offset.
 * The last spans come from the rule at the end of the file (a TZ string of POSIX) and
 * have no end. Where two spans meet, the wall clock may jump:
 *
 *     forward   a gap: the clock never shows the times between (02:00 -> 03:00)
 *     backward  a fold: the clock shows some times twice (03:00 -> 02:00)
 *
 *   Input    untrusted: a damaged file is an error
 *   Cost     O(log changes) a call, and O(1) behind the last change
 *   Memory   16 bytes for each change, 2 KB for most zones
 *   Threads  any. A zone never changes
 *   Owner    counted references. NULL is UTC wherever a function reads a zone
 */
#ifndef CLAIMD_SCHEDULE_ZONE_H
#define CLAIMD_SCHEDULE_ZONE_H

#include "claimd/base/bytes.h"
#include "claimd/base/mem.h"
#include "claimd/json/reason.h"
#include "claimd/schedule/calendar.h"
#include "claimd/schedule/zone_span.h"

struct zone; /* opaque */

enum {
    ZONE_NAME_MOST = 64,        /* characters of a name */
    ZONE_FILE_MOST = 64 * 1024, /* bytes of a file. Those of tzdata have at most 4 KB */
    ZONE_SHOWN_MOST = 4,        /* see zone_moments() */
};

/* Maximum distance of any wall clock from UTC, seconds (RFC 9636, 3.2: -25 to 26 h). */
enum { ZONE_OFFSET_MOST = 26 * SECONDS_OF_HOUR };

/*
 * Checks the form of a name: 1 to ZONE_NAME_MOST characters of A-Z a-z 0-9 _ + - and /,
 * with no empty part and no "-" in front of one. So a name never leaves its directory.
 * Does not check that the zone exists. ST_BAD_VALUE.
 */
enum status zone_check_name(struct bytes name, struct reason *why);

/* Reads the text of a TZif file of version 2 or later. *out is owned. ST_BAD_VALUE: it
 * is no such file, or counts leap seconds. ST_IO: it is damaged. ST_NO_MEMORY. */
enum status
zone_read(struct mem *mem, struct bytes file, struct zone **out, struct reason *why);

/* One more reference, and one less. NULL is fine. */
struct zone *zone_ref(struct zone *zone);
void zone_unref(struct zone *zone);

/* The span of a UTC second. Its neighbor may have the same offset. */
struct zone_span zone_span(const struct zone *zone, int64_t utc);

/* Seconds that the wall clock is ahead of UTC. */
int64_t zone_offset(const struct zone *zone, int64_t utc);

/* The wall time of a UTC second, for tests and to show times. */
int64_t zone_wall(const struct zone *zone, int64_t utc);

/*
 * The UTC seconds at which the wall clock shows a wall time, in ascending order. Returns
 * their number: none in a gap, two in a fold, else one. If a file makes it more than
 * ZONE_SHOWN_MOST, the first ones count. For tests.
 */
unsigned
zone_moments(const struct zone *zone, int64_t wall, int64_t moments[ZONE_SHOWN_MOST]);

/* The first UTC second at which the wall clock shows this time or a later one. */
int64_t zone_reaches(const struct zone *zone, int64_t wall);

/* The latest wall time that the wall clock has shown up to this UTC second. In a fold it
 * is ahead of zone_wall(). */
int64_t zone_latest_wall(const struct zone *zone, int64_t utc);

#endif
