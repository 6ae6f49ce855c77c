/*
 * The time of a store after a restart: it goes on for as long as the process was down,
 * whatever happened to the wall clock.
 */
#include "support/journalled.h"
#include "support/store_fixture.h"

enum { SEGMENT = 64 * 1024, SECOND = 1000, HOUR = 3600 * SECOND };

static const int64_t SECOND_NS = 1000000000;
static const uint8_t boot_a[JOURNAL_BOOT_ID_BYTES] = {1, 2, 3};
static const uint8_t boot_b[JOURNAL_BOOT_ID_BYTES] = {9};
static const struct store_queue queue_q = {.project = {"p", 1}, .name = {"q", 1}};

/* A machine with a process on it. The wall clock is wall_ahead_ms ahead of the
 * store's. */
struct machine {
    struct clock clock; /* of the store; stands, so that the test moves it */
    struct journalled p;
};

static void
machine_start(struct machine *m, const uint8_t *boot_id, int64_t wall_ms,
              int64_t since_boot_ns)
{
    m->p.boot_id = boot_id;
    m->p.stopwatch_ns = since_boot_ns;
    m->p.clock = &m->clock;
    journalled_start(&m->p, wall_ms);
    clock_init_manual(&m->clock, m->p.recovery.now_ms);
    m->clock.wall_ahead_ms = wall_ms - m->p.recovery.now_ms;
}

static void
machine_begin(struct machine *m, const uint8_t *boot_id)
{
    *m = (struct machine){
        .p = {.disk = sim_disk_new(1), .segment_bytes = SEGMENT, .seed = 1}};
    clock_init_manual(&m->clock, START_MS);
    machine_start(m, boot_id, START_MS, 100 * SECOND_NS);
    ck_assert_int_eq(m->p.recovery.now_ms, START_MS);
}

static void
machine_end(struct machine *m)
{
    journalled_stop(&m->p);
    sim_disk_free(m->p.disk);
}

#define MACHINE_TEST_WITH(id, open)                                                      \
    FIXTURE_TEST_AS(id, struct machine, m, open, machine_end(m))
#define MACHINE_TEST(id) MACHINE_TEST_WITH(id, machine_begin(m, NULL))

static void
time_passes(struct machine *m, int64_t ms)
{
    clock_advance(&m->clock, ms);
}

static void
wall_clock_is_set(struct machine *m, int64_t by_ms)
{
    m->clock.wall_ahead_ms += by_ms;
}

static void
post_for(struct machine *m, int32_t ttl_s)
{
    struct store_draft draft = {bytes_str("1"), ttl_s, 0};
    struct store_post one = {.drafts = &draft, .count = 1, .create_queue = true};
    struct store_op op = {.now_ms = clock_now_ms(&m->clock)};
    struct store_id id;

    ck_assert_status(store_message_post(m->p.store, &op, &queue_q, &one, &id), ST_OK);
    journalled_commit(&m->p);
}

static uint64_t
messages(struct machine *m)
{
    struct store_totals totals;

    ck_assert_status(store_totals(m->p.store, STORE_AT(clock_now_ms(&m->clock)), &totals),
                     ST_OK);
    return totals.messages;
}

/* kill -9: there is no seal. */
static void
process_dies(struct machine *m)
{
    sim_disk_kill(m->p.disk);
    journalled_stop(&m->p);
}

MACHINE_TEST(a_message_survives_a_restart_after_the_wall_clock_was_set_forward)
{
    wall_clock_is_set(m, 3 * HOUR);
    post_for(m, 3600);
    process_dies(m);
    machine_start(m, NULL, START_MS + 3 * HOUR + SECOND, 0);
    ck_assert_int_eq(m->p.recovery.now_ms, START_MS + SECOND);
    ck_assert_uint_eq(messages(m), 1);
}

MACHINE_TEST(the_distance_of_the_clocks_outlives_many_restarts)
{
    wall_clock_is_set(m, 3 * HOUR);
    post_for(m, 3600);
    for (int i = 1; i <= 10; i++) {
        process_dies(m);
        machine_start(m, NULL, START_MS + 3 * HOUR + i * SECOND, 0);
        ck_assert_int_eq(m->p.recovery.now_ms, START_MS + i * SECOND);
        journalled_commit(&m->p); /* a start writes a record */
    }
    ck_assert_uint_eq(messages(m), 1);
}

MACHINE_TEST(a_seal_stores_the_distance_of_the_clocks)
{
    post_for(m, 3600);
    wall_clock_is_set(m, 3 * HOUR);
    journalled_stop(&m->p); /* in peace */
    machine_start(m, NULL, START_MS + 3 * HOUR + SECOND, 0);
    ck_assert_int_eq(m->p.recovery.now_ms, START_MS + SECOND);
    ck_assert_uint_eq(messages(m), 1);
}

MACHINE_TEST(time_passes_while_the_process_is_down)
{
    wall_clock_is_set(m, -HOUR);
    post_for(m, 3600);
    time_passes(m, 100 * SECOND);
    process_dies(m);
    machine_start(m, NULL, START_MS + 100 * SECOND, 0); /* 3,700 seconds after the post */
    ck_assert_int_eq(m->p.recovery.now_ms, START_MS + HOUR + 100 * SECOND);
    ck_assert_uint_eq(messages(m), 0);
}

START_TEST(without_a_new_boot_the_wall_clock_may_be_set_while_the_process_is_down)
{
    static const int64_t steps_ms[] = {3 * HOUR, -3 * HOUR, INT64_C(400) * 24 * HOUR};

    for (size_t i = 0; i < sizeof(steps_ms) / sizeof(steps_ms[0]); i++) {
        struct machine m;

        machine_begin(&m, boot_a);
        post_for(&m, 3600);
        process_dies(&m);
        machine_start(&m, boot_a, START_MS + steps_ms[i] + 2 * SECOND, 102 * SECOND_NS);
        ck_assert_int_eq(m.p.recovery.now_ms, START_MS + 2 * SECOND);
        ck_assert_uint_eq(messages(&m), 1);
        process_dies(
            &m); /* and once more, with no further frame than that of the start */
        machine_start(&m, boot_a, START_MS + 2 * SECOND, 103 * SECOND_NS);
        ck_assert_int_eq(m.p.recovery.now_ms, START_MS + 3 * SECOND);
        machine_end(&m);
    }
}

MACHINE_TEST_WITH(after_a_new_boot_the_wall_clock_shows_how_long_the_process_was_down,
                  machine_begin(m, boot_a))
{
    post_for(m, 3600);
    process_dies(m);
    machine_start(m, boot_b, START_MS + 60 * SECOND, 20 * SECOND_NS);
    ck_assert_int_eq(m->p.recovery.now_ms, START_MS + 60 * SECOND);
}

/* A machine without a clock of its own: it starts behind, and the time service sets it
 * later, between two starts of the process. */
MACHINE_TEST_WITH(a_boot_with_a_clock_that_is_behind_lets_no_time_pass,
                  machine_begin(m, boot_a))
{
    post_for(m, 3600);
    process_dies(m);
    machine_start(m, boot_b, START_MS - 3 * HOUR, 20 * SECOND_NS);
    ck_assert_int_eq(m->p.recovery.now_ms, START_MS);
    process_dies(m);
    machine_start(m, boot_b, START_MS + 60 * SECOND, 25 * SECOND_NS);
    ck_assert_int_eq(m->p.recovery.now_ms, START_MS + 5 * SECOND);
    ck_assert_uint_eq(messages(m), 1);
}

MACHINE_TEST_WITH(small_differences_leave_the_milliseconds_of_the_wall_clock,
                  machine_begin(m, boot_a))
{
    post_for(m, 3600);
    process_dies(m);
    machine_start(m, boot_a, START_MS + 2999, 102 * SECOND_NS);
    ck_assert_int_eq(m->p.recovery.now_ms, START_MS + 2999);
}

/* Recovers with these settings; returns the status. */
static enum status
recover(struct machine *m, struct journal_recovery *recovery, char *error)
{
    const struct journal_config config = {.disk = sim_disk_open(m->p.disk),
                                          .segment_bytes = SEGMENT,
                                          .seeded = true,
                                          .seed = 77};
    struct engine_config engine;
    struct mem *mem = mem_new(0);
    struct journal *j;
    struct store *store;
    enum status st;

    ck_assert_status(journal_open(&config, &j, error), ST_OK);
    engine = fixture_config(mem);
    engine.log = journal_log(j);
    ck_assert_status(engine_open(&engine, &store), ST_OK);
    st = journal_recover(j, store, recovery, error);
    journal_close(j);
    store_close(store);
    mem_destroy(mem);
    return st;
}

START_TEST(a_clock_that_is_far_ahead_is_refused_and_the_downtime_can_be_given)
{
    const int64_t far_ms = START_MS + INT64_C(20) * 24 * HOUR;
    struct journal_recovery recovery = {.now_ms = far_ms};
    char error[JOURNAL_ERROR_CAP] = "";
    struct machine m;

    machine_begin(&m, NULL);
    post_for(&m, 3600);
    process_dies(&m);
    ck_assert_status(recover(&m, &recovery, error), ST_BAD_VALUE);
    ck_assert_msg(strstr(error, "down for 20 days") != NULL, "%s", error);
    ck_assert_msg(strstr(error, "--journal-downtime SECONDS") != NULL, "%s", error);
    ck_assert_msg(strstr(error, "--accept-clock") != NULL, "%s", error);
    recovery =
        (struct journal_recovery){.now_ms = far_ms, .down_given = true, .down_ms = 5000};
    ck_assert_msg(recover(&m, &recovery, error) == ST_OK, "%s", error);
    ck_assert_int_eq(recovery.now_ms, START_MS + 5000);
    sim_disk_free(m.p.disk);
}
