/* The lines that a kept command writes, and the outcomes of messages that it had. */
#include "client/work_line.h"

#include "support/check_main.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static const struct work_backoff usual = {1, 900};
static struct work_line line;
static struct job_outcome outcome;

static void
read_line(const char *text)
{
    const struct job_attempt a = {.number = 3, .backoff = &usual, .service_worked = true};

    line_read(&line, bytes_str(text));
    outcome_of_line(&outcome, &a, &line, bytes_str(text));
}

static void
process_ends(int status, enum attempt_stop stop, const char *fault, bool worked)
{
    const struct job_attempt a = {.number = 3,
                                  .stop = stop,
                                  .timeout_s = 30,
                                  .backoff = &usual,
                                  .service_worked = worked};

    outcome_of_kept(&outcome, &a, status, fault, bytes_str("text\n"));
}

static int
exited(int status)
{
    return status << 8;
}

TEST_CASE("line");

START_TEST(a_response_has_an_id_and_a_result)
{
    read_line("{\"id\": \"m1\", \"result\": \"delete\"}");
    ck_assert_ptr_null(line.fault);
    ck_assert(bytes_equal_str(line.id, "m1"));
    ck_assert_int_eq(outcome.kind, OUTCOME_DELETE);
    read_line(" {\"more\": [1, {}], \"result\":\"rele\\u0061se\",\"id\":\"m2\"} \r");
    ck_assert_int_eq(outcome.kind, OUTCOME_RETRY);
    ck_assert_int_eq(outcome.delay_s, 8); /* the back-off */
    ck_assert_str_eq(outcome.reason, "");
    read_line("{\"id\": \"m1\", \"result\": \"dead_letter\"}");
    ck_assert_int_eq(outcome.kind, OUTCOME_DEAD_LETTER);
}

START_TEST(delay_and_reason_may_be_left_out_or_null)
{
    read_line("{\"id\": \"m\", \"result\": \"release\", \"delay\": 0, \"reason\": null}");
    ck_assert_ptr_null(line.fault);
    ck_assert_int_eq(outcome.delay_s, 0);
    read_line("{\"id\": \"m\", \"result\": \"release\", \"delay\": 43200,"
              " \"reason\": \"caf\\u00e9 \\\"x\\\"\"}");
    ck_assert_int_eq(outcome.delay_s, 43200);
    ck_assert_str_eq(outcome.reason, "caf\xc3\xa9 \"x\"");
    ck_assert_str_eq(outcome.what, outcome.reason);
}

START_TEST(a_reason_that_is_too_long_is_cut_between_characters)
{
    char text[2 * REASON_MOST], euros[REASON_MOST + 10] = "";

    for (size_t i = 0; i < (sizeof(euros) - 1) / 3; i++)
        memcpy(euros + 3 * i, "\xe2\x82\xac", 3);
    (void)snprintf(text, sizeof(text),
                   "{\"id\": \"m\", \"result\": \"release\", \"reason\": \"%s\"}", euros);
    read_line(text);
    ck_assert_uint_eq(strlen(outcome.reason), REASON_MOST / 3 * 3);
}

START_TEST(a_line_without_an_id_is_no_response)
{
    static const char *const texts[] = {"",
                                        "hello",
                                        "[]",
                                        "1",
                                        "{",
                                        "{\"id\": \"m\", \"result\": \"delete\"",
                                        "{\"id\": \"m\", \"result\": \"delete\"} x",
                                        "{}",
                                        "{\"result\": \"delete\"}",
                                        "{\"id\": 1, \"result\": \"delete\"}",
                                        "{\"id\": null, \"result\": \"delete\"}",
                                        "{\"id\": \"\xff\", \"result\": \"delete\"}"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        read_line(texts[i]);
        ck_assert_msg(line.fault != NULL, "%s", texts[i]);
        ck_assert(!bytes_present(line.id));
        ck_assert_int_eq(outcome.kind, OUTCOME_RETRY);
    }
}

START_TEST(a_line_with_an_id_and_no_valid_rest_fails_the_message)
{
    static const char *const rests[] = {
        "",
        ", \"result\": null",
        ", \"result\": \"\"",
        ", \"result\": \"deleted\"",
        ", \"result\": \"Delete\"",
        ", \"result\": true",
        ", \"result\": \"delete\", \"delay\": -1",
        ", \"result\": \"delete\", \"delay\": 1.5",
        ", \"result\": \"release\", \"delay\": 43201",
        ", \"result\": \"release\", \"delay\": \"1\"",
        ", \"result\": \"delete\", \"reason\": 1",
        ", \"result\": \"delete\", \"result\": \"done\""}; /* the last one counts */
    char text[200];

    for (size_t i = 0; i < sizeof(rests) / sizeof(rests[0]); i++) {
        (void)snprintf(text, sizeof(text), "{\"id\": \"m\"%s}", rests[i]);
        read_line(text);
        ck_assert_msg(line.fault != NULL, "%s", text);
        ck_assert(bytes_equal_str(line.id, "m"));
        ck_assert_int_eq(outcome.kind, OUTCOME_RETRY);
        ck_assert_int_eq(outcome.delay_s, 8);
        ck_assert_ptr_nonnull(strstr(outcome.reason, "invalid response: "));
        ck_assert_ptr_nonnull(strstr(outcome.reason, text));
    }
}

START_TEST(a_long_line_is_not_copied_whole_into_the_reason)
{
    char text[5000];

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    read_line(text);
    ck_assert_ptr_nonnull(strstr(outcome.reason, ": xxx"));
    ck_assert_uint_lt(strlen(outcome.reason), 400);
}

TEST_CASE("process");

START_TEST(a_message_without_a_response_is_never_deleted)
{
    for (int status = 0; status < 256; status++) {
        process_ends(exited(status), STOP_NONE, "", true);
        ck_assert_int_eq(outcome.kind, OUTCOME_RETRY);
        ck_assert_int_eq(outcome.delay_s, 8);
    }
    ck_assert_str_eq(outcome.reason, "exit status 255: text");
    process_ends(exited(0), STOP_NONE, "", true);
    ck_assert_str_eq(outcome.reason, "exit status 0 without a response: text");
    process_ends(SIGSEGV, STOP_NONE, "", true);
    ck_assert_str_eq(outcome.reason, "killed by SIGSEGV: text");
}

START_TEST(the_fault_of_a_process_is_the_reason_and_not_the_signal_that_ended_it)
{
    process_ends(SIGTERM, STOP_NONE, "invalid response: why", true);
    ck_assert_int_eq(outcome.kind, OUTCOME_RETRY);
    ck_assert_str_eq(outcome.reason, "invalid response: why: text");
}

START_TEST(before_the_first_response_an_end_does_not_count)
{
    process_ends(exited(1), STOP_NONE, "", false);
    ck_assert_int_eq(outcome.kind, OUTCOME_AWAY);
    ck_assert_int_eq(outcome.delay_s, 8);
    ck_assert_str_eq(outcome.reason, "exit status 1: text");
}

START_TEST(a_timeout_counts_also_before_the_first_response)
{
    process_ends(SIGTERM, STOP_TIMEOUT, "", false);
    ck_assert_int_eq(outcome.kind, OUTCOME_RETRY);
    ck_assert_str_eq(outcome.reason, "timed out after 30 s: text");
    process_ends(SIGTERM, STOP_RUNNER, "", true);
    ck_assert_int_eq(outcome.kind, OUTCOME_RELEASE);
}
