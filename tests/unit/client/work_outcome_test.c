/* The outcome of an attempt at a job. */
#include "client/work_outcome.h"

#include "support/check_main.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static const struct work_backoff usual = {1, 900};
static struct job_outcome outcome;
static char reason[REASON_MOST + 1];

/* A status of waitpid(2). */
static int
exited(int code)
{
    return code << 8;
}

static void
command_ends(int status, enum attempt_stop stop, const char *tail)
{
    const struct job_attempt a = {
        .number = 3, .stop = stop, .timeout_s = 30, .backoff = &usual};

    outcome_of_command(&outcome, &a, status, bytes_str(tail));
}

/* The end of a request to a service, of which the default is: sent, and no response. */
static void
service_ends(struct work_transfer end, enum attempt_stop stop)
{
    const struct job_attempt a = {.number = 3,
                                  .stop = stop,
                                  .timeout_s = 30,
                                  .backoff = &usual,
                                  .service = "http://s/x"};

    outcome_of_request(&outcome, &a, &end);
}

static void
service_responds(long status, int64_t retry_after_s, const char *text)
{
    char body[2 * REASON_MOST];
    struct work_transfer end = {
        .status = status, .sent = true, .retry_after_s = retry_after_s};

    (void)snprintf(body, sizeof(body), "%s", text);
    (void)snprintf(end.error, sizeof(end.error), "%.200s", text);
    end.body = (struct buf){.data = body, .len = strlen(body)};
    service_ends(end, STOP_NONE);
}

static void
service_is_not_reached(bool unusable, bool worked, const char *why)
{
    const struct job_attempt a = {.number = 3,
                                  .backoff = &usual,
                                  .service = "http://s/x",
                                  .service_worked = worked};
    struct work_transfer end = {.unusable = unusable, .retry_after_s = -1};

    (void)snprintf(end.error, sizeof(end.error), "%s", why);
    outcome_of_request(&outcome, &a, &end);
}

TEST_CASE("backoff");

START_TEST(the_pause_doubles_up_to_the_limit)
{
    ck_assert_int_eq(backoff_s(&usual, 1, 0), 2);
    ck_assert_int_eq(backoff_s(&usual, 2, 0), 4);
    ck_assert_int_eq(backoff_s(&usual, 9, 0), 512);
    ck_assert_int_eq(backoff_s(&usual, 10, 0), 900);
    ck_assert_int_eq(backoff_s(&usual, INT64_MAX, 0), 900);
}

START_TEST(up_to_a_half_of_the_pause_is_random)
{
    int64_t least = INT64_MAX, most = 0;

    for (uint32_t random = 0; random < 10000; random++) {
        int64_t pause = backoff_s(&usual, 6, random);

        least = pause < least ? pause : least;
        most = pause > most ? pause : most;
    }
    ck_assert_int_eq(least, 32);
    ck_assert_int_eq(most, 64);
}

START_TEST(the_option_has_a_base_and_a_limit)
{
    struct work_backoff b;

    ck_assert(backoff_parse(&b, "5,60"));
    ck_assert_int_eq(backoff_s(&b, 1, 0), 10);
    ck_assert_int_eq(backoff_s(&b, 4, 0), 60);
    ck_assert(backoff_parse(&b, "2"));
    ck_assert_int_eq(b.most_s, 900);
    ck_assert(backoff_parse(&b, "3600"));
    ck_assert_int_eq(b.most_s, 3600);
    ck_assert(backoff_parse(&b, "0"));
    ck_assert_int_eq(backoff_s(&b, 7, 12345), 0);
    ck_assert(backoff_parse(&b, "43200,43200"));
    ck_assert_int_eq(backoff_s(&b, INT64_MAX, 0), 43200);
}

START_TEST(other_texts_are_no_backoff)
{
    static const char *const texts[] = {"",   "x",     "-1",    "1,",
                                        ",5", "1,2,3", "43201", "1.5"};
    struct work_backoff b;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        ck_assert_msg(!backoff_parse(&b, texts[i]), "%s", texts[i]);
}

TEST_CASE("reason");

START_TEST(a_reason_has_the_end_of_the_text)
{
    char text[3000];

    memset(text, 'a', sizeof(text));
    memcpy(text + sizeof(text) - 5, "last", 5);
    reason_write(reason, "exit status 1", bytes_str(text));
    ck_assert_uint_eq(strlen(reason), REASON_MOST);
    ck_assert(strncmp(reason, "exit status 1: aaa", 18) == 0);
    ck_assert_str_eq(reason + REASON_MOST - 5, "alast");
}

START_TEST(a_character_is_not_cut)
{
    char text[3 * 600];

    for (size_t i = 0; i < sizeof(text); i += 3)
        memcpy(text + i, "\xe2\x82\xac", 3);
    for (size_t len = sizeof(text) - 3; len <= sizeof(text); len++) {
        reason_write(reason, NULL, bytes_of(text + sizeof(text) - len, len));
        ck_assert_uint_le(strlen(reason), REASON_MOST);
        ck_assert_uint_eq(strlen(reason) % 3, 0);
        ck_assert(memcmp(reason, "\xe2\x82\xac", 3) == 0);
    }
}

START_TEST(bytes_that_are_no_text_become_question_marks)
{
    reason_write(reason, NULL, bytes_of("  a\0b\xff\x1b[1m\tc\nd \n", 16));
    ck_assert_str_eq(reason, "a?b??[1m\tc\nd");
}

START_TEST(without_text_the_reason_is_the_way_it_ended)
{
    reason_write(reason, "exit status 1", bytes_str(" \n"));
    ck_assert_str_eq(reason, "exit status 1");
    reason_write(reason, "exit status 1", BYTES_NONE);
    ck_assert_str_eq(reason, "exit status 1");
}

TEST_CASE("command");

START_TEST(success_deletes)
{
    command_ends(exited(0), STOP_NONE, "a warning");
    ck_assert_int_eq(outcome.kind, OUTCOME_DELETE);
}

START_TEST(a_failure_retries_with_the_reason)
{
    command_ends(exited(1), STOP_NONE, "no such host\n");
    ck_assert_int_eq(outcome.kind, OUTCOME_RETRY);
    ck_assert_int_eq(outcome.delay_s, 8);
    ck_assert_str_eq(outcome.reason, "exit status 1: no such host");
}

START_TEST(a_signal_is_a_failure)
{
    command_ends(SIGSEGV, STOP_NONE, "");
    ck_assert_int_eq(outcome.kind, OUTCOME_RETRY);
    ck_assert_str_eq(outcome.reason, "killed by SIGSEGV");
    command_ends(SIGRTMIN + 1, STOP_NONE, "");
    ck_assert_int_eq(outcome.kind, OUTCOME_RETRY);
}

START_TEST(status_65_dead_letters_with_standard_error_alone)
{
    command_ends(exited(65), STOP_NONE, "bad JSON\n");
    ck_assert_int_eq(outcome.kind, OUTCOME_DEAD_LETTER);
    ck_assert_str_eq(outcome.reason, "bad JSON");
    command_ends(exited(65), STOP_NONE, "");
    ck_assert_str_eq(outcome.reason, "exit status 65");
}

START_TEST(a_command_that_cannot_run_is_broken)
{
    command_ends(exited(126), STOP_NONE, "");
    ck_assert_int_eq(outcome.kind, OUTCOME_BROKEN);
    command_ends(exited(127), STOP_NONE, "");
    ck_assert_int_eq(outcome.kind, OUTCOME_BROKEN);
}

START_TEST(a_timeout_is_a_failure_whatever_the_status)
{
    command_ends(exited(0), STOP_TIMEOUT, "half");
    ck_assert_int_eq(outcome.kind, OUTCOME_RETRY);
    ck_assert_str_eq(outcome.reason, "timed out after 30 s: half");
    command_ends(exited(65), STOP_TIMEOUT, "");
    ck_assert_int_eq(outcome.kind, OUTCOME_RETRY);
}

START_TEST(an_attempt_that_the_runner_broke_off_says_nothing)
{
    command_ends(exited(0), STOP_RUNNER, "");
    ck_assert_int_eq(outcome.kind, OUTCOME_RELEASE);
    command_ends(SIGKILL, STOP_RUNNER, "");
    ck_assert_int_eq(outcome.kind, OUTCOME_RELEASE);
}

TEST_CASE("service");

START_TEST(statuses_from_200_to_299_delete)
{
    for (long status = 200; status < 300; status++) {
        service_responds(status, -1, "");
        ck_assert_int_eq(outcome.kind, OUTCOME_DELETE);
    }
}

START_TEST(a_service_that_is_not_available_does_not_fail_the_job)
{
    service_responds(429, 17, "slow down");
    ck_assert_int_eq(outcome.kind, OUTCOME_AWAY);
    ck_assert(!outcome.unsent);
    ck_assert_int_eq(outcome.delay_s, 17);
    ck_assert_str_eq(outcome.reason, "HTTP status 429 from http://s/x: slow down");
    service_responds(503, -1, "");
    ck_assert_int_eq(outcome.kind, OUTCOME_AWAY);
    ck_assert_int_eq(outcome.delay_s, 2); /* back-off, as after a first attempt */
}

START_TEST(retry_after_is_limited_like_all_pauses)
{
    service_responds(503, 1000000, "");
    ck_assert_int_eq(outcome.delay_s, 900);
    service_responds(500, 1000000, "");
    ck_assert_int_eq(outcome.delay_s, 900);
    service_responds(503, 0, "");
    ck_assert_int_eq(outcome.delay_s, 0);
}

START_TEST(other_statuses_are_failures_that_count)
{
    static const long statuses[] = {100, 199, 300, 302, 303, 400, 401, 404,
                                    408, 409, 425, 500, 502, 504, 999};

    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        service_responds(statuses[i], -1, "");
        ck_assert_int_eq(outcome.kind, OUTCOME_RETRY);
        ck_assert_int_eq(outcome.doubt, statuses[i] == 502 || statuses[i] == 504);
        ck_assert_int_eq(outcome.delay_s, outcome.doubt ? 240 : 8);
    }
    service_responds(500, 17, "");
    ck_assert_int_eq(outcome.delay_s, 17);
}

START_TEST(a_request_without_response_counts_because_the_job_may_have_run)
{
    service_responds(0, -1, "Connection reset");
    ck_assert_int_eq(outcome.kind, OUTCOME_RETRY);
    ck_assert(outcome.doubt);
    ck_assert_int_eq(outcome.delay_s, 240);
    ck_assert_str_eq(outcome.reason, "no response from http://s/x: Connection reset");
}

START_TEST(a_request_that_was_not_sent_does_not_count)
{
    service_is_not_reached(false, false, "Connection refused");
    ck_assert_int_eq(outcome.kind, OUTCOME_AWAY);
    ck_assert(outcome.unsent);
    ck_assert_int_eq(outcome.delay_s, 0);
    ck_assert_str_eq(outcome.reason, "cannot reach http://s/x: Connection refused");
}

START_TEST(a_url_that_has_never_worked_is_a_broken_command)
{
    service_is_not_reached(true, false, "self-signed certificate");
    ck_assert_int_eq(outcome.kind, OUTCOME_BROKEN);
    ck_assert_str_eq(outcome.reason, "cannot reach http://s/x: self-signed certificate");
    service_is_not_reached(true, true, "certificate has expired");
    ck_assert_int_eq(outcome.kind, OUTCOME_AWAY);
}

START_TEST(a_service_that_has_moved_is_a_broken_command)
{
    static const long statuses[] = {301, 307, 308};

    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        service_ends((struct work_transfer){.status = statuses[i],
                                            .sent = true,
                                            .retry_after_s = -1,
                                            .location = "https://s/x"},
                     STOP_NONE);
        ck_assert_int_eq(outcome.kind, OUTCOME_BROKEN);
    }
    ck_assert_str_eq(outcome.reason, "HTTP status 308 from http://s/x: https://s/x");
}

START_TEST(a_service_can_dead_letter)
{
    service_responds(422, 17, "bad JSON");
    ck_assert_int_eq(outcome.kind, OUTCOME_DEAD_LETTER);
    ck_assert_int_eq(outcome.delay_s, 0);
    ck_assert_str_eq(outcome.reason, "HTTP status 422 from http://s/x: bad JSON");
    for (long status = 200; status < 600; status += 100) {
        service_ends((struct work_transfer){.status = status,
                                            .sent = true,
                                            .retry_after_s = -1,
                                            .result = "Dead-Letter"},
                     STOP_NONE);
        ck_assert_int_eq(outcome.kind, OUTCOME_DEAD_LETTER);
    }
}

START_TEST(an_unknown_result_header_does_not_delete)
{
    service_ends(
        (struct work_transfer){
            .status = 200, .sent = true, .retry_after_s = -1, .result = "deadletter"},
        STOP_NONE);
    ck_assert_int_eq(outcome.kind, OUTCOME_RETRY);
    ck_assert_str_eq(outcome.reason,
                     "Claimd-Result of http://s/x is unknown: deadletter");
}

START_TEST(a_timeout_counts_if_the_request_was_sent)
{
    service_ends((struct work_transfer){.sent = true, .retry_after_s = -1}, STOP_TIMEOUT);
    ck_assert_int_eq(outcome.kind, OUTCOME_RETRY);
    ck_assert_str_eq(outcome.reason, "timed out after 30 s: http://s/x");
    service_ends((struct work_transfer){.retry_after_s = -1}, STOP_TIMEOUT);
    ck_assert_int_eq(outcome.kind, OUTCOME_AWAY);
    ck_assert_str_eq(outcome.reason, "cannot reach http://s/x within 30 s");
    service_ends((struct work_transfer){.sent = true, .retry_after_s = -1}, STOP_RUNNER);
    ck_assert_int_eq(outcome.kind, OUTCOME_RELEASE);
}
