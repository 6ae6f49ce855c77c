/* A claim from its response, and the requests that finish its jobs. */
#include "client/work_claim.h"
#include "client/work_finish.h"

#include "support/check_main.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char messages[] =
    "{\"messages\": [{\"id\": \"m1\", \"href\": \"/x\", \"body\": {\"a\": 1},"
    " \"details\": {\"delivery_count\": 4, \"state\": \"claimed\"}},"
    " {\"id\": \"m2\", \"body\": \"caf\\u00e9 \\\"x\\\"\"}, {\"id\": \"m3\", \"body\": "
    "null}]}";
static const char location[] = "/v2/queues/jobs/claims/c1";

static struct mem *mem;
static struct work_transfer response;
static struct work_claim *claim;
static const char *why;
static size_t called[FINISH_UNKNOWN + 1];

/* Reads a claim. Afterwards `claim` is NULL or a claim of which all jobs run. */
static void
read_claim(const char *document, const char *place, const char *number)
{
    transfer_init(&response, mem, TRANSFER_CLAIM, NULL);
    buf_str(&response.body, document);
    (void)snprintf(response.location, sizeof(response.location), "%s", place);
    (void)snprintf(response.claim_number, sizeof(response.claim_number), "%s", number);
    response.sent_ms = 1000;
    claim = work_claim_read(mem, &response, 3, 60000, &why);
    buf_fini(&response.body);
}

static void
begin(void)
{
    mem = mem_new(0);
    memset(called, 0, sizeof(called));
    read_claim(messages, location, "7302444236537877");
    ck_assert_ptr_nonnull(claim);
}

static void
end(void)
{
    if (claim != NULL)
        work_claim_free(mem, claim);
    mem_destroy(mem); /* which checks that all is freed */
}

static void
on_done(void *ctx, struct work_job *job, enum finish_result result)
{
    ck_assert_ptr_eq(ctx, claim);
    ck_assert_int_eq(job->state, JOB_DONE);
    called[result]++;
}

static void
job_end(size_t i, enum outcome_kind kind, const char *reason, int64_t delay_s)
{
    struct job_outcome *o = &claim->jobs[i].outcome;

    *o = (struct job_outcome){.kind = kind, .delay_s = delay_s};
    (void)snprintf(o->reason, sizeof(o->reason), "%s", reason);
    claim->jobs[i].state = JOB_ENDED;
}

static void
assert_request(const char *expected)
{
    struct buf out;

    buf_init(&out, mem);
    finish_write(claim, &out);
    buf_byte(&out, '\0');
    ck_assert_str_eq(out.data, expected);
    buf_fini(&out);
}

static bool
read_results(const char *document, int64_t now_ms)
{
    return finish_read(claim, bytes_str(document), now_ms, on_done, claim);
}

TEST_CASE("claim", .setup = begin, .teardown = end);

START_TEST(a_claim_has_its_jobs_and_its_lease)
{
    ck_assert_uint_eq(claim->count, 3);
    ck_assert_uint_eq(claim->open, 3);
    ck_assert(bytes_equal_str(claim->queue, "jobs"));
    ck_assert(bytes_equal_str(claim->id, "c1"));
    ck_assert_str_eq(claim->path, location);
    ck_assert_int_eq(claim->lease.start_ms, 1000);
    ck_assert(bytes_equal_str(claim->jobs[0].id, "m1"));
    ck_assert(bytes_equal_str(claim->jobs[0].body, "{\"a\": 1}"));
    ck_assert_int_eq(claim->jobs[0].attempt, 4);
    ck_assert_int_eq(claim->jobs[1].attempt, 1); /* the response does not say */
    ck_assert(bytes_equal_str(claim->jobs[2].body, "null"));
}

START_TEST(a_response_that_is_no_claim_is_refused)
{
    static const char *const documents[] = {
        "", "x", "[]", "{}", "{\"messages\": []}", "{\"messages\": {}}",
        "{\"messages\": [1]}", "{\"messages\": [{\"id\": \"m\"}]}",
        "{\"messages\": [{\"id\": 1, \"body\": 1}]}", "{\"messages\": [{\"body\": 1}]}",
        "{\"messages\": [{\"id\": \"a\\n\", \"body\": 1}]}",
        "{\"messages\": [{\"id\": \"m\", \"body\": 1}, ",
        /* more than were in the request */
        ("{\"messages\": [{\"id\": \"1\", \"body\": 1}, {\"id\": \"2\", \"body\": 1},"
         " {\"id\": \"3\", \"body\": 1}, {\"id\": \"4\", \"body\": 1}]}")};
    static const char *const places[] = {"",
                                         "/v2/queues/",
                                         "/v2/queues/q",
                                         "/v2/queues/q/claims",
                                         "/v2/queues/q/claims/",
                                         "/v2/queues//claims/c",
                                         "/v2/queues/q/claims/c/d",
                                         "/v1/queues/q/claims/c",
                                         "/v2/queues/q/messages/c"};

    for (size_t i = 0; i < sizeof(documents) / sizeof(documents[0]); i++) {
        work_claim_free(mem, claim);
        read_claim(documents[i], location, "1");
        ck_assert_msg(claim == NULL, "%s", documents[i]);
        read_claim(messages, location, "1");
    }
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        work_claim_free(mem, claim);
        read_claim(messages, places[i], "1");
        ck_assert_msg(claim == NULL, "%s", places[i]);
        read_claim(messages, location, "1");
    }
    work_claim_free(mem, claim);
    read_claim(messages, location, ""); /* without a fencing token */
    ck_assert_ptr_null(claim);
}

START_TEST(a_proxy_may_put_a_prefix_or_its_address_in_front_of_the_path)
{
    static const char *const places[] = {
        "/mq/v2/queues/jobs/claims/c1", "/v2/v2/queues/jobs/claims/c1",
        "https://queues.example.net/mq/v2/queues/jobs/claims/c1"};

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        work_claim_free(mem, claim);
        read_claim(messages, places[i], "1");
        ck_assert_msg(claim != NULL, "%s", places[i]);
        ck_assert_str_eq(claim->path, location);
        ck_assert(bytes_equal_str(claim->queue, "jobs"));
        ck_assert(bytes_equal_str(claim->id, "c1"));
    }
}

START_TEST(without_memory_there_is_no_claim)
{
    for (uint64_t nth = 1;; nth++) {
        work_claim_free(mem, claim);
        transfer_init(&response, mem, TRANSFER_CLAIM, NULL);
        buf_str(&response.body, messages);
        strcpy(response.location, location);
        strcpy(response.claim_number, "1");
        mem_fail_nth(mem, nth);
        claim = work_claim_read(mem, &response, 3, 60000, &why);
        mem_fail_nth(mem, 0);
        buf_fini(&response.body);
        if (claim != NULL)
            break;
        ck_assert_str_eq(why, "out of memory");
        read_claim(messages, location, "1");
    }
}

START_TEST(a_command_gets_the_metadata_and_the_environment)
{
    static const char variables[] =
        "CLAIMD_QUEUE=jobs\0CLAIMD_MESSAGE_ID=m1\0CLAIMD_CLAIM_ID=c1\0"
        "CLAIMD_CLAIM_NUMBER=7302444236537877\0"
        "CLAIMD_DELIVERY_COUNT=4\0";
    struct buf out, with_deadline;
    char **all;
    bool inherited = false;

    buf_init(&out, mem);
    job_metadata_write(&out, &claim->jobs[0], 1800000000);
    buf_byte(&out, '\0');
    ck_assert_str_eq(out.data,
                     "{\"queue\":\"jobs\",\"message_id\":\"m1\",\"claim_id\":\"c1\","
                     "\"claim_number\":\"7302444236537877\",\"delivery_count\":4,"
                     "\"deadline\":1800000000,"
                     "\"details\":{\"delivery_count\": 4, \"state\": \"claimed\"}}\n");
    buf_fini(&out);
    ck_assert_int_eq(setenv("CLAIMD_DEADLINE", "old", 1), 0);
    ck_assert_int_eq(setenv("NOTIFY_SOCKET", "/run/x", 1), 0);
    ck_assert_int_eq(setenv("CLAIMD_TEST_MARK", "kept", 1), 0);
    all = work_environment(mem);
    for (size_t i = 0; all[i] != NULL; i++) {
        inherited |= strcmp(all[i], "CLAIMD_TEST_MARK=kept") == 0;
        ck_assert(strncmp(all[i], "CLAIMD_DEADLINE=", 16) != 0);
        ck_assert(strncmp(all[i], "NOTIFY_SOCKET=", 14) != 0);
    }
    ck_assert(inherited);
    mem_free(mem, all);
    ck_assert_int_eq(unsetenv("NOTIFY_SOCKET") + unsetenv("CLAIMD_DEADLINE"), 0);
    buf_init(&out, mem);
    job_variables_write(&out, &claim->jobs[0], 0);
    ck_assert(bytes_equal(buf_view(&out), bytes_of(variables, sizeof(variables) - 1)));
    buf_str(&out, "CLAIMD_DEADLINE=1800000000");
    buf_byte(&out, '\0');
    buf_init(&with_deadline, mem);
    job_variables_write(&with_deadline, &claim->jobs[0], 1800000000);
    ck_assert(bytes_equal(buf_view(&with_deadline), buf_view(&out)));
    buf_fini(&with_deadline);
    buf_fini(&out);
}

START_TEST(raw_input_is_the_text_of_a_string)
{
    struct buf space;

    buf_init(&space, mem);
    ck_assert(
        bytes_equal_str(job_input(&claim->jobs[1], true, &space), "caf\xc3\xa9 \"x\""));
    buf_reset(&space, 0);
    ck_assert(bytes_equal_str(job_input(&claim->jobs[0], true, &space), "{\"a\": 1}"));
    ck_assert(bytes_equal_str(job_input(&claim->jobs[1], false, &space),
                              "\"caf\\u00e9 \\\"x\\\"\""));
    buf_fini(&space);
}

TEST_CASE("finish", .setup = begin, .teardown = end);

START_TEST(one_request_has_all_ended_jobs)
{
    int64_t next_ms = INT64_MAX;

    ck_assert(!finish_is_due(claim, 2000, &next_ms));
    job_end(0, OUTCOME_DELETE, "", 0);
    job_end(2, OUTCOME_RETRY, "exit status 1: a \"b\"", 8);
    ck_assert(finish_is_due(claim, 2000, &next_ms));
    assert_request("{\"atomic\":false,\"delete\":[\"m1\"],"
                   "\"release\":[{\"id\":\"m3\",\"delay\":8,"
                   "\"reason\":\"exit status 1: a \\\"b\\\"\"}]}");
    ck_assert(!finish_is_due(claim, 2000, &next_ms));
    ck_assert(read_results("{\"results\": [{\"id\": \"m1\", \"result\": \"deleted\"},"
                           "{\"id\": \"m3\", \"result\": \"released\"}]}",
                           3000));
    ck_assert_uint_eq(called[FINISH_DELETED], 1);
    ck_assert_uint_eq(called[FINISH_RELEASED], 1);
    ck_assert_uint_eq(claim->open, 1);
    ck_assert_int_eq(claim->jobs[1].state, JOB_RUNNING);
    job_end(1, OUTCOME_DEAD_LETTER, "bad", 0);
    assert_request(
        "{\"atomic\":false,\"dead_letter\":[{\"id\":\"m2\",\"reason\":\"bad\"}]}");
    ck_assert(read_results(
        "{\"results\": [{\"id\": \"m2\", \"result\": \"dead_lettered\"}]}", 3000));
    ck_assert_uint_eq(called[FINISH_DEAD_LETTERED], 1);
    ck_assert_uint_eq(claim->open, 0);
}

START_TEST(a_release_that_says_nothing_of_the_job_does_not_count)
{
    job_end(0, OUTCOME_RELEASE, "", 0);
    job_end(1, OUTCOME_BROKEN, "", 0);
    assert_request("{\"atomic\":false,\"release\":[{\"id\":\"m1\",\"counted\":false},"
                   "{\"id\":\"m2\",\"counted\":false}]}");
}

START_TEST(a_service_that_is_away_releases_with_pause_and_reason_uncounted)
{
    job_end(0, OUTCOME_AWAY, "HTTP status 503", 30);
    assert_request("{\"atomic\":false,\"release\":[{\"id\":\"m1\",\"delay\":30,"
                   "\"reason\":\"HTTP status 503\",\"counted\":false}]}");
}

START_TEST(a_failure_without_pause_counts)
{
    job_end(0, OUTCOME_RETRY, "exit status 1", 0);
    assert_request("{\"atomic\":false,\"release\":[{\"id\":\"m1\","
                   "\"reason\":\"exit status 1\"}]}");
    ck_assert(read_results(
        "{\"results\": [{\"id\": \"m1\", \"result\": \"dead_lettered\"}]}", 3000));
    ck_assert_uint_eq(called[FINISH_DEAD_LETTERED], 1); /* it was the last attempt */
}

START_TEST(a_request_without_response_is_repeated_after_a_pause)
{
    int64_t next_ms = INT64_MAX;

    job_end(0, OUTCOME_DELETE, "", 0);
    assert_request("{\"atomic\":false,\"delete\":[\"m1\"]}");
    finish_retry(claim, 2000, -1000, true);
    ck_assert(!finish_is_due(claim, 2000, &next_ms));
    ck_assert_int_gt(next_ms, 2000);
    ck_assert_int_le(next_ms, 3000);
    ck_assert(finish_is_due(claim, next_ms, &next_ms));
    assert_request("{\"atomic\":false,\"delete\":[\"m1\"]}");
    finish_retry(claim, 2000, 9000, true);
    next_ms = INT64_MAX;
    ck_assert(!finish_is_due(claim, 2000, &next_ms));
    ck_assert_int_eq(next_ms, 11000);
}

START_TEST(a_long_retry_after_does_not_outlast_the_lease)
{
    int64_t next_ms = INT64_MAX; /* the lease lasts from 1000 to 61000 */

    job_end(0, OUTCOME_DELETE, "", 0);
    assert_request("{\"atomic\":false,\"delete\":[\"m1\"]}");
    finish_retry(claim, 2000, INT64_C(2147483646000), true);
    ck_assert(!finish_is_due(claim, 2000, &next_ms));
    ck_assert_int_eq(next_ms, 56000);
    assert_request("{\"atomic\":false,\"delete\":[\"m1\"]}");
    finish_retry(claim, 56000, INT64_C(2147483646000), true);
    next_ms = INT64_MAX;
    ck_assert(!finish_is_due(claim, 56000, &next_ms));
    ck_assert_int_gt(next_ms, 56000);
    ck_assert_int_le(next_ms, 61000);
}

static const char not_held[] =
    "{\"results\": [{\"id\": \"m1\", \"result\": \"not_held\"}]}";

START_TEST(a_message_that_is_not_held_is_not_finished)
{
    job_end(0, OUTCOME_DELETE, "", 0);
    assert_request("{\"atomic\":false,\"delete\":[\"m1\"]}");
    ck_assert(read_results(not_held, 3000));
    ck_assert_uint_eq(called[FINISH_NOT_HELD], 1);
}

START_TEST(not_held_in_a_repetition_is_done_while_the_lease_lasts)
{
    job_end(0, OUTCOME_DELETE, "", 0);
    assert_request("{\"atomic\":false,\"delete\":[\"m1\"]}");
    finish_retry(claim, 2000, 0, true);
    assert_request("{\"atomic\":false,\"delete\":[\"m1\"]}");
    ck_assert(read_results(not_held, 60999));
    ck_assert_uint_eq(called[FINISH_DONE], 1);
}

START_TEST(not_held_in_a_repetition_after_the_lease_is_not_done)
{
    job_end(0, OUTCOME_DELETE, "", 0);
    assert_request("{\"atomic\":false,\"delete\":[\"m1\"]}");
    finish_retry(claim, 2000, 0, true);
    assert_request("{\"atomic\":false,\"delete\":[\"m1\"]}");
    ck_assert(read_results(not_held, 61000));
    ck_assert_uint_eq(called[FINISH_NOT_HELD], 1);
}

START_TEST(a_claim_that_is_over_holds_none_of_its_messages)
{
    job_end(0, OUTCOME_DELETE, "", 0);
    assert_request("{\"atomic\":false,\"delete\":[\"m1\"]}");
    finish_retry(claim, 2000, 0, true);
    job_end(1, OUTCOME_DELETE, "", 0);
    assert_request("{\"atomic\":false,\"delete\":[\"m1\",\"m2\"]}");
    finish_not_held(claim, 3000, on_done, claim);
    ck_assert_uint_eq(called[FINISH_DONE], 1);
    ck_assert_uint_eq(called[FINISH_NOT_HELD], 1);
    ck_assert_uint_eq(claim->open, 1);
}

START_TEST(a_response_that_is_not_understood_leaves_the_rest_for_a_retry)
{
    static const char *const documents[] = {
        "",
        "{}",
        "{\"results\": []}",
        "{\"results\": {}}",
        "{\"results\": [1]}",
        "{\"results\": [{\"id\": \"m9\", \"result\": \"deleted\"}]}",
        "{\"results\": [{\"id\": \"m1\", \"result\": \"eaten\"}]}",
        "{\"results\": [{\"id\": \"m1\""};

    job_end(0, OUTCOME_DELETE, "", 0);
    for (size_t i = 0; i < sizeof(documents) / sizeof(documents[0]); i++) {
        assert_request("{\"atomic\":false,\"delete\":[\"m1\"]}");
        ck_assert_msg(!read_results(documents[i], 3000), "%s", documents[i]);
        finish_retry(claim, 2000, 0, true);
        ck_assert_int_eq(claim->jobs[0].state, JOB_ENDED);
    }
    ck_assert_uint_eq(claim->open, 3);
}

START_TEST(without_a_dead_letter_queue_messages_are_released_with_the_reason)
{
    const struct work_backoff usual = {1, 900};

    job_end(0, OUTCOME_DEAD_LETTER, "bad", 0);
    assert_request(
        "{\"atomic\":false,\"dead_letter\":[{\"id\":\"m1\",\"reason\":\"bad\"}]}");
    ck_assert_uint_eq(finish_without_dead_letters(claim, &usual, 0), 1);
    finish_retry(claim, 2000, -1, false);
    assert_request("{\"atomic\":false,\"release\":[{\"id\":\"m1\",\"delay\":16,"
                   "\"reason\":\"bad\"}]}");
    ck_assert_uint_eq(finish_without_dead_letters(claim, &usual, 0), 0);
}

START_TEST(giving_up_ends_all_but_the_running_jobs)
{
    job_end(0, OUTCOME_DELETE, "", 0);
    assert_request("{\"atomic\":false,\"delete\":[\"m1\"]}");
    job_end(1, OUTCOME_DELETE, "", 0);
    finish_give_up(claim, on_done, claim);
    ck_assert_uint_eq(called[FINISH_UNKNOWN], 2);
    ck_assert_uint_eq(claim->open, 1);
}
