/*
 * The error for a body that is no JSON names the place and what is wrong there. Declared
 * in claimd/json/scan.h.
 */
#include "claimd/json/scan.h"
#include "support/check_main.h"

#include <stdlib.h>

static struct reason why;

#define NOT_JSON "the body is not JSON: "

static void
tells_bytes(struct bytes body, const char *reason)
{
    reason_init(&why);
    ck_assert_int_eq(json_scan_document(body), ST_BAD_BODY);
    ck_assert(json_fault(body, &why));
    ck_assert_str_eq(why.text, reason);
}

static void
expect_reason(const char *body, const char *reason)
{
    tells_bytes(bytes_str(body), reason);
}

START_TEST(a_document_has_no_fault)
{
    static const char *const fine[] = {"{}",
                                       " [1, 2.5e3, \"\\ud83d\\ude00 \xc3\xa9\", null] ",
                                       "{\"a\":{\"b\":[{}]}}\n"};

    reason_init(&why);
    for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++)
        ck_assert(!json_fault(bytes_str(fine[i]), &why));
    ck_assert_str_eq(why.text, "");
}

START_TEST(a_missing_member_is_named_with_its_place)
{
    expect_reason("{\"messages\": [1 2]}",
                  NOT_JSON "line 1, column 17: a comma or ] is expected instead of '2'");
    expect_reason("{\n  \"a\": 1\n  \"b\": 2\n}",
                  NOT_JSON "line 3, column 3: a comma or } is expected instead of '\"'");
    expect_reason("{\"a\" 1}",
                  NOT_JSON "line 1, column 6: a colon is expected instead of '1'");
    expect_reason("{\"a\":}",
                  NOT_JSON "line 1, column 6: a value is expected instead of '}'");
    expect_reason("[1,]",
                  NOT_JSON "line 1, column 4: a value is expected instead of ']'");
    expect_reason("{\"a\":1,}", NOT_JSON
                  "line 1, column 8: the name of a member is expected instead of '}'");
    expect_reason("{a:1}", NOT_JSON
                  "line 1, column 2: the name of a member is expected instead of 'a'");
    expect_reason("{} x", NOT_JSON
                  "line 1, column 4: the end of the text is expected instead of 'x'");
    expect_reason("[tru]",
                  NOT_JSON "line 1, column 2: a value is expected instead of 't'");
    expect_reason("[\x80]", NOT_JSON
                  "line 1, column 2: a value is expected instead of the byte 0x80");
    expect_reason("[NaN]",
                  NOT_JSON "line 1, column 2: a value is expected instead of 'N'");
}

START_TEST(a_text_that_ends_early_says_so)
{
    expect_reason("", "a body is required");
    expect_reason(" ", NOT_JSON
                  "line 1, column 2: a value is expected at the end of the text");
    expect_reason(
        "{", NOT_JSON
        "line 1, column 2: the name of a member is expected at the end of the text");
    expect_reason("[1,\r\n 2", NOT_JSON
                  "line 2, column 3: a comma or ] is expected at the end of the text");
    expect_reason("{\"a\"", NOT_JSON
                  "line 1, column 5: a colon is expected at the end of the text");
    expect_reason("[\"abc", NOT_JSON "line 1, column 6: the string is not closed");
    expect_reason("[\"abc\\", NOT_JSON "line 1, column 6: the string is not closed");
}

START_TEST(columns_count_characters)
{
    expect_reason("[\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\" 1]",
                  NOT_JSON "line 1, column 8: a comma or ] is expected instead of '1'");
    expect_reason("[\"\xc3\xa9\",\n\"\xc3\xa9\" 1]",
                  NOT_JSON "line 2, column 5: a comma or ] is expected instead of '1'");
}

START_TEST(a_broken_string_is_reported_at_the_broken_byte)
{
    expect_reason("[\"a\nb\"]", NOT_JSON
                  "line 1, column 4: a control character in a string must be escaped");
    expect_reason("[\"a\\xb\"]", NOT_JSON "line 1, column 4: the escape is unknown");
    expect_reason("[\"\\u12g4\"]", NOT_JSON
                  "line 1, column 3: \\u must be followed by four hexadecimal digits");
    expect_reason("[\"ab\\ud800\"]",
                  NOT_JSON "line 1, column 5: a surrogate must be half of a pair");
    expect_reason("[\"\\udc00\"]",
                  NOT_JSON "line 1, column 3: a surrogate must be half of a pair");
    expect_reason("[\"ab\xff\"]",
                  NOT_JSON "line 1, column 5: the string is not valid UTF-8");
    expect_reason("{\"a\\x\":1}", NOT_JSON "line 1, column 4: the escape is unknown");
    tells_bytes(bytes_of("[\"a\0\"]", 6), NOT_JSON
                "line 1, column 4: a control character in a string must be escaped");
}

START_TEST(a_broken_number_says_what_it_lacks)
{
    expect_reason("[-]",
                  NOT_JSON "line 1, column 2: a minus sign must be followed by digits");
    expect_reason("[01]", NOT_JSON "line 1, column 2: a number must not begin with 0");
    expect_reason("[1.]", NOT_JSON
                  "line 1, column 2: a decimal point must be followed by digits");
    expect_reason("[1.5e+]", NOT_JSON "line 1, column 2: an exponent must have digits");
    expect_reason("[1e999]",
                  NOT_JSON "line 1, column 2: the number is too large for a double");
    expect_reason("[9223372036854775808]", NOT_JSON
                  "line 1, column 2: an integer must be between -2^63 and 2^63-1");
    expect_reason("[1.5.2]",
                  NOT_JSON "line 1, column 5: a comma or ] is expected instead of '.'");
}

START_TEST(the_top_and_what_stands_around_it)
{
    expect_reason("\"hello\"", "the body must be an object or an array");
    expect_reason("7", "the body must be an object or an array");
    expect_reason("\xef\xbb\xbf{}",
                  NOT_JSON "line 1, column 1: a byte order mark is not allowed");
    expect_reason("\xef\xbb", NOT_JSON
                  "line 1, column 1: a value is expected instead of the byte 0xef");
}

START_TEST(too_many_levels_are_reported_where_they_begin)
{
    char *body = malloc(5000);

    ck_assert_ptr_nonnull(body);
    memset(body, '[', 4999);
    body[4999] = '\0';
    expect_reason(body, NOT_JSON "line 1, column 2049: the nesting is too deep");
    free(body);
}
