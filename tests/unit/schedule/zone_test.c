/*
 * Zones: files of this machine, files that the tests write, damaged ones, and updates
 * while zones are in use. Read claimd/schedule/zone.h and zones.h next.
 */
#include "claimd/base/buf.h"
#include "claimd/schedule/zones.h"
#include "schedule/posix_tz.h"
#include "support/check_main.h"
#include "support/due.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HOUR_MS = SECONDS_OF_HOUR * 1000 };

/* ------------------------------------------------------------------ files of tests */

struct change {
    int64_t at;
    int offset; /* index of the file's offsets */
};

struct file {
    char version;
    const int32_t *offsets;
    const struct change *changes;
    unsigned offset_count, change_count;
    uint32_t leaps;
    const char *rule;
};

static void
add_number(struct buf *b, uint64_t value, int bytes)
{
    while (bytes-- > 0)
        buf_byte(b, (char)(value >> 8 * bytes & 0xff));
}

static void
add_block(struct buf *b, const struct file *f, int time_size)
{
    const unsigned changes = time_size == 8 ? f->change_count : 0;

    buf_str(b, "TZif");
    buf_byte(b, f->version);
    for (int i = 0; i < 15; i++)
        buf_byte(b, 0);
    add_number(b, 0, 4);
    add_number(b, 0, 4);
    add_number(b, time_size == 8 ? f->leaps : 0, 4);
    add_number(b, changes, 4);
    add_number(b, f->offset_count, 4);
    add_number(b, 4, 4);
    for (unsigned i = 0; i < changes; i++)
        add_number(b, (uint64_t)f->changes[i].at, time_size);
    for (unsigned i = 0; i < changes; i++)
        buf_byte(b, (char)f->changes[i].offset);
    for (unsigned i = 0; i < f->offset_count; i++) {
        add_number(b, (uint32_t)f->offsets[i], 4);
        add_number(b, 0, 2);
    }
    buf_add(b, "LMT", 4);
    for (uint32_t i = 0; time_size == 8 && i < f->leaps; i++) {
        add_number(b, 0, time_size);
        add_number(b, 0, 4);
    }
}

static void
add_file(struct buf *b, const struct file *f)
{
    add_block(b, f, 4);
    add_block(b, f, 8);
    buf_printf(b, "\n%s\n", f->rule);
}

static const int32_t hours_0_1[] = {0, 3600};

/* Always this rule. */
static struct file
rule_file(const char *rule)
{
    return (struct file){
        .version = '2', .offsets = hours_0_1, .offset_count = 2, .rule = rule};
}

/* ------------------------------------------------------------------ fixture */

struct fixture {
    struct mem *mem;
    struct buf file;
    struct zone *zone;
    struct reason why;
};

static void
fixture_open(struct fixture *f)
{
    *f = (struct fixture){.mem = mem_new(0)};
    buf_init(&f->file, f->mem);
}

static void
fixture_close(struct fixture *f)
{
    zone_unref(f->zone);
    buf_fini(&f->file);
    mem_destroy(f->mem);
}

#define ZONE_TEST(id) FIXTURE_TEST(id, struct fixture, fixture_open(f), fixture_close(f))

/* Replaces the zone by that of a file. */
static enum status
read_zone(struct fixture *f, struct file file)
{
    zone_unref(f->zone);
    f->zone = NULL;
    buf_reset(&f->file, 65536);
    add_file(&f->file, &file);
    f->why.text[0] = '\0';
    return zone_read(f->mem, buf_view(&f->file), &f->zone, &f->why);
}

static void
use_zone(struct fixture *f, const char *name)
{
    zone_unref(f->zone);
    f->zone = due_zone(f->mem, name);
}

static void
assert_offset(const struct fixture *f, const char *utc, int64_t expected)
{
    const int64_t offset = zone_offset(f->zone, due_utc(utc));

    ck_assert_msg(offset == expected, "offset at %s is %lld, not %lld", utc,
                  (long long)offset, (long long)expected);
}

/* ------------------------------------------------------------------ offsets */

ZONE_TEST(files_of_this_machine_have_known_offsets)
{
    use_zone(f, "Europe/Berlin");
    assert_offset(f, "2026-10-25 00:59:59", 7200);
    assert_offset(f, "2026-10-25 01:00:00", 3600);
    assert_offset(f, "2027-03-28 00:59:59", 3600);
    assert_offset(f, "2027-03-28 01:00:00", 7200);
    assert_offset(f, "2400-07-01 00:00", 7200); /* by the rule */
    assert_offset(f, "2400-12-01 00:00", 3600);
    assert_offset(f, "1800-01-01 00:00", 53 * 60 + 28);
    use_zone(f, "Asia/Kathmandu");
    assert_offset(f, "2026-01-01 00:00", 20700);
    use_zone(f, "Pacific/Apia");
    assert_offset(f, "2011-12-30 09:59:59", -10 * 3600);
    assert_offset(f, "2011-12-30 10:00:00", 14 * 3600);
    use_zone(f, "Africa/Monrovia");
    assert_offset(f, "1972-01-07 00:44:29", -(44 * 60 + 30));
    assert_offset(f, "1972-01-07 00:44:30", 0);
    use_zone(f, "Europe/Dublin");
    assert_offset(f, "2090-01-01 00:00", 0);
    assert_offset(f, "2090-07-01 00:00", 3600);
    use_zone(f, "Australia/Lord_Howe");
    assert_offset(f, "2100-01-01 00:00", 11 * 3600);
    assert_offset(f, "2100-07-01 00:00", 37800);
}

ZONE_TEST(utc_has_one_span)
{
    struct zone_span span = zone_span(NULL, 5);

    ck_assert_int_eq(span.offset, 0);
    ck_assert(span.begin == INT64_MIN && span.end == INT64_MAX);
    use_zone(f, "UTC");
    span = zone_span(f->zone, INT64_MAX);
    ck_assert(span.begin == INT64_MIN && span.end == INT64_MAX && span.offset == 0);
    ck_assert_int_eq(zone_wall(NULL, 1234567), 1234567);
}

/* Spans follow each other from the year 1800 to 2200, and each begins with a change. */
ZONE_TEST(spans_cover_all_time)
{
    static const char *const names[] = {"Europe/Dublin", "Africa/Casablanca",
                                        "America/New_York", "Pacific/Apia",
                                        "Australia/Lord_Howe"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        int64_t at = due_utc("1800-01-01 00:00");
        const int64_t end = due_utc("2200-01-01 00:00");

        use_zone(f, names[i]);
        while (at < end) {
            const struct zone_span span = zone_span(f->zone, at);

            ck_assert(span.begin <= at && at < span.end);
            if (span.end == INT64_MAX)
                break;
            ck_assert_int_eq(zone_span(f->zone, span.end).begin, span.end);
            ck_assert_int_eq(zone_span(f->zone, span.end - 1).end, span.end);
            at = span.end;
        }
    }
}

/* ------------------------------------------------------------------ wall times */

static void
assert_moments(const struct fixture *f, const char *wall, const char *first,
               const char *second)
{
    int64_t moments[ZONE_SHOWN_MOST];
    const unsigned count = zone_moments(f->zone, due_utc(wall), moments);

    ck_assert_int_eq((int)count, (first != NULL) + (second != NULL));
    if (first != NULL)
        ck_due(moments[0], first);
    if (second != NULL)
        ck_due(moments[1], second);
}

static void
assert_reaches(const struct fixture *f, const char *wall, const char *expected)
{
    ck_due(zone_reaches(f->zone, due_utc(wall)), expected);
}

ZONE_TEST(a_wall_time_is_shown_once_twice_or_never)
{
    use_zone(f, "Europe/Berlin");
    assert_moments(f, "2026-07-01 12:00", "2026-07-01 10:00:00", NULL);
    assert_moments(f, "2026-10-25 02:00", "2026-10-25 00:00:00", "2026-10-25 01:00:00");
    assert_moments(f, "2026-10-25 02:59:59", "2026-10-25 00:59:59",
                   "2026-10-25 01:59:59");
    assert_moments(f, "2026-10-25 03:00", "2026-10-25 02:00:00", NULL);
    assert_moments(f, "2027-03-28 02:00", NULL, NULL);
    assert_moments(f, "2027-03-28 02:59:59", NULL, NULL);
    assert_moments(f, "2027-03-28 03:00", "2027-03-28 01:00:00", NULL);
    use_zone(f, "Pacific/Apia");
    assert_moments(f, "2011-12-29 23:59:59", "2011-12-30 09:59:59", NULL);
    assert_moments(f, "2011-12-30 12:00", NULL, NULL);
    assert_moments(f, "2011-12-31 00:00", "2011-12-30 10:00:00", NULL);
}

ZONE_TEST(a_wall_time_is_reached_at_the_end_of_its_gap)
{
    use_zone(f, "Europe/Berlin");
    assert_reaches(f, "2026-10-25 02:30", "2026-10-25 00:30:00");
    assert_reaches(f, "2026-10-25 03:00", "2026-10-25 02:00:00");
    assert_reaches(f, "2027-03-28 02:30", "2027-03-28 01:00:00");
    assert_reaches(f, "2027-03-28 03:00", "2027-03-28 01:00:00");
    assert_reaches(f, "2027-03-28 03:01", "2027-03-28 01:01:00");
    use_zone(f, "Pacific/Apia");
    assert_reaches(f, "2011-12-30 12:00", "2011-12-30 10:00:00");
}

ZONE_TEST(latest_wall_time_stands_still_in_a_fold)
{
    use_zone(f, "Europe/Berlin");
    ck_assert_int_eq(zone_latest_wall(f->zone, due_utc("2026-10-25 00:30")),
                     due_utc("2026-10-25 02:30"));
    ck_assert_int_eq(zone_latest_wall(f->zone, due_utc("2026-10-25 01:30")),
                     due_utc("2026-10-25 02:59:59"));
    ck_assert_int_eq(zone_latest_wall(f->zone, due_utc("2026-10-25 02:00")),
                     due_utc("2026-10-25 03:00"));
}

ZONE_TEST(times_far_outside_the_calendar_end_each_search)
{
    static const int64_t far[] = {INT64_MIN, -4 * CALENDAR_LAST, 4 * CALENDAR_LAST,
                                  INT64_MAX};
    int64_t moments[ZONE_SHOWN_MOST];

    use_zone(f, "Europe/Berlin");
    for (size_t i = 0; i < sizeof(far) / sizeof(far[0]); i++) {
        (void)zone_moments(f->zone, far[i], moments);
        (void)zone_reaches(f->zone, far[i]);
        (void)zone_latest_wall(f->zone, far[i]);
        (void)zone_wall(f->zone, far[i]);
    }
}

/* ------------------------------------------------------------------ rules */

ZONE_TEST(rules_have_all_forms_of_posix)
{
    ck_assert_int_eq(read_zone(f, rule_file("<+0630>-6:30")), ST_OK);
    assert_offset(f, "2026-01-01 00:00", 23400);
    ck_assert_int_eq(read_zone(f, rule_file("IST-1GMT0,M10.5.0,M3.5.0/1")), ST_OK);
    assert_offset(f, "2026-01-01 00:00", 0);
    assert_offset(f, "2026-07-01 00:00", 3600);
    /* Julian days: J60 is 1 March in each year, 59 is 29 February in a leap year. */
    ck_assert_int_eq(read_zone(f, rule_file("AAA0BBB,J60/0,J365/0")), ST_OK);
    assert_offset(f, "2028-02-29 23:59:59", 0);
    assert_offset(f, "2028-03-01 00:00", 3600);
    assert_offset(f, "2027-02-28 23:59:59", 0);
    assert_offset(f, "2027-03-01 00:00", 3600);
    assert_offset(f, "2028-12-30 22:59:59", 3600);
    assert_offset(f, "2028-12-30 23:00", 0);
    ck_assert_int_eq(read_zone(f, rule_file("AAA0BBB-2,59/0,300")), ST_OK);
    assert_offset(f, "2028-02-28 23:59:59", 0);
    assert_offset(f, "2028-02-29 00:00", 7200);
    assert_offset(f, "2027-03-01 00:00", 7200);
    /* The last Sunday, of five and of four. */
    ck_assert_int_eq(read_zone(f, rule_file("AAA0BBB,M2.5.0/0,M3.5.0/1")), ST_OK);
    assert_offset(f, "2026-02-21 23:59:59", 0);
    assert_offset(f, "2026-02-22 00:00", 3600);
    assert_offset(f, "2026-03-28 23:59:59", 3600);
    assert_offset(f, "2026-03-29 00:00", 0);
}

ZONE_TEST(rules_may_have_hours_beyond_the_day)
{
    /* 22:00 on the Saturday before the last Sunday, as in Greenland. */
    ck_assert_int_eq(read_zone(f, rule_file("<-02>2<-01>,M3.5.0/-1,M10.5.0/0")), ST_OK);
    assert_offset(f, "2026-03-29 00:59:59", -7200);
    assert_offset(f, "2026-03-29 01:00", -3600);
    assert_offset(f, "2026-10-25 01:00", -7200);
    /* The Thursday before the first Sunday of April: four days and 50 hours later. */
    ck_assert_int_eq(read_zone(f, rule_file("EET-2EEST,M3.4.4/50,M10.4.4/50")), ST_OK);
    assert_offset(f, "2026-03-27 23:59:59", 7200);
    assert_offset(f, "2026-03-28 00:00", 10800);
    /* A week before New Year, in the year before. */
    ck_assert_int_eq(read_zone(f, rule_file("AAA0BBB,J1/-167,J100/167")), ST_OK);
    assert_offset(f, "2026-12-25 00:59:59", 0);
    assert_offset(f, "2026-12-25 01:00", 3600);
}

ZONE_TEST(daylight_time_may_last_all_year)
{
    ck_assert_int_eq(read_zone(f, rule_file("XXX3EDT4,0/0,J365/23")), ST_OK);
    for (int64_t at = due_utc("2026-01-01 00:00"); at < due_utc("2030-01-01 00:00");
         at += 1800)
        ck_assert_int_eq(zone_offset(f->zone, at), -4 * 3600);
}

ZONE_TEST(malformed_rules_are_refused)
{
    static const char *const rules[] = {"A0",
                                        "AB0",
                                        "ABC",
                                        "ABC25",
                                        "ABC1:60",
                                        "ABC0:0:60",
                                        "<AB>0",
                                        "<ABC0",
                                        "ABC0DEF",
                                        "ABC0DEF,J1",
                                        "ABC0DEF,J0,J1",
                                        "ABC0DEF,J366,J1",
                                        "ABC0DEF,366,1",
                                        "ABC0DEF,M0.1.0,M1.1.0",
                                        "ABC0DEF,M13.1.0,M1.1.0",
                                        "ABC0DEF,M1.0.0,M1.1.0",
                                        "ABC0DEF,M1.6.0,M1.1.0",
                                        "ABC0DEF,M1.1.7,M1.1.0",
                                        "ABC0DEF,J1/168,J2",
                                        "ABC0DEF,J1,J2,",
                                        "ABC0 ",
                                        "0",
                                        "ABC--1",
                                        "ABC+",
                                        "ABC0DEF,J0001,J2",
                                        "ABC0DEF,,",
                                        ":Europe/Berlin",
                                        "ABC0:",
                                        "ABC0DEF1:,J1,J2"};

    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        struct posix_tz tz;

        ck_assert_msg(!posix_tz_parse(bytes_str(rules[i]), &tz), "%s passes", rules[i]);
        ck_assert_int_eq(read_zone(f, rule_file(rules[i])), ST_IO);
        ck_assert_str_eq(f->why.text, "the file is damaged: its last line is no rule");
    }
}

ZONE_TEST(a_rule_counts_from_the_last_change)
{
    static const struct change changes[] = {{1000, 1}, {2000, 0}};
    struct file file = rule_file("ABC-5");

    file.changes = changes;
    file.change_count = 2;
    ck_assert_int_eq(read_zone(f, file), ST_OK);
    ck_assert_int_eq(zone_offset(f->zone, 999), 0);
    ck_assert_int_eq(zone_offset(f->zone, 1000), 3600);
    ck_assert_int_eq(zone_offset(f->zone, 2000), 18000);
    ck_assert_int_eq(zone_span(f->zone, 5000).begin, 2000);
    file.rule = ""; /* the last offset for ever */
    ck_assert_int_eq(read_zone(f, file), ST_OK);
    ck_assert_int_eq(zone_offset(f->zone, 2000), 0);
    ck_assert_int_eq(zone_span(f->zone, 2000).end, INT64_MAX);
}

/* ------------------------------------------------------------------ damaged files */

ZONE_TEST(each_shorter_file_is_refused)
{
    static const struct change changes[] = {{1000, 1}, {2000, 0}};
    struct file file = rule_file("ABC-5");
    struct zone *zone;

    file.changes = changes;
    file.change_count = 2;
    ck_assert_int_eq(read_zone(f, file), ST_OK);
    for (size_t len = 0; len < f->file.len; len++) {
        struct bytes copy;
        char *block = malloc(len + 1); /* AddressSanitizer sees its end */
        enum status st;

        memcpy(block, f->file.data, len);
        copy = bytes_of(block, len);
        st = zone_read(f->mem, copy, &zone, &f->why);
        ck_assert_msg(st == ST_IO || st == ST_BAD_VALUE, "%zu bytes are %s", len,
                      status_name(st));
        free(block);
    }
}

/* A change of any byte is refused, or gives a zone whose searches end. */
ZONE_TEST(damaged_bytes_never_break_a_zone)
{
    static const struct change changes[] = {{1000, 1}, {2000, 0}};
    struct file file = rule_file("AAA0BBB,M2.5.0/0,M3.5.0/1");
    int64_t moments[ZONE_SHOWN_MOST];

    file.changes = changes;
    file.change_count = 2;
    ck_assert_int_eq(read_zone(f, file), ST_OK);
    for (size_t i = 0; i < f->file.len; i++) {
        for (int flip = 1; flip < 256; flip <<= 1) {
            struct zone *zone;

            f->file.data[i] = (char)(f->file.data[i] ^ flip);
            if (zone_read(f->mem, buf_view(&f->file), &zone, &f->why) == ST_OK) {
                (void)zone_moments(zone, 1500, moments);
                (void)zone_reaches(zone, 1500);
                (void)zone_latest_wall(zone, 1500);
                zone_unref(zone);
            }
            f->file.data[i] = (char)(f->file.data[i] ^ flip);
        }
    }
}

ZONE_TEST(contradictions_of_a_file_are_refused)
{
    static const struct change backward[] = {{2000, 1}, {2000, 0}}, wild[] = {{1, 2}};
    static const int32_t far[] = {ZONE_OFFSET_MOST + 1}, behind[] = {INT32_MIN};
    struct file file = rule_file("ABC0");

    file.changes = backward;
    file.change_count = 2;
    ck_assert_int_eq(read_zone(f, file), ST_IO);
    ck_assert_str_eq(f->why.text, "the file is damaged: its changes are not in order");
    file.changes = wild;
    file.change_count = 1;
    ck_assert_int_eq(read_zone(f, file), ST_IO);
    ck_assert_str_eq(f->why.text, "the file is damaged: a change has an unknown offset");
    file.change_count = 0;
    file.offset_count = 0;
    ck_assert_int_eq(read_zone(f, file), ST_IO);
    file.offset_count = 1;
    file.offsets = far;
    ck_assert_int_eq(read_zone(f, file), ST_IO);
    file.offsets = behind;
    ck_assert_int_eq(read_zone(f, file), ST_IO);
    file = rule_file("ABC0");
    file.leaps = 1;
    ck_assert_int_eq(read_zone(f, file), ST_BAD_VALUE);
    ck_assert_str_eq(f->why.text, "the file counts leap seconds");
    file.leaps = 0;
    file.version = 0;
    ck_assert_int_eq(read_zone(f, file), ST_BAD_VALUE);
    ck_assert_str_eq(f->why.text, "the file is no TZif file of version 2 or later");
}

ZONE_TEST(memory_that_runs_out_is_a_status)
{
    struct zones *zones;

    ck_assert_int_eq(read_zone(f, rule_file("ABC0")), ST_OK);
    zone_unref(f->zone);
    f->zone = NULL;
    mem_fail_nth(f->mem, 1);
    ck_assert_int_eq(zone_read(f->mem, buf_view(&f->file), &f->zone, &f->why),
                     ST_NO_MEMORY);
    for (unsigned nth = 1; nth <= 3; nth++) {
        mem_fail_nth(f->mem, nth);
        ck_assert_int_eq(zones_open(f->mem, ZONEINFO, &zones), ST_NO_MEMORY);
    }
    mem_fail_nth(f->mem, 0);
    ck_assert_int_eq(zones_open(f->mem, ZONEINFO, &zones), ST_OK);
    for (unsigned nth = 1; nth <= 3; nth++) {
        mem_fail_nth(f->mem, nth);
        ck_assert_int_eq(
            zones_get(zones, bytes_str("Europe/Berlin"), 0, &f->zone, &f->why),
            ST_NO_MEMORY);
    }
    mem_fail_nth(f->mem, 0);
    zones_close(zones);
}

/* ------------------------------------------------------------------ names */

START_TEST(names_stay_in_their_directory)
{
    static const char *const good[] = {
        "UTC", "Etc/GMT+5", "America/Argentina/Buenos_Aires", "GMT-0", "EST5EDT"};
    static const char *const bad[] = {
        "",          "/etc/passwd",  "..",  "../UTC",    "Europe/../UTC",
        "Europe/",   "Europe//Rome", "-x",  "Europe/-x", "a b",
        "tzdata.zi", "\xc3\xa4",     "a\n", "a~b",       "."};
    char longest[ZONE_NAME_MOST + 1];
    struct reason why;

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        ck_assert_int_eq(zone_check_name(bytes_str(good[i]), &why), ST_OK);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(zone_check_name(bytes_str(bad[i]), &why) == ST_BAD_VALUE,
                      "%s passes", bad[i]);
    memset(longest, 'a', sizeof(longest));
    ck_assert_int_eq(zone_check_name(bytes_of(longest, ZONE_NAME_MOST), &why), ST_OK);
    ck_assert_int_eq(zone_check_name(bytes_of(longest, ZONE_NAME_MOST + 1), &why),
                     ST_BAD_VALUE);
    ck_assert_str_eq(why.text, "time zone is 65 characters long. The allowed range is 1 "
                               "to 64");
    ck_assert_int_eq(zone_check_name(bytes_of("UTC\0", 4), &why), ST_BAD_VALUE);
}

/* ------------------------------------------------------------------ a directory */

struct folder {
    struct mem *mem;
    struct zones *zones;
    struct zone *zone;
    struct reason why;
    char path[64];
};

static void
folder_open(struct folder *f)
{
    *f = (struct folder){.mem = mem_new(0), .path = "/tmp/claimd_zones_XXXXXX"};
    ck_assert_ptr_nonnull(mkdtemp(f->path));
    ck_assert_int_eq(zones_open(f->mem, f->path, &f->zones), ST_OK);
}

/* Runs a command with the folder as its working directory. */
static void
folder_run(const struct folder *f, const char *command)
{
    char text[512];

    (void)snprintf(text, sizeof(text), "cd %s && %s", f->path, command);
    ck_assert_int_eq(system(text), 0);
}

static void
folder_close(struct folder *f)
{
    zone_unref(f->zone);
    zones_close(f->zones);
    folder_run(f, "rm -r \"$PWD\"");
    mem_destroy(f->mem);
}

#define FOLDER_TEST(id) FIXTURE_TEST(id, struct folder, folder_open(f), folder_close(f))

/* Writes a zone's file as an update does: a new file takes the old one's name. */
static void
folder_write(const struct folder *f, const char *name, struct bytes text)
{
    char path[128], fresh[128];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/%s", f->path, name);
    (void)snprintf(fresh, sizeof(fresh), "%s/fresh", f->path);
    file = fopen(fresh, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text.data, 1, text.len, file), text.len);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(rename(fresh, path), 0);
}

static void
folder_write_rule(const struct folder *f, const char *name, const char *rule)
{
    const struct file file = rule_file(rule);
    struct buf text;

    buf_init(&text, f->mem);
    add_file(&text, &file);
    folder_write(f, name, buf_view(&text));
    buf_fini(&text);
}

static enum status
folder_get(struct folder *f, const char *name, int64_t now_ms)
{
    zone_unref(f->zone);
    f->zone = NULL;
    return zones_get(f->zones, bytes_str(name), now_ms, &f->zone, &f->why);
}

FOLDER_TEST(an_update_arrives_within_an_hour)
{
    struct zone *old;

    folder_write_rule(f, "Here", "ABC-5");
    ck_assert_int_eq(folder_get(f, "Here", HOUR_MS), ST_OK);
    ck_assert_int_eq(zone_offset(f->zone, 0), 18000);
    old = zone_ref(f->zone);
    folder_write_rule(f, "Here", "ABC-6");
    ck_assert_int_eq(folder_get(f, "Here", 2 * HOUR_MS - 1), ST_OK);
    ck_assert_ptr_eq(f->zone, old);
    ck_assert_int_eq(folder_get(f, "Here", 2 * HOUR_MS), ST_OK);
    ck_assert_ptr_ne(f->zone, old);
    ck_assert_int_eq(zone_offset(f->zone, 0), 21600);
    ck_assert_int_eq(zone_offset(old, 0), 18000); /* as long as it is referenced */
    zone_unref(old);
}

FOLDER_TEST(an_unchanged_file_keeps_its_zone)
{
    struct zone *old;

    folder_write_rule(f, "Here", "ABC-5");
    ck_assert_int_eq(folder_get(f, "Here", 0), ST_OK);
    old = f->zone;
    ck_assert_int_eq(folder_get(f, "Here", 5 * HOUR_MS), ST_OK);
    ck_assert_ptr_eq(f->zone, old);
    ck_assert_int_eq(folder_get(f, "Here", HOUR_MS), ST_OK); /* the clock was set back */
    ck_assert_ptr_eq(f->zone, old);
}

FOLDER_TEST(a_clock_that_is_set_back_looks_at_once)
{
    folder_write_rule(f, "Here", "ABC-5");
    ck_assert_int_eq(folder_get(f, "Here", 9 * HOUR_MS), ST_OK);
    folder_write_rule(f, "Here", "ABC-6");
    ck_assert_int_eq(folder_get(f, "Here", 8 * HOUR_MS), ST_OK);
    ck_assert_int_eq(zone_offset(f->zone, 0), 21600);
}

FOLDER_TEST(a_zone_outlives_its_file_and_a_damaged_one)
{
    folder_write_rule(f, "Here", "ABC-5");
    ck_assert_int_eq(folder_get(f, "Here", 0), ST_OK);
    folder_write(f, "Here", bytes_str("TZif2 but short"));
    ck_assert_int_eq(folder_get(f, "Here", HOUR_MS), ST_OK);
    ck_assert_int_eq(zone_offset(f->zone, 0), 18000);
    folder_run(f, "rm Here");
    ck_assert_int_eq(folder_get(f, "Here", 2 * HOUR_MS), ST_OK);
    ck_assert_int_eq(zone_offset(f->zone, 0), 18000);
    folder_write_rule(f, "Here",
                      "ABC-10"); /* of another size: the inode may be the same */
    ck_assert_int_eq(folder_get(f, "Here", 3 * HOUR_MS), ST_OK);
    ck_assert_int_eq(zone_offset(f->zone, 0), 36000);
}

static void *
get_often(void *argument)
{
    struct folder *f = argument;
    struct reason why;
    struct zone *zone;

    /* The clock goes back and forth, so that each look may read the file. */
    for (int64_t i = 0; i < 200; i++) {
        ck_assert_int_eq(
            zones_get(f->zones, bytes_str("Here"), i * 7 % 5 * HOUR_MS, &zone, &why),
            ST_OK);
        ck_assert_int_eq(zone_offset(zone, 0) % 3600, 0);
        zone_unref(zone);
    }
    return NULL;
}

FOLDER_TEST(threads_share_zones_during_updates)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];

    folder_write_rule(f, "Here", "ABC-1");
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, get_often, f), 0);
    for (int i = 0; i < 20; i++)
        folder_write_rule(f, "Here", i % 2 == 0 ? "ABC-2" : "ABC-3");
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    folder_write_rule(f, "Here", "ABC-10");
    ck_assert_int_eq(folder_get(f, "Here", 9 * HOUR_MS), ST_OK);
    ck_assert_int_eq(zone_offset(f->zone, 0), 36000);
}

FOLDER_TEST(many_zones_are_kept_apart)
{
    char name[16], rule[16];

    for (int i = 0; i < 20; i++) {
        (void)snprintf(name, sizeof(name), "Z%d", i * 7 % 20);
        (void)snprintf(rule, sizeof(rule), "ABC-%d", i * 7 % 20);
        folder_write_rule(f, name, rule);
        ck_assert_int_eq(folder_get(f, name, 0), ST_OK);
    }
    folder_run(f, "rm Z*");
    for (int i = 0; i < 20; i++) {
        (void)snprintf(name, sizeof(name), "Z%d", i);
        ck_assert_int_eq(folder_get(f, name, 1), ST_OK);
        ck_assert_int_eq(zone_offset(f->zone, 0), i * 3600);
    }
}

FOLDER_TEST(an_unknown_name_gets_a_near_one_of_the_list)
{
    folder_run(f, "mkdir Europe && cp " ZONEINFO "/Europe/Berlin Europe/Berlin");
    folder_run(f, "cp Europe/Berlin Europe/Paris && mkdir America US");
    folder_run(f, "cp Europe/Berlin America/New_York");
    folder_run(f, "printf '%s\\n' '# version 2026a' 'R x 1 o - Ap 1 0 1 S' "
                  "'Z Europe/Berlin 0:53:28 - LMT 1893 Ap' '1 c CE%sT 1945' "
                  "'Z Europe/Paris 1 - x' 'Z America/New_York 1' 'Z Europe/Berlim 1' "
                  "'L America/New_York US/Eastern' >tzdata.zi");
    ck_assert_int_eq(folder_get(f, "Europe/Berln", 0), ST_BAD_VALUE);
    ck_assert_str_eq(f->why.text, "time zone is Europe/Berln, which does not exist. Did "
                                  "you mean Europe/Berlin?");
    ck_assert_int_eq(folder_get(f, "europe/paris", 0), ST_BAD_VALUE);
    ck_assert_str_eq(f->why.text, "time zone is europe/paris, which does not exist. Did "
                                  "you mean Europe/Paris?");
    ck_assert_int_eq(folder_get(f, "berlin", 0), ST_BAD_VALUE);
    ck_assert_ptr_nonnull(strstr(f->why.text, "Did you mean Europe/Berlin?"));
    /* A link without its file, as without the package tzdata-legacy. */
    ck_assert_int_eq(folder_get(f, "US/Eastern", 0), ST_BAD_VALUE);
    ck_assert_ptr_nonnull(strstr(f->why.text, "Did you mean America/New_York?"));
    ck_assert_int_eq(folder_get(f, "Mars/Olympus_Mons", 0), ST_BAD_VALUE);
    ck_assert_str_eq(f->why.text, "time zone is Mars/Olympus_Mons, which does not exist. "
                                  "Write a name of tzdata, such as Europe/Berlin or UTC");
    ck_assert_int_eq(folder_get(f, "Europe", 0), ST_BAD_VALUE); /* a folder */
    ck_assert_int_eq(folder_get(f, "Europe/Berlin/Mitte", 0), ST_BAD_VALUE);
}

FOLDER_TEST(without_a_list_the_files_are_the_names)
{
    folder_run(f, "mkdir -p America/Argentina posix/America/Argentina");
    folder_write_rule(f, "America/Argentina/Salta", "<-03>3");
    folder_write_rule(f, "posix/America/Argentina/Saltb", "<-03>3");
    ck_assert_int_eq(folder_get(f, "America/Argentina/Saltb", 0), ST_BAD_VALUE);
    ck_assert_ptr_nonnull(strstr(f->why.text, "Did you mean America/Argentina/Salta?"));
    ck_assert_int_eq(folder_get(f, "salta", 0), ST_BAD_VALUE);
    ck_assert_ptr_nonnull(strstr(f->why.text, "Did you mean America/Argentina/Salta?"));
    ck_assert_int_eq(folder_get(f, "America/Argentina/Salta", 0), ST_OK);
}

FOLDER_TEST(files_that_are_no_zones_are_errors)
{
    folder_write(f, "leapseconds", bytes_str("# text"));
    ck_assert_int_eq(folder_get(f, "leapseconds", 0), ST_BAD_VALUE);
    ck_assert_str_eq(f->why.text, "time zone leapseconds: the file is no TZif file of "
                                  "version 2 or later");
    folder_write_rule(f, "Broken", "rule");
    ck_assert_int_eq(folder_get(f, "Broken", 0), ST_IO);
    ck_assert_str_eq(f->why.text, "time zone Broken: the file is damaged: its last line "
                                  "is no rule");
    folder_run(f, "truncate --size 65537 Large && mkfifo Pipe");
    ck_assert_int_eq(folder_get(f, "Large", 0), ST_BAD_VALUE);
    ck_assert_int_eq(folder_get(f, "Pipe", 0), ST_BAD_VALUE);
}

FOLDER_TEST(without_tzdata_there_is_only_utc)
{
    struct zones *none;

    ck_assert_int_eq(zones_open(f->mem, "/nonexistent/zoneinfo", &none), ST_OK);
    ck_assert_int_eq(zones_get(none, bytes_str("Europe/Berlin"), 0, &f->zone, &f->why),
                     ST_IO);
    ck_assert_str_eq(f->why.text, "time zones: there is no directory "
                                  "/nonexistent/zoneinfo. Install the package tzdata");
    ck_assert_int_eq(zones_get(none, bytes_str("UTC"), 0, &f->zone, &f->why), ST_OK);
    zones_close(none);
    ck_assert_int_eq(zone_offset(f->zone, 0), 0);
}
