/*
 * The steps of the scheduler, without its thread: a due time is run, refused, retried,
 * and delays are corrected when the wall clock was set. tests/e2e/schedules_test.py has
 * the thread. Read claimd/scheduler/scheduler.h next.
 */
#include "scheduler/scheduler_private.h"

#include "claimd/base/clock.h"
#include "claimd/engine/engine.h"
#include "support/check_main.h"
#include "support/due.h"

#include <stdio.h>
#include <string.h>

#define MINUTE_MS INT64_C(60000)
#define HOUR_MS   (60 * MINUTE_MS)

/* A full hour, 2026-01-31T12:00:00Z. */
#define START_MS INT64_C(1769860800000)

static const struct store_queue target = {.project = BYTES_LIT("p"),
                                          .name = BYTES_LIT("q")};
static const struct store_queue hidden = {.project = BYTES_LIT("p"),
                                          .name = BYTES_LIT(SCHEDULES_NAME),
                                          .kind = STORE_SCHEDULES};

struct fixture {
    struct mem *mem;
    struct store *store;
    struct clock clock, real;
    struct log log;
    struct zones *zones;
    _Atomic bool closed;
    struct scheduler *scheduler;
    struct watched *watched;
};

static enum status
open_body(void *ctx, const struct store_queue *queue, struct bytes body, struct buf *out)
{
    (void)ctx;
    (void)queue;
    buf_add(out, body.data, body.len);
    return out->failed ? ST_NO_MEMORY : ST_OK;
}

/* With the zones of a directory. */
static void
open_with(struct fixture *f, const char *directory)
{
    struct engine_config engine = {.shards = 4,
                                   .now_ms = START_MS,
                                   .message_ttl_s = 3600,
                                   .claim_ttl_s = 60,
                                   .claim_grace_s = 60,
                                   .max_message_ttl_s = 1209600,
                                   .seeded = true,
                                   .seed = 1};
    struct scheduler_config config = {.open_body = open_body, .closed = &f->closed};

    f->mem = engine.mem = config.mem = mem_new(0);
    ck_assert_int_eq(engine_open(&engine, &f->store), ST_OK);
    ck_assert_int_eq(zones_open(f->mem, directory, &f->zones), ST_OK);
    clock_init_manual(&f->clock, START_MS);
    clock_init_manual(&f->real, START_MS);
    f->log = (struct log){.fd = -1, .level = LOG_ERROR, .clock = &f->real};
    atomic_init(&f->closed, false);
    config.store = f->store;
    config.clock = &f->clock;
    config.real = &f->real;
    config.log = &f->log;
    config.zones = f->zones;
    ck_assert_int_eq(scheduler_open(&config, &f->scheduler), ST_OK);
    ck_assert_int_eq(scheduler_watch(f->scheduler, hidden.project), ST_OK);
    ck_assert_int_eq(scheduler_watch(f->scheduler, hidden.project), ST_OK);
    f->watched = container_of(f->scheduler->projects.next, struct watched, link);
}

static void
fixture_close(struct fixture *f)
{
    scheduler_close(f->scheduler);
    ck_assert(store_audit(f->store));
    zones_close(f->zones);
    store_close(f->store);
    mem_destroy(f->mem);
}

#define SCHEDULER_TEST(id)                                                               \
    FIXTURE_TEST(id, struct fixture, open_with(f, ZONEINFO), fixture_close(f))

static int64_t
now_ms(const struct fixture *f)
{
    return clock_now_ms(&f->clock);
}

static void
make_queue(struct fixture *f, bool encrypt)
{
    const struct store_metadata metadata = {.settings = {.max_post_bytes = STORE_UNSET,
                                                         .message_ttl_s = STORE_UNSET,
                                                         .message_delay_s = STORE_UNSET,
                                                         .max_claim_count = STORE_UNSET,
                                                         .dead_letter_ttl_s = STORE_UNSET,
                                                         .claim_ttl_s = STORE_UNSET,
                                                         .claim_grace_s = STORE_UNSET,
                                                         .encrypt = encrypt}};
    bool created;

    ck_assert_int_eq(
        store_queue_create(f->store, STORE_AT(now_ms(f)), &target, &metadata, &created),
        ST_OK);
}

/* ------------------------------------------------------------------ schedules */

static struct schedule
hourly(const char *zone)
{
    struct schedule s = {.queue = target.name,
                         .name = BYTES_LIT("n"),
                         .cron = BYTES_LIT("@hourly"),
                         .from_ms = START_MS,
                         .ttl_s = 86400,
                         .delay_s = STORE_UNSET,
                         .body = BYTES_LIT("[7]")};
    struct reason why = {""};

    ck_assert_int_eq(recurrence_of_cron(s.cron, bytes_str(zone), &s.recurrence, &why),
                     ST_OK);
    return s;
}

/* Stores a text as a schedule of this key, which is due then. */
static void
put_text(struct fixture *f, struct bytes text, const char *key, int64_t ready_ms)
{
    const struct store_draft draft = {text, SCHEDULE_TTL_S, STORE_UNSET};
    const struct store_unique unique = {.key = bytes_str(key)};
    const struct store_post post = {.drafts = &draft,
                                    .count = 1,
                                    .create_queue = true,
                                    .unique = &unique,
                                    .ready_ms = ready_ms};
    struct store_id id;

    ck_assert_int_eq(
        store_message_post(f->store, STORE_AT(now_ms(f)), &hidden, &post, &id), ST_OK);
}

static void
put(struct fixture *f, const struct schedule *s, int64_t ready_ms)
{
    char key[SCHEDULE_KEY_CAP];
    struct buf text;

    buf_init(&text, f->mem);
    schedule_write(&text, s);
    (void)schedule_key(key, s->queue, s->name);
    put_text(f, buf_view(&text), key, ready_ms);
    buf_fini(&text);
}

/* The schedule of this key as it is now. Returns the end of its delay. */
static int64_t
find(struct fixture *f, const char *key, struct schedule_progress *p)
{
    struct store_batch batch = STORE_BATCH_INIT;
    const struct store_details *details;
    int64_t delayed_ms;

    ck_assert_int_eq(store_message_find(f->store, STORE_AT(now_ms(f)), &hidden,
                                        bytes_str(key), &batch),
                     ST_OK);
    ck_assert_uint_eq(batch.count, 1);
    details = batch.messages[0].details;
    delayed_ms = batch.messages[0].delayed_until_ms;
    ck_assert_int_eq(schedule_progress_read(details->reason, p), ST_OK);
    store_batch_release(&batch);
    return delayed_ms;
}

static void
claim_due(struct fixture *f, struct store_batch *due)
{
    static const struct store_terms terms = {60, 0};

    ck_assert_int_eq(
        store_claim_create(f->store, STORE_AT(now_ms(f)), &hidden, &terms, 100, due),
        ST_OK);
}

/* Runs what is due, as the thread does. Returns the number of schedules. */
static size_t
run_due(struct fixture *f)
{
    struct store_batch due = STORE_BATCH_INIT;
    size_t count;

    claim_due(f, &due);
    count = due.count;
    for (size_t i = 0; i < count; i++)
        schedule_run(f->watched, &due.messages[i], store_id_bytes(&due.claim_id));
    if (count > 0)
        store_batch_release(&due);
    return count;
}

/* Moves the clock of the store, and the wall clock with it. */
static void
move(struct fixture *f, int64_t ms)
{
    clock_advance(&f->clock, ms);
    clock_advance(&f->real, ms);
}

/* The messages of the queue. Release them. */
static struct store_batch
messages(struct fixture *f)
{
    static const struct store_filter all = {
        .limit = 100, .include_claimed = true, .include_delayed = true};
    struct store_batch batch = STORE_BATCH_INIT;

    ck_assert_int_eq(
        store_message_list(f->store, STORE_AT(now_ms(f)), &target, &all, &batch), ST_OK);
    return batch;
}

static void
assert_messages(struct fixture *f, size_t count)
{
    struct store_batch batch = messages(f);

    ck_assert_uint_eq(batch.count, count);
    store_batch_release(&batch);
}

static void
assert_counted(const struct fixture *f, enum scheduler_counter which, uint64_t expected)
{
    ck_assert_uint_eq(counter_read(&f->scheduler->counts[which]), expected);
}

/* ------------------------------------------------------------------ posting */

TEST_CASE("run");

SCHEDULER_TEST(a_due_time_posts_and_the_next_one_is_awaited)
{
    const struct schedule s = hourly("UTC");
    struct schedule_progress p;
    struct store_batch batch;

    make_queue(f, false);
    put(f, &s, START_MS + HOUR_MS);
    ck_assert_uint_eq(run_due(f), 0);
    move(f, HOUR_MS + 5);
    ck_assert_uint_eq(run_due(f), 1);
    ck_assert_uint_eq(run_due(f), 0);
    batch = messages(f);
    ck_assert_uint_eq(batch.count, 1);
    ck_assert(bytes_equal_str(batch.messages[0].body, "[7]"));
    ck_assert_int_eq(batch.messages[0].ttl_s, 86400);
    ck_assert_int_eq(batch.messages[0].details->unique.due_ms, START_MS + HOUR_MS);
    store_batch_release(&batch);
    ck_assert_int_eq(find(f, "q/n", &p), START_MS + 2 * HOUR_MS);
    ck_assert_int_eq(p.last_ms, START_MS + HOUR_MS);
    ck_assert_int_eq(p.posted_ms, START_MS + HOUR_MS + 5);
    ck_assert_uint_eq(p.posted, 1);
    assert_counted(f, SCHEDULER_POSTED, 1);
    assert_counted(f, SCHEDULER_MISSED, 0);
}

SCHEDULER_TEST(missed_due_times_are_posted_one_by_one_if_all_are_wanted)
{
    struct schedule s = hourly("UTC");
    struct schedule_progress p;

    s.missed = SCHEDULE_MISSED_ALL;
    make_queue(f, false);
    put(f, &s, START_MS + HOUR_MS);
    move(f, 3 * HOUR_MS);
    for (size_t i = 1; i <= 3; i++) {
        ck_assert_uint_eq(run_due(f), 1);
        assert_messages(f, i);
    }
    ck_assert_uint_eq(run_due(f), 0);
    ck_assert_int_eq(find(f, "q/n", &p), START_MS + 4 * HOUR_MS);
    ck_assert_uint_eq(p.missed, 0);
}

SCHEDULER_TEST(an_overlap_is_skipped)
{
    struct schedule s = hourly("UTC");
    struct schedule_progress p;

    s.overlap = SCHEDULE_OVERLAP_SKIP;
    make_queue(f, false);
    put(f, &s, START_MS + HOUR_MS);
    for (int i = 0; i < 3; i++) {
        move(f, HOUR_MS);
        ck_assert_uint_eq(run_due(f), 1);
    }
    assert_messages(f, 1);
    ck_assert_int_eq(find(f, "q/n", &p), START_MS + 4 * HOUR_MS);
    ck_assert_uint_eq(p.skipped, 2);
    assert_counted(f, SCHEDULER_SKIPPED, 2);
}

/* A worker of the hidden queue that comes too late. */
SCHEDULER_TEST(a_schedule_that_was_changed_meanwhile_is_left_alone)
{
    struct schedule s = hourly("UTC");
    struct store_batch due = STORE_BATCH_INIT;
    struct schedule_progress p;
    struct bytes id;
    const struct store_delete which = {.rule = STORE_DELETE_ANY, .ids = &id, .count = 1};

    make_queue(f, false);
    put(f, &s, START_MS + HOUR_MS);
    move(f, HOUR_MS);
    claim_due(f, &due);
    id = store_id_bytes(&due.messages[0].id);
    ck_assert_int_eq(store_message_delete(f->store, STORE_AT(now_ms(f)), &hidden, &which),
                     ST_OK);
    put(f, &s, START_MS + 2 * HOUR_MS);
    schedule_run(f->watched, &due.messages[0], store_id_bytes(&due.claim_id));
    store_batch_release(&due);
    assert_messages(f, 0);
    ck_assert_int_eq(find(f, "q/n", &p), START_MS + 2 * HOUR_MS);
    ck_assert_uint_eq(p.posted, 0);
    assert_counted(f, SCHEDULER_POSTED, 0);
    assert_counted(f, SCHEDULER_REFUSED, 0);
}

SCHEDULER_TEST(a_paused_schedule_waits_for_a_change)
{
    struct schedule s = hourly("UTC");
    struct schedule_progress p;

    s.paused = true;
    make_queue(f, false);
    put(f, &s, START_MS + HOUR_MS); /* as if it was paused just then */
    move(f, HOUR_MS);
    ck_assert_uint_eq(run_due(f), 1);
    assert_messages(f, 0);
    ck_assert_int_eq(find(f, "q/n", &p), START_MS + HOUR_MS * 24 * 36525);
}

/* ------------------------------------------------------------------ refusals */

TEST_CASE("refusals");

/* The schedule "q/n" was refused so often, and is tried again after this. */
static void
assert_refused(struct fixture *f, uint64_t times, int64_t wait_ms, const char *error)
{
    struct schedule_progress p;

    ck_assert_int_eq(find(f, "q/n", &p) - now_ms(f), wait_ms);
    ck_assert_uint_eq(p.refused, times);
    ck_assert_str_eq(p.error, error);
    ck_assert_uint_eq(p.posted, 0);
    ck_assert_int_eq(p.last_ms, 0);
    assert_counted(f, SCHEDULER_REFUSED, times);
}

SCHEDULER_TEST(a_refused_post_is_tried_again_later_and_later)
{
    static const int64_t waits_ms[] = {1000,  2000,  4000,  8000,
                                       16000, 32000, 60000, 60000};
    const struct schedule s = hourly("UTC");
    struct schedule_progress p;

    put(f, &s, START_MS + HOUR_MS);
    move(f, HOUR_MS);
    for (size_t i = 0; i < sizeof(waits_ms) / sizeof(waits_ms[0]); i++) {
        ck_assert_uint_eq(run_due(f), 1);
        assert_refused(f, i + 1, waits_ms[i], "queue q does not exist");
        move(f, waits_ms[i] - 1);
        ck_assert_uint_eq(run_due(f), 0);
        move(f, 1);
    }
    make_queue(f, false);
    ck_assert_uint_eq(run_due(f), 1);
    assert_messages(f, 1);
    ck_assert_int_eq(find(f, "q/n", &p), START_MS + 2 * HOUR_MS);
    ck_assert_str_eq(p.error, "");
    ck_assert_int_eq(p.failing_ms, 0);
    ck_assert_uint_eq(p.tries, 0);
    ck_assert_int_eq(p.message_ms, START_MS + HOUR_MS);
}

/* At the next due time, the rule for missed ones applies. */
SCHEDULER_TEST(a_due_time_that_was_never_posted_is_missed)
{
    const struct schedule s = hourly("UTC");
    struct schedule_progress p;

    put(f, &s, START_MS + HOUR_MS);
    move(f, HOUR_MS);
    ck_assert_uint_eq(run_due(f), 1);
    move(f, HOUR_MS);
    ck_assert_uint_eq(run_due(f), 1);
    assert_refused(f, 2, 1000, "queue q does not exist"); /* the first try for this one */
    make_queue(f, false);
    move(f, 1000);
    ck_assert_uint_eq(run_due(f), 1);
    ck_assert_int_eq(find(f, "q/n", &p), START_MS + 3 * HOUR_MS);
    ck_assert_uint_eq(p.posted, 1);
    ck_assert_uint_eq(p.missed, 1);
    ck_assert_int_eq(p.message_ms, START_MS + 2 * HOUR_MS);
}

SCHEDULER_TEST(maintenance_refuses)
{
    const struct schedule s = hourly("UTC");

    make_queue(f, false);
    put(f, &s, START_MS + HOUR_MS);
    move(f, HOUR_MS);
    atomic_store(&f->closed, true);
    ck_assert_uint_eq(run_due(f), 1);
    assert_refused(f, 1, 1000, status_text(ST_UNAVAILABLE));
    atomic_store(&f->closed, false);
    move(f, 1000);
    ck_assert_uint_eq(run_due(f), 1);
    assert_messages(f, 1);
}

SCHEDULER_TEST(an_encrypted_queue_refuses_without_a_key)
{
    const struct schedule s = hourly("UTC");

    make_queue(f, true);
    put(f, &s, START_MS + HOUR_MS);
    move(f, HOUR_MS);
    ck_assert_uint_eq(run_due(f), 1);
    assert_refused(f, 1, 1000, status_text(ST_NO_KEY));
    assert_messages(f, 0);
}

/* tzdata was removed. Each try is for the same due time, so that they back off. */
FIXTURE_TEST(without_tzdata_a_schedule_is_refused, struct fixture,
             open_with(f, "/does/not/exist"), fixture_close(f))
{
    const struct schedule s = hourly("Europe/Berlin");
    struct schedule_progress p;

    make_queue(f, false);
    put(f, &s, START_MS + HOUR_MS);
    move(f, HOUR_MS);
    for (int64_t wait_ms = 1000; wait_ms <= 8000; wait_ms *= 2) {
        ck_assert_uint_eq(run_due(f), 1);
        ck_assert_int_eq(find(f, "q/n", &p) - now_ms(f), wait_ms);
        ck_assert_ptr_nonnull(strstr(p.error, "tzdata"));
        move(f, wait_ms);
    }
    assert_messages(f, 0);
}

SCHEDULER_TEST(a_damaged_schedule_is_looked_at_after_ten_minutes)
{
    struct schedule_progress p;

    put_text(f, bytes_str("{}"), "q/n", START_MS + HOUR_MS);
    move(f, HOUR_MS);
    ck_assert_uint_eq(run_due(f), 1);
    ck_assert_int_eq(find(f, "q/n", &p) - now_ms(f), 10 * MINUTE_MS);
    ck_assert_ptr_nonnull(strstr(p.error, "the schedule cannot be read"));
    assert_counted(f, SCHEDULER_REFUSED, 1);
}

/* ------------------------------------------------------------------ the wall clock */

TEST_CASE("wall clock");

/* Sets the wall clock, and reads all schedules, as the thread does then. */
static void
set_wall(struct fixture *f, int64_t ahead_ms)
{
    f->real.wall_ahead_ms = ahead_ms;
    schedules_read(f->watched);
}

SCHEDULER_TEST(delays_follow_a_wall_clock_that_is_set_ahead)
{
    const struct schedule s = hourly("UTC");
    struct schedule_progress p;

    make_queue(f, false);
    put(f, &s, START_MS + HOUR_MS);
    set_wall(f, 30 * MINUTE_MS);
    ck_assert_int_eq(find(f, "q/n", &p), START_MS + 30 * MINUTE_MS);
    move(f, 30 * MINUTE_MS);
    ck_assert_uint_eq(run_due(f), 1);
    ck_assert_int_eq(find(f, "q/n", &p), START_MS + 90 * MINUTE_MS);
    ck_assert_int_eq(p.message_ms, START_MS + HOUR_MS);
    ck_assert_int_eq(p.posted_ms, START_MS + HOUR_MS);
}

SCHEDULER_TEST(delays_follow_a_wall_clock_that_is_set_back)
{
    const struct schedule s = hourly("UTC");
    struct schedule_progress p;

    make_queue(f, false);
    put(f, &s, START_MS + HOUR_MS);
    move(f, HOUR_MS);
    ck_assert_uint_eq(run_due(f), 1);
    set_wall(f, -2 * HOUR_MS); /* due times do not repeat */
    ck_assert_int_eq(find(f, "q/n", &p), START_MS + 4 * HOUR_MS);
    ck_assert_uint_eq(p.posted, 1);
    set_wall(f, -30 * HOUR_MS); /* it was wrong before, and begins again */
    ck_assert_int_eq(find(f, "q/n", &p), START_MS + 2 * HOUR_MS);
}

SCHEDULER_TEST(a_small_difference_of_the_clocks_is_tolerated)
{
    const struct schedule s = hourly("UTC");
    struct schedule_progress p;

    put(f, &s, START_MS + HOUR_MS + 900);
    schedules_read(f->watched);
    ck_assert_int_eq(find(f, "q/n", &p), START_MS + HOUR_MS + 900);
    f->real.wall_ahead_ms = 499; /* is rounded to seconds */
    schedules_read(f->watched);
    ck_assert_int_eq(find(f, "q/n", &p), START_MS + HOUR_MS + 900);
}

SCHEDULER_TEST(paused_and_refused_schedules_keep_their_delays)
{
    struct schedule s = hourly("UTC");
    struct schedule_progress p;

    s.name = bytes_str("paused");
    s.paused = true;
    put(f, &s, START_MS + 50 * HOUR_MS);
    s.name = bytes_str("refused");
    s.paused = false;
    put(f, &s, START_MS + HOUR_MS);
    move(f, HOUR_MS);
    ck_assert_uint_eq(run_due(f), 1);
    set_wall(f, HOUR_MS);
    ck_assert_int_eq(find(f, "q/paused", &p), START_MS + 50 * HOUR_MS);
    ck_assert_int_eq(find(f, "q/refused", &p), now_ms(f) + 1000);
}

/* More than one page, and those that are corrected stand at the end of the queue. */
SCHEDULER_TEST(all_schedules_are_corrected)
{
    enum { MANY = 250 };
    struct schedule s = hourly("UTC");
    struct schedule_progress p;
    char name[8], key[16];

    for (int i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof(name), "%d", i);
        s.name = bytes_str(name);
        put(f, &s, START_MS + HOUR_MS);
    }
    set_wall(f, 10 * MINUTE_MS);
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(key, sizeof(key), "q/%d", i);
        ck_assert_int_eq(find(f, key, &p), START_MS + 50 * MINUTE_MS);
    }
}
