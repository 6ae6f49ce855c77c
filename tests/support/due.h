/*
 * due: zones of the machine's tzdata and times as text, for tests of due times.
 */
#ifndef TESTS_SUPPORT_DUE_H
#define TESTS_SUPPORT_DUE_H

#include "claimd/schedule/zones.h"

#define ZONEINFO "/usr/share/zoneinfo"

/* A zone of this machine, which must exist. Owned: zone_unref() it. */
struct zone *due_zone(struct mem *mem, const char *name);

/* The UTC second of "2026-10-25 01:30" or "2026-10-25 01:30:15", computed by the C
 * library. */
int64_t due_utc(const char *text);

/* The text for a UTC second, "2026-10-25 01:30:15". */
struct due_text {
    char text[32];
};
struct due_text due_text(int64_t utc);

/* Checks that the text for a UTC second is this one. */
void ck_due(int64_t utc, const char *expected);

#endif
