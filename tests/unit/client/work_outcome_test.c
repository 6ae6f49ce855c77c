/* The outcome of an attempt at a job. */
#include "client/work_outcome.h"

#include "support/check_main.h"

#include <signal.h>
#include <string.h>

static const struct work_backoff usual = {1, 900};
static struct outcome outcome;
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
    const struct attempt a = {
        .number = 3, .stop = stop, .timeout_s = 30, .backoff = &usual};

    outcome_of_command(&outcome, &a, status, bytes_str(tail));
}

static void
service_responds(long status, int64_t retry_after_s, const char *text)
{
    const struct attempt a = {.number = 3, .backoff = &usual};

    outcome_of_request(&outcome, &a, status, retry_after_s, bytes_str(text));
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

START_TEST(busy_services_get_the_job_again_when_they_ask)
{
    service_responds(429, 17, "slow down");
    ck_assert_int_eq(outcome.kind, OUTCOME_RETRY);
    ck_assert_int_eq(outcome.delay_s, 17);
    ck_assert_str_eq(outcome.reason, "HTTP status 429: slow down");
    service_responds(503, 1000000, "");
    ck_assert_int_eq(outcome.delay_s, 43200);
    service_responds(503, -1, "");
    ck_assert_int_eq(outcome.delay_s, 8); /* back-off */
}

START_TEST(other_responses_are_failures)
{
    static const long statuses[] = {100, 199, 300, 302, 400, 404, 500, 502};

    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        service_responds(statuses[i], 17, "");
        ck_assert_int_eq(outcome.kind, OUTCOME_RETRY);
        ck_assert_int_eq(outcome.delay_s, 8);
    }
    service_responds(0, -1, "Connection refused");
    ck_assert_int_eq(outcome.kind, OUTCOME_RETRY);
    ck_assert_str_eq(outcome.reason, "no response: Connection refused");
}
