/*
 * The timing wheel agrees with an array under random changes. A deadline is due in its
 * millisecond, and a crowd of deadlines is moved within the budget of each call. Read
 * claimd/ds/wheel.h next.
 */
#include "claimd/ds/wheel.h"

#include "claimd/base/mem.h"
#include "support/check_main.h"
#include "support/random.h"

#include <stdlib.h>
#include <string.h>

/* The naive twin: an array of what is armed, and for when. */
enum { DEADLINES = 200 };

struct fixture {
    struct mem *mem;
    struct wheel *wheel;
    struct random random;
    int64_t now;
    struct deadline d[DEADLINES];
    bool armed[DEADLINES];
    int64_t due[DEADLINES];
};

enum { HUGE_BUDGET = 1 << 30 };

static void
fixture_open(struct fixture *f, int64_t now)
{
    memset(f, 0, sizeof(*f));
    f->mem = mem_new(0);
    f->now = now;
    f->wheel = wheel_new(f->mem, now);
    ck_assert_ptr_nonnull(f->wheel);
}

static void
fixture_close(struct fixture *f)
{
    wheel_free(f->wheel);
    mem_destroy(f->mem);
}

#define WHEEL_TEST(id, open) FIXTURE_TEST(id, struct fixture, open, fixture_close(f))

static void
arm(struct fixture *f, size_t i, int64_t due)
{
    wheel_arm(f->wheel, &f->d[i], due);
    f->armed[i] = true;
    f->due[i] = due;
}

static void
disarm(struct fixture *f, size_t i)
{
    wheel_disarm(f->wheel, &f->d[i]);
    f->armed[i] = false;
}

/* A drained deadline must be armed and due by `now`. Returns NULL when nothing is left.
 */
static struct deadline *
drain_one(struct fixture *f)
{
    struct deadline *d = wheel_drain(f->wheel);
    size_t i;

    if (d == NULL)
        return NULL;
    i = (size_t)(d - f->d);
    ck_assert(f->armed[i]);
    ck_assert_int_le(f->due[i], f->now);
    ck_assert(!deadline_armed(d));
    f->armed[i] = false;
    return d;
}

static int64_t
earliest(const struct fixture *f)
{
    int64_t first = WHEEL_NEVER;

    for (size_t i = 0; i < DEADLINES; i++)
        if (f->armed[i] && f->due[i] < first)
            first = f->due[i];
    return first;
}

static size_t
count_armed(const struct fixture *f)
{
    size_t n = 0;

    for (size_t i = 0; i < DEADLINES; i++)
        n += f->armed[i];
    return n;
}

static void
check(struct fixture *f)
{
    ck_assert(wheel_audit(f->wheel));
    if (count_armed(f) == 0)
        ck_assert_int_eq(wheel_next_ms(f->wheel), WHEEL_NEVER);
    else if (earliest(f) <= f->now)
        ck_assert_int_le(wheel_next_ms(f->wheel), f->now);
    else
        ck_assert_int_le(wheel_next_ms(f->wheel), earliest(f));
}

/* A time to wait that ends near the border of a slot, of any level, or anywhere. */
static int64_t
pick_wait(struct fixture *f)
{
    int64_t width = (int64_t)1 << 6 * random_below(&f->random, 7);

    switch (random_below(&f->random, 5)) {
    case 0:
        return (int64_t)random_below(&f->random, 200) - 20; /* also the past */
    case 1:
        return width * (int64_t)random_below(&f->random, 3) +
               (int64_t)random_below(&f->random, 5) - 2;
    case 2: /* just before or behind a border of the circle */
        return (f->now / width + (int64_t)random_below(&f->random, 130)) * width -
               f->now + (int64_t)random_below(&f->random, 3) - 1;
    case 3:
        return 86400000;
    default:
        return (int64_t)(random_next(&f->random) >> (1 + random_below(&f->random, 63))) /
               4;
    }
}

static int64_t
pick_due(struct fixture *f)
{
    if (random_once_in(&f->random, 200))
        return random_once_in(&f->random, 2) ? INT64_MAX : INT64_MIN;
    if (random_once_in(&f->random, 4)) /* together with another one */
        return f->due[random_below(&f->random, DEADLINES)];
    return f->now + pick_wait(f);
}

/* Moves on with little budget, changing and draining things between the calls. */
static void
advance_in_slices(struct fixture *f)
{
    int64_t wait = pick_wait(f) % 100000000000;

    if (wait > 0)
        f->now += wait;
    while (!wheel_advance(f->wheel, f->now, 1 + random_below(&f->random, 9))) {
        size_t i = random_below(&f->random, DEADLINES);

        check(f);
        if (random_once_in(&f->random, 4))
            disarm(f, i);
        if (random_once_in(&f->random, 4))
            arm(f, i, pick_due(f));
        if (random_once_in(&f->random, 4))
            (void)drain_one(f); /* checked inside; there may be none yet */
    }
    check(f);
}

WHEEL_TEST(random_changes_agree_with_an_array, fixture_open(f, 1700000000000))
{
    uint64_t steps = random_operations(30000);

    f->random.state = random_seed("wheel");
    for (uint64_t step = 0; step < steps; step++) {
        size_t i = random_below(&f->random, DEADLINES);

        if (!random_once_in(&f->random, 3))
            arm(f, i, pick_due(f));
        else
            disarm(f, i);
        check(f);
        if (!random_once_in(&f->random, 4))
            continue;
        advance_in_slices(f);
        while (drain_one(f) != NULL)
            continue;
        ck_assert_int_gt(earliest(f), f->now); /* precisely those due were drained */
        check(f);
    }
}

WHEEL_TEST(a_deadline_falls_due_in_its_millisecond_and_not_before, fixture_open(f, 1000))
{
    for (int64_t wait = 1; wait < 10000; wait += 37) {
        int64_t due = f->now + wait;

        arm(f, 0, due);
        f->now = due - 1;
        ck_assert(wheel_advance(f->wheel, f->now, HUGE_BUDGET));
        ck_assert_ptr_null(wheel_drain(f->wheel));
        f->now = due;
        ck_assert(wheel_advance(f->wheel, f->now, HUGE_BUDGET));
        ck_assert_ptr_eq(drain_one(f), &f->d[0]);
    }
}

WHEEL_TEST(deadlines_come_in_the_order_of_their_time, fixture_open(f, 12345))
{
    static const int64_t waits[] = {70000, 5, 64, 128, 63, 4097, 300000, 127, 4096, 1};
    enum { COUNT = sizeof(waits) / sizeof(waits[0]) };
    int64_t last = 0;

    for (size_t i = 0; i < COUNT; i++)
        arm(f, i, f->now + waits[i]);
    f->now += 1000000;
    ck_assert(wheel_advance(f->wheel, f->now, HUGE_BUDGET));
    for (size_t i = 0; i < COUNT; i++) {
        const struct deadline *d = drain_one(f);

        ck_assert_ptr_nonnull(d);
        ck_assert_int_gt(d->due_ms, last);
        last = d->due_ms;
    }
}

WHEEL_TEST(a_deadline_in_the_past_is_due_at_once, fixture_open(f, 1000))
{
    arm(f, 0, 999);
    arm(f, 1, 1000);
    ck_assert_int_le(wheel_next_ms(f->wheel), 1000);
    ck_assert_ptr_eq(drain_one(f), &f->d[0]);
    ck_assert_ptr_eq(drain_one(f), &f->d[1]);
    ck_assert_int_eq(wheel_next_ms(f->wheel), WHEEL_NEVER);
}

WHEEL_TEST(a_due_deadline_can_be_disarmed_before_it_is_drained, fixture_open(f, 0))
{
    arm(f, 0, 10);
    arm(f, 1, 10);
    f->now = 10;
    ck_assert(wheel_advance(f->wheel, 10, HUGE_BUDGET));
    disarm(f, 0);
    disarm(f, 0); /* twice is fine */
    check(f);
    ck_assert_ptr_eq(drain_one(f), &f->d[1]);
    ck_assert_ptr_null(wheel_drain(f->wheel));
}

WHEEL_TEST(the_present_never_goes_back, fixture_open(f, 1000))
{
    arm(f, 0, 600);
    (void)drain_one(f);
    ck_assert(wheel_advance(f->wheel, 500, HUGE_BUDGET));
    arm(f, 0, 900);
    ck_assert_ptr_eq(drain_one(f), &f->d[0]); /* 900 is past: the present is 1000 */
}

/* How often an idle owner that sleeps until the hint wakes up before the deadline. */
static unsigned
wakes_until(struct fixture *f, int64_t due)
{
    unsigned wakes = 0;

    arm(f, 0, due);
    while (wheel_next_ms(f->wheel) != WHEEL_NEVER) {
        int64_t next = wheel_next_ms(f->wheel);

        ck_assert_int_gt(next, f->now); /* no busy loop */
        ck_assert_int_le(next, due);
        f->now = next;
        ck_assert(wheel_advance(f->wheel, f->now, 64));
        while (drain_one(f) != NULL)
            continue;
        wakes++;
    }
    ck_assert_int_eq(f->now, due);
    return wakes;
}

WHEEL_TEST(an_idle_owner_wakes_at_most_once_a_level, fixture_open(f, 1700000000000))
{
    ck_assert_uint_eq(wakes_until(f, f->now + 1), 1);
    ck_assert_uint_eq(wakes_until(f, f->now + 127), 1);
    ck_assert_uint_le(wakes_until(f, f->now + 60000), 3);
    ck_assert_uint_le(wakes_until(f, f->now + 43200000), 5);
    ck_assert_uint_le(wakes_until(f, f->now + 15LL * 86400000), 5);
}

WHEEL_TEST(an_unused_wheel_hints_no_wake_up_however_far_it_moves, fixture_open(f, 0))
{
    ck_assert_int_eq(wheel_next_ms(f->wheel), WHEEL_NEVER);
    ck_assert(wheel_advance(f->wheel, 15LL * 86400000, 0)); /* takes no budget at all */
    ck_assert_int_eq(wheel_next_ms(f->wheel), WHEEL_NEVER);
    ck_assert(wheel_advance(f->wheel, INT64_MAX, 0));
    arm(f, 0, 5);
    ck_assert_ptr_eq(wheel_drain(f->wheel), &f->d[0]);
}

WHEEL_TEST(times_beyond_the_range_are_kept, fixture_open(f, INT64_MIN))
{
    arm(f, 0, INT64_MAX);
    arm(f, 1, INT64_MIN + 1);
    check(f);
    f->now = INT64_MIN + 1;
    ck_assert(wheel_advance(f->wheel, f->now, 64));
    ck_assert_ptr_eq(drain_one(f), &f->d[1]);
    f->now = INT64_MAX - 1;
    while (!wheel_advance(f->wheel, f->now, 1 << 20))
        continue;
    check(f);
    ck_assert_ptr_null(wheel_drain(f->wheel));
    f->now = INT64_MAX;
    ck_assert(wheel_advance(f->wheel, f->now, 64));
    ck_assert_ptr_eq(drain_one(f), &f->d[0]);
}

/* A crowd: many deadlines of one owner, all in the same second. */
enum { CROWD = 100000 };

static struct deadline *
arm_crowd(struct fixture *f, int64_t from)
{
    struct deadline *crowd = calloc(CROWD, sizeof(*crowd));

    ck_assert_ptr_nonnull(crowd);
    for (size_t i = 0; i < CROWD; i++)
        wheel_arm(f->wheel, &crowd[i], from + (int64_t)(i * 7919 % 1000));
    return crowd;
}

START_TEST(an_idle_owner_has_moved_a_crowd_before_it_falls_due)
{
    struct fixture f;
    struct deadline *crowd;
    int64_t from = 3600000;

    fixture_open(&f, 0);
    crowd = arm_crowd(&f, from);
    while (wheel_next_ms(f.wheel) < from) {
        if (wheel_next_ms(f.wheel) > f.now)
            f.now = wheel_next_ms(f.wheel);
        ck_assert(wheel_advance(f.wheel, f.now, 1000)); /* never behind */
    }
    ck_assert(wheel_audit(f.wheel));
    ck_assert(wheel_advance(f.wheel, from, 1)); /* one move makes a hundred due */
    ck_assert_ptr_nonnull(wheel_drain(f.wheel));
    fixture_close(&f);
    free(crowd);
}

START_TEST(a_crowd_is_moved_within_the_budget_of_each_call)
{
    struct fixture f;
    struct deadline *crowd;
    size_t calls = 1, drained = 0;

    fixture_open(&f, 0);
    crowd = arm_crowd(&f, 3600000);
    while (!wheel_advance(f.wheel, 3601000, 50)) /* late: nothing was moved ahead */
        calls++;
    ck_assert_uint_ge(calls, CROWD / 50);
    ck_assert_uint_le(calls, CROWD / 50 * 4);
    ck_assert(wheel_audit(f.wheel));
    while (wheel_drain(f.wheel) != NULL)
        drained++;
    ck_assert_uint_eq(drained, CROWD);
    fixture_close(&f);
    free(crowd);
}

WHEEL_TEST(an_empty_wheel_restarts_at_an_earlier_time, fixture_open(f, 10000000))
{
    arm(f, 0, 10000100);
    ck_assert(wheel_advance(f->wheel, 10000200, HUGE_BUDGET));
    ck_assert_ptr_eq(wheel_drain(f->wheel), &f->d[0]);
    wheel_restart(f->wheel, 5000);
    wheel_arm(f->wheel, &f->d[1], 6000);
    ck_assert(wheel_audit(f->wheel));
    ck_assert(wheel_advance(f->wheel, 5900, HUGE_BUDGET));
    ck_assert_ptr_null(wheel_drain(f->wheel));
    ck_assert(wheel_advance(f->wheel, 6100, HUGE_BUDGET));
    ck_assert_ptr_eq(wheel_drain(f->wheel), &f->d[1]);
}

START_TEST(freeing_a_wheel_forgets_its_deadlines)
{
    struct fixture f;

    fixture_open(&f, 0);
    arm(&f, 0, 10);
    fixture_close(&f);
    ck_assert(deadline_armed(&f.d[0])); /* not touched */
    wheel_free(NULL);
}

START_TEST(a_wheel_without_memory_is_none)
{
    struct mem *mem = mem_new(0);

    ck_assert_ptr_nonnull(mem);
    mem_fail_nth(mem, 1);
    ck_assert_ptr_null(wheel_new(mem, 0));
    mem_destroy(mem);
}
