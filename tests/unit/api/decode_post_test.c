#include "api/decode_post.h"
#include "support/arena_fixture.h"

#include <stdio.h>
#include <stdlib.h>

static struct decoded_post post;

static enum status
decode(enum post_form form, const char *body)
{
    post = (struct decoded_post){NULL, 0};
    return decode_post(bytes_str(body), form, &api_limits_default, &f.arena, &post);
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
END_TEST

START_TEST(names_of_members_may_be_escaped)
{
    ck_assert_int_eq(v2("{\"m\\u0065ssages\":[{\"\\u0062ody\":1,\"tt\\u006c\":61,"
                        "\"d\\u0065lay\":2}]}"),
                     ST_OK);
    check_draft(0, "1", 61, 2);
}
END_TEST

START_TEST(unknown_members_are_ignored)
{
    ck_assert_int_eq(v2("{\"extra\":{\"messages\":[]},\"messages\":[{\"body\":1,"
                        "\"color\":{\"body\":2,\"ttl\":\"x\"}}],\"more\":[1]}"),
                     ST_OK);
    ck_assert_uint_eq(post.count, 1);
    check_draft(0, "1", STORE_UNSET, STORE_UNSET);
}
END_TEST

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
END_TEST

START_TEST(null_terms_count_as_left_out)
{
    ck_assert_int_eq(message("\"body\":1,\"ttl\":null,\"delay\":null"), ST_OK);
    check_draft(0, "1", STORE_UNSET, STORE_UNSET);
}
END_TEST

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
    ck_assert_int_eq(message("\"body\":1,\"delay\":900"), ST_OK);
    ck_assert_int_eq(message("\"body\":1,\"delay\":901"), ST_BAD_VALUE);
    ck_assert_int_eq(message("\"body\":1,\"delay\":-1"), ST_BAD_VALUE);
}
END_TEST

START_TEST(bounds_come_from_the_options)
{
    struct api_limits limits = api_limits_default;

    limits.min_message_ttl = 1;
    limits.max_message_ttl = 10;
    limits.max_message_delay = 3;
    ck_assert_int_eq(decode_post(bytes_str("{\"messages\":[{\"body\":1,\"ttl\":10,"
                                           "\"delay\":3},{\"body\":1,\"ttl\":1}]}"),
                                 POST_V2, &limits, &f.arena, &post),
                     ST_OK);
    ck_assert_int_eq(decode_post(bytes_str("{\"messages\":[{\"body\":1,\"ttl\":11}]}"),
                                 POST_V2, &limits, &f.arena, &post),
                     ST_BAD_VALUE);
}
END_TEST

START_TEST(wrong_types_are_told_from_wrong_values)
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
END_TEST

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
END_TEST

START_TEST(one_bad_message_refuses_all)
{
    ck_assert_int_eq(v2("{\"messages\":[{\"body\":1},{\"body\":2,\"ttl\":1}]}"),
                     ST_BAD_VALUE);
    ck_assert_int_eq(v2("{\"messages\":[{\"body\":1,\"ttl\":1},{\"body\":2}]}"),
                     ST_BAD_VALUE);
}
END_TEST

START_TEST(a_document_without_messages_is_a_wrong_value)
{
    ck_assert_int_eq(v2("{}"), ST_BAD_VALUE);
    ck_assert_int_eq(v2("{\"body\":\"a\",\"ttl\":60}"), ST_BAD_VALUE);
    ck_assert_int_eq(v2("{\"messages\":[]}"), ST_BAD_VALUE);
    ck_assert_int_eq(v2("[{\"body\":\"a\",\"ttl\":60}]"), ST_BAD_VALUE);
    ck_assert_int_eq(v2("[]"), ST_BAD_VALUE);
}
END_TEST

START_TEST(what_is_no_document_is_a_bad_body)
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
END_TEST

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
END_TEST

START_TEST(v1_1_knows_neither_delay_nor_defaults_of_queues)
{
    ck_assert_int_eq(decode(POST_V1_1,
                            "{\"messages\":[{\"body\":1,\"delay\":\"x\"},{\"body\":2,"
                            "\"ttl\":90}]}"),
                     ST_OK);
    check_draft(0, "1", 3600, 0);
    check_draft(1, "2", 90, 0);
}
END_TEST

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
END_TEST

START_TEST(lack_of_memory_is_an_answer)
{
    mem_fail_from(f.mem, 1);
    ck_assert_int_eq(message("\"body\":1"), ST_NO_MEMORY);
    ck_assert_int_eq(v2("{\"messages\":[{\"body\":1}] x"), ST_BAD_BODY);
    mem_fail_from(f.mem, 0);
    ck_assert_int_eq(message("\"body\":1"), ST_OK);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("decode_post");
    TCase *tc = arena_test_case(suite, "decode_post");

    tcase_add_test(tc, bodies_are_noted_verbatim_without_the_space_around);
    tcase_add_test(tc, names_of_members_may_be_escaped);
    tcase_add_test(tc, unknown_members_are_ignored);
    tcase_add_test(tc, of_members_named_twice_the_last_counts);
    tcase_add_test(tc, null_terms_count_as_left_out);
    tcase_add_test(tc, bounds_of_ttl_and_delay);
    tcase_add_test(tc, bounds_come_from_the_options);
    tcase_add_test(tc, wrong_types_are_told_from_wrong_values);
    tcase_add_test(tc, a_wrong_type_anywhere_comes_before_a_wrong_value);
    tcase_add_test(tc, one_bad_message_refuses_all);
    tcase_add_test(tc, a_document_without_messages_is_a_wrong_value);
    tcase_add_test(tc, what_is_no_document_is_a_bad_body);
    tcase_add_test(tc, v1_takes_a_bare_array_and_requires_ttl);
    tcase_add_test(tc, v1_1_knows_neither_delay_nor_defaults_of_queues);
    tcase_add_test(tc, many_messages_keep_their_order);
    tcase_add_test(tc, lack_of_memory_is_an_answer);
    return check_main(suite);
}
