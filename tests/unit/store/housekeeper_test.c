/*
 * One worker at a time does the housekeeping of a store, no due deadline is missed, and a
 * worker sleeps when there is none. Read claimd/store/housekeeper.h next.
 */
#include "claimd/store/housekeeper.h"
#include "support/check_main.h"

/* A store that has nothing but housekeeping. */
struct idle_store {
    struct store store;
    int64_t next_ms; /* its next deadline */
    int slices;      /* left to do when due */
    int done;
    int64_t meanwhile_ms; /* this becomes due during a slice; 0: nothing does */
    int checks;
};

static void
idle_housekeep(struct store *s, int64_t now_ms, int64_t *next_ms)
{
    struct idle_store *idle = (struct idle_store *)s;

    idle->done++;
    idle->next_ms = --idle->slices > 0 ? now_ms : INT64_MAX;
    *next_ms = idle->next_ms;
    if (idle->meanwhile_ms > 0)
        idle->next_ms = idle->meanwhile_ms;
}

static int64_t
idle_next_ms(struct store *s)
{
    ((struct idle_store *)s)->checks++;
    return ((struct idle_store *)s)->next_ms;
}

static const struct store_vtable idle_ops = {.housekeep = idle_housekeep,
                                             .next_ms = idle_next_ms};

struct fixture {
    struct mem *mem;
    struct idle_store idle;
    struct clock clock;
    struct housekeeper shared;
    struct housekeeping mine;
};

static void
fixture_open(struct fixture *f, int64_t next_ms, int slices)
{
    f->idle = (struct idle_store){
        .store = {.vtable = &idle_ops}, .next_ms = next_ms, .slices = slices};
    clock_init_system(&f->clock);
    f->shared = (struct housekeeper){.store = &f->idle.store, .clock = &f->clock};
    f->mem = mem_new(0);
    ck_assert_ptr_nonnull(f->mem);
    trimmer_init(&f->shared.trimmer, f->mem);
    f->mine = (struct housekeeping){.shared = &f->shared};
    housekeeping_hurry(&f->mine);
}

static void
fixture_close(struct fixture *f)
{
    mem_destroy(f->mem);
}

#define HOUSEKEEPER_TEST(id, open)                                                       \
    FIXTURE_TEST(id, struct fixture, open, fixture_close(f))

HOUSEKEEPER_TEST(without_a_deadline_the_worker_may_sleep_for_ever,
                 fixture_open(f, INT64_MAX, 0))
{
    ck_assert_int_eq(housekeeping_step(&f->mine, 0), -1);
    ck_assert_int_eq(f->idle.done, 0);
}

HOUSEKEEPER_TEST(work_that_is_due_is_done_a_slice_a_step, fixture_open(f, 0, 3))
{
    ck_assert_int_eq(housekeeping_step(&f->mine, 0), 0);
    ck_assert_int_eq(housekeeping_step(&f->mine, 0), 0);
    ck_assert_int_eq(f->idle.done, 2);
    ck_assert_int_eq(housekeeping_step(&f->mine, 0), -1);
    ck_assert_int_eq(f->idle.done, 3);
}

HOUSEKEEPER_TEST(a_deadline_ahead_is_slept_for, fixture_open(f, 0, 0))
{
    int64_t sleep_ms;

    f->idle.next_ms = clock_now_ms(&f->clock) + 60000;
    sleep_ms = housekeeping_step(&f->mine, 0);
    ck_assert_int_gt(sleep_ms, 0);
    ck_assert_int_le(sleep_ms, 30000); /* the machine may sleep meanwhile */
    ck_assert_int_eq(f->idle.done, 0);
}

HOUSEKEEPER_TEST(a_busy_worker_checks_only_now_and_then, fixture_open(f, INT64_MAX, 0))
{
    ck_assert_int_eq(housekeeping_step(&f->mine, 100), -1);
    ck_assert_int_gt(housekeeping_step(&f->mine, 101), 0); /* wakes up to check again */
    ck_assert_int_eq(f->idle.checks, 1);
    ck_assert_int_eq(housekeeping_step(&f->mine, 102), -1);
    ck_assert_int_eq(f->idle.checks, 2);
    housekeeping_hurry(&f->mine);
    ck_assert_int_eq(housekeeping_step(&f->mine, 102), -1);
    ck_assert_int_eq(f->idle.checks, 3);
}

HOUSEKEEPER_TEST(two_workers_do_not_do_the_same_work, fixture_open(f, 0, 1))
{
    atomic_store(&f->shared.busy, true);                 /* another thread is at it */
    ck_assert_int_gt(housekeeping_step(&f->mine, 0), 0); /* but it looks again */
    ck_assert_int_eq(f->idle.done, 0);
    atomic_store(&f->shared.busy, false);
    ck_assert_int_eq(housekeeping_step(&f->mine, 2), -1);
    ck_assert_int_eq(f->idle.done, 1);
}

HOUSEKEEPER_TEST(deadlines_due_during_a_slice_are_not_missed, fixture_open(f, 0, 1))
{
    f->idle.meanwhile_ms = 1;
    ck_assert_int_eq(housekeeping_step(&f->mine, 0), 0);
    f->idle.meanwhile_ms = 0;
    ck_assert_int_eq(housekeeping_step(&f->mine, 0), -1);
    ck_assert_int_eq(f->idle.done, 2);
}

HOUSEKEEPER_TEST(with_a_stopped_clock_a_worker_does_not_wake_for_deadlines,
                 fixture_open(f, 2000, 1))
{
    clock_init_manual(&f->clock, 1000);
    ck_assert_int_eq(housekeeping_step(&f->mine, 0), -1);
    clock_advance(&f->clock, 1000);
    housekeeping_hurry(&f->mine);
    ck_assert_int_eq(housekeeping_step(&f->mine, 0), -1);
    ck_assert_int_eq(f->idle.done, 1);
}
