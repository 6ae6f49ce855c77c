/*
 * Which X-Request-ID and traceparent of a client claimd writes into its log. Declared in
 * src/http/request_log.h.
 */
#include "http/request_log.h"
#include "support/check_main.h"

#include <string.h>

#define TRACE  "4bf92f3577b34da6a3ce929d0e0e4736"
#define PARENT "00f067aa0ba902b7"

START_TEST(an_id_of_a_client_is_used_if_it_is_valid_in_a_log)
{
    char longest[TRACE_ID_MAX + 2];

    memset(longest, 'x', sizeof(longest));
    ck_assert_uint_eq(trace_id(bytes_str("req-1/a=b~")).len, 10);
    ck_assert_uint_eq(trace_id(bytes_of(longest, TRACE_ID_MAX)).len, TRACE_ID_MAX);
    ck_assert(!bytes_present(trace_id(bytes_of(longest, TRACE_ID_MAX + 1))));
    ck_assert(!bytes_present(trace_id(bytes_str(""))));
    ck_assert(!bytes_present(trace_id(BYTES_NONE)));
    ck_assert(!bytes_present(trace_id(bytes_str("a b"))));
    ck_assert(!bytes_present(trace_id(bytes_str("a\x7f"))));
    ck_assert(!bytes_present(trace_id(bytes_str("gr\xc3\xbc\xc3\x9f"))));
}

START_TEST(a_traceparent_has_to_be_valid)
{
    static const char *const good[] = {"00-" TRACE "-" PARENT "-00",
                                       "00-" TRACE "-" PARENT "-01",
                                       "cc-" TRACE "-" PARENT "-01-more-of-it"};
    static const char *const bad[] = {
        "",
        "00",
        "00-" TRACE "-" PARENT,
        "00-" TRACE "-" PARENT "-01-more",
        "00-" TRACE "-" PARENT "-1",
        "00-" TRACE "-" PARENT "-0g",
        "ff-" TRACE "-" PARENT "-01",
        "0-" TRACE "-" PARENT "-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-" PARENT "-01",
        "00-00000000000000000000000000000000-" PARENT "-01",
        "00-" TRACE "-0000000000000000-01",
        "00-" TRACE "0-" PARENT "-01",
        "00-" TRACE "-" PARENT "0-01",
        " 00-" TRACE "-" PARENT "-01",
    };

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        ck_assert_msg(bytes_present(trace_parent(bytes_str(good[i]))), "%s", good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(!bytes_present(trace_parent(bytes_str(bad[i]))), "%s", bad[i]);
    ck_assert(!bytes_present(trace_parent(BYTES_NONE)));
}
