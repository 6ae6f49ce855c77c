#include "support/due.h"

#include <check.h>
#include <time.h>

struct zone *
due_zone(struct mem *mem, const char *name)
{
    struct zone *zone = NULL;
    struct zones *zones;
    struct reason why = {""};
    enum status st;

    ck_assert_int_eq(zones_open(mem, ZONEINFO, &zones), ST_OK);
    st = zones_get(zones, bytes_str(name), 0, &zone, &why);
    ck_assert_msg(st == ST_OK, "%s: %s", status_name(st), why.text);
    zones_close(zones);
    return zone;
}

int64_t
due_utc(const char *text)
{
    struct tm tm = {.tm_isdst = 0};
    const char *end = strptime(text, "%Y-%m-%d %H:%M", &tm);

    ck_assert_msg(end != NULL, "%s is no time", text);
    if (*end == ':')
        end = strptime(end, ":%S", &tm);
    ck_assert_msg(end != NULL && *end == '\0', "%s is no time", text);
    return (int64_t)timegm(&tm);
}

struct due_text
due_text(int64_t utc)
{
    const time_t second = (time_t)utc;
    struct due_text out = {"never"};
    struct tm tm;

    if (utc != INT64_MAX && gmtime_r(&second, &tm) != NULL)
        (void)strftime(out.text, sizeof(out.text), "%Y-%m-%d %H:%M:%S", &tm);
    return out;
}

void
ck_due(int64_t utc, const char *expected)
{
    const struct due_text text = due_text(utc);

    ck_assert_str_eq(text.text, expected);
}
