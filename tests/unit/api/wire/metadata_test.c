/*
 * The metadata of a queue (docs/api.md 7.1 to 7.3): a document is kept as it was sent,
 * reserved members are checked, and showing it adds the defaults. Read
 * src/api/wire/metadata.h next. patch_test.c tests changes.
 */
#include "api/wire/metadata.h"
#include "support/arena_fixture.h"

#include <stdio.h>
#include <stdlib.h>

static struct store_metadata metadata;
static struct reason why;

static enum status
decode(const char *body)
{
    metadata = (struct store_metadata){BYTES_NONE, STORE_SETTINGS_INIT};
    return metadata_decode(bytes_str(body), &api_limits_default, &f.arena, &metadata,
                           &why);
}

static void
takes(const char *body)
{
    ck_assert_msg(decode(body) == ST_OK, "%s", body);
}

static void
refuses(const char *body)
{
    ck_assert_msg(decode(body) == ST_BAD_VALUE, "%s", body);
}

static void
keeps(const char *body, const char *kept)
{
    takes(body);
    metadata_plain(&metadata, &f.out);
    expect_written(kept);
}

static void
shows(const char *body, const char *shown)
{
    takes(body);
    ck_assert_int_eq(metadata_show(&metadata, STORE_QUEUE, &api_limits_default, &f.out),
                     ST_OK);
    expect_written(shown);
}

ARENA_CASE("metadata");

START_TEST(defaults_of_an_older_version_are_decoded_and_refused_in_a_request)
{
    /* As load does. */
    takes("{\"_default_message_ttl\":60,\"_default_message_delay\":900}");
    ck_assert_int_eq(
        metadata_check_lifetime(&metadata.settings, &api_limits_default, &why),
        ST_BAD_VALUE);
}

START_TEST(a_document_is_kept_in_its_order)
{
    keeps(
        "{\"z\": 1, \"a\": {\"y\": [1, 2.50, \"\\u00e9\"], \"b\": null}, \"_my\": true}",
        "{\"z\":1,\"a\":{\"y\":[1,2.5,\"\xc3\xa9\"],\"b\":null},\"_my\":true}");
    keeps("{\"a\":1,\"b\":2,\"a\":3}", "{\"a\":3,\"b\":2}");
    keeps("{\"a\":0.1,\"nul\":\"\\u0000\"}", "{\"a\":0.1,\"nul\":\"\\u0000\"}");
}

START_TEST(no_document_and_an_empty_one_are_no_metadata)
{
    keeps(NULL, "{}");
    keeps("", "{}");
    keeps("{}", "{}");
    ck_assert_uint_eq(metadata.json.len, 0);
}

START_TEST(a_body_that_is_no_object_is_refused)
{
    ck_assert_int_eq(decode("{"), ST_BAD_BODY);
    ck_assert_int_eq(decode("[]"), ST_BAD_BODY);
    ck_assert_int_eq(decode("\"a\""), ST_BAD_BODY);
    ck_assert_int_eq(decode("\xef\xbb\xbf{}"), ST_BAD_BODY);
    ck_assert_int_eq(decode("{\"a\":NaN}"), ST_BAD_BODY);
    ck_assert_int_eq(decode("{\"a\\u0000b\":1}"), ST_BAD_BODY);
    ck_assert_int_eq(metadata_decode(bytes_of("{\"a\":1\0}", 8), &api_limits_default,
                                     &f.arena, &metadata, &why),
                     ST_BAD_BODY);
}

START_TEST(the_size_is_limited_before_parsing)
{
    size_t len = 65537;
    char *body = malloc(len);

    ck_assert_ptr_nonnull(body);
    memset(body, 'x', len);
    memcpy(body, "{\"a\":\"", 6);
    memcpy(body + 65534, "\"}", 2);
    ck_assert_int_eq(metadata_decode(bytes_of(body, 65536), &api_limits_default, &f.arena,
                                     &metadata, &why),
                     ST_OK);
    ck_assert_int_eq(metadata_decode(bytes_of(body, 65537), &api_limits_default, &f.arena,
                                     &metadata, &why),
                     ST_TOO_LARGE);
    free(body);
}

START_TEST(settings_are_extracted)
{
    takes("{\"_default_message_ttl\":120,\"_max_messages_post_size\":1024,"
          "\"_default_message_delay\":5,\"_max_claim_count\":3,\"_dead_letter_queue\":"
          "\"dlq\",\"_dead_letter_queue_messages_ttl\":300,\"_enable_encrypt_messages\":"
          "false,\"_default_claim_ttl\":90,\"_default_claim_grace\":70}");
    ck_assert_int_eq(metadata.settings.claim_ttl_s, 90);
    ck_assert_int_eq(metadata.settings.claim_grace_s, 70);
    ck_assert_int_eq(metadata.settings.message_ttl_s, 120);
    ck_assert_int_eq(metadata.settings.max_post_bytes, 1024);
    ck_assert_int_eq(metadata.settings.message_delay_s, 5);
    ck_assert_int_eq(metadata.settings.max_claim_count, 3);
    ck_assert_int_eq(metadata.settings.dead_letter_ttl_s, 300);
    ck_assert(bytes_equal_str(metadata.settings.dead_letter, "dlq"));
}

START_TEST(null_means_unset)
{
    takes(
        "{\"_max_claim_count\":null,\"_dead_letter_queue\":null,\"_default_message_ttl\""
        ":null,\"_enable_encrypt_messages\":null,\"_retry_policy\":null,"
        "\"_default_message_delay\":null,\"_max_messages_post_size\":null,"
        "\"_default_claim_ttl\":null,\"_default_claim_grace\":null}");
    ck_assert_int_eq(metadata.settings.claim_ttl_s, STORE_UNSET);
    ck_assert_int_eq(metadata.settings.claim_grace_s, STORE_UNSET);
    ck_assert_int_eq(metadata.settings.max_claim_count, STORE_UNSET);
    ck_assert_int_eq(metadata.settings.message_ttl_s, STORE_UNSET);
    ck_assert_int_eq(metadata.settings.message_delay_s, STORE_UNSET);
    ck_assert_int_eq(metadata.settings.max_post_bytes, STORE_UNSET);
    ck_assert(!bytes_present(metadata.settings.dead_letter));
    takes("{\"_dead_letter_queue\":\"\"}");
    ck_assert(!bytes_present(metadata.settings.dead_letter));
}

START_TEST(reserved_integers_have_bounds)
{
    static const struct {
        const char *name;
        long long min, max;
    } members[] = {{"_max_messages_post_size", 1, 262144},
                   {"_default_message_ttl", 60, 1209600},
                   {"_default_message_delay", 0, 43200},
                   {"_dead_letter_queue_messages_ttl", 60, 1209600},
                   {"_default_claim_ttl", 60, 43200},
                   {"_default_claim_grace", 60, 43200},
                   {"_max_claim_count", 1, INT64_MAX}};
    char body[128];

    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        const char *name = members[i].name;

        (void)snprintf(body, sizeof(body), "{\"%s\":%lld}", name, members[i].min);
        takes(body);
        (void)snprintf(body, sizeof(body), "{\"%s\":%lld}", name, members[i].max);
        takes(body);
        (void)snprintf(body, sizeof(body), "{\"%s\":%lld}", name, members[i].min - 1);
        refuses(body);
        if (members[i].max < INT64_MAX) {
            (void)snprintf(body, sizeof(body), "{\"%s\":%lld}", name, members[i].max + 1);
            refuses(body);
        }
        (void)snprintf(body, sizeof(body), "{\"%s\":\"100\"}", name);
        refuses(body);
        (void)snprintf(body, sizeof(body), "{\"%s\":100.0}", name);
        refuses(body);
        (void)snprintf(body, sizeof(body), "{\"%s\":true}", name);
        refuses(body);
    }
}

START_TEST(encryption_is_wanted_or_not)
{
    takes("{\"_enable_encrypt_messages\":false}");
    ck_assert(!metadata.settings.encrypt);
    takes("{\"_enable_encrypt_messages\":null}");
    ck_assert(!metadata.settings.encrypt);
    takes("{\"_enable_encrypt_messages\":true}");
    ck_assert(metadata.settings.encrypt);
    shows("{\"_enable_encrypt_messages\":true}",
          "{\"_enable_encrypt_messages\":true,\"_max_messages_post_size\":262144,"
          "\"_default_message_ttl\":3600,\"_default_message_delay\":0,"
          "\"_dead_letter_queue\":null,\"_dead_letter_queue_messages_ttl\":null,"
          "\"_max_claim_count\":null}");
    refuses("{\"_enable_encrypt_messages\":\"x\"}");
    refuses("{\"_enable_encrypt_messages\":0}");
}

START_TEST(a_dead_letter_queue_has_a_valid_name)
{
    takes("{\"_dead_letter_queue\":\"dead.letters-1\"}");
    refuses("{\"_dead_letter_queue\":5}");
    refuses("{\"_dead_letter_queue\":\"a b\"}");
    refuses("{\"_dead_letter_queue\":\"a\\u0000\"}");
}

START_TEST(flavor_and_unknown_reserved_names_are_plain_metadata)
{
    takes("{\"_flavor\":\"f\",\"_my_own\":[1]}");
    takes("{\"_flavor\":7}");
}

START_TEST(retry_policies_are_checked)
{
    takes("{\"_retry_policy\":{}}");
    takes(
        "{\"_retry_policy\":{\"retries_with_no_delay\":1,\"minimum_delay_retries\":1,"
        "\"minimum_delay\":5,\"maximum_delay\":30,\"maximum_delay_retries\":1,"
        "\"retry_backoff_function\":\"geometric\",\"ignore_subscription_override\":true,"
        "\"other\":\"kept\"}}");
    takes("{\"_retry_policy\":{\"minimum_delay\":20}}");
    takes("{\"_retry_policy\":{\"minimum_delay\":null,\"retry_backoff_function\":null}}");
    refuses("{\"_retry_policy\":\"x\"}");
    refuses("{\"_retry_policy\":[]}");
    refuses("{\"_retry_policy\":{\"retry_backoff_function\":\"cubic\"}}");
    refuses("{\"_retry_policy\":{\"retry_backoff_function\":5}}");
    refuses("{\"_retry_policy\":{\"retries_with_no_delay\":\"x\"}}");
    refuses("{\"_retry_policy\":{\"retries_with_no_delay\":true}}");
    refuses("{\"_retry_policy\":{\"ignore_subscription_override\":\"yes\"}}");
    refuses("{\"_retry_policy\":{\"minimum_delay\":40,\"maximum_delay\":30}}");
    refuses("{\"_retry_policy\":{\"minimum_delay\":25,\"maximum_delay\":30}}");
    refuses("{\"_retry_policy\":{\"minimum_delay\":21}}");
    takes("{\"_retry_policy\":{\"minimum_delay\":-9223372036854775808,"
          "\"maximum_delay\":9223372036854775807}}");
    refuses("{\"_retry_policy\":{\"maximum_delay\":-9223372036854775808,"
            "\"minimum_delay\":9223372036854775807}}");
}

/* Refused, and for this reason. */
static void
expect_reason(const char *body, const char *reason)
{
    ck_assert_msg(decode(body) != ST_OK, "%s", body);
    ck_assert_str_eq(why.text, reason);
}

START_TEST(a_refusal_names_the_member_and_the_option)
{
    expect_reason(
        "{\"_max_messages_post_size\":262145}",
        "_max_messages_post_size is 262145. It must be an integer between 1 and 262144 "
        "(max_messages_post_size)");
    expect_reason(
        "{\"_default_message_ttl\":\"60\"}",
        "_default_message_ttl is \"60\". It must be an integer between 60 and 1209600 "
        "(min_message_ttl, max_message_ttl)");
    expect_reason(
        "{\"_default_message_delay\":43201}",
        "_default_message_delay is 43201. It must be an integer between 0 and 43200 "
        "(max_message_delay)");
    expect_reason("{\"_max_claim_count\":0}",
                  "_max_claim_count is 0. It must be an integer of at least 1");
    expect_reason("{\"_dead_letter_queue\":\"a b\"}",
                  "_dead_letter_queue is \"a b\". It must be "
                  "the name of a queue, a string of up to 64 "
                  "characters from A-Z a-z 0-9 _ - .");
    expect_reason("{\"_enable_encrypt_messages\":1}",
                  "_enable_encrypt_messages is 1. It must be true or false");
    expect_reason("{\"_retry_policy\":[]}",
                  "_retry_policy is an array. It must be an object");
    expect_reason("{\"_retry_policy\":{\"maximum_delay\":true}}",
                  "_retry_policy.maximum_delay is true. It must be an integer");
    expect_reason("{\"_retry_policy\":{\"retry_backoff_function\":\"cubic\"}}",
                  "_retry_policy.retry_backoff_function is \"cubic\". It must be linear, "
                  "arithmetic, geometric or "
                  "exponential");
    expect_reason(
        "{\"_retry_policy\":{\"ignore_subscription_override\":1}}",
        "_retry_policy.ignore_subscription_override is 1. It must be true or false");
    expect_reason(
        "{\"_retry_policy\":{\"minimum_delay\":25}}",
        "_retry_policy.maximum_delay is 30. It must be at least 10 seconds longer than "
        "minimum_delay, which is 25");
    expect_reason("[]", "the body must be an object");
    expect_reason("{\"a\\u0000\":1}",
                  "the name of a member must not hold a NUL character");
    expect_reason("{\"a\":1",
                  "the body is not JSON: line 1, column 7: a comma or } is expected "
                  "at the end of the text");
}

START_TEST(showing_fills_in_defaults)
{
    shows(NULL, "{\"_max_messages_post_size\":262144,\"_default_message_ttl\":3600,"
                "\"_default_message_delay\":0,\"_dead_letter_queue\":null,"
                "\"_dead_letter_queue_messages_ttl\":null,\"_max_claim_count\":null,"
                "\"_enable_encrypt_messages\":false}");
    shows("{\"color\":\"r\\\"d\",\"_default_message_ttl\":null,\"_max_claim_count\":3,"
          "\"_dead_letter_queue\":\"\",\"_flavor\":null,\"x\":null}",
          "{\"color\":\"r\\\"d\",\"_default_message_ttl\":3600,\"_max_claim_count\":3,"
          "\"_dead_letter_queue\":null,\"_flavor\":null,\"x\":null,"
          "\"_max_messages_post_size\":262144,\"_default_message_delay\":0,"
          "\"_dead_letter_queue_messages_ttl\":null,\"_enable_encrypt_messages\":false}");
}

START_TEST(lack_of_memory_is_a_response_at_every_allocation)
{
    uint64_t nth = 0;
    enum status st;

    do {
        arena_fini(&f.arena);
        arena_init(&f.arena, f.mem);
        mem_fail_nth(f.mem, ++nth);
        st = decode("{\"_dead_letter_queue\":\"d\",\"x\":1}");
        ck_assert(st == ST_OK || st == ST_NO_MEMORY);
    } while (st != ST_OK);
    mem_fail_nth(f.mem, 0);
    ck_assert_uint_ge(nth, 3);
}
