/*
 * iso_time: dates as people and programs write them (ISO 8601).
 *
 *     2099-01-01T00:00:00        UTC, unless a zone says otherwise
 *     2099-01-01T02:00:00+02:00  also +0200 and +02; Z is UTC
 *     2099-01-01 00:00:00.25     a blank will do; parts of a second do not count
 *     2099-01-01T00:00           no seconds
 *     2099-01-01                 its beginning
 *
 *   Cost     O(length)
 *   Memory   none
 */
#ifndef API_WIRE_ISO_TIME_H
#define API_WIRE_ISO_TIME_H

#include "claimd/base/bytes.h"

/*
 * False: it is none of these, there is no such day, or in UTC its year has not four digits;
 * *out_ms is as it was.
 */
bool iso_time_read(struct bytes text, int64_t *out_ms);

/* Writes "YYYY-MM-DDTHH:MM:SS" in UTC and a NUL. */
#define ISO_TIME_CAP 20
void iso_time_write(int64_t ms, char out[ISO_TIME_CAP]);

#endif
