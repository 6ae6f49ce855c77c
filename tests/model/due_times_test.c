/*
 * Due times of random expressions in many zones, compared with a walk through the minutes
 * of the C library's wall clock (model/due_model.h).
 *
 * CLAIMD_TEST_SEED repeats a run. CLAIMD_TEST_OPS sets the number of expressions, and
 * CLAIMD_TEST_DUE that of the due times of each. A long run:
 *
 *     CLAIMD_TEST_OPS=10000 CLAIMD_TEST_DUE=1000 build/release/tests/model_due_times_test
 */
#include "claimd/schedule/recurrence.h"
#include "model/due_model.h"
#include "support/check_main.h"
#include "support/due.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const zone_names[] = {"Africa/Cairo",
                                         "Africa/Casablanca",
                                         "Africa/El_Aaiun",
                                         "Africa/Johannesburg",
                                         "Africa/Monrovia",
                                         "America/Anchorage",
                                         "America/Asuncion",
                                         "America/Caracas",
                                         "America/Havana",
                                         "America/New_York",
                                         "America/Nuuk",
                                         "America/Phoenix",
                                         "America/Santiago",
                                         "America/Sao_Paulo",
                                         "America/Scoresbysund",
                                         "America/St_Johns",
                                         "Antarctica/Casey",
                                         "Antarctica/Troll",
                                         "Asia/Amman",
                                         "Asia/Beirut",
                                         "Asia/Gaza",
                                         "Asia/Jerusalem",
                                         "Asia/Kathmandu",
                                         "Asia/Kolkata",
                                         "Asia/Pyongyang",
                                         "Asia/Tehran",
                                         "Asia/Tokyo",
                                         "Atlantic/Azores",
                                         "Australia/Lord_Howe",
                                         "Australia/Sydney",
                                         "Europe/Berlin",
                                         "Europe/Chisinau",
                                         "Europe/Dublin",
                                         "Europe/Istanbul",
                                         "Europe/London",
                                         "Europe/Moscow",
                                         "Pacific/Apia",
                                         "Pacific/Chatham",
                                         "Pacific/Kiritimati",
                                         "UTC"};

enum {
    ZONES = sizeof(zone_names) / sizeof(zone_names[0]),
    EXPRESSIONS_USUAL = 200,
    DUE_USUAL = 20,
    DUE_MOST = 10000
};

struct run {
    struct random random;
    struct due_clock clock;
    struct zone *zone;
    const char *name;
    size_t most; /* due times for each expression */
    int64_t dues[DUE_MOST + 1];
    size_t compared;
};

/* A second of the clock, with enough minutes around. Half of them are near a jump. */
static int64_t
any_second(struct run *run)
{
    const struct due_clock *c = &run->clock;
    const int64_t least = DUE_HISTORY * 60, most = (int64_t)(c->minutes - 2880) * 60;
    int64_t at = random_between(&run->random, least, most);

    if (c->change_count > 0 && random_chance(&run->random, 50))
        at = (int64_t)c->changes[random_below(&run->random, c->change_count)] * 60 +
             random_between(&run->random, -14400, 7200);
    return c->begin + (at < least ? least : at > most ? most : at);
}

/* ------------------------------------------------------------------ zones */

/* The offsets of a zone, and the moments of wall times, are those of the clock. */
static void
compare_clock(struct run *run)
{
    const struct due_clock *c = &run->clock;

    for (int i = 0; i < 50; i++) {
        const size_t at = (size_t)(any_second(run) - c->begin) / 60;
        const int64_t utc = c->begin + (int64_t)at * 60;
        const struct due_wall shown = c->walls[at];
        const int64_t wall =
            c->begin + (shown.day - 1) * INT64_C(86400) + shown.minute * INT64_C(60);
        int64_t moments[ZONE_SHOWN_MOST];
        unsigned count = zone_moments(run->zone, wall, moments), found = 0;

        ck_assert_msg(zone_wall(run->zone, utc) == wall, "%s at %s", run->name,
                      due_text(utc).text);
        for (size_t near = at - 1560; near < at + 1440; near++) {
            if (memcmp(&c->walls[near], &shown, sizeof(shown)) != 0)
                continue;
            ck_assert_uint_lt(found, count);
            ck_assert_int_eq(moments[found++], c->begin + (int64_t)near * 60);
        }
        ck_assert_uint_eq(found, count);
    }
}

/* ------------------------------------------------------------------ due times */

/* Fills run->dues behind a second. Returns their number; the last one may be never. */
static size_t
walk_dues(struct run *run, const struct due_expression *e, int64_t after)
{
    struct due_walk walk;
    size_t count = 0;

    due_walk_begin(&walk, &run->clock, e, after);
    while (count < run->most) {
        run->dues[count] = due_walk_next(&walk);
        if (run->dues[count++] == INT64_MAX)
            break;
    }
    due_walk_end(&walk);
    return count;
}

/* Missed due times, up to somewhere between two of them. */
static void
compare_latest(struct run *run, const struct recurrence *r, const char *text,
               int64_t after, size_t count)
{
    const size_t last = (size_t)random_below(&run->random, count - 1);
    const int64_t until = random_between(&run->random, run->dues[last] * 1000,
                                         run->dues[last + 1] * 1000 - 1);
    const uint64_t most = random_below(&run->random, 2 * last + 2);
    uint64_t missed;
    const int64_t latest =
        recurrence_latest(r, run->zone, after * 1000, until, most, &missed);

    ck_assert_msg(latest == run->dues[last] * 1000,
                  "%s in %s from %" PRId64 " to %" PRId64 " ms: %" PRId64, text,
                  run->name, after, until, latest);
    ck_assert_uint_eq(missed, last + 1 < most ? last + 1 : most);
}

static void
compare_expression(struct run *run)
{
    struct due_expression e;
    struct reason why = {""};
    struct recurrence r;
    const int64_t after = any_second(run);
    const int64_t end = run->clock.begin + (int64_t)run->clock.minutes * 60;
    int64_t at = after;
    size_t count;
    enum status st;

    due_expression_make(&e, &run->random);
    st = recurrence_of_cron(bytes_str(e.text), bytes_str(run->name), &r, &why);
    ck_assert_msg((st == ST_BAD_VALUE) == e.refused, "%s is %s: %s", e.text,
                  status_name(st), why.text);
    if (st != ST_OK)
        return;
    count = walk_dues(run, &e, after);
    for (size_t i = 0; i < count; i++) {
        const int64_t before = at, expected = run->dues[i];

        at = cron_next(&r.cron, run->zone, at);
        if (expected == INT64_MAX)
            ck_assert_int_ge(at, end);
        else
            ck_assert_msg(at == expected, "%s in %s after %s is %s, not %s", e.text,
                          run->name, due_text(before).text, due_text(at).text,
                          due_text(expected).text);
    }
    count -= run->dues[count - 1] == INT64_MAX;
    run->compared += count;
    if (count > 1)
        compare_latest(run, &r, e.text, after, count);
}

static size_t
due_most(void)
{
    const char *text = getenv("CLAIMD_TEST_DUE");
    const size_t most = text == NULL ? DUE_USUAL : strtoull(text, NULL, 0);

    return most > DUE_MOST ? DUE_MOST : most;
}

START_TEST(due_times_are_those_of_a_walk_through_the_minutes)
{
    static struct run run;
    const uint64_t expressions = random_operations(EXPRESSIONS_USUAL);
    struct mem *mem = mem_new(0);

    run.random.state = random_seed("due_times_test");
    run.most = due_most();
    for (size_t i = 0; i < ZONES; i++) {
        const int years = 1 + (int)(run.most / 40);
        const int first = (int)random_between(&run.random, 1973, 2100 - years);

        run.name = zone_names[i];
        run.zone = due_zone(mem, run.name);
        due_clock_open(&run.clock, run.name, first, years);
        compare_clock(&run);
        for (uint64_t n = 0; n < expressions / ZONES; n++)
            compare_expression(&run);
        due_clock_close(&run.clock);
        zone_unref(run.zone);
    }
    printf("due_times_test: %zu due times\n", run.compared);
    mem_destroy(mem);
}
