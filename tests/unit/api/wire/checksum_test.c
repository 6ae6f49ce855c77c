/*
 * The checksum of a message body (docs/api.md 8.9) depends on the JSON value only, as
 * Zaqar computes it in Python, not on how a client spelled it. Declared in
 * src/api/wire/message.h.
 */
#include "api/wire/message.h"
#include "support/arena_fixture.h"

#include <stdio.h>
#include <stdlib.h>

static void
sums_to(const char *body, const char *checksum)
{
    struct store_checksum sum;
    char text[CHECKSUM_LEN + 1] = "";

    ck_assert_int_eq(checksum_of(bytes_str(body), f.mem, &sum), ST_OK);
    checksum_write(&sum, text);
    ck_assert_str_eq(text, checksum);
}

static void
forms(const char *body, const char *form)
{
    ck_assert_int_eq(checksum_form(bytes_str(body), &f.out), ST_OK);
    expect_written(form);
}

ARENA_CASE("checksum");

START_TEST(the_examples_of_the_contract)
{
    sums_to("\"hello\"", "MD5:5deaee1c1332199e5b5bc7c5e4f7f0c2");
    sums_to("{\"event\": \"start\", \"n\": 1}", "MD5:829c54a88a4eefb93c20762fa0f58b6e");
    sums_to("[1, \"\xc5\xbe\"]", "MD5:90479e06116bab5f467d36819a579466");
    sums_to("[1,\"\\u017e\"]", "MD5:90479e06116bab5f467d36819a579466");
    sums_to("\"\x7f\"", "MD5:708bd8c24a8044e369f53266b63a55c2");
    sums_to("\"\\u007f\"", "MD5:708bd8c24a8044e369f53266b63a55c2");
}

START_TEST(tokens_have_one_form)
{
    forms("{\"b\":[1,2,{}],\"a\":{\"x\":[]}}", "{\"b\": [1, 2, {}], \"a\": {\"x\": []}}");
    forms(" [ true , false , null ] ", "[true, false, null]");
    forms("[-0,7,-9223372036854775808]", "[0, 7, -9223372036854775808]");
    forms("\"a\\/b\\u007f\\\"\\\\\\b\\f\\n\\r\\t\\u0000\\u001F\"",
          "\"a/b\\u007f\\\"\\\\\\b\\f\\n\\r\\t\\u0000\\u001f\"");
    forms("\"\xc5\xbe\xe2\x82\xac\xf0\x9f\x98\x80\\uD83D\\uDE00\"",
          "\"\\u017e\\u20ac\\ud83d\\ude00\\ud83d\\ude00\"");
    forms("[2.50,1e2,1e16,1e15,0.0001,0.00001,-0.0]",
          "[2.5, 100.0, 1e+16, 1000000000000000.0, 0.0001, 1e-05, -0.0]");
}

START_TEST(of_members_of_one_name_the_last_value_stands_at_the_first_place)
{
    forms("{\"a\":1,\"b\":2,\"\\u0061\":3}", "{\"a\": 3, \"b\": 2}");
    forms("{\"a\":1,\"a\":2,\"a\":[]}", "{\"a\": []}");
    forms("[{\"x\":{\"a\":1,\"a\":{\"y\":1,\"y\":2}},\"z\":0}]",
          "[{\"x\": {\"a\": {\"y\": 2}}, \"z\": 0}]");
    forms("{\"b\":{\"a\":1},\"a\":{\"b\":1},\"b\":{\"c\":1}}",
          "{\"b\": {\"c\": 1}, \"a\": {\"b\": 1}}");
}

START_TEST(the_deepest_body_has_a_checksum)
{
    char *body = malloc(4096);
    struct store_checksum sum;

    ck_assert_ptr_nonnull(body);
    memset(body, '[', 2048);
    memset(body + 2048, ']', 2048);
    ck_assert_int_eq(checksum_of(bytes_of(body, 4096), f.mem, &sum), ST_OK);
    free(body);
}

START_TEST(invalid_json_has_no_checksum)
{
    struct store_checksum sum;

    ck_assert_int_eq(checksum_of(bytes_str("{"), f.mem, &sum), ST_BAD_BODY);
    ck_assert_int_eq(checksum_of(bytes_str(""), f.mem, &sum), ST_BAD_BODY);
}

START_TEST(lack_of_memory_is_a_response_at_every_allocation)
{
    static const char body[] = "{\"a\":{\"b\":1,\"b\":2},\"c\":[],\"c\":1}";
    struct store_checksum sum;
    uint64_t nth = 0;
    enum status st;

    do {
        mem_fail_nth(f.mem, ++nth);
        st = checksum_of(bytes_str(body), f.mem, &sum);
        ck_assert(st == ST_OK || st == ST_NO_MEMORY);
    } while (st != ST_OK);
    mem_fail_nth(f.mem, 0);
    ck_assert_uint_ge(nth, 4); /* the form, the members, and twice what is united */
}
