/* The lease of a claim that `claimd work` holds, with a clock that the test moves. */
#include "client/work_lease.h"

#include "support/check_main.h"

enum { TTL_MS = 60000, START_MS = 1000000 };

static struct work_lease lease;
static int64_t next_ms;

static void
begin(void)
{
    lease_begin(&lease, TTL_MS, START_MS);
}

/* The step at a time after the start. */
static enum lease_step
step(int64_t after_ms)
{
    return lease_step(&lease, START_MS + after_ms, &next_ms);
}

TEST_CASE("renewal", .setup = begin);

START_TEST(a_renewal_is_due_after_a_third)
{
    ck_assert_int_eq(step(0), LEASE_WAIT);
    ck_assert_int_eq(next_ms, START_MS + 20000);
    ck_assert_int_eq(step(19999), LEASE_WAIT);
    ck_assert_int_eq(step(20000), LEASE_RENEW);
}

START_TEST(a_confirmed_renewal_starts_the_lease_when_it_was_sent)
{
    lease_renewal_sent(&lease, START_MS + 20000);
    ck_assert_int_eq(step(25000), LEASE_WAIT); /* one at a time */
    lease_renewed(&lease);
    ck_assert_int_eq(step(25000), LEASE_WAIT);
    ck_assert_int_eq(next_ms, START_MS + 40000);
    ck_assert(!lease_ended(&lease, START_MS + 79999));
    ck_assert(lease_ended(&lease, START_MS + 80000));
}

START_TEST(a_failed_renewal_is_retried_after_a_pause_that_doubles)
{
    int64_t at = 20000, pause, last = 0;

    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(step(at), LEASE_RENEW);
        lease_renewal_sent(&lease, START_MS + at);
        lease_renewal_failed(&lease, START_MS + at, -1000);
        ck_assert_int_eq(step(at), LEASE_WAIT);
        pause = next_ms - START_MS - at;
        ck_assert_int_gt(pause, last);
        last = pause;
        at += pause;
    }
    /* Not sooner than Retry-After. */
    lease_renewal_sent(&lease, START_MS + at);
    lease_renewal_failed(&lease, START_MS + at, 9000);
    ck_assert_int_eq(step(at), LEASE_WAIT);
    ck_assert_int_eq(next_ms, START_MS + at + 9000);
}

TEST_CASE("loss", .setup = begin);

START_TEST(without_a_response_the_lease_is_lost_after_two_thirds)
{
    lease_renewal_sent(&lease, START_MS + 20000);
    ck_assert_int_eq(step(39999), LEASE_WAIT);
    ck_assert_int_eq(next_ms, START_MS + 40000);
    ck_assert_int_eq(step(40000), LEASE_LOST);
    ck_assert_int_eq(next_ms, START_MS + 55000);
    ck_assert_int_eq(step(54999), LEASE_WAIT);
    ck_assert_int_eq(step(55000), LEASE_KILL); /* before its end */
    ck_assert_int_eq(step(55001), LEASE_KILL);
}

START_TEST(a_lost_lease_stays_lost)
{
    lease_renewal_sent(&lease, START_MS + 20000);
    ck_assert_int_eq(step(40000), LEASE_LOST);
    lease_renewed(&lease); /* late */
    ck_assert_int_eq(step(40001), LEASE_WAIT);
    ck_assert(lease_ended(&lease, START_MS + TTL_MS));
    ck_assert_int_eq(step(55000), LEASE_KILL);
}

START_TEST(a_refused_renewal_loses_the_lease_at_once_with_a_short_time_to_end)
{
    lease_renewal_sent(&lease, START_MS + 20000);
    lease_refused(&lease);
    ck_assert_int_eq(step(20100), LEASE_LOST);
    ck_assert_int_eq(next_ms, START_MS + 25100);
    ck_assert_int_eq(step(25099), LEASE_WAIT);
    ck_assert_int_eq(step(25100), LEASE_KILL);
}

START_TEST(a_refusal_after_the_loss_shortens_the_time_to_end)
{
    lease_renewal_sent(&lease, START_MS + 20000);
    ck_assert_int_eq(step(40000), LEASE_LOST);
    lease_refused(&lease);
    ck_assert_int_eq(step(41000), LEASE_LOST);
    ck_assert_int_eq(next_ms, START_MS + 46000);
    ck_assert_int_eq(step(46000), LEASE_KILL);
}

START_TEST(a_runner_that_was_suspended_ends_its_jobs_at_once)
{
    ck_assert_int_eq(step(TTL_MS * 10), LEASE_LOST);
    ck_assert_int_le(next_ms, START_MS + TTL_MS * 10);
    ck_assert_int_eq(step(TTL_MS * 10), LEASE_KILL);
}

START_TEST(the_guard_acts_between_the_loss_and_the_end_of_every_lease)
{
    for (int64_t ttl_ms = 1000; ttl_ms <= 43200000; ttl_ms += 997) {
        lease_begin(&lease, ttl_ms, START_MS);
        ck_assert_int_gt(lease_term_ms(&lease), START_MS + ttl_ms / 3 * 2);
        ck_assert_int_gt(lease_kill_ms(&lease), lease_term_ms(&lease));
        ck_assert_int_lt(lease_kill_ms(&lease), START_MS + ttl_ms);
    }
}

START_TEST(a_renewal_moves_the_times_of_the_guard)
{
    const int64_t term_ms = lease_term_ms(&lease), kill_ms = lease_kill_ms(&lease);

    lease_renewal_sent(&lease, START_MS + 20000);
    lease_renewed(&lease);
    ck_assert_int_eq(lease_term_ms(&lease), term_ms + 20000);
    ck_assert_int_eq(lease_kill_ms(&lease), kill_ms + 20000);
}

START_TEST(sigkill_comes_before_the_end_of_every_lease)
{
    for (int64_t ttl_ms = 1000; ttl_ms <= 43200000; ttl_ms += 997) {
        lease_begin(&lease, ttl_ms, 0);
        ck_assert_int_eq(lease_step(&lease, ttl_ms / 3 * 2, &next_ms), LEASE_LOST);
        ck_assert_int_gt(next_ms, ttl_ms / 3 * 2);
        ck_assert_int_lt(next_ms, ttl_ms);
        ck_assert_int_eq(lease_step(&lease, next_ms, &next_ms), LEASE_KILL);
    }
}
