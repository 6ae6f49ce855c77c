/*
 * `claimd run` reports the messages that the tests left behind (docs/api.md 23.8), from
 * the pages of the test API. Declared in src/main/run/run.h.
 */
#include "main/run/run.h"

#include "support/check_main.h"

#include <stdlib.h>
#include <string.h>

static struct leak_report report;
static char next[LEAK_REPORT_NEXT_CAP];
static char *text;
static size_t len;

static void
open_report(void)
{
    report = (struct leak_report){.to = open_memstream(&text, &len), .of = ""};
    ck_assert_ptr_nonnull(report.to);
}

static void
close_report(void)
{
    (void)fclose(report.to);
    free(text);
}

static bool
page(const char *json)
{
    bool good = leak_report_page(&report, bytes_str(json), next);

    (void)fflush(report.to);
    return good;
}

#define LEAK(kind, more)                                                                 \
    "{\"kind\":\"" kind "\",\"project\":\"p\",\"queue\":\"q\"," more                     \
    "\"at\":\"2026-11-23T09:00:00Z\",\"at_ms\":1}"
#define CLAIM  LEAK("claim", "\"claim\":\"c\",\"messages\":1,\"client\":\"me\",")
#define UNREAD LEAK("unread", "\"id\":\"m\",\"client\":null,")
#define DEAD   LEAK("dead_letter", "\"id\":\"d\",\"from\":\"o\",\"client\":\"me\",")

TEST_CASE("report", .setup = open_report, .teardown = close_report);

START_TEST(each_kind_has_its_line)
{
    ck_assert(page("{\"leaks\":[" CLAIM "," UNREAD "," DEAD "]}"));
    ck_assert_str_eq(
        text,
        "claimd: leaked: claim c of 1 message in queue q (project p), neither finished "
        "nor "
        "released, claimed by me at 2026-11-23T09:00:00Z\n"
        "claimd: leaked: message m in queue q (project p), never read, posted by an "
        "unknown client at 2026-11-23T09:00:00Z\n"
        "claimd: leaked: dead letter d in queue q (project p), from queue o, last "
        "claimed "
        "by me, moved at 2026-11-23T09:00:00Z\n");
    ck_assert_str_eq(next, "");
    ck_assert_uint_eq(leak_report_count(&report), 3);
}

START_TEST(pages_are_summed_up)
{
    ck_assert(page("{\"leaks\":[" CLAIM "," UNREAD "],\"links\":[{\"rel\":\"next\","
                   "\"href\":\"/claimd/leaks?marker=x\"}]}"));
    ck_assert_str_eq(next, "/claimd/leaks?marker=x");
    ck_assert(page("{\"leaks\":[" UNREAD "]}"));
    ck_assert_str_eq(next, "");
    leak_report_write_sum(&report);
    (void)fflush(report.to);
    ck_assert_ptr_nonnull(strstr(
        text, "claimd: 3 leaks: 1 claim, 2 messages never read, 0 dead letters\n"));
}

#define ENDED(by) "\"ended_by\":\"" by "\",\"ended_at\":\"2026-11-23T10:00:00Z\","

START_TEST(leaks_that_the_server_no_longer_has_say_why)
{
    ck_assert(page("{\"leaks\":[" LEAK(
        "claim", "\"claim\":\"c\",\"messages\":2,\"client\":\"me\"," ENDED(
                     "time")) "," LEAK("unread",
                                       "\"id\":\"m\",\"client\":null," ENDED(
                                           "reset")) "],\"left_out\":5}"));
    leak_report_write_sum(&report);
    (void)fflush(report.to);
    ck_assert_str_eq(
        text,
        "claimd: leaked: claim c of 2 messages in queue q (project p), neither finished "
        "nor released, claimed by me at 2026-11-23T09:00:00Z, expired at "
        "2026-11-23T10:00:00Z\n"
        "claimd: leaked: message m in queue q (project p), never read, posted by an "
        "unknown client at 2026-11-23T09:00:00Z, deleted by a reset at "
        "2026-11-23T10:00:00Z\n"
        "claimd: 7 leaks: 1 claim, 1 message never read, 0 dead letters, 5 not listed\n"
        "claimd: If a test lets leases or messages expire on purpose, it moves the clock "
        "with \"may_expire\": true, and names its project in X-Project-ID\n");
    ck_assert_uint_eq(leak_report_count(&report), 7);
}

START_TEST(nothing_has_no_line)
{
    ck_assert(page("{\"leaks\":[]}"));
    leak_report_write_sum(&report);
    (void)fflush(report.to);
    ck_assert_uint_eq(len, 0);
}

START_TEST(many_are_counted)
{
    for (int i = 0; i < LEAK_REPORT_LINES; i++)
        ck_assert(page("{\"leaks\":[" UNREAD "]}"));
    size_t before = len;
    ck_assert(page("{\"leaks\":[" UNREAD "]}"));
    ck_assert_uint_eq(len, before);
    ck_assert_uint_eq(leak_report_count(&report), LEAK_REPORT_LINES + 1);
}

START_TEST(a_text_that_is_no_page_is_refused)
{
    static const char *const pages[] = {
        "",
        "x",
        "[]",
        "{}",
        "{\"leaks\":{}}",
        "{\"leaks\":[" UNREAD, /* cut off */
        "{\"leaks\":[1]}",
        "{\"leaks\":[{}]}",
        "{\"leaks\":[" LEAK("other", "") "]}",
        "{\"leaks\":[" LEAK("claim", "") "]}",
        "{\"leaks\":[" LEAK("unread", "") "]}",
        "{\"leaks\":[" LEAK("dead_letter", "\"id\":\"x\",") "]}",
        "{\"leaks\":[],\"links\":[{}]}",
    };

    for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++)
        ck_assert_msg(!page(pages[i]), "%s", pages[i]);
}
