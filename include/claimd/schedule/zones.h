/*
 * zones: the time zones of a directory of tzdata, read when they are first needed.
 *
 * tzdata changes while a server runs. So a zone's file is looked at again when the last
 * look is an hour old or the clock was set back. If its time, size or inode has changed,
 * zones_get() returns a new zone. If a later look or read fails, it keeps the old one.
 * Two zones with the same address, both referenced, are the same rules: a caller compares
 * addresses to learn of an update.
 *
 *   Cost     zones_get(): O(log zones). Once an hour for each zone, one fstat(), and
 *            sometimes one read. An unknown name: one read of tzdata.zi (0.1 MB) and a
 *            comparison with all its 600 names
 *   Memory   at most ZONES_MOST zones stay. More are read for each call
 *   Threads  any: zones.lock. No file is read under it
 */
#ifndef CLAIMD_SCHEDULE_ZONES_H
#define CLAIMD_SCHEDULE_ZONES_H

#include "claimd/schedule/zone.h"

struct zones; /* opaque */

enum {
    ZONES_MOST = 2048,           /* tzdata has 600 names */
    ZONES_LOOK_MS = 3600 * 1000, /* a file is looked at no more often */
};

/* The directory is copied and need not exist: without it, there is only UTC. *out is
 * owned. ST_NO_MEMORY. */
enum status zones_open(struct mem *mem, const char *directory, struct zones **out);

/* Zones with references stay. NULL is fine. */
void zones_close(struct zones *zones);

/*
 * Finds a zone by its name, such as Europe/Berlin. *out is a reference: zone_unref() it.
 * UTC and Etc/UTC need no file.
 *
 *   ST_BAD_VALUE  the name is malformed or unknown (the reason has a near one, of
 *                 tzdata.zi or else of the files), or its file is no zone or too large
 *   ST_IO         no directory (the reason says to install tzdata), or a file that cannot
 *                 be read or is damaged
 *   ST_NO_MEMORY
 */
enum status zones_get(struct zones *zones, struct bytes name, int64_t now_ms,
                      struct zone **out, struct reason *why);

#endif
