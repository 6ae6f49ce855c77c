/* Faults in words. */
#include "api/testapi/handlers.h"
#include "support/check_main.h"

#include <string.h>

TEST_CASE("words");

START_TEST(every_fault_is_written_as_it_is_read)
{
    static const struct {
        const char *text;
        struct fault fault;
    } rows[] = {
        {"latency; ms=200", {.kind = FAULT_LATENCY, .ms = 200}},
        {"latency; ms=600000", {.kind = FAULT_LATENCY, .ms = 600000}},
        {"status=429", {.kind = FAULT_STATUS, .status = 429, .retry_after_s = -1}},
        {"status=503", {.kind = FAULT_STATUS, .status = 503, .retry_after_s = -1}},
        {"status=503; retry_after=0", {.kind = FAULT_STATUS, .status = 503}},
        {"status=429; retry_after=86400",
         {.kind = FAULT_STATUS, .status = 429, .retry_after_s = 86400}},
        {"cut=before", {.kind = FAULT_CUT_BEFORE}},
        {"cut=after", {.kind = FAULT_CUT_AFTER}},
        {"half", {.kind = FAULT_HALF}},
        {"slow; bytes=65536; every_ms=600000",
         {.kind = FAULT_SLOW, .bytes = 65536, .ms = 600000}},
        {"end_claim", {.kind = FAULT_END_CLAIM}},
        {"clock; seconds=31622400", {.kind = FAULT_CLOCK, .seconds = 31622400}},
    };
    char text[FAULT_TEXT_CAP];
    struct reason why;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct fault *wanted = &rows[i].fault;
        struct fault got;

        ck_assert_msg(fault_read(bytes_str(rows[i].text), &got, &why) == ST_OK, "%s",
                      rows[i].text);
        ck_assert_int_eq(got.kind, wanted->kind);
        ck_assert_int_eq(got.status, wanted->status);
        if (got.kind == FAULT_STATUS)
            ck_assert_int_eq(got.retry_after_s, wanted->retry_after_s);
        ck_assert_int_eq(got.ms, wanted->ms);
        ck_assert_int_eq(got.bytes, wanted->bytes);
        ck_assert_int_eq(got.seconds, wanted->seconds);
        fault_text(&got, text);
        ck_assert_str_eq(text, rows[i].text);
    }
}

START_TEST(spaces_and_the_order_do_not_matter)
{
    struct reason why;
    struct fault got;

    ck_assert_int_eq(fault_read(bytes_str("  slow ;every_ms=5;  bytes=7 "), &got, &why),
                     ST_OK);
    ck_assert_int_eq(got.kind, FAULT_SLOW);
    ck_assert_int_eq(got.ms, 5);
    ck_assert_int_eq(got.bytes, 7);
}

START_TEST(an_invalid_fault_is_refused_with_a_reason)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"", "a fault must be "},
        {";", "a fault must be "},
        {"Half", "a fault must be "},
        {"status", "a fault must be "},
        {"status=500", "a fault must be "},
        {"status=503,half", "a fault must be "},
        {"cut", "a fault must be "},
        {"cut=between",
         "a fault must be latency, status=429, status=503, cut=before, cut=after, half, "
         "slow, end_claim or clock, with its settings after a semicolon (received "
         "\"cut=between\")"},
        {"latency", "latency requires ms=N"},
        {"latency; seconds=1", "latency does not have the setting \"seconds\""},
        {"latency; ms=0", "ms must be an integer between 1 and 600000 (received \"0\")"},
        {"latency; ms=600001", "ms must be an integer between 1 and 600000"},
        {"latency; ms=-1", "ms must be an integer between 1 and 600000"},
        {"latency; ms=", "ms must be an integer between 1 and 600000"},
        {"latency; ms=1.5", "ms must be an integer between 1 and 600000"},
        {"latency; ms=99999999999999999999",
         "ms must be an integer between 1 and 600000"},
        {"latency; ms=1; ms=1", "latency does not have the setting \"ms\""},
        {"half; ms=1", "half does not have the setting \"ms\""},
        {"half; half", "half does not have the setting \"half\""},
        {"half;", "half does not have the setting \"\""},
        {"slow; bytes=1", "slow requires every_ms=N"},
        {"slow; bytes=0; every_ms=1", "bytes must be an integer between 1 and 65536"},
        {"status=429; retry_after=86401",
         "retry_after must be an integer between 0 and 86400"},
        {"clock; seconds=31622401", "seconds must be an integer between 1 and 31622400"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fault got = {.kind = FAULT_NONE};
        struct reason why;
        enum status st = fault_read(bytes_str(rows[i].text), &got, &why);

        ck_assert_msg(st == (rows[i].why == NULL ? ST_OK : ST_BAD_VALUE), "%s",
                      rows[i].text);
        if (st == ST_OK)
            continue;
        ck_assert_msg(strncmp(why.text, rows[i].why, strlen(rows[i].why)) == 0, "%s: %s",
                      rows[i].text, why.text);
        ck_assert_int_eq(got.kind, FAULT_NONE);
    }
}
