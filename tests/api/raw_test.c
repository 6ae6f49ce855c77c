/* Messages without documents (docs/api.md 32). */
#include "support/api_fixture.h"

#include <stdlib.h>

#define RAW   "/claimd/queues/q/raw"
#define CLAIM RAW "/claims"
#define KEY   "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

/* Posts a body of this type (NULL: none). */
static void
post(struct api_fixture *f, const char *type, const char *body)
{
    f->c.headers[API_HEADER_CONTENT_TYPE] = type;
    ck_api(f, "POST", RAW, body, 201, NULL);
    f->c.headers[API_HEADER_CONTENT_TYPE] = NULL;
}

/* The last body has this text. */
static void
shows(struct api_fixture *f, const char *text, bool wanted)
{
    ck_assert_msg((strstr(api_body(&f->c), text) != NULL) == wanted, "%s",
                  api_body(&f->c));
}

/* Claims a message, which has this body and type, and deletes it. */
static void
ck_next(struct api_fixture *f, const char *type, const char *body)
{
    const char *path;

    ck_api(f, "POST", CLAIM, NULL, 201, NULL);
    ck_assert_str_eq(api_body(&f->c), body);
    ck_assert_pstr_eq(api_response_header(&f->c, "Content-Type"), type);
    path = api_text(f, "%s", api_response_header(&f->c, "Content-Location"));
    ck_api(f, "DELETE", path, NULL, 204, NULL);
}

TEST_CASE("raw");

API_TEST(a_text_comes_back_as_it_was_posted)
{
    static const char *const texts[] = {"any text", "", "two\nlines\t\"quoted\" \\ back",
                                        "\xc3\xa9 \xf0\x9f\x99\x82 \x01", "{\"a\": 1}"};
    static const char *const types[] = {NULL, "application/x-www-form-urlencoded",
                                        "text/plain; charset=utf-8", "image/png", ""};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        post(f, types[i], texts[i]);
        ck_next(f, "text/plain; charset=utf-8", texts[i]);
    }
    ck_api(f, "POST", CLAIM, NULL, 204, NULL);
}

API_TEST(a_json_value_comes_back_as_it_was_posted)
{
    post(f, "application/json", "{\"a\":  [1, null]}");
    ck_next(f, "application/json", "{\"a\":  [1, null]}");
    post(f, "Application/JSON; charset=utf-8", " 12.50 ");
    ck_next(f, "application/json", "12.50");
    post(f, "application/json", "\"\\u0041\\n\"");
    ck_next(f, "text/plain; charset=utf-8", "A\n");
}

API_TEST(messages_of_both_interfaces_are_the_same)
{
    ck_api(f, "POST", "/v2/queues/q/messages", "{\"messages\":[{\"body\":{\"b\":2}}]}",
           201, NULL);
    ck_next(f, "application/json", "{\"b\":2}");
    post(f, NULL, "text");
    ck_api(f, "GET", "/v2/queues/q/messages?echo=true", NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "messages.0.body"), "text");
}

API_TEST(the_terms_of_a_message_and_of_a_claim_may_be_given)
{
    ck_api(f, "POST", RAW "?ttl=60&delay=10", "x", 201, NULL);
    ck_api(f, "POST", CLAIM, NULL, 204, NULL);
    f->c.now_ms += 10000;
    ck_api(f, "POST", CLAIM "?limit=5", "{\"ttl\": 70}", 201, NULL);
    ck_api(f, "GET", api_text(f, "%s", api_response_header(&f->c, "Location")), NULL, 200,
           NULL);
    shows(f, "\"ttl\":70", true);
}

API_TEST(wrong_requests_change_nothing)
{
    static const struct api_row rows[] = {
        {"POST", RAW "?ttl=59", "x", 400, "Invalid API request"},
        {"POST", RAW "?ttl=x", "x", 400, "Invalid parameter"},
        {"POST", RAW "?ttl=99999999999999999999", "x", 400, "Invalid API request"},
        {"POST", RAW "?delay=-1", "x", 400, "Invalid API request"},
        {"POST", RAW "?ttl=60&delay=60", "x", 400, NULL},
        {"POST", RAW, "\xff", 400, "Invalid request body"},
        {"POST", RAW, "ab\xed\xa0\x80", 400, "Invalid request body"},
        {"POST", "/claimd/queues/q!/raw", "x", 400, "Invalid queue identification"},
        {"GET", RAW, NULL, 405, NULL},
        {"GET", CLAIM, NULL, 405, NULL},
        {"POST", CLAIM, "{\"ttl\": 1}", 400, "Invalid API request"},
        {"POST", CLAIM, "ttl=60", 400, "Invalid request body"},
        {"GET", "/claimd/queues/q/claims", NULL, 404, "Not found"},
    };
    static const char *const no_json[] = {"", "text", "1 2", "{\"a\":1},{\"b\":2}", "[1"};

    ck_api_rows(f, rows);
    f->c.headers[API_HEADER_CONTENT_TYPE] = "application/json";
    for (size_t i = 0; i < sizeof(no_json) / sizeof(no_json[0]); i++)
        ck_api(f, "POST", RAW, no_json[i], 400, "Invalid request body");
    ck_api(f, "GET", "/claimd/queues/q/claims", NULL, 404, "Not found");
}

LIMITED_TEST(a_post_is_as_large_as_those_with_documents,
             limits.max_messages_post_size = 8)
{
    ck_api(f, "POST", RAW, "123456", 201, NULL); /* and two quotation marks */
    ck_api(f, "POST", RAW, "1234567", 400, "Invalid API request");
}

/* Otherwise a dump of it could not be loaded. */
LIMITED_TEST(the_limit_counts_with_the_escapes, limits.max_messages_post_size = 8)
{
    ck_api(f, "POST", RAW, "\"\"\"", 201, NULL);
    ck_api(f, "POST", RAW, "\"\"\"\"", 400, "Invalid API request");
    ck_api(f, "POST", RAW, "\x01\x01", 400, "Invalid API request");
}

API_TEST(the_limit_of_the_queue_counts)
{
    ck_api(f, "PUT", "/v2/queues/q", "{\"_max_messages_post_size\": 4}", 201, NULL);
    ck_api(f, "POST", RAW, "12", 201, NULL);
    ck_api(f, "POST", RAW, "123", 400, "Invalid API request");
}

API_TEST(a_unique_message_exists_once)
{
    f->c.headers[API_HEADER_UNIQUE] = "day-2026-11-30";
    ck_api(f, "POST", RAW, "x", 201, NULL);
    ck_assert_ptr_null(api_response_header(&f->c, "Claimd-Unique"));
    ck_api(f, "POST", RAW, "x", 201, NULL);
    ck_assert_pstr_eq(api_response_header(&f->c, "Claimd-Unique"), "existing");
}

API_TEST(links_have_the_project_of_the_path)
{
    f->c.headers[API_HEADER_PROJECT_ID] = NULL;
    ck_api(f, "POST", "/claimd/blue/queues/q/raw", "x", 201, NULL);
    ck_api(f, "POST", CLAIM, NULL, 204, NULL);
    ck_api(f, "POST", "/claimd/blue/queues/q/raw/claims", NULL, 201, NULL);
    ck_assert(strncmp(api_response_header(&f->c, "Content-Location"),
                      "/v2/blue/queues/q/messages/", 27) == 0);
    ck_api(f, "DELETE", api_text(f, "%s", api_response_header(&f->c, "Content-Location")),
           NULL, 204, NULL);
}

API_TEST_WITH(an_encrypted_queue_delivers_texts,
              api_fixture_open_sealing(f, &api_limits_default, KEY))
{
    ck_api(f, "PUT", "/v2/queues/q", "{\"_encrypt_messages\": true}", 201, NULL);
    post(f, NULL, "secret \"text\"");
    ck_next(f, "text/plain; charset=utf-8", "secret \"text\"");
}
