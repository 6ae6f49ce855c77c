#include "api/json_out.h"
#include "support/arena_fixture.h"

#include <stdio.h>

static const struct store_message message = {
    .id = {"a00000010000000000000007"},
    .claim_id = {""},
    .body = {" {\"n\": 1.50}", 12},
    .ttl_s = 300,
    .age_s = 12,
    .claim_count = 2,
};

static struct message_form
form_of(enum message_shape shape)
{
    return (struct message_form){.shape = shape,
                                 .href = bytes_str("/v2/queues/q/messages")};
}

ARENA_CASE("json_out");

START_TEST(strings_are_escaped_as_json_wants_it)
{
    json_out_string(&f.out, bytes_str("plain / text"));
    expect_written("\"plain / text\"");
    json_out_string(&f.out, bytes_str("\"\\\b\f\n\r\t\x01\x1f\x7f"));
    expect_written("\"\\\"\\\\\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\"");
    json_out_string(&f.out, bytes_of("a\0b", 3));
    expect_written("\"a\\u0000b\"");
    json_out_string(&f.out, bytes_str("\xc3\xa9\xf0\x9f\x98\x80"));
    expect_written("\"\xc3\xa9\xf0\x9f\x98\x80\"");
    json_out_string(&f.out, BYTES_NONE);
    expect_written("\"\"");
}
END_TEST

START_TEST(bytes_that_are_not_utf8_are_replaced)
{
    json_out_string(&f.out, bytes_str("a\xff\xc3"));
    expect_written("\"a\xef\xbf\xbd\xef\xbf\xbd\"");
}
END_TEST

START_TEST(hrefs_are_percent_encoded)
{
    json_out_percent(&f.out, bytes_str("Az09-._~ /&=%\xc3\xa9"));
    expect_written("Az09-._~%20%2F%26%3D%25%C3%A9");
}
END_TEST

START_TEST(a_free_message_has_an_href_without_claim)
{
    struct message_form form = form_of(MESSAGE_FULL);

    json_out_message(&f.out, &form, &message);
    expect_written("{\"id\":\"a00000010000000000000007\","
                   "\"href\":\"/v2/queues/q/messages/a00000010000000000000007\","
                   "\"ttl\":300,\"age\":12,\"body\": {\"n\": 1.50}}");
}
END_TEST

START_TEST(a_claimed_message_carries_the_claim_in_its_href)
{
    struct message_form form = form_of(MESSAGE_FULL);
    struct store_message claimed = message;

    (void)snprintf(claimed.claim_id.text, STORE_ID_CAP, "c1");
    json_out_message(&f.out, &form, &claimed);
    expect_written(
        "{\"id\":\"a00000010000000000000007\","
        "\"href\":\"/v2/queues/q/messages/a00000010000000000000007?claim_id=c1\","
        "\"ttl\":300,\"age\":12,\"body\": {\"n\": 1.50}}");
}
END_TEST

START_TEST(v1_shows_no_id_and_the_claim_only_inside_claims)
{
    struct message_form form = form_of(MESSAGE_V1);
    struct store_message claimed = message;

    form.checksum = true; /* never in v1 */
    (void)snprintf(claimed.claim_id.text, STORE_ID_CAP, "c1");
    json_out_message(&f.out, &form, &claimed);
    expect_written(
        "{\"href\":\"/v2/queues/q/messages/a00000010000000000000007?claim_id=c1\","
        "\"ttl\":300,\"age\":12,\"body\": {\"n\": 1.50}}");
    form.hide_claim = true;
    json_out_message(&f.out, &form, &claimed);
    expect_written("{\"href\":\"/v2/queues/q/messages/a00000010000000000000007\","
                   "\"ttl\":300,\"age\":12,\"body\": {\"n\": 1.50}}");
}
END_TEST

START_TEST(a_popped_message_has_counts_and_no_href)
{
    struct message_form form = form_of(MESSAGE_POP);

    json_out_message(&f.out, &form, &message);
    expect_written("{\"id\":\"a00000010000000000000007\",\"ttl\":300,"
                   "\"age\":12,\"body\": {\"n\": 1.50},\"claim_id\":null,"
                   "\"claim_count\":2}");
}
END_TEST

START_TEST(checksums_are_added_unless_the_body_is_null)
{
    static const struct store_checksum of_hello = {{0x5d, 0xea, 0xee, 0x1c, 0x13, 0x32,
                                                    0x19, 0x9e, 0x5b, 0x5b, 0xc7, 0xc5,
                                                    0xe4, 0xf7, 0xf0, 0xc2}};
    struct message_form form = form_of(MESSAGE_POP);
    struct store_message hello = message;

    form.checksum = true;
    hello.checksum = &of_hello;
    hello.body = bytes_str("\"hello\"");
    json_out_message(&f.out, &form, &hello);
    expect_written("{\"id\":\"a00000010000000000000007\",\"ttl\":300,"
                   "\"age\":12,\"body\":\"hello\",\"claim_id\":null,"
                   "\"claim_count\":2,"
                   "\"checksum\":\"MD5:5deaee1c1332199e5b5bc7c5e4f7f0c2\"}");
    hello.body = bytes_str("null");
    json_out_message(&f.out, &form, &hello);
    expect_written("{\"id\":\"a00000010000000000000007\",\"ttl\":300,"
                   "\"age\":12,\"body\":null,\"claim_id\":null,"
                   "\"claim_count\":2}");
    hello.body = bytes_str("1");
    hello.checksum = NULL; /* it was posted without */
    json_out_message(&f.out, &form, &hello);
    expect_written("{\"id\":\"a00000010000000000000007\",\"ttl\":300,"
                   "\"age\":12,\"body\":1,\"claim_id\":null,\"claim_count\":2}");
}
END_TEST

START_TEST(several_messages_make_an_array)
{
    struct message_form form = form_of(MESSAGE_V1);
    struct store_message two[2] = {message, message};

    two[0].body = bytes_str("1");
    two[1].body = bytes_str("2");
    form.href = bytes_str("/h");
    json_out_messages(&f.out, &form, two, 0);
    expect_written("[]");
    json_out_messages(&f.out, &form, two, 2);
    expect_written("[{\"href\":\"/h/a00000010000000000000007\",\"ttl\":300,"
                   "\"age\":12,\"body\":1},"
                   "{\"href\":\"/h/a00000010000000000000007\",\"ttl\":300,"
                   "\"age\":12,\"body\":2}]");
}
END_TEST

START_TEST(errors_have_a_title_and_mostly_a_description)
{
    json_out_error(&f.out, bytes_str("Not found"), bytes_str("no \"q\""));
    expect_written("{\"title\":\"Not found\",\"description\":\"no \\\"q\\\"\"}");
    json_out_error(&f.out, bytes_str("404 Not Found"), BYTES_NONE);
    expect_written("{\"title\":\"404 Not Found\"}");
}
END_TEST

START_TEST(the_room_for_messages_is_enough_for_the_longest_ones)
{
    struct message_form form = form_of(MESSAGE_FULL);
    struct store_message longest = message;
    size_t room = json_out_room(&form, 1);

    memset(longest.id.text, 'f', STORE_ID_CAP - 1);
    memset(longest.claim_id.text, 'f', STORE_ID_CAP - 1);
    longest.ttl_s = longest.age_s = INT64_MIN;
    longest.claim_count = UINT32_MAX;
    form.checksum = true;
    json_out_messages(&f.out, &form, &longest, 1);
    ck_assert_uint_le(f.out.len, room + longest.body.len);
}
END_TEST
