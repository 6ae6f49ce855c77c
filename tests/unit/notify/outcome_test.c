/*
 * From the response of a subscriber to delivered, retry or permanent failure (docs/api.md
 * 20.4). Declared in src/notify/delivery.h.
 */
#include "notify/delivery.h"

#include "support/check_main.h"

static struct outcome
weigh(enum ending_kind kind, int status, int64_t retry_after_s, uint32_t failed)
{
    const struct store_delivery d = {
        .options = BYTES_LIT("{}"), .metadata = BYTES_LIT("{}"), .failed = failed};
    const struct ending e = {
        .kind = kind, .status = status, .retry_after_s = retry_after_s};
    struct outcome v;

    outcome_decide(&e, &d, &v);
    return v;
}

static void
expect(struct outcome v, enum outcome_kind kind, enum store_outcome outcome,
       int64_t wait_ms)
{
    ck_assert_int_eq(v.kind, kind);
    ck_assert_int_eq(v.outcome, outcome);
    ck_assert_int_eq(v.wait_ms, wait_ms);
}

START_TEST(a_2xx_response_is_a_delivery)
{
    for (int status = 200; status < 300; status++)
        expect(weigh(ENDING_RESPONSE, status, 60, 0), OUTCOME_DELIVERED,
               STORE_OUTCOME_DELIVERED, 0);
}

START_TEST(redirects_and_4xx_are_final)
{
    for (int status = 300; status < 500; status++)
        if (status != 410 && status != 429)
            expect(weigh(ENDING_RESPONSE, status, 60, 0), OUTCOME_REFUSED,
                   STORE_OUTCOME_PERMANENT_FAILURE, 0);
    expect(weigh(ENDING_RESPONSE, 410, 0, 0), OUTCOME_GONE, STORE_OUTCOME_GONE, 0);
}

START_TEST(failures_are_tried_again_until_the_policy_ends)
{
    for (int status = 500; status < 600; status++)
        expect(weigh(ENDING_RESPONSE, status, 0, 0), OUTCOME_FAILED, STORE_OUTCOME_FAILED,
               0);
    expect(weigh(ENDING_NO_RESPONSE, 0, 0, 2), OUTCOME_FAILED, STORE_OUTCOME_FAILED, 0);
    expect(weigh(ENDING_NO_RESPONSE, 0, 0, 3), OUTCOME_FAILED, STORE_OUTCOME_FAILED,
           5000);
    expect(weigh(ENDING_NO_RESPONSE, 0, 0, 13), OUTCOME_FAILED, STORE_OUTCOME_FAILED,
           30000);
    expect(weigh(ENDING_NO_RESPONSE, 0, 0, 14), OUTCOME_PERMANENT_FAILURE,
           STORE_OUTCOME_PERMANENT_FAILURE, 0);
    ck_assert_int_eq(weigh(ENDING_NO_RESPONSE, 0, 0, UINT32_MAX).kind,
                     OUTCOME_PERMANENT_FAILURE);
}

START_TEST(retry_after_is_respected)
{
    expect(weigh(ENDING_RESPONSE, 429, 60, 0), OUTCOME_FAILED, STORE_OUTCOME_FAILED,
           60000);
    expect(weigh(ENDING_RESPONSE, 503, 60, 0), OUTCOME_FAILED, STORE_OUTCOME_FAILED,
           60000);
    expect(weigh(ENDING_RESPONSE, 503, 1, 4), OUTCOME_FAILED, STORE_OUTCOME_FAILED, 5000);
    expect(weigh(ENDING_RESPONSE, 429, INT64_MAX, 0), OUTCOME_FAILED,
           STORE_OUTCOME_FAILED, 3600000);
    expect(weigh(ENDING_RESPONSE, 500, 60, 0), OUTCOME_FAILED, STORE_OUTCOME_FAILED, 0);
    expect(weigh(ENDING_RESPONSE, 429, 60, 14), OUTCOME_PERMANENT_FAILURE,
           STORE_OUTCOME_PERMANENT_FAILURE, 0);
}

START_TEST(a_429_response_backs_off)
{
    expect(weigh(ENDING_RESPONSE, 429, 0, 0), OUTCOME_FAILED, STORE_OUTCOME_FAILED, 5000);
}

START_TEST(an_unsendable_notification_fails_permanently_at_once)
{
    expect(weigh(ENDING_IMPOSSIBLE, 0, 0, 0), OUTCOME_PERMANENT_FAILURE,
           STORE_OUTCOME_PERMANENT_FAILURE, 0);
}
