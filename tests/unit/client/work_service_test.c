/* Whether the service of `claimd work --http` takes jobs. */
#include "client/work_service.h"

#include "support/check_main.h"

enum { AGO = 1000, NOW = 100000, MOST_MS = 10000 };

static struct work_service service;
static int64_t next_ms;

static bool
step(int64_t now_ms)
{
    next_ms = INT64_MAX;
    return service_step(&service, now_ms, &next_ms);
}

TEST_CASE("without health");

START_TEST(a_service_takes_all_jobs_at_first)
{
    service_init(&service, false);
    ck_assert(!step(NOW));
    ck_assert_int_eq(next_ms, INT64_MAX);
    ck_assert_uint_eq(service_limit(&service), SIZE_MAX);
}

START_TEST(a_failure_stops_claims_for_a_pause_and_then_one_job_is_tried)
{
    service_init(&service, false);
    service_failed(&service, NOW, -1, 0);
    ck_assert_int_eq(service.away_ms, NOW);
    ck_assert_uint_eq(service_limit(&service), 0);
    ck_assert(!service_takes_jobs(&service));
    ck_assert(!step(NOW));
    ck_assert_int_eq(next_ms, NOW + 125);
    ck_assert(!step(next_ms));
    ck_assert_uint_eq(service_limit(&service), 1);
    ck_assert(service_takes_jobs(&service));
    service_job_sent(&service, NOW + 200);
    ck_assert_uint_eq(service_limit(&service), 0); /* one at a time */
    ck_assert_int_eq(service.away_ms, NOW);
}

START_TEST(the_pause_doubles_until_the_service_responds)
{
    int64_t now = NOW, before = 0;

    service_init(&service, false);
    for (int i = 0; i < 10; i++) {
        service_failed(&service, now, -1, UINT32_MAX);
        step(now);
        ck_assert_int_gt(next_ms - now, before / 2);
        ck_assert_int_le(next_ms - now, MOST_MS);
        before = next_ms - now;
        now = next_ms;
        step(now);
    }
    ck_assert_int_ge(before, MOST_MS / 2);
    service_responded(&service, now + 5);
    ck_assert_uint_eq(service_limit(&service), SIZE_MAX);
    ck_assert_int_eq(service.away_ms, -1);
    service_failed(&service, now + 9, -1, 0);
    step(now + 9);
    ck_assert_int_eq(next_ms, now + 9 + 125);
}

START_TEST(jobs_that_fail_together_are_one_failure)
{
    service_init(&service, false);
    for (int i = 0; i < 100; i++)
        service_failed(&service, NOW + i, -1, 0);
    step(NOW + 100);
    ck_assert_int_eq(next_ms, NOW + 125);
}

START_TEST(retry_after_prolongs_the_pause)
{
    service_init(&service, false);
    service_failed(&service, NOW, 30000, 0);
    step(NOW);
    ck_assert_int_eq(next_ms, NOW + 30000);
    service_failed(&service, NOW + 10, 40000, 0);
    step(NOW);
    ck_assert_int_eq(next_ms, NOW + 40010);
}

START_TEST(a_response_to_an_older_job_does_not_end_the_pause)
{
    service_init(&service, false);
    service_failed(&service, NOW, -1, 0);
    service_responded(&service, AGO);
    ck_assert_uint_eq(service_limit(&service), 0);
    step(NOW + 125);
    service_responded(&service, AGO);
    ck_assert_uint_eq(service_limit(&service), 1);
}

START_TEST(a_long_job_does_not_keep_the_others_waiting)
{
    service_init(&service, false);
    service_failed(&service, NOW, -1, 0);
    step(NOW + 125);
    service_job_sent(&service, NOW + 200);
    step(NOW + 200);
    ck_assert_int_eq(next_ms, NOW + 6200);
    step(next_ms);
    ck_assert_uint_eq(service_limit(&service), SIZE_MAX);
}

TEST_CASE("with health");

START_TEST(the_health_is_checked_before_the_first_claim)
{
    service_init(&service, true);
    ck_assert(step(NOW));
    ck_assert_uint_eq(service_limit(&service), 0);
    service_healthy(&service, NOW);
    ck_assert_uint_eq(service_limit(&service), SIZE_MAX);
    ck_assert(!step(NOW));
}

START_TEST(a_failed_job_checks_the_health_without_a_pause)
{
    service_init(&service, true);
    service_healthy(&service, NOW);
    service_doubted(&service);
    ck_assert(step(NOW));
    ck_assert_uint_eq(service_limit(&service), 0);
    ck_assert(service_takes_jobs(&service)); /* those of a claim that was under way */
    service_healthy(&service, NOW + 1);
    ck_assert_uint_eq(service_limit(&service), SIZE_MAX);
    service_init(&service, false);
    service_doubted(&service);
    ck_assert_uint_eq(service_limit(&service), SIZE_MAX);
}

START_TEST(bad_health_is_checked_again_after_a_pause_and_good_health_tries_one_job)
{
    service_init(&service, true);
    service_failed(&service, NOW, -1, 0);
    ck_assert(!step(NOW));
    ck_assert_int_eq(next_ms, NOW + 125);
    service_healthy(&service, NOW + 5); /* the response to an earlier request */
    ck_assert_uint_eq(service_limit(&service), 0);
    ck_assert(step(NOW + 125));
    ck_assert_uint_eq(service_limit(&service), 0);
    service_healthy(&service, NOW + 130);
    ck_assert_uint_eq(service_limit(&service), 1);
    ck_assert(!step(NOW + 130));
    service_responded(&service, NOW + 140);
    ck_assert_uint_eq(service_limit(&service), SIZE_MAX);
}
