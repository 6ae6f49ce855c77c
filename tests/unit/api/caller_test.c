/*
 * Which spellings of Client-ID, X-Project-ID, queue name, Accept and Content-Type claimd
 * accepts (docs/api.md 3.2 to 3.5), header by header. tests/api/checks_test.c has the
 * order of these checks in a request. Read src/api/caller.h next.
 */
#include "api/caller.h"
#include "support/check_main.h"

#define CANONICAL "7d5b1c1e-52a4-4c66-9f0e-3b2a9c6de001"

static uint64_t
client_of(const char *text)
{
    uint64_t client = 0;

    ck_assert_msg(caller_client(bytes_str(text), &api_limits_default, &client) == ST_OK,
                  "%s", text);
    return client;
}

START_TEST(a_uuid_is_the_same_client_in_every_spelling)
{
    uint64_t client = client_of(CANONICAL);

    ck_assert_uint_eq(client_of("7d5b1c1e52a44c669f0e3b2a9c6de001"), client);
    ck_assert_uint_eq(client_of("7D5B1C1E-52A4-4C66-9F0E-3B2A9C6DE001"), client);
    ck_assert_uint_eq(client_of("{" CANONICAL "}"), client);
    ck_assert_uint_eq(client_of("urn:uuid:" CANONICAL), client);
    ck_assert_uint_ne(client_of("7d5b1c1e-52a4-4c66-9f0e-3b2a9c6de002"), client);
    ck_assert_uint_ne(client_of("8d5b1c1e-52a4-4c66-9f0e-3b2a9c6de001"), client);
}

START_TEST(a_malformed_uuid_is_refused)
{
    static const char *const bad[] = {"",
                                      "worker-1",
                                      "7d5b1c1e-52a4-4c66-9f0e-3b2a9c6de00",
                                      CANONICAL "0",
                                      "gd5b1c1e-52a4-4c66-9f0e-3b2a9c6de001",
                                      CANONICAL "," CANONICAL,
                                      "urn:uuid:",
                                      "{}"};
    uint64_t client;

    ck_assert_int_eq(caller_client(BYTES_NONE, &api_limits_default, &client),
                     ST_MISSING_CLIENT_ID);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(caller_client(bytes_str(bad[i]), &api_limits_default, &client) ==
                          ST_BAD_CLIENT_ID,
                      "%s", bad[i]);
}

START_TEST(with_strict_off_a_client_is_a_text_of_10_to_36_characters)
{
    struct api_limits limits = api_limits_default;
    uint64_t a, b;

    limits.client_id_strict = false;
    ck_assert_int_eq(caller_client(bytes_str("worker-001"), &limits, &a), ST_OK);
    ck_assert_int_eq(caller_client(bytes_str("WORKER-001"), &limits, &b), ST_OK);
    ck_assert_uint_ne(a, b);
    ck_assert_int_eq(caller_client(bytes_str("worker-01"), &limits, &a),
                     ST_BAD_CLIENT_ID);
    ck_assert_int_eq(caller_client(bytes_str(CANONICAL), &limits, &a), ST_OK);
    ck_assert_int_eq(caller_client(bytes_str(CANONICAL "0"), &limits, &a),
                     ST_BAD_CLIENT_ID);
    ck_assert_int_eq(caller_client(BYTES_NONE, &limits, &a), ST_MISSING_CLIENT_ID);
}

START_TEST(a_project_has_1_to_256_characters)
{
    char text[257];

    memset(text, 'p', sizeof(text));
    ck_assert_int_eq(caller_project(BYTES_NONE, false), ST_MISSING_PROJECT);
    ck_assert_int_eq(caller_project(bytes_str(""), false), ST_EMPTY_PROJECT);
    ck_assert_int_eq(caller_project(bytes_str("a/b.c d"), true), ST_OK);
    ck_assert_int_eq(caller_project(bytes_of(text, 256), true), ST_OK);
    ck_assert_int_eq(caller_project(bytes_of(text, 257), true), ST_BAD_QUEUE_NAME);
    ck_assert_int_eq(caller_project(bytes_of(text, 257), false), ST_BAD_PROJECT);
}

START_TEST(a_queue_name_has_1_to_64_of_few_characters)
{
    char text[65];

    memset(text, 'n', sizeof(text));
    ck_assert_int_eq(caller_queue_name(bytes_str("Az09_-.")), ST_OK);
    ck_assert_int_eq(caller_queue_name(bytes_of(text, 64)), ST_OK);
    ck_assert_int_eq(caller_queue_name(bytes_of(text, 65)), ST_BAD_QUEUE_NAME);
    ck_assert_int_eq(caller_queue_name(bytes_str("")), ST_BAD_QUEUE_NAME);
    ck_assert_int_eq(caller_queue_name(bytes_str("a b")), ST_BAD_QUEUE_NAME);
    ck_assert_int_eq(caller_queue_name(bytes_str("a!b")), ST_BAD_QUEUE_NAME);
    ck_assert_int_eq(caller_queue_name(bytes_str("a/b")), ST_BAD_QUEUE_NAME);
    ck_assert_int_eq(caller_queue_name(bytes_str("a:b")), ST_BAD_QUEUE_NAME);
    ck_assert_int_eq(caller_queue_name(bytes_str("caf\xc3\xa9")), ST_BAD_QUEUE_NAME);
    ck_assert_int_eq(caller_queue_name(bytes_str("a\n")), ST_BAD_QUEUE_NAME);
    ck_assert_int_eq(caller_queue_name(bytes_of("a\0", 2)), ST_BAD_QUEUE_NAME);
}

START_TEST(accept_must_allow_json)
{
    static const char *const good[] = {"application/json",
                                       "*/*",
                                       "*",
                                       "",
                                       "application/*",
                                       "APPLICATION/JSON",
                                       "text/html;q=0.9, application/json;q=0.1",
                                       "text/html, image/gif, *; q=.2, */*; q=.2",
                                       "application/json; charset=utf-8",
                                       "*/*;q=0, application/json",
                                       "application/json;q=0.001"};
    static const char *const bad[] = {"text/html",
                                      "application/json;q=0",
                                      "application/json; Q = 0.000",
                                      "*/*, application/json;q=0",
                                      "application/*;q=0, */*",
                                      "application/jsonp",
                                      "text/*, image/*;q=0.8"};

    ck_assert_int_eq(caller_accept(BYTES_NONE), ST_OK);
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        ck_assert_msg(caller_accept(bytes_str(good[i])) == ST_OK, "%s", good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(caller_accept(bytes_str(bad[i])) == ST_NOT_ACCEPTABLE, "%s",
                      bad[i]);
}

START_TEST(form_data_is_refused_exactly)
{
    struct bytes form = bytes_str("application/x-www-form-urlencoded");

    ck_assert_int_eq(caller_content_type(form, true), ST_BAD_CONTENT_TYPE);
    ck_assert_int_eq(
        caller_content_type(bytes_str("Application/X-WWW-Form-URLencoded"), true),
        ST_BAD_CONTENT_TYPE);
    ck_assert_int_eq(caller_content_type(form, false), ST_OK);
    ck_assert_int_eq(
        caller_content_type(bytes_str("application/x-www-form-urlencoded; charset=utf-8"),
                            true),
        ST_OK);
    ck_assert_int_eq(caller_content_type(bytes_str("text/plain"), true), ST_OK);
    ck_assert_int_eq(caller_content_type(BYTES_NONE, true), ST_OK);
}

START_TEST(a_patch_needs_its_media_type)
{
    struct bytes type = bytes_str("application/openstack-messaging-v2.0-json-patch");

    ck_assert_int_eq(caller_patch_type(type), ST_OK);
    ck_assert_int_eq(caller_patch_type(BYTES_NONE), ST_BAD_MEDIA_TYPE);
    ck_assert_int_eq(caller_patch_type(bytes_str("application/json")), ST_BAD_MEDIA_TYPE);
    ck_assert_int_eq(caller_patch_type(bytes_str("application/json-patch+json")),
                     ST_BAD_MEDIA_TYPE);
}
