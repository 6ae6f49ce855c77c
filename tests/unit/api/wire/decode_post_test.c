/*
 * How the body of a POST of messages is decoded (docs/api.md 8.2; 13 and 14.4 for old
 * versions): defaults, bounds, which of several errors is reported, and its text. Read
 * src/api/wire/decode.h next.
 */
#include "api/wire/decode.h"
#include "support/arena_fixture.h"

#include <stdio.h>
#include <stdlib.h>

static struct decoded_post post;
static struct reason why;

static enum status
decode(enum post_form form, const char *body)
{
    post = (struct decoded_post){.drafts = NULL};
    return decode_post(bytes_str(body), form, &api_limits_default, &f.arena, &post, &why);
}

static enum status
v2(const char *body)
{
    return decode(POST_V2, body);
}

/* The outcome of one message of v2; its draft lasts until the next call. */
static enum status
message(const char *members)
{
    static char body[512];

    (void)snprintf(body, sizeof(body), "{\"messages\":[{%s}]}", members);
    return v2(body);
}

static void
check_draft(size_t at, const char *body, int64_t ttl_s, int64_t delay_s)
{
    ck_assert_uint_lt(at, post.count);
    ck_assert_msg(bytes_equal_str(post.drafts[at].body, body), "body %zu is %.*s", at,
                  (int)post.drafts[at].body.len, post.drafts[at].body.data);
    ck_assert_int_eq(post.drafts[at].ttl_s, ttl_s);
    ck_assert_int_eq(post.drafts[at].delay_s, delay_s);
}

ARENA_CASE("decode_post");

START_TEST(bodies_are_noted_verbatim_without_the_space_around)
{
    ck_assert_int_eq(v2("{\"messages\": [ {\"body\" :  {\"b\": 1.50, \"a\":[ ]}  , "
                        "\"ttl\": 300, \"delay\" : 5 } , {\"body\":\"t\\u0000\"},"
                        "{\"ttl\":60,\"body\":null}]}"),
                     ST_OK);
    ck_assert_uint_eq(post.count, 3);
    check_draft(0, "{\"b\": 1.50, \"a\":[ ]}", 300, 5);
    check_draft(1, "\"t\\u0000\"", STORE_UNSET, STORE_UNSET);
    check_draft(2, "null", 60, STORE_UNSET);
}

START_TEST(names_of_members_may_be_escaped)
{
    ck_assert_int_eq(v2("{\"m\\u0065ssages\":[{\"\\u0062ody\":1,\"tt\\u006c\":61,"
                        "\"d\\u0065lay\":2}]}"),
                     ST_OK);
    check_draft(0, "1", 61, 2);
}

START_TEST(unknown_members_are_ignored)
{
    ck_assert_int_eq(v2("{\"extra\":{\"messages\":[]},\"messages\":[{\"body\":1,"
                        "\"color\":{\"body\":2,\"ttl\":\"x\"}}],\"more\":[1]}"),
                     ST_OK);
    ck_assert_uint_eq(post.count, 1);
    check_draft(0, "1", STORE_UNSET, STORE_UNSET);
}

START_TEST(of_members_named_twice_the_last_counts)
{
    ck_assert_int_eq(message("\"body\":1,\"ttl\":\"x\",\"body\":2,\"ttl\":60"), ST_OK);
    check_draft(0, "2", 60, STORE_UNSET);
    ck_assert_int_eq(message("\"body\":1,\"ttl\":60,\"ttl\":59"), ST_BAD_VALUE);
    ck_assert_int_eq(message("\"body\":1,\"ttl\":59,\"ttl\":null"), ST_OK);
    check_draft(0, "1", STORE_UNSET, STORE_UNSET);

    ck_assert_int_eq(
        v2("{\"messages\":[7],\"messages\":[{\"body\":1},{\"body\":2}],\"messages\":"
           "[{\"body\":3}]}"),
        ST_OK);
    ck_assert_uint_eq(post.count, 1);
    check_draft(0, "3", STORE_UNSET, STORE_UNSET);
    ck_assert_int_eq(v2("{\"messages\":[{\"body\":3}],\"messages\":[]}"), ST_BAD_VALUE);
    ck_assert_int_eq(v2("{\"messages\":[{\"body\":3}],\"messages\":{}}"), ST_BAD_BODY);
}

START_TEST(null_terms_count_as_left_out)
{
    ck_assert_int_eq(message("\"body\":1,\"ttl\":null,\"delay\":null"), ST_OK);
    check_draft(0, "1", STORE_UNSET, STORE_UNSET);
}

START_TEST(bounds_of_ttl_and_delay)
{
    ck_assert_int_eq(message("\"body\":1,\"ttl\":60"), ST_OK);
    ck_assert_int_eq(message("\"body\":1,\"ttl\":59"), ST_BAD_VALUE);
    ck_assert_int_eq(message("\"body\":1,\"ttl\":1209600"), ST_OK);
    ck_assert_int_eq(message("\"body\":1,\"ttl\":1209601"), ST_BAD_VALUE);
    ck_assert_int_eq(message("\"body\":1,\"ttl\":-60"), ST_BAD_VALUE);
    ck_assert_int_eq(message("\"body\":1,\"ttl\":9223372036854775807"), ST_BAD_VALUE);
    ck_assert_int_eq(message("\"body\":1,\"delay\":0"), ST_OK);
    check_draft(0, "1", STORE_UNSET, 0);
    ck_assert_int_eq(message("\"body\":1,\"delay\":43200"), ST_OK);
    ck_assert_int_eq(message("\"body\":1,\"delay\":43201"), ST_BAD_VALUE);
    ck_assert_int_eq(message("\"body\":1,\"delay\":-1"), ST_BAD_VALUE);
}

START_TEST(bounds_come_from_the_options)
{
    struct api_limits limits = api_limits_default;

    limits.min_message_ttl = 1;
    limits.max_message_ttl = 10;
    limits.max_message_delay = 3;
    ck_assert_int_eq(decode_post(bytes_str("{\"messages\":[{\"body\":1,\"ttl\":10,"
                                           "\"delay\":3},{\"body\":1,\"ttl\":1}]}"),
                                 POST_V2, &limits, &f.arena, &post, &why),
                     ST_OK);
    ck_assert_int_eq(decode_post(bytes_str("{\"messages\":[{\"body\":1,\"ttl\":11}]}"),
                                 POST_V2, &limits, &f.arena, &post, &why),
                     ST_BAD_VALUE);
}

START_TEST(wrong_types_are_distinguished_from_wrong_values)
{
    ck_assert_int_eq(message("\"body\":1,\"ttl\":\"60\""), ST_BAD_BODY);
    ck_assert_int_eq(message("\"body\":1,\"ttl\":60.0"), ST_BAD_BODY);
    ck_assert_int_eq(message("\"body\":1,\"ttl\":[60]"), ST_BAD_BODY);
    ck_assert_int_eq(message("\"body\":1,\"delay\":{}"), ST_BAD_BODY);
    ck_assert_int_eq(message("\"body\":1,\"ttl\":true"), ST_BAD_VALUE);
    ck_assert_int_eq(message("\"body\":1,\"delay\":false"), ST_BAD_VALUE);
    ck_assert_int_eq(message("\"ttl\":60"), ST_BAD_BODY);
    ck_assert_int_eq(message(""), ST_BAD_BODY);
    ck_assert_int_eq(v2("{\"messages\":[\"a\"]}"), ST_BAD_BODY);
    ck_assert_int_eq(v2("{\"messages\":[null]}"), ST_BAD_BODY);
    ck_assert_int_eq(v2("{\"messages\":{\"body\":1}}"), ST_BAD_BODY);
    ck_assert_int_eq(v2("{\"messages\":null}"), ST_BAD_BODY);
}

START_TEST(a_wrong_type_anywhere_comes_before_a_wrong_value)
{
    ck_assert_int_eq(
        v2("{\"messages\":[{\"body\":1,\"ttl\":1},{\"body\":1,\"ttl\":\"x\"}]}"),
        ST_BAD_BODY);
    ck_assert_int_eq(
        v2("{\"messages\":[{\"body\":1,\"ttl\":\"x\"},{\"body\":1,\"ttl\":1}]}"),
        ST_BAD_BODY);
    ck_assert_int_eq(v2("{\"messages\":[{\"body\":1,\"ttl\":1}]"), ST_BAD_BODY);
    ck_assert_int_eq(message("\"ttl\":1"), ST_BAD_BODY);
}

START_TEST(one_bad_message_refuses_all)
{
    ck_assert_int_eq(v2("{\"messages\":[{\"body\":1},{\"body\":2,\"ttl\":1}]}"),
                     ST_BAD_VALUE);
    ck_assert_int_eq(v2("{\"messages\":[{\"body\":1,\"ttl\":1},{\"body\":2}]}"),
                     ST_BAD_VALUE);
}

START_TEST(a_document_without_messages_is_a_wrong_value)
{
    ck_assert_int_eq(v2("{}"), ST_BAD_VALUE);
    ck_assert_int_eq(v2("{\"body\":\"a\",\"ttl\":60}"), ST_BAD_VALUE);
    ck_assert_int_eq(v2("{\"messages\":[]}"), ST_BAD_VALUE);
    ck_assert_int_eq(v2("[{\"body\":\"a\",\"ttl\":60}]"), ST_BAD_VALUE);
    ck_assert_int_eq(v2("[]"), ST_BAD_VALUE);
}

START_TEST(a_body_that_is_no_document_is_refused)
{
    ck_assert_int_eq(v2(""), ST_BAD_BODY);
    ck_assert_int_eq(v2(NULL), ST_BAD_BODY);
    ck_assert_int_eq(v2("\"hello\""), ST_BAD_BODY);
    ck_assert_int_eq(v2("7"), ST_BAD_BODY);
    ck_assert_int_eq(v2("{\"messages\": ["), ST_BAD_BODY);
    ck_assert_int_eq(v2("[1"), ST_BAD_BODY);
    ck_assert_int_eq(v2("{\"messages\":[{\"body\":1,\"ttl\":60}]} x"), ST_BAD_BODY);
    ck_assert_int_eq(message("\"body\":99999999999999999999"), ST_BAD_BODY);
    ck_assert_int_eq(message("\"body\":NaN"), ST_BAD_BODY);
    ck_assert_int_eq(message("\"body\":\"\\ud800\""), ST_BAD_BODY);
}

START_TEST(v1_takes_a_bare_array_and_requires_ttl)
{
    ck_assert_int_eq(decode(POST_V1, "[{\"body\":1,\"ttl\":60,\"delay\":\"x\"}]"), ST_OK);
    check_draft(0, "1", 60, 0);
    ck_assert_int_eq(decode(POST_V1, "[{\"body\":1}]"), ST_BAD_BODY);
    ck_assert_int_eq(decode(POST_V1, "[{\"body\":1,\"ttl\":null}]"), ST_BAD_BODY);
    ck_assert_int_eq(decode(POST_V1, "[{\"ttl\":60}]"), ST_BAD_BODY);
    ck_assert_int_eq(decode(POST_V1, "[{\"body\":1,\"ttl\":59}]"), ST_BAD_VALUE);
    ck_assert_int_eq(decode(POST_V1, "[]"), ST_BAD_VALUE);
    ck_assert_int_eq(decode(POST_V1, "["), ST_BAD_BODY);
    ck_assert_int_eq(decode(POST_V1, "{\"messages\":[{\"body\":1,\"ttl\":60}]}"),
                     ST_BAD_BODY);
}

START_TEST(v1_1_knows_neither_delay_nor_defaults_of_queues)
{
    ck_assert_int_eq(decode(POST_V1_1,
                            "{\"messages\":[{\"body\":1,\"delay\":\"x\"},{\"body\":2,"
                            "\"ttl\":90}]}"),
                     ST_OK);
    check_draft(0, "1", 3600, 0);
    check_draft(1, "2", 90, 0);
}

/* Refused, and for this reason. */
static void
expect_reason(enum post_form form, const char *body, const char *reason)
{
    ck_assert_msg(decode(form, body) != ST_OK, "%s", body);
    ck_assert_str_eq(why.text, reason);
}

START_TEST(a_refusal_names_message_and_member)
{
#define FINE "{\"body\":1,\"ttl\":60}"
    expect_reason(POST_V2, "{\"messages\":[" FINE "," FINE ",{\"body\":1,\"ttl\":59}]}",
                  "messages[2].ttl is 59. It must be an integer between 60 and 1209600 "
                  "(min_message_ttl, max_message_ttl)");
    expect_reason(
        POST_V2, "{\"messages\":[" FINE ",{\"body\":1,\"ttl\":\"60\"}]}",
        "messages[1].ttl is a string. It must be an integer between 60 and 1209600 "
        "(min_message_ttl, max_message_ttl)");
    expect_reason(POST_V2, "{\"messages\":[{\"body\":1,\"ttl\":true}]}",
                  "messages[0].ttl is true. It must be an integer between 60 and 1209600 "
                  "(min_message_ttl, max_message_ttl)");
    expect_reason(POST_V2, "{\"messages\":[{\"body\":1,\"delay\":43201}]}",
                  "messages[0].delay is 43201. It must be an integer between 0 and 43200 "
                  "(max_message_delay)");
    expect_reason(POST_V2, "{\"messages\":[" FINE ",{\"ttl\":60}]}",
                  "messages[1].body is missing");
    expect_reason(POST_V2, "{\"messages\":[" FINE ",7]}",
                  "messages[1] must be an object");
    expect_reason(POST_V2, "{\"messages\":7}", "messages must be an array");
    expect_reason(POST_V2, "{\"messages\":[]}",
                  "the array of messages is empty. At least one message is required");
    expect_reason(POST_V2, "{\"message\":[]}", "the member messages is required");
    expect_reason(POST_V2, "[" FINE "]",
                  "the body must be an object with the array messages");
    expect_reason(POST_V2, "", "a body is required");
    expect_reason(
        POST_V2, "{\"messages\":[" FINE "," FINE "\n,]}",
        "the body is not JSON: line 2, column 2: a value is expected instead of ']'");
    expect_reason(POST_V1, "[" FINE ",{\"body\":1}]", "[1].ttl is missing");
    expect_reason(
        POST_V1, "[" FINE ",{\"body\":1,\"ttl\":1}]",
        "[1].ttl is 1. It must be an integer between 60 and 1209600 (min_message_ttl, "
        "max_message_ttl)");
    expect_reason(POST_V1, "[]",
                  "the array of messages is empty. At least one message is required");
    expect_reason(POST_V1, "{\"messages\":[]}", "the body must be an array of messages");
#undef FINE
}

START_TEST(the_reason_is_that_of_the_first_message_as_bad_as_any)
{
    expect_reason(
        POST_V2,
        "{\"messages\":[{\"body\":1,\"ttl\":1},{\"body\":1,\"ttl\":2},"
        "{\"body\":1,\"ttl\":\"x\"},{\"ttl\":60}]}",
        "messages[2].ttl is a string. It must be an integer between 60 and 1209600 "
        "(min_message_ttl, max_message_ttl)");
    expect_reason(POST_V2,
                  "{\"messages\":[{\"body\":1,\"ttl\":1},{\"body\":1,\"ttl\":2}]}",
                  "messages[0].ttl is 1. It must be an integer between 60 and 1209600 "
                  "(min_message_ttl, max_message_ttl)");
    expect_reason(POST_V2, "{\"messages\":[7],\"messages\":[{}]}",
                  "messages[0].body is missing");
}

START_TEST(many_messages_keep_their_order)
{
    char *body = malloc(20000), *at = body;
    enum status st;

    ck_assert_ptr_nonnull(body);
    at = stpcpy(at, "{\"messages\":[");
    for (int i = 0; i < 1000; i++)
        at += sprintf(at, "%s{\"body\":%d}", i > 0 ? "," : "", i);
    stpcpy(at, "]}");
    st = v2(body);
    ck_assert_int_eq(st, ST_OK);
    ck_assert_uint_eq(post.count, 1000);
    for (size_t i = 0; i < 1000; i++) {
        char number[16];

        (void)snprintf(number, sizeof(number), "%zu", i);
        check_draft(i, number, STORE_UNSET, STORE_UNSET);
    }
    free(body);
}

START_TEST(lack_of_memory_is_a_response)
{
    mem_fail_from(f.mem, 1);
    ck_assert_int_eq(message("\"body\":1"), ST_NO_MEMORY);
    ck_assert_int_eq(v2("{\"messages\":[{\"body\":1}] x"), ST_BAD_BODY);
    mem_fail_from(f.mem, 0);
    ck_assert_int_eq(message("\"body\":1"), ST_OK);
}
