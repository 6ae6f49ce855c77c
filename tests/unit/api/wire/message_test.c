/*
 * The document of a message in each version and state (docs/api.md 8.1), byte by byte,
 * and the buffer space that the longest one needs. Read src/api/wire/message.h next.
 */
#include "api/wire/message.h"
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

ARENA_CASE("message");

START_TEST(a_free_message_has_an_href_without_claim)
{
    struct message_form form = form_of(MESSAGE_FULL);

    message_write(&f.out, &form, &message);
    expect_written("{\"id\":\"a00000010000000000000007\","
                   "\"href\":\"/v2/queues/q/messages/a00000010000000000000007\","
                   "\"ttl\":300,\"age\":12,\"body\": {\"n\": 1.50}}");
}

START_TEST(a_claimed_message_carries_the_claim_in_its_href)
{
    struct message_form form = form_of(MESSAGE_FULL);
    struct store_message claimed = message;

    (void)snprintf(claimed.claim_id.text, STORE_ID_CAP, "c1");
    message_write(&f.out, &form, &claimed);
    expect_written(
        "{\"id\":\"a00000010000000000000007\","
        "\"href\":\"/v2/queues/q/messages/a00000010000000000000007?claim_id=c1\","
        "\"ttl\":300,\"age\":12,\"body\": {\"n\": 1.50}}");
}

START_TEST(v1_shows_no_id_and_the_claim_only_inside_claims)
{
    struct message_form form = form_of(MESSAGE_V1);
    struct store_message claimed = message;

    form.checksum = true; /* never in v1 */
    (void)snprintf(claimed.claim_id.text, STORE_ID_CAP, "c1");
    message_write(&f.out, &form, &claimed);
    expect_written(
        "{\"href\":\"/v2/queues/q/messages/a00000010000000000000007?claim_id=c1\","
        "\"ttl\":300,\"age\":12,\"body\": {\"n\": 1.50}}");
    form.hide_claim = true;
    message_write(&f.out, &form, &claimed);
    expect_written("{\"href\":\"/v2/queues/q/messages/a00000010000000000000007\","
                   "\"ttl\":300,\"age\":12,\"body\": {\"n\": 1.50}}");
}

START_TEST(a_popped_message_has_counts_and_no_href)
{
    struct message_form form = form_of(MESSAGE_POP);

    message_write(&f.out, &form, &message);
    expect_written("{\"id\":\"a00000010000000000000007\",\"ttl\":300,"
                   "\"age\":12,\"body\": {\"n\": 1.50},\"claim_id\":null,"
                   "\"claim_count\":2}");
}

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
    message_write(&f.out, &form, &hello);
    expect_written("{\"id\":\"a00000010000000000000007\",\"ttl\":300,"
                   "\"age\":12,\"body\":\"hello\",\"claim_id\":null,"
                   "\"claim_count\":2,"
                   "\"checksum\":\"MD5:5deaee1c1332199e5b5bc7c5e4f7f0c2\"}");
    hello.body = bytes_str("null");
    message_write(&f.out, &form, &hello);
    expect_written("{\"id\":\"a00000010000000000000007\",\"ttl\":300,"
                   "\"age\":12,\"body\":null,\"claim_id\":null,"
                   "\"claim_count\":2}");
    hello.body = bytes_str("1");
    hello.checksum = NULL; /* it was posted without */
    message_write(&f.out, &form, &hello);
    expect_written("{\"id\":\"a00000010000000000000007\",\"ttl\":300,"
                   "\"age\":12,\"body\":1,\"claim_id\":null,\"claim_count\":2}");
}

START_TEST(several_messages_make_an_array)
{
    struct message_form form = form_of(MESSAGE_V1);
    struct store_message two[2] = {message, message};

    two[0].body = bytes_str("1");
    two[1].body = bytes_str("2");
    form.href = bytes_str("/h");
    message_write_all(&f.out, &form, two, 0);
    expect_written("[]");
    message_write_all(&f.out, &form, two, 2);
    expect_written("[{\"href\":\"/h/a00000010000000000000007\",\"ttl\":300,"
                   "\"age\":12,\"body\":1},"
                   "{\"href\":\"/h/a00000010000000000000007\",\"ttl\":300,"
                   "\"age\":12,\"body\":2}]");
}

START_TEST(the_space_for_messages_is_enough_for_the_longest_ones)
{
    struct message_form form = form_of(MESSAGE_FULL);
    struct store_message longest = message;
    size_t capacity = message_space(&form, 1);

    memset(longest.id.text, 'f', STORE_ID_CAP - 1);
    memset(longest.claim_id.text, 'f', STORE_ID_CAP - 1);
    longest.ttl_s = longest.age_s = INT64_MIN;
    longest.claim_count = UINT32_MAX;
    form.checksum = true;
    message_write_all(&f.out, &form, &longest, 1);
    ck_assert_uint_le(f.out.len, capacity + longest.body.len);
}
