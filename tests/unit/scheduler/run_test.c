/*
 * The scheduler without its thread, over the store of the API's fixture.
 * tests/sim/planner.c has its histories, tests/e2e/schedules_test.py its thread.
 */
#include "claimd/schedule/definition.h"
#include "claimd/scheduler/scheduler.h"
#include "support/api_fixture.h"

#include <string.h>

#define ITEM "/claimd/queues/q/schedules/n"

enum { EVERY_MS = 60000, HOUR_MS = 3600000 };

/* The scheduler of a fixture. */
struct running {
    struct clock clock;
    struct scheduler *scheduler;
};

static enum status
open_body(void *ctx, const struct store_queue *queue, struct bytes body, struct buf *out)
{
    (void)ctx;
    (void)queue;
    buf_bytes(out, body);
    return out->failed ? ST_NO_MEMORY : ST_OK;
}

/* The project must have a schedule. */
static void
start(struct running *r, struct api_fixture *f)
{
    const struct scheduler_config config = {.mem = f->mem,
                                            .store = f->store,
                                            .clock = &r->clock,
                                            .real = &r->clock,
                                            .zones = f->zones,
                                            .open_body = open_body};

    clock_init_manual(&r->clock, f->c.now_ms);
    ck_assert_int_eq(scheduler_open(&config, &r->scheduler), ST_OK);
    ck_assert_int_eq(scheduler_reload(r->scheduler), ST_OK);
}

/* Lets time go on, and the scheduler run. */
static void
step(struct running *r, struct api_fixture *f, int64_t ms)
{
    int64_t next_ms;

    f->c.now_ms += ms;
    clock_advance(&r->clock, ms);
    do
        store_housekeep(f->store, f->c.now_ms, &next_ms);
    while (next_ms <= f->c.now_ms);
    (void)scheduler_step(r->scheduler);
}

static void
ck_counts(struct api_fixture *f, int posted, int skipped)
{
    ck_api(f, "GET", ITEM, NULL, 200, NULL);
    ck_assert_ptr_nonnull(
        strstr(api_body(&f->c), api_text(f,
                                         "\"posted\":%d,\"missed_count\":0,"
                                         "\"skipped_count\":%d,",
                                         posted, skipped)));
}

TEST_CASE("a due time");

API_TEST(a_due_time_posts_once)
{
    struct running r;

    ck_api(f, "PUT", ITEM, "{\"every\":60,\"message\":{\"body\":1}}", 201, NULL);
    start(&r, f);
    step(&r, f, EVERY_MS - 1);
    ck_counts(f, 0, 0);
    step(&r, f, 1);
    step(&r, f, 0);
    ck_counts(f, 1, 0);
    scheduler_close(r.scheduler);
    start(&r, f);
    step(&r, f, 1);
    ck_counts(f, 1, 0);
    scheduler_close(r.scheduler);
}

/* Lets the 1st, 2nd, ... allocation at a due time fail while the message before is there,
 * until none fails. */
API_TEST(an_overlap_is_skipped_also_without_memory)
{
    uint64_t nth = 1, reached = 0;
    struct running r;

    ck_api(f, "PUT", ITEM,
           "{\"every\":60,\"message\":{\"body\":1,\"ttl\":1000000},\"overlap\":\"skip\"}",
           201, NULL);
    start(&r, f);
    step(&r, f, EVERY_MS);
    ck_counts(f, 1, 0);
    for (; reached + 1 >= nth; nth++) {
        const uint64_t attempts = mem_attempts(f->mem);

        ck_assert_uint_lt(nth, 1000);
        mem_fail_nth(f->mem, nth);
        step(&r, f, EVERY_MS);
        mem_fail_nth(f->mem, 0);
        reached = mem_attempts(f->mem) - attempts;
        step(&r, f, EVERY_MS); /* the claim of a schedule may have to end */
        ck_api(f, "GET", ITEM, NULL, 200, NULL);
        ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"posted\":1,"));
    }
    ck_assert_uint_gt(nth, 5);
    scheduler_close(r.scheduler);
}

/* Likewise of a request that replaces a schedule whose last message is there. */
API_TEST(a_refused_change_of_a_schedule_changes_nothing)
{
    struct running r;
    int code = 503;

    ck_api(f, "PUT", ITEM, "{\"every\":60,\"message\":{\"body\":1}}", 201, NULL);
    start(&r, f);
    step(&r, f, EVERY_MS);
    for (uint64_t nth = 1; code == 503; nth++) {
        ck_api(f, "GET", ITEM, NULL, 200, NULL);
        ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"every\":60,"));
        ck_assert_uint_lt(nth, 1000);
        mem_fail_nth(f->mem, nth);
        code = api_call(&f->c, "PUT", ITEM, "{\"every\":90,\"message\":{\"body\":1}}");
        mem_fail_nth(f->mem, 0);
    }
    ck_assert_int_eq(code, 200);
    scheduler_close(r.scheduler);
}

/* ------------------------------------------------------------------ delays */

TEST_CASE("a delay");

/* Sets the wall clock, and says so, as the thread does. */
static void
set_wall(struct running *r, int64_t ahead_ms)
{
    r->clock.wall_ahead_ms = ahead_ms;
    ck_assert_int_eq(scheduler_reload(r->scheduler), ST_OK);
}

/* When the schedule is due, as the store knows it. */
static int64_t
delayed_until_ms(const struct api_fixture *f)
{
    const struct store_queue schedules = {.project = bytes_str(API_CALL_PROJECT),
                                          .name = bytes_str(SCHEDULES_NAME),
                                          .kind = STORE_SCHEDULES};
    struct store_batch found = STORE_BATCH_INIT;
    int64_t until_ms;

    ck_assert_int_eq(store_message_find(f->store, STORE_AT(f->c.now_ms), &schedules,
                                        bytes_str("q/n"), &found),
                     ST_OK);
    ck_assert_uint_eq(found.count, 1);
    until_ms = found.messages[0].delayed_until_ms;
    store_batch_release(&found);
    return until_ms;
}

/* Lets the 1st, 2nd, ... allocation fail when all schedules are read, until none
 * fails. */
API_TEST(a_delay_that_cannot_be_corrected_is_corrected_in_the_next_round)
{
    uint64_t nth = 1, reached = 0;
    struct running r;

    ck_api(f, "PUT", ITEM, "{\"every\":3600,\"message\":{\"body\":1}}", 201, NULL);
    start(&r, f);
    step(&r, f, 0);
    for (; reached + 1 >= nth; nth++) {
        uint64_t attempts;

        ck_assert_uint_lt(nth, 1000);
        ck_assert_int_eq(delayed_until_ms(f), API_FIXTURE_START_MS + HOUR_MS);
        set_wall(&r, HOUR_MS / 2);
        attempts = mem_attempts(f->mem);
        mem_fail_nth(f->mem, nth);
        step(&r, f, 0);
        mem_fail_nth(f->mem, 0);
        reached = mem_attempts(f->mem) - attempts;
        step(&r, f, 0);
        ck_assert_int_eq(delayed_until_ms(f), API_FIXTURE_START_MS + HOUR_MS / 2);
        set_wall(&r, 0);
        step(&r, f, 0);
    }
    ck_assert_uint_gt(nth, 3);
    scheduler_close(r.scheduler);
}

API_TEST(a_delay_is_corrected_after_a_refused_schedule_was_replaced)
{
    struct running r;

    ck_api(f, "PUT", ITEM, "{\"every\":60,\"message\":{\"body\":1}}", 201, NULL);
    ck_api(f, "POST", "/claimd/queues/q/pause", "{\"posts\":true}", 200, NULL);
    start(&r, f);
    step(&r, f, EVERY_MS);
    ck_api(f, "GET", ITEM, NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"refused_count\":1,"));
    ck_api(f, "PUT", ITEM, "{\"every\":3600,\"message\":{\"body\":1}}", 200, NULL);
    set_wall(&r, HOUR_MS / 2);
    step(&r, f, 0);
    ck_assert_int_eq(delayed_until_ms(f), API_FIXTURE_START_MS + HOUR_MS / 2);
    scheduler_close(r.scheduler);
}
