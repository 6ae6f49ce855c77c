/*
 * Cron expressions: what they mean, what is refused with which remedy, and due times over
 * clock changes. All times are UTC, and a comment has the wall clock. Read
 * claimd/schedule/cron.h next.
 */
#include "claimd/schedule/cron.h"

#include "support/check_main.h"
#include "support/due.h"

#include <stdarg.h>
#include <stdio.h>

static struct cron
parsed(const char *text)
{
    struct reason why = {""};
    struct cron cron;
    enum status st = cron_parse(bytes_str(text), &cron, &why);

    ck_assert_msg(st == ST_OK, "%s is refused: %s", text, why.text);
    return cron;
}

/* ------------------------------------------------------------------ parsing */

static void
assert_same(const char *a, const char *b)
{
    const struct cron x = parsed(a), y = parsed(b);

    ck_assert_msg(x.minutes == y.minutes && x.hours == y.hours && x.days == y.days &&
                      x.months == y.months && x.weekdays == y.weekdays &&
                      x.any_day == y.any_day && x.any_weekday == y.any_weekday,
                  "%s differs from %s", a, b);
}

START_TEST(each_field_has_its_values)
{
    const struct cron all = parsed("* * * * *");
    const struct cron some = parsed("5,7-9 0,23 1,31 2,12 1,7");

    ck_assert_uint_eq(all.minutes, (UINT64_C(1) << 60) - 1);
    ck_assert_uint_eq(all.hours, (1U << 24) - 1);
    ck_assert_uint_eq(all.days, 0xfffffffe);
    ck_assert_uint_eq(all.months, 0x1ffe);
    ck_assert_uint_eq(all.weekdays, 0x7f);
    ck_assert(all.any_day && all.any_weekday && cron_is_hourly(&all));
    ck_assert_uint_eq(some.minutes, 1U << 5 | 1U << 7 | 1U << 8 | 1U << 9);
    ck_assert_uint_eq(some.hours, 1U | 1U << 23);
    ck_assert_uint_eq(some.days, 1U << 1 | 1U << 31);
    ck_assert_uint_eq(some.months, 1U << 2 | 1U << 12);
    ck_assert_uint_eq(some.weekdays, 1U | 1U << 1);
    ck_assert(!some.any_day && !some.any_weekday && !cron_is_hourly(&some));
}

START_TEST(steps_and_ranges_are_lists)
{
    assert_same("*/20 */8 * * *", "0,20,40 0,8,16 * * *");
    assert_same("10-30/10,59 8-18/5 * * *", "10,20,30,59 8,13,18 * * *");
    assert_same("0 0 */10 * *", "0 0 1,11,21,31 * *");
    assert_same("0 0 * */6 *", "0 0 * 1,7 *");
    assert_same("0 0 * * 5-7", "0 0 * * 0,5,6");
    assert_same("0 0 * * 1-7/3", "0 0 * * 1,4,0");
    assert_same("0 0 * * 0-7", "0 0 * * 0-6");
    assert_same("05 007 * * *", "5 7 * * *");
    assert_same("0 0-23 * * *", "0 0-11,12-23 * * *");
    ck_assert(cron_is_hourly(&(struct cron){.hours = parsed("7 */1 * * *").hours}));
}

START_TEST(names_have_any_case_also_in_lists_and_ranges)
{
    assert_same("0 0 * jan,MAR,Dec mon-FRI", "0 0 * 1,3,12 1-5");
    assert_same("0 0 * Feb-nov/3 *", "0 0 * 2,5,8,11 *");
    assert_same("0 0 * * sun,tue-thu/2", "0 0 * * 0,2,4");
    assert_same("0 0 * * sat-7", "0 0 * * 6,0");
}

START_TEST(macros_are_expressions)
{
    assert_same("@yearly", "0 0 1 1 *");
    assert_same("@annually", "0 0 1 1 *");
    assert_same("@monthly", "0 0 1 * *");
    assert_same("@weekly", "0 0 * * 0");
    assert_same("@daily", "0 0 * * *");
    assert_same(" @Midnight ", "0 0 * * *");
    assert_same("@hourly", "0 * * * *");
}

START_TEST(spaces_and_tabs_separate_fields)
{
    assert_same("\t 0  1\t2 \t3   * ", "0 1 2 3 *");
}

static const struct refusal {
    const char *text, *why;
} refusals[] = {
    {"0 24 * * *", "cron expression: hour is 24. The allowed range is 0 to 23"},
    {"60 * * * *", "cron expression: minute is 60. The allowed range is 0 to 59"},
    {"* * 0 * *", "cron expression: day of month is 0. The allowed range is 1 to 31"},
    {"* * 32 * *", "cron expression: day of month is 32. The allowed range is 1 to 31"},
    {"* * * 13 *", "month is 13. The allowed range is 1 to 12, or jan to dec"},
    {"* * * * 8", "weekday is 8. The allowed range is 0 to 7, or sun to sat"},
    {"* * * janu *", "month is janu. The allowed"},
    {"jan * * * *", "minute is jan. The allowed range is 0 to 59"},
    {"-1 * * * *", "minute is -1. The allowed"},
    {"1- * * * *", "minute is 1-. The allowed"},
    {"+1 * * * *", "minute is +1. The allowed"},
    {"1-2-3 * * * *", "minute is 2-3. The allowed"},
    {"99999999999999999999 * * * *", "minute is 99999999999999999999. The allowed"},
    {"*-5 * * * *", "minute is *. The allowed"},
    {"** * * * *", "minute is **. The allowed"},
    {"0 0 * * 5-1", "weekday is 5-1, a range that ends before it begins. Write 5-6,0-1"},
    {"0 0 * * fri-sun", "weekday is fri-sun, a range that ends before it begins. Write "
                        "5-6,0"},
    {"0 0 * * 7-2", "Write 0-2"},
    {"0 22-5 * * *", "hour is 22-5, a range that ends before it begins. Write 22-23,0-5"},
    {"0 0 * dec-jan *", "month is dec-jan, a range that ends before it begins. Write "
                        "12,1"},
    {"5/15 * * * *", "minute is 5/15. A step needs a range. Write 5-59/15"},
    {"0 0 * * mon/2", "weekday is mon/2. A step needs a range. Write 1-6/2"},
    {"*/0 * * * *",
     "minute has the step \"0\". The allowed range for 0 to 59 is 1 to 59"},
    {"*/60 * * * *", "the step \"60\". The allowed range for 0 to 59 is 1 to 59"},
    {"0 8-10/3 * * *", "the step \"3\". The allowed range for 8 to 10 is 1 to 2"},
    {"*/x * * * *", "the step \"x\""},
    {"*/ * * * *", "the step \"\""},
    {"*/5/2 * * * *", "the step \"5/2\""},
    {"1,,2 * * * *", "minute has an empty entry. Remove it"},
    {",1 * * * *", "empty entry"},
    {"1, * * * *", "empty entry"},
    {"/5 * * * *", "empty entry"},
    {"0 0 ? * *", "day of month is ?, which is not supported. Write *"},
    {"0 0 L * *", "day of month is L. L, W, # and ? are not supported. Write a list"},
    {"0 0 15W * *", "day of month is 15W. L, W, # and ? are not supported"},
    {"0 0 LW * *", "L, W, # and ? are not supported"},
    {"0 0 L-3 * *", "L, W, # and ? are not supported"},
    {"0 0 * * 5L", "weekday is 5L. L, W, # and ? are not supported"},
    {"0 0 * * fri#2", "weekday is fri#2. L, W, # and ? are not supported"},
    {"0 0 31 2 *", "day of month is 31 and month is 2. There is no such date"},
    {"0 0 30-31 2 *", "day of month is 30-31 and month is 2. There is no such date"},
    {"0 0 31 feb,apr,6,9,11 *", "There is no such date"},
    {"0 0 */2 * mon", "day of month is */2 and weekday is restricted, too. Schedulers "
                      "disagree about it. Write day of month as a list of values"},
    {"0 0 13 * */2", "weekday is */2 and day of month is restricted, too"},
    {"0 0 */2 * */3", "is restricted, too"},
    {"0 0 *,5 * 1", "day of month is *,5 and weekday is restricted, too"},
    {"0 0 12 * * mon", "has 6 fields. It needs five: minute, hour, day of month, month "
                       "and weekday. Seconds and years are not supported"},
    {"0 0 12 1 1 ? 2026", "has 7 fields. It needs five"},
    {"0 0 * *", "has 4 fields. It needs five: minute, hour, day of month, month and "
                "weekday"},
    {"x", "has 1 field. It needs five"},
    {"CRON_TZ=UTC 0 0 * * *", "Give the time zone outside the expression"},
    {"", "cron expression is empty. Write five fields, such as 30 2 * * mon-fri"},
    {" \t ", "cron expression is empty"},
    {"@reboot", "@reboot is not supported. A schedule has times, such as @daily"},
    {"@every 5m", "@every is not supported. Use \"every\" with a number of seconds"},
    {"@dayly", "@dayly is unknown. Write @daily"},
    {"@sometimes", "@sometimes is unknown. Write five fields, or one of @yearly"},
    {"0 0 * * *\n", "has the byte 10 at position 10. Only ASCII characters"},
    {"0 0 * * m\xc3\xb6n", "has the byte 195 at position 10"},
};

LOOP_TEST(refused_expressions_get_a_remedy, sizeof(refusals) / sizeof(refusals[0]))
{
    const struct refusal *r = &refusals[_i];
    struct reason why = {""};
    struct cron cron;

    ck_assert_int_eq(cron_parse(bytes_str(r->text), &cron, &why), ST_BAD_VALUE);
    ck_assert_msg(bytes_contain(bytes_str(why.text), bytes_str(r->why)),
                  "\"%s\" is refused with \"%s\"", r->text, why.text);
    ck_assert_ptr_eq(strstr(why.text, "cron expression"), why.text);
}

START_TEST(long_texts_and_zero_bytes_are_refused)
{
    char text[CRON_TEXT_MOST + 2];
    struct reason why = {""};
    struct cron cron;

    memset(text, ' ', sizeof(text));
    memcpy(text, "* * * * *", 9);
    ck_assert_int_eq(cron_parse(bytes_of(text, CRON_TEXT_MOST), &cron, &why), ST_OK);
    ck_assert_int_eq(cron_parse(bytes_of(text, CRON_TEXT_MOST + 1), &cron, &why),
                     ST_BAD_VALUE);
    ck_assert_str_eq(why.text, "cron expression is 257 characters long. The maximum is "
                               "256");
    text[9] = '\0';
    ck_assert_int_eq(cron_parse(bytes_of(text, 12), &cron, &why), ST_BAD_VALUE);
    ck_assert_int_eq(cron_parse(BYTES_NONE, &cron, &why), ST_BAD_VALUE);
}

START_TEST(dates_that_are_rare_are_not_refused)
{
    (void)parsed("0 0 29 2 *");
    (void)parsed("0 0 31 2,4,12 *");
    (void)parsed("0 0 31 2 mon"); /* Mondays of February */
    (void)parsed("0 0 */2 * *");
    (void)parsed("0 0 * * */2");
    (void)parsed("0 0 1-31 * 0-6");
}

/* ------------------------------------------------------------------ due times */

enum { DUE_MOST = 12 };

/* An expression in a zone, a time, and the due times after it. The last one may be
 * "never". */
static const struct due {
    const char *zone, *expression, *after, *expected[DUE_MOST];
} dues[] = {
    /* The time itself does not count. */
    {"UTC",
     "0 12 * * *",
     "2026-11-30 11:59:59",
     {"2026-11-30 12:00:00", "2026-12-01 12:00:00"}},
    {"UTC", "0 12 * * *", "2026-11-30 12:00", {"2026-12-01 12:00:00"}},
    {"UTC",
     "*/30 9,10 * * *",
     "2026-11-30 09:15",
     {"2026-11-30 09:30:00", "2026-11-30 10:00:00", "2026-11-30 10:30:00",
      "2026-12-01 09:00:00"}},
    /* Either day field matches. 2026-02-13 is a Friday, and so is 2026-03-13. */
    {"UTC",
     "0 0 13 * 5",
     "2026-02-12 12:00",
     {"2026-02-13 00:00:00", "2026-02-20 00:00:00", "2026-02-27 00:00:00",
      "2026-03-06 00:00:00", "2026-03-13 00:00:00"}},
    {"UTC",
     "0 0 1-31 * 1",
     "2026-11-28 12:00",
     {"2026-11-29 00:00:00", "2026-11-30 00:00:00", "2026-12-01 00:00:00"}},
    /* Long and short months. 2100 is no leap year. */
    {"UTC",
     "0 0 31 * *",
     "2026-01-31 00:00",
     {"2026-03-31 00:00:00", "2026-05-31 00:00:00", "2026-07-31 00:00:00",
      "2026-08-31 00:00:00", "2026-10-31 00:00:00", "2026-12-31 00:00:00",
      "2027-01-31 00:00:00"}},
    {"UTC",
     "0 0 29 2 *",
     "2092-01-01 00:00",
     {"2092-02-29 00:00:00", "2096-02-29 00:00:00", "2104-02-29 00:00:00"}},
    {"Asia/Kolkata", "59 23 29 2 *", "2096-03-01 00:00", {"2104-02-29 18:29:00"}},
    {"UTC", "0 0 30 * *", "2028-01-31 00:00", {"2028-03-30 00:00:00"}},
    {"UTC",
     "59 23 31 12 *",
     "9998-12-31 23:58",
     {"9998-12-31 23:59:00", "9999-12-31 23:59:00", "never"}},
    {"America/New_York",
     "59 23 31 12 *",
     "9998-12-31 00:00",
     {"9999-01-01 04:59:00", "never"}},

    /* Europe/Berlin 2027-03-28: 02:00 becomes 03:00 at 01:00 UTC. */
    {"Europe/Berlin",
     "30 2 * * *",
     "2027-03-26 12:00",
     {"2027-03-27 01:30:00", "2027-03-28 01:00:00", "2027-03-29 00:30:00"}},
    {"Europe/Berlin",
     "*/15 2 * * *",
     "2027-03-27 12:00",
     {"2027-03-28 01:00:00", "2027-03-29 00:00:00", "2027-03-29 00:15:00"}},
    {"Europe/Berlin",
     "0,30 2,3 * * *",
     "2027-03-28 00:00",
     {"2027-03-28 01:00:00", "2027-03-28 01:30:00", "2027-03-29 00:00:00"}},
    {"Europe/Berlin",
     "0 3 * * *",
     "2027-03-27 12:00",
     {"2027-03-28 01:00:00", "2027-03-29 01:00:00"}},
    {"Europe/Berlin",
     "30 * * * *",
     "2027-03-27 23:45",
     {"2027-03-28 00:30:00", "2027-03-28 01:30:00", "2027-03-28 02:30:00"}},
    {"Europe/Berlin",
     "0 */2 * * *",
     "2027-03-27 22:30",
     {"2027-03-27 23:00:00", "2027-03-28 01:00:00", "2027-03-28 02:00:00",
      "2027-03-28 04:00:00"}},
    /* Europe/Berlin 2026-10-25: 03:00 becomes 02:00 at 01:00 UTC. */
    {"Europe/Berlin",
     "30 2 * * *",
     "2026-10-24 12:00",
     {"2026-10-25 00:30:00", "2026-10-26 01:30:00"}},
    {"Europe/Berlin",
     "*/20 2-3 * * *",
     "2026-10-24 23:30",
     {"2026-10-25 00:00:00", "2026-10-25 00:20:00", "2026-10-25 00:40:00",
      "2026-10-25 02:00:00", "2026-10-25 02:20:00"}},
    {"Europe/Berlin",
     "30 * * * *",
     "2026-10-24 23:00",
     {"2026-10-24 23:30:00", "2026-10-25 00:30:00", "2026-10-25 01:30:00",
      "2026-10-25 02:30:00"}},
    {"Europe/Berlin", "30 0-23 * * *", "2026-10-25 00:30", {"2026-10-25 01:30:00"}},
    {"Europe/Berlin", "30 0-22 * * *", "2026-10-25 00:30", {"2026-10-25 02:30:00"}},
    {"Europe/Berlin",
     "* * * * *",
     "2026-10-25 00:58",
     {"2026-10-25 00:59:00", "2026-10-25 01:00:00", "2026-10-25 01:01:00"}},
    {"Europe/Berlin",
     "* 2 * * *",
     "2026-10-25 00:58",
     {"2026-10-25 00:59:00", "2026-10-26 01:00:00"}},
    /* A start inside the second pass. */
    {"Europe/Berlin", "*/20 2-3 * * *", "2026-10-25 01:10", {"2026-10-25 02:00:00"}},

    /* America/New_York 2026: 03-08 07:00 and 11-01 06:00 UTC. */
    {"America/New_York",
     "30 2 * * *",
     "2026-03-07 08:00",
     {"2026-03-08 07:00:00", "2026-03-09 06:30:00"}},
    {"America/New_York",
     "30 1 * * *",
     "2026-11-01 00:00",
     {"2026-11-01 05:30:00", "2026-11-02 06:30:00"}},
    {"America/New_York", "0 9 * * mon-fri", "2026-03-06 15:00", {"2026-03-09 13:00:00"}},

    /* Australia/Lord_Howe: half an hour. 2026-10-03 15:30 UTC: 02:00 becomes 02:30;
     * 2027-04-03 15:00 UTC: 02:00 becomes 01:30. */
    {"Australia/Lord_Howe",
     "15 2 * * *",
     "2026-10-02 18:00",
     {"2026-10-03 15:30:00", "2026-10-04 15:15:00"}},
    {"Australia/Lord_Howe",
     "0,10,20,30 2 * * *",
     "2026-10-03 12:00",
     {"2026-10-03 15:30:00", "2026-10-04 15:00:00"}},
    {"Australia/Lord_Howe",
     "0 * * * *",
     "2026-10-03 14:00",
     {"2026-10-03 14:30:00", "2026-10-03 16:00:00"}},
    {"Australia/Lord_Howe",
     "45 1 * * *",
     "2027-04-03 12:00",
     {"2027-04-03 14:45:00", "2027-04-04 15:15:00"}},
    {"Australia/Lord_Howe",
     "45 * * * *",
     "2027-04-03 14:00",
     {"2027-04-03 14:45:00", "2027-04-03 15:15:00", "2027-04-03 16:15:00"}},
    {"Australia/Lord_Howe", "0 2 * * *", "2027-04-03 12:00", {"2027-04-03 15:30:00"}},

    /* Pacific/Apia: 2011-12-30 10:00 UTC begins 31 December; the 30th never was. */
    {"Pacific/Apia",
     "0 6,18 * * *",
     "2011-12-29 12:00",
     {"2011-12-29 16:00:00", "2011-12-30 04:00:00", "2011-12-30 10:00:00",
      "2011-12-30 16:00:00"}},
    {"Pacific/Apia",
     "0 12 30 12 *",
     "2011-01-01 00:00",
     {"2011-12-30 10:00:00", "2012-12-29 22:00:00"}},
    {"Pacific/Apia", "0 0 31 12 *", "2011-12-29 00:00", {"2011-12-30 10:00:00"}},
    {"Pacific/Apia",
     "30 * * * *",
     "2011-12-30 09:00",
     {"2011-12-30 09:30:00", "2011-12-30 10:30:00"}},

    /* Europe/Dublin: winter time is the daylight time, an hour behind. */
    {"Europe/Dublin",
     "30 1 * * *",
     "2026-10-24 12:00",
     {"2026-10-25 00:30:00", "2026-10-26 01:30:00"}},
    {"Europe/Dublin",
     "30 1 * * *",
     "2050-03-26 12:00",
     {"2050-03-27 01:00:00", "2050-03-28 00:30:00"}},
    {"Europe/Dublin", "0 12 * * *", "2090-01-14 13:00", {"2090-01-15 12:00:00"}},
    {"Europe/Dublin", "0 12 * * *", "2090-07-14 13:00", {"2090-07-15 11:00:00"}},

    /* Africa/Casablanca: an hour behind during Ramadan, which moves each year. 2026-02-15
     * 02:00 UTC: 03:00 becomes 02:00; 2026-03-22 02:00 UTC: 02:00 becomes 03:00. */
    {"Africa/Casablanca",
     "30 2 * * *",
     "2026-02-14 12:00",
     {"2026-02-15 01:30:00", "2026-02-16 02:30:00"}},
    {"Africa/Casablanca",
     "30 2 * * *",
     "2026-03-21 12:00",
     {"2026-03-22 02:00:00", "2026-03-23 01:30:00"}},
    {"Africa/Casablanca", "0 12 * * *", "2087-12-31 12:00", {"2088-01-01 11:00:00"}},

    /* Antarctica/Troll: two hours, at 01:00 UTC of the European dates. */
    {"Antarctica/Troll",
     "30 1,2 * * *",
     "2027-03-27 12:00",
     {"2027-03-28 01:00:00", "2027-03-28 23:30:00"}},
    {"Antarctica/Troll",
     "0,30 1,2 * * *",
     "2026-10-24 22:00",
     {"2026-10-24 23:00:00", "2026-10-24 23:30:00", "2026-10-25 00:00:00",
      "2026-10-25 00:30:00", "2026-10-26 01:00:00"}},
    {"Antarctica/Troll",
     "30 * * * *",
     "2026-10-25 00:00",
     {"2026-10-25 00:30:00", "2026-10-25 01:30:00", "2026-10-25 02:30:00"}},

    /* Midnight in a gap: Sao Paulo 2018-11-04 03:00 UTC, Beirut 2027-03-27 22:00 UTC. */
    {"America/Sao_Paulo",
     "0 0 * * *",
     "2018-11-03 12:00",
     {"2018-11-04 03:00:00", "2018-11-05 02:00:00"}},
    {"America/Sao_Paulo", "30 0 4 11 *", "2018-01-01 00:00", {"2018-11-04 03:00:00"}},
    {"Asia/Beirut",
     "@daily",
     "2027-03-27 12:00",
     {"2027-03-27 22:00:00", "2027-03-28 21:00:00"}},
    /* Midnight twice: Beirut 2026-10-24 21:00 UTC, 00:00 becomes 23:00. */
    {"Asia/Beirut",
     "30 23 * * *",
     "2026-10-24 12:00",
     {"2026-10-24 20:30:00", "2026-10-25 21:30:00"}},
    {"Asia/Beirut", "@daily", "2026-10-24 12:00", {"2026-10-24 22:00:00"}},

    /* Quarters of an hour, without changes. */
    {"Asia/Kathmandu",
     "0 6 * * *",
     "2026-01-01 00:00",
     {"2026-01-01 00:15:00", "2026-01-02 00:15:00"}},
    {"Asia/Kolkata",
     "0 0 1 * *",
     "2026-01-15 00:00",
     {"2026-01-31 18:30:00", "2026-02-28 18:30:00"}},
    {"America/St_Johns", "0 0 * * *", "2026-07-01 12:00", {"2026-07-02 02:30:00"}},

    /* Seconds in the offset: Monrovia was 44:30 behind until 1972-01-07 00:44:30 UTC,
     * when 00:00 became 00:44:30. */
    {"Africa/Monrovia",
     "0 0 * * *",
     "1972-01-05 12:00",
     {"1972-01-06 00:44:30", "1972-01-07 00:44:30", "1972-01-08 00:00:00"}},
    {"Africa/Monrovia",
     "*/15 * * * *",
     "1972-01-07 00:14:30",
     {"1972-01-07 00:29:30", "1972-01-07 00:45:00"}},
    {"Africa/Monrovia",
     "44 0 * * *",
     "1972-01-06 12:00",
     {"1972-01-07 00:44:30", "1972-01-08 00:44:00"}},
    /* Before all changes: Paris was 9:21 ahead until 1911-03-11. */
    {"Europe/Paris", "0 12 * * *", "1900-01-01 00:00", {"1900-01-01 11:50:39"}},
};

LOOP_TEST(due_times_follow_the_wall_clock, sizeof(dues) / sizeof(dues[0]))
{
    const struct due *d = &dues[_i];
    const struct cron cron = parsed(d->expression);
    struct mem *mem = mem_new(0);
    struct zone *zone = due_zone(mem, d->zone);
    int64_t at = due_utc(d->after);

    for (size_t i = 0; i < DUE_MOST && d->expected[i] != NULL; i++) {
        struct due_text text;

        at = cron_next(&cron, zone, at);
        text = due_text(at);
        ck_assert_msg(strcmp(text.text, d->expected[i]) == 0,
                      "%s in %s after %s: number %zu is %s, not %s", d->expression,
                      d->zone, d->after, i + 1, text.text, d->expected[i]);
    }
    zone_unref(zone);
    mem_destroy(mem);
}

START_TEST(rules_that_move_each_year_come_from_the_file)
{
    struct mem *mem = mem_new(0);
    struct zone *gaza = due_zone(mem, "Asia/Gaza");
    const struct cron noon = parsed("0 12 * * *");
    int changes = 0;

    /* The dates change with tzdata: each has a noon, of one of two offsets. */
    for (int64_t at = due_utc("2020-01-01 12:00"); at < due_utc("2085-01-01 12:00");) {
        const int64_t next = cron_next(&noon, gaza, at), ahead = next - at;

        ck_assert_int_eq(zone_wall(gaza, next) % SECONDS_OF_DAY, 12 * SECONDS_OF_HOUR);
        changes += ahead != SECONDS_OF_DAY;
        at = next;
    }
    ck_assert_int_ge(changes, 65 * 2);
    zone_unref(gaza);
    mem_destroy(mem);
}

START_TEST(a_time_before_the_calendar_is_like_its_beginning)
{
    const struct cron cron = parsed("0 0 * * *");

    ck_assert_int_eq(cron_next(&cron, NULL, INT64_MIN), CALENDAR_FIRST + SECONDS_OF_DAY);
    ck_assert_int_eq(cron_next(&cron, NULL, CALENDAR_LAST - 1), CRON_NEVER);
    ck_assert_int_eq(cron_next(&cron, NULL, CALENDAR_LAST), CRON_NEVER);
    ck_assert_int_eq(cron_next(&cron, NULL, INT64_MAX), CRON_NEVER);
}
