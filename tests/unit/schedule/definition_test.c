/*
 * A schedule as the store keeps it, its keys, and what is due for it at a time. Read
 * claimd/schedule/definition.h next.
 */
#include "claimd/schedule/definition.h"

#include "support/check_main.h"
#include "support/due.h"

#include <string.h>

#define MINUTE_MS INT64_C(60000)
#define HOUR_MS   (60 * MINUTE_MS)

/* The tests begin at a full hour, 2026-01-31T12:00:00Z. */
#define START_MS INT64_C(1769860800000)

struct fixture {
    struct mem *mem;
    struct buf text;
};

static void
fixture_open(struct fixture *f)
{
    f->mem = mem_new(0);
    ck_assert_ptr_nonnull(f->mem);
    buf_init(&f->text, f->mem);
}

static void
fixture_close(struct fixture *f)
{
    buf_fini(&f->text);
    mem_destroy(f->mem);
}

#define DEFINITION_TEST(id)                                                              \
    FIXTURE_TEST(id, struct fixture, fixture_open(f), fixture_close(f))

static struct schedule
by_cron(const char *expression, const char *zone)
{
    struct schedule s = {.queue = BYTES_LIT("mail"),
                         .name = BYTES_LIT("nightly"),
                         .cron = bytes_str(expression),
                         .from_ms = START_MS,
                         .ttl_s = STORE_UNSET,
                         .delay_s = STORE_UNSET,
                         .body = BYTES_LIT("1")};
    struct reason why = {""};
    enum status st = recurrence_of_cron(s.cron, bytes_str(zone), &s.recurrence, &why);

    ck_assert_msg(st == ST_OK, "%s", why.text);
    return s;
}

static struct schedule
by_interval(int64_t every_s)
{
    struct schedule s = by_cron("@daily", NULL);
    struct reason why = {""};

    s.cron = BYTES_NONE;
    ck_assert_int_eq(recurrence_of_interval(every_s, 0, &s.recurrence, &why), ST_OK);
    return s;
}

/* The text of `got` is `expected`. */
static void
assert_text(struct bytes got, const char *expected)
{
    ck_assert_msg(bytes_equal_str(got, expected), "%.*s is not %s", (int)got.len,
                  got.data, expected);
}

static void
assert_same(struct bytes got, struct bytes expected)
{
    ck_assert_int_eq(bytes_present(got), bytes_present(expected));
    ck_assert(!bytes_present(got) || bytes_equal(got, expected));
}

/* ------------------------------------------------------------------ the definition */

/* Writes a schedule, reads it, and compares them. */
static void
assert_comes_back(struct fixture *f, const struct schedule *s)
{
    struct schedule got;

    f->text.len = 0;
    schedule_write(&f->text, s);
    ck_assert_int_eq(schedule_read(buf_view(&f->text), &got), ST_OK);
    assert_same(got.queue, s->queue);
    assert_same(got.name, s->name);
    assert_same(got.cron, s->cron);
    assert_same(got.body, s->body);
    ck_assert(recurrence_equal(&got.recurrence, &s->recurrence));
    ck_assert_int_eq(got.missed, s->missed);
    ck_assert_int_eq(got.overlap, s->overlap);
    ck_assert_int_eq(got.paused, s->paused);
    ck_assert_int_eq(got.from_ms, s->from_ms);
    ck_assert_int_eq(got.ttl_s, s->ttl_s);
    ck_assert_int_eq(got.delay_s, s->delay_s);
}

TEST_CASE("definition");

DEFINITION_TEST(a_definition_comes_back_as_it_was_written)
{
    struct schedule s = by_cron("30  2 * * MON-fri", "Europe/Berlin");

    assert_comes_back(f, &s);
    s.missed = SCHEDULE_MISSED_NONE;
    s.overlap = SCHEDULE_OVERLAP_SKIP;
    s.paused = true;
    s.ttl_s = 60;
    s.delay_s = 0;
    s.body = bytes_str("{ \"a\" : [1.50, \"\\u00e4\\\"\", null] }");
    assert_comes_back(f, &s);
    s = by_interval(RECURRENCE_EVERY_MOST);
    s.recurrence.start_s = 77;
    s.missed = SCHEDULE_MISSED_ALL;
    assert_comes_back(f, &s);
}

#define TEXT(recurrence, rest)                                                           \
    "{\"queue\":\"q\",\"name\":\"n\"," recurrence ",\"from\":5,\"body\":1" rest "}"

START_TEST(a_damaged_definition_is_refused)
{
    static const char *const good[] = {
        TEXT("\"every\":1", ""),
        TEXT("\"cron\":\"@daily\"", ""),
        TEXT("\"cron\":\"@daily\",\"zone\":\"Europe/Berlin\"", ",\"missed\":2"),
    };
    static const char *const damaged[] = {
        "",
        "{}",
        "[]",
        "{\"queue\":\"q\"",
        TEXT("\"x\":1", ""), /* neither */
        TEXT("\"every\":-1", ""),
        TEXT("\"every\":31622401", ""),
        TEXT("\"every\":1.5", ""),
        TEXT("\"every\":\"1\"", ""),
        TEXT("\"every\":1,\"start\":-1", ""),
        TEXT("\"cron\":\"@dayly\"", ""),
        TEXT("\"cron\":7", ""),
        TEXT("\"cron\":\"@daily\\n\"", ""),
        TEXT("\"cron\":\"@daily\",\"zone\":\"../passwd\"", ""),
        TEXT("\"every\":1", ",\"missed\":3"),
        TEXT("\"every\":1", ",\"overlap\":2"),
        TEXT("\"every\":1", ",\"overlap\":-1"),
        TEXT("\"every\":1", ",\"ttl\":-2"),
        TEXT("\"every\":1", ",\"delay\":99999999999"),
        "{\"queue\":\"q\",\"name\":\"n\",\"every\":1,\"from\":5}",
        "{\"queue\":\"q\",\"name\":\"n\",\"every\":1,\"from\":-5,\"body\":1}",
        "{\"queue\":\"\",\"name\":\"n\",\"every\":1,\"from\":5,\"body\":1}",
        "{\"queue\":\"q\",\"every\":1,\"from\":5,\"body\":1}",
        "{\"queue\":\"q\",\"name\":true,\"every\":1,\"from\":5,\"body\":1}",
    };
    struct schedule s;

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        ck_assert_msg(schedule_read(bytes_str(good[i]), &s) == ST_OK, "%s", good[i]);
    for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++)
        ck_assert_msg(schedule_read(bytes_str(damaged[i]), &s) == ST_BAD_VALUE, "%s",
                      damaged[i]);
    /* A text that ends too early. */
    for (size_t len = 0; len < strlen(good[2]); len++)
        ck_assert_int_eq(schedule_read(bytes_of(good[2], len), &s), ST_BAD_VALUE);
}

/* ------------------------------------------------------------------ the progress */

static void
assert_progress_comes_back(struct fixture *f, const struct schedule_progress *p)
{
    struct schedule_progress got;

    f->text.len = 0;
    ck_assert_int_eq(schedule_progress_write(&f->text, p), ST_OK);
    ck_assert_int_eq(schedule_progress_read(buf_view(&f->text), &got), ST_OK);
    ck_assert_int_eq(got.last_ms, p->last_ms);
    ck_assert_int_eq(got.posted_ms, p->posted_ms);
    ck_assert_int_eq(got.message_ms, p->message_ms);
    ck_assert_uint_eq(got.posted, p->posted);
    ck_assert_uint_eq(got.missed, p->missed);
    ck_assert_uint_eq(got.skipped, p->skipped);
    ck_assert_uint_eq(got.refused, p->refused);
    ck_assert_int_eq(got.failing_ms, p->failing_ms);
    ck_assert_uint_eq(got.tries, p->tries);
    ck_assert_str_eq(got.error, p->error);
}

TEST_CASE("progress");

DEFINITION_TEST(progress_comes_back_as_it_was_written)
{
    struct schedule_progress p = {.last_ms = 0};

    assert_progress_comes_back(f, &p);
    p = (struct schedule_progress){.last_ms = START_MS,
                                   .posted_ms = START_MS + 2,
                                   .message_ms = START_MS + 1,
                                   .posted = 4,
                                   .missed = 5,
                                   .skipped = 6,
                                   .refused = 7,
                                   .failing_ms = START_MS + 3,
                                   .tries = 8,
                                   .error = "posts to queue q are paused"};
    assert_progress_comes_back(f, &p);
}

/* The store keeps no more than STORE_REASON_MAX bytes. */
DEFINITION_TEST(the_longest_progress_fits)
{
    struct schedule_progress p = {.last_ms = INT64_MAX,
                                  .posted_ms = INT64_MAX,
                                  .message_ms = INT64_MAX,
                                  .posted = INT64_MAX,
                                  .missed = INT64_MAX,
                                  .skipped = INT64_MAX,
                                  .refused = INT64_MAX,
                                  .failing_ms = INT64_MAX,
                                  .tries = INT64_MAX};

    memset(p.error, 'x', SCHEDULE_ERROR_MOST);
    assert_progress_comes_back(f, &p);
    ck_assert_uint_le(f->text.len, STORE_REASON_MAX);
}

START_TEST(a_new_schedule_has_no_progress)
{
    struct schedule_progress p = {.posted = 9};

    ck_assert_int_eq(schedule_progress_read(BYTES_NONE, &p), ST_OK);
    ck_assert_uint_eq(p.posted, 0);
    ck_assert_int_eq(p.last_ms, 0);
    ck_assert_str_eq(p.error, "");
}

START_TEST(damaged_progress_is_refused)
{
    static const char *const damaged[] = {"x",
                                          "[]",
                                          "{\"last\":1",
                                          "{\"last\":-1}",
                                          "{\"posted\":1.5}",
                                          "{\"tries\":\"1\"}",
                                          "{\"error\":7}",
                                          "{\"error\":\"\\n\"}",
                                          "{\"missed\":99999999999999999999}"};
    char text[SCHEDULE_ERROR_MOST + 32] = "{\"error\":\"";
    struct schedule_progress p;

    for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++)
        ck_assert_msg(schedule_progress_read(bytes_str(damaged[i]), &p) == ST_BAD_VALUE,
                      "%s", damaged[i]);
    memset(text + strlen(text), 'x', SCHEDULE_ERROR_MOST + 1);
    memcpy(text + strlen(text), "\"}", 3);
    ck_assert_int_eq(schedule_progress_read(bytes_str(text), &p), ST_BAD_VALUE);
}

/* ------------------------------------------------------------------ keys */

TEST_CASE("keys");

START_TEST(keys_name_the_schedule_and_the_due_time)
{
    char to[SCHEDULE_KEY_CAP];
    struct schedule s = by_cron("@daily", NULL);
    struct bytes key = schedule_key(to, s.queue, s.name);

    assert_text(key, "mail/nightly");
    key = schedule_message_key(to, &s, START_MS);
    assert_text(key, "schedule/mail/nightly/1769860800");
    s.overlap = SCHEDULE_OVERLAP_SKIP; /* one message at a time */
    key = schedule_message_key(to, &s, START_MS);
    assert_text(key, "schedule/mail/nightly");
}

START_TEST(the_longest_keys_fit)
{
    char to[SCHEDULE_KEY_CAP], queue[64], name[SCHEDULE_NAME_MOST];
    struct schedule s = by_cron("@daily", NULL);

    memset(queue, 'q', sizeof(queue));
    memset(name, 'n', sizeof(name));
    s.queue = bytes_of(queue, sizeof(queue));
    s.name = bytes_of(name, sizeof(name));
    ck_assert_uint_eq(schedule_key(to, s.queue, s.name).len, 64 + 1 + SCHEDULE_NAME_MOST);
    ck_assert_uint_eq(schedule_message_key(to, &s, CALENDAR_LAST * 1000).len,
                      9 + 64 + 1 + SCHEDULE_NAME_MOST + 1 + 12);
}

/* ------------------------------------------------------------------ plans */

static void
assert_plan(const struct schedule *s, const struct schedule_progress *p, int64_t now_ms,
            const struct schedule_plan *expected)
{
    struct schedule_plan plan;

    schedule_plan(s, p, NULL, now_ms, &plan);
    ck_assert_int_eq(plan.due_ms, expected->due_ms);
    ck_assert_int_eq(plan.last_ms, expected->last_ms);
    ck_assert_uint_eq(plan.missed, expected->missed);
    ck_assert_int_eq(plan.next_ms, expected->next_ms);
}

/* The same, from START_MS, for `count` due times of each minute that have passed. */
static void
assert_minutes(enum schedule_missed missed, int count,
               const struct schedule_plan *expected)
{
    struct schedule s = by_cron("* * * * *", NULL);
    const struct schedule_progress none = {.last_ms = 0};

    s.missed = missed;
    assert_plan(&s, &none, START_MS + count * MINUTE_MS + 1, expected);
}

/* A minute of the plan. */
#define AT(minute) (START_MS + (minute)*MINUTE_MS)

TEST_CASE("plans");

START_TEST(a_due_time_is_posted_in_its_time)
{
    for (int missed = SCHEDULE_MISSED_LAST; missed <= SCHEDULE_MISSED_NONE; missed++) {
        assert_minutes((enum schedule_missed)missed, 0,
                       &(const struct schedule_plan){0, AT(0), 0, AT(1)});
        assert_minutes((enum schedule_missed)missed, 1,
                       &(const struct schedule_plan){AT(1), AT(1), 0, AT(2)});
    }
}

START_TEST(last_posts_for_the_latest_and_counts_the_others)
{
    assert_minutes(SCHEDULE_MISSED_LAST, 3,
                   &(const struct schedule_plan){AT(3), AT(3), 2, AT(4)});
    assert_minutes(SCHEDULE_MISSED_LAST, 999,
                   &(const struct schedule_plan){AT(999), AT(999), 998, AT(1000)});
    assert_minutes(SCHEDULE_MISSED_LAST, 1000,
                   &(const struct schedule_plan){AT(1000), AT(1000), 999, AT(1001)});
    /* No more are counted. */
    assert_minutes(SCHEDULE_MISSED_LAST, 5000,
                   &(const struct schedule_plan){AT(5000), AT(5000), 999, AT(5001)});
}

/* The next due time of the plan has passed as well. So the schedule is run again. */
START_TEST(all_posts_for_each_up_to_a_thousand)
{
    assert_minutes(SCHEDULE_MISSED_ALL, 3,
                   &(const struct schedule_plan){AT(1), AT(1), 0, AT(2)});
    assert_minutes(SCHEDULE_MISSED_ALL, 999,
                   &(const struct schedule_plan){AT(1), AT(1), 0, AT(2)});
    assert_minutes(SCHEDULE_MISSED_ALL, 1000,
                   &(const struct schedule_plan){AT(1000), AT(1000), 999, AT(1001)});
    assert_minutes(SCHEDULE_MISSED_ALL, 5000,
                   &(const struct schedule_plan){AT(5000), AT(5000), 999, AT(5001)});
}

START_TEST(none_posts_for_the_latest_if_it_is_not_late)
{
    assert_minutes(SCHEDULE_MISSED_NONE, 3,
                   &(const struct schedule_plan){AT(3), AT(3), 2, AT(4)});
    assert_minutes(SCHEDULE_MISSED_NONE, 5000,
                   &(const struct schedule_plan){AT(5000), AT(5000), 999, AT(5001)});
}

START_TEST(none_posts_nothing_later_than_a_minute)
{
    struct schedule s = by_interval(3600);
    const struct schedule_progress none = {.last_ms = 0};
    const int64_t due_ms = START_MS + 3 * HOUR_MS;

    s.missed = SCHEDULE_MISSED_NONE;
    assert_plan(&s, &none, due_ms + SCHEDULE_LATE_MS,
                &(const struct schedule_plan){due_ms, due_ms, 2, due_ms + HOUR_MS});
    assert_plan(&s, &none, due_ms + SCHEDULE_LATE_MS + 1,
                &(const struct schedule_plan){0, due_ms, 3, due_ms + HOUR_MS});
}

START_TEST(due_times_count_after_the_last_one_that_is_done)
{
    const struct schedule s = by_interval(60);
    const struct schedule_progress p = {.last_ms = AT(10)};

    assert_plan(&s, &p, AT(11) - 1, &(const struct schedule_plan){0, AT(10), 0, AT(11)});
    assert_plan(&s, &p, AT(11), &(const struct schedule_plan){AT(11), AT(11), 0, AT(12)});
    ck_assert_int_eq(schedule_next_ms(&s, &p, NULL, AT(20)), AT(11));
}

/* It was resumed or changed since the last due time that is done. */
START_TEST(due_times_count_after_from_if_that_is_later)
{
    struct schedule s = by_interval(60);
    const struct schedule_progress p = {.last_ms = AT(10)};

    s.from_ms = AT(20) + 1;
    assert_plan(&s, &p, AT(21), &(const struct schedule_plan){AT(21), AT(21), 0, AT(22)});
    ck_assert_int_eq(schedule_next_ms(&s, &p, NULL, AT(20)), AT(21));
    s.from_ms = AT(20);
    ck_assert_int_eq(schedule_next_ms(&s, &p, NULL, AT(20)), AT(21));
}

/* The wall clock was set back: due times that were done do not repeat. */
START_TEST(a_small_correction_of_the_clock_repeats_nothing)
{
    const struct schedule s = by_interval(60);
    const struct schedule_progress p = {.last_ms = AT(600)};
    const int64_t now_ms = AT(600) - SCHEDULE_AHEAD_MS;

    assert_plan(&s, &p, now_ms, &(const struct schedule_plan){0, AT(600), 0, AT(601)});
    ck_assert_int_eq(schedule_next_ms(&s, &p, NULL, now_ms), AT(601));
}

/* It was ahead by more: the schedule goes on now. */
START_TEST(a_large_correction_of_the_clock_begins_again)
{
    const struct schedule s = by_interval(60);
    const struct schedule_progress p = {.last_ms = AT(600)};
    const int64_t now_ms = AT(600) - SCHEDULE_AHEAD_MS - 1;

    assert_plan(&s, &p, now_ms, &(const struct schedule_plan){0, now_ms, 0, AT(420)});
    ck_assert_int_eq(schedule_next_ms(&s, &p, NULL, now_ms), AT(420));
}

DEFINITION_TEST(plans_follow_the_zone)
{
    struct schedule s = by_cron("30 2 * * *", "Europe/Berlin");
    struct zone *berlin = due_zone(f->mem, "Europe/Berlin");
    const struct schedule_progress none = {.last_ms = 0};
    struct schedule_plan plan;

    s.from_ms = due_utc("2027-03-27 12:00") * 1000;
    schedule_plan(&s, &none, berlin, due_utc("2027-03-28 01:00") * 1000, &plan);
    ck_due(plan.due_ms / 1000, "2027-03-28 01:00:00");
    ck_due(plan.next_ms / 1000, "2027-03-29 00:30:00");
    zone_unref(berlin);
}

START_TEST(a_schedule_ends_with_the_calendar)
{
    struct schedule s = by_interval(60);
    const struct schedule_progress none = {.last_ms = 0};

    s.from_ms = CALENDAR_LAST * 1000;
    assert_plan(&s, &none, CALENDAR_LAST * 1000,
                &(const struct schedule_plan){0, s.from_ms, 0, RECURRENCE_NEVER});
}
