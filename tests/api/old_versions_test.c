/* API v1.1 and v1: the same store in other forms (docs/api.md 13, 14). */
#include "support/api_fixture.h"

#define BB "Invalid request body"
#define BV "Invalid API request"
#define NF "Not found"

/* ------------------------------------------------------------------ v1.1 */

TEST_CASE("v1.1");

API_TEST(v1_1_shows_plain_metadata)
{
    ck_api(f, "GET", "/v1.1/queues/q", NULL, 200, NULL);
    ck_api_body(f, "{}");
    ck_api(f, "PUT", "/v1.1/queues/q", "{\"_default_message_ttl\":1}", 400, BV);
    ck_api(f, "PUT", "/v1.1/queues/q", "{\"_default_message_ttl\":120}", 201, NULL);
    ck_api(f, "GET", "/v1.1/queues/q", NULL, 200, NULL);
    ck_api_body(f, "{'_default_message_ttl': 120}");
    ck_api(f, "GET", "/v1.1/queues?detailed=true", NULL, 200, NULL);
    ck_api_body(f, "{'queues': [{'name': 'q', 'href': '/v1.1/queues/q',"
                   "'metadata': {'_default_message_ttl': 120}}], 'links': '*'}");
    ck_api(f, "GET", "/v1.1/queues/nosuch/stats", NULL, 200, NULL);
}

API_TEST(v1_1_knows_no_delays)
{
    ck_api(f, "POST", "/v1.1/queues/q/messages",
           "{\"messages\":[{\"body\":\"now\",\"delay\":100}]}", 201, NULL);
    ck_api(f, "POST", "/v2/queues/q/messages",
           "{\"messages\":[{\"body\":\"later\",\"delay\":100}]}", 201, NULL);
    ck_api(f, "GET", "/v1.1/queues/q/messages?echo=true&include_delayed=true", NULL, 200,
           NULL);
    ck_api_body(f, "{'messages': [{'id': '*', 'href': '*', 'ttl': 3600, 'age': 0,"
                   "'body': 'now'}], 'links': [{'rel': 'next', 'href': '*'}]}");
    ck_assert_ptr_null(strstr(api_body(&f->c), "include_delayed"));
}

/* ------------------------------------------------------------------ v1 queues */

TEST_CASE("v1");

API_TEST(v1_shows_existence_without_a_body)
{
    ck_api(f, "GET", "/v1/queues/q?x=1", NULL, 404, NULL);
    ck_assert_str_eq(api_body(&f->c), "");
    ck_assert_uint_eq(f->c.res.header_count, 0);
    ck_api(f, "PUT", "/v1/queues/q", "not even JSON", 201, NULL);
    ck_api(f, "GET", "/v1/queues/q?x=1", NULL, 204, NULL);
    ck_api_header(f, "Content-Location", "/v1/queues/q");
    ck_api(f, "HEAD", "/v1/queues/q", NULL, 204, NULL);
}

API_TEST(v1_metadata_is_replaced_as_a_whole)
{
    static const struct api_row refused[] = {
        {"PUT", "/v1/queues/q/metadata", NULL, 400, BB},
        {"PUT", "/v1/queues/q/metadata", "{", 400, BB},
        {"PUT", "/v1/queues/q/metadata", "[]", 400, BB},
        {"PUT", "/v1/queues/q/metadata", "{\"a\":1,\"_b\":2}", 400, BV},
        {"PUT", "/v1/queues/q/metadata", "{\"\\u005fb\":2}", 400, BV},
        {"PUT", "/v1/queues/nosuch/metadata", "{}", 404, NF},
        {"GET", "/v1/queues/nosuch/metadata", NULL, 404, NF},
        {"GET", "/v1/queues/nosuch/stats", NULL, 404, NF},
    };

    ck_api(f, "PUT", "/v2/queues/q", "{\"a\":1,\"_default_message_ttl\":60}", 201, NULL);
    ck_api_rows(f, refused);
    ck_api(f, "GET", "/v1/queues/q/metadata", NULL, 200, NULL);
    ck_api_body(f, "{'a': 1, '_default_message_ttl': 60}");
    ck_api_header(f, "Content-Location", "/v1/queues/q/metadata");
    ck_api(f, "PUT", "/v1/queues/q/metadata", "{\"c\":{\"_d\":null}}", 204, NULL);
    ck_api_header(f, "Location", "/v1/queues/q/metadata");
    ck_api(f, "GET", "/v1/queues/q/metadata", NULL, 200, NULL);
    ck_api_body(f, "{'c': {'_d': null}}");
    ck_api(f, "PUT", "/v1/queues/q/metadata", "{}", 204, NULL);
    ck_api(f, "GET", "/v1/queues/q/metadata", NULL, 200, NULL);
    ck_api_body(f, "{}");
}

API_TEST(v1_responds_204_for_empty_pages)
{
    ck_api(f, "GET", "/v1/queues", NULL, 204, NULL);
    ck_assert_str_eq(api_body(&f->c), "");
    ck_api(f, "GET", "/v1/queues/q/messages?echo=true", NULL, 204, NULL);
    ck_assert_str_eq(api_body(&f->c), "");
    ck_api_header(f, "Content-Location", "/v1/queues/q/messages?echo=true");
    ck_api(f, "GET", "/v1/queues/q/messages?ids=a,b", NULL, 204, NULL);
    ck_api_header(f, "Content-Location", "/v1/queues/q/messages?ids=a,b");
    ck_api(f, "PUT", "/v1/queues/q", NULL, 201, NULL);
    ck_api(f, "GET", "/v1/queues?detailed=true", NULL, 200, NULL);
    ck_api_body(f, "{'queues': [{'name': 'q', 'href': '/v1/queues/q', 'metadata': {}}],"
                   "'links': [{'rel': 'next',"
                   " 'href': '/v1/queues?detailed=true&marker=q'}]}");
}

/* ------------------------------------------------------------------ v1 messages */

API_TEST(v1_posts_a_bare_array_to_a_queue_that_exists)
{
    static const struct api_row refused[] = {
        {"POST", "/v1/queues/q/messages", "[{\"body\":1}]", 400, BB},
        {"POST", "/v1/queues/q/messages", "[{\"ttl\":60}]", 400, BB},
        {"POST", "/v1/queues/q/messages", "{\"messages\":[{\"body\":1,\"ttl\":60}]}", 400,
         BB},
        {"POST", "/v1/queues/q/messages", "[]", 400, BV},
        {"POST", "/v1/queues/q/messages", "[{\"body\":1,\"ttl\":59}]", 400, BV},
        {"POST", "/v1/queues/nosuch/messages", "[{\"body\":1,\"ttl\":60}]", 404, NF},
        {"HEAD", "/v1/queues/nosuch", NULL, 404, NULL},
    };

    ck_api(f, "PUT", "/v2/queues/q",
           "{\"_max_messages_post_size\":1,\"_default_message_delay\":60}", 201, NULL);
    ck_api_rows(f, refused);
    ck_api(f, "POST", "/v1/queues/q/messages", "[{\"body\":1,\"ttl\":60,\"delay\":9}]",
           201, NULL);
    ck_api_body(f, "{'resources': ['*'], 'partial': false}");
    ck_api_header(
        f, "Location",
        api_text(f, "/v1/queues/q/messages?ids=%s", api_pick_id(f, "resources.0")));
    ck_api(f, "GET", api_response_header(&f->c, "Location"), NULL, 200, NULL);
    ck_api_body(f, "[{'href': '*', 'ttl': 60, 'age': 0, 'body': 1}]");
    ck_api(f, "GET", "/v1/queues/q/messages?echo=true", NULL, 200, NULL);
    ck_api_body(f, "{'messages': [{'href': '*', 'ttl': 60, 'age': 0, 'body': 1}],"
                   "'links': [{'rel': 'next', 'href': '*'}]}");
}

/* ------------------------------------------------------------------ v1 claims */

API_TEST(v1_claims_are_bare_arrays_with_terms_required)
{
    static const struct api_row refused[] = {
        {"POST", "/v1/queues/q/claims", NULL, 400, BB},
        {"POST", "/v1/queues/q/claims", "{}", 400, BB},
        {"POST", "/v1/queues/q/claims", "{\"ttl\":60}", 400, BB},
        {"POST", "/v1/queues/q/claims", "{\"grace\":60}", 400, BB},
        {"POST", "/v1/queues/q/claims", "{\"ttl\":60,\"grace\":59}", 400, BV},
        {"PATCH", "/v1/queues/q/claims/junk", "{\"grace\":60}", 400, BB},
        {"PATCH", "/v1/queues/q/claims/junk", "{\"ttl\":60}", 404, NF},
        {"POST", "/v1/queues/nosuch/claims", "{\"ttl\":60,\"grace\":60}", 204, NULL},
    };
    const char *id, *claim;

    api_post_letters(f, "q", "a");
    id = api_pick_id(f, "resources.0");
    ck_api_rows(f, refused);
    ck_api(f, "POST", "/v1/queues/q/claims", "{\"ttl\":60,\"grace\":60}", 201, NULL);
    claim = api_text(f, "%s", api_response_header(&f->c, "Location"));
    ck_api_body(f, api_text(f,
                            "[{'href': '/v1/queues/q/messages/%s?claim_id=%s',"
                            " 'ttl': 300, 'age': 0, 'body': 'a'}]",
                            id, claim + strlen("/v1/queues/q/claims/")));
    ck_api(f, "GET", claim, NULL, 200, NULL);
    ck_api_header(f, "Content-Location", claim);
    ck_api_body(f, api_text(f,
                            "{'age': 0, 'ttl': 60, 'href': '%s', 'messages': ["
                            "{'href': '/v1/queues/q/messages/%s?claim_id=%s',"
                            " 'ttl': 300, 'age': 0, 'body': 'a'}]}",
                            claim, id, claim + strlen("/v1/queues/q/claims/")));
    ck_api(f, "GET", api_text(f, "/v1/queues/q/messages?ids=%s", id), NULL, 200, NULL);
    ck_api_body(f, api_text(f,
                            "[{'href': '/v1/queues/q/messages/%s', 'ttl': 300, 'age': 0,"
                            "'body': 'a'}]",
                            id));
    ck_api(f, "PATCH", claim, "{\"ttl\":1000}", 204, NULL);
    ck_api(f, "GET", api_text(f, "/v1/queues/q/messages/%s", id), NULL, 200, NULL);
    ck_api_body(f, "{'href': '*', 'ttl': 1000, 'age': 0, 'body': 'a'}");
    ck_api(f, "DELETE", claim, NULL, 204, NULL);
}

API_TEST(all_versions_see_the_same_claims)
{
    const char *claim;

    api_post_letters(f, "q", "ab");
    claim = api_take(f, "q", 1);
    ck_api(f, "GET", api_text(f, "/v1/queues/q/claims/%s", claim), NULL, 200, NULL);
    ck_api(f, "PATCH", api_text(f, "/v1.1/queues/q/claims/%s", claim), "{}", 204, NULL);
    ck_api(f, "POST", "/v1/queues/q/claims", "{\"ttl\":60,\"grace\":60}", 201, NULL);
    ck_api_body(f, "[{'href': '*', 'ttl': 300, 'age': 0, 'body': 'b'}]");
    ck_api(f, "POST", "/v1.1/queues/q/claims", NULL, 204, NULL);
}
