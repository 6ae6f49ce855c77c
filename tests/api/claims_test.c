/* Claims, v2 (docs/api.md 9). */
#include "support/api_fixture.h"

#define BB     "Invalid request body"
#define BV     "Invalid API request"
#define NF     "Not found"
#define CLAIMS "/v2/queues/q/claims"

API_TEST(claiming_takes_the_oldest_and_says_where_the_claim_is)
{
    const char *a, *b, *claim;

    api_post_letters(f, "q", "abc");
    a = api_pick_id(f, "resources.0");
    b = api_pick_id(f, "resources.1");
    ck_api(f, "POST", CLAIMS "?limit=2", "{\"ttl\":100,\"grace\":60}", 201, NULL);
    claim = api_response_header(&f->c, "Location") + strlen(CLAIMS "/");
    ck_api_body(f, api_text(f,
                            "{'messages': ["
                            "{'id': '%s', 'href': '/v2/queues/q/messages/%s?claim_id=%s',"
                            " 'ttl': 300, 'age': 0, 'body': 'a'},"
                            "{'id': '%s', 'href': '/v2/queues/q/messages/%s?claim_id=%s',"
                            " 'ttl': 300, 'age': 0, 'body': 'b'}]}",
                            a, a, claim, b, b, claim));
}

API_TEST(nothing_to_claim_is_204_and_makes_nothing)
{
    ck_api(f, "POST", CLAIMS, NULL, 204, NULL);
    ck_assert_str_eq(api_body(&f->c), "");
    ck_assert_uint_eq(f->c.res.header_count, 0);
    ck_api(f, "GET", "/v2/queues", NULL, 200, NULL);
    ck_api_body(f, "{'queues': [], 'links': []}");
}

API_TEST(terms_and_limit_out_of_range_are_refused)
{
    static const struct api_row rows[] = {
        {"POST", CLAIMS "?limit=0", NULL, 400, BV},
        {"POST", CLAIMS "?limit=21", NULL, 400, BV},
        {"POST", CLAIMS "?limit=x", NULL, 400, "Invalid parameter"},
        {"POST", CLAIMS "?limit=", NULL, 204, NULL},
        {"POST", CLAIMS, "{\"ttl\":59}", 400, BV},
        {"POST", CLAIMS, "{\"ttl\":43201}", 400, BV},
        {"POST", CLAIMS, "{\"grace\":59}", 400, BV},
        {"POST", CLAIMS, "{\"grace\":43201}", 400, BV},
        {"POST", CLAIMS, "{\"ttl\":true}", 400, BV},
        {"POST", CLAIMS, "{\"ttl\":\"60\"}", 400, BB},
        {"POST", CLAIMS, "{\"ttl\":60.0}", 400, BB},
        {"POST", CLAIMS, "[]", 400, BB},
        {"POST", CLAIMS, "nope", 400, BB},
        {"POST", CLAIMS, "{\"ttl\":null,\"grace\":null}", 204, NULL},
        {"POST", CLAIMS, "{}", 204, NULL},
        {"PATCH", CLAIMS "/junk", NULL, 400, BB},
        {"PATCH", CLAIMS "/junk", "{\"grace\":-1}", 400, BV},
        {"PATCH", CLAIMS "/junk", "{\"grace\":0}", 404, NF},
        {"PATCH", CLAIMS "/junk", "{}", 404, NF},
        {"GET", CLAIMS "/junk", NULL, 404, NF},
        {"DELETE", CLAIMS "/junk", NULL, 204, NULL},
        {"DELETE", "/v2/queues/nosuch/claims/junk", NULL, 204, NULL},
    };

    ck_api_rows(f, rows);
}

/* The messages in the response to a claim: each has one claim id. */
static int
count_messages(const char *response)
{
    int count = 0;

    for (const char *at = response; (at = strstr(at, "?claim_id=")) != NULL; at++)
        count++;
    return count;
}

START_TEST(a_limit_in_the_body_counts_up_to_the_maximum_and_the_parameter_wins)
{
    static const struct {
        const char *target, *body;
        int count;
    } cases[] = {
        {CLAIMS, "{\"ttl\":60,\"grace\":60,\"limit\":3}", 3},
        {CLAIMS "?limit=2", "{\"ttl\":60,\"grace\":60,\"limit\":3}", 2},
        {CLAIMS "?limit=", "{\"ttl\":60,\"grace\":60,\"limit\":1}", 1},
        {CLAIMS, "{\"ttl\":60,\"grace\":60,\"limit\":null}", 10},
        {CLAIMS, "{\"ttl\":60,\"grace\":60,\"limit\":1000}", 20},
    };
    static const char *const versions[] = {"/v2", "/v1.1", "/v1"};
    struct api_fixture f;

    for (size_t v = 0; v < 3; v++) {
        api_fixture_open(&f);
        api_post_letters(&f, "q", "abcdefghijklmnopqrst");
        api_post_letters(&f, "q", "abcdefghijklmnopqrst");
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            const char *tail = cases[i].target + strlen("/v2");

            ck_api(&f, "POST", api_text(&f, "%s%s", versions[v], tail), cases[i].body,
                   201, NULL);
            ck_assert_int_eq(count_messages(api_body(&f.c)), cases[i].count);
        }
        ck_api(&f, "POST", api_text(&f, "%s%s?limit=21", versions[v], &CLAIMS[3]),
               "{\"ttl\":60,\"grace\":60,\"limit\":21}", 400, BV);
        ck_api(&f, "POST", api_text(&f, "%s%s", versions[v], &CLAIMS[3]),
               "{\"ttl\":60,\"grace\":60,\"limit\":0}", 400, BV);
        ck_api(&f, "POST", api_text(&f, "%s%s", versions[v], &CLAIMS[3]),
               "{\"ttl\":60,\"grace\":60,\"limit\":\"3\"}", 400, BB);
        api_fixture_close(&f);
    }
}

API_TEST(a_claim_shows_what_it_still_holds_until_it_ends)
{
    const char *claim, *a, *b;

    api_post_letters(f, "q", "ab");
    a = api_pick(f, "resources.0");
    b = api_pick_id(f, "resources.1");
    claim = api_take(f, "q", 2);
    ck_api(f, "DELETE", api_text(f, "%s?claim_id=%s", a, claim), NULL, 204, NULL);
    f->c.now_ms += 59999;
    ck_api(f, "GET", api_text(f, CLAIMS "/%s", claim), NULL, 200, NULL);
    ck_api_body(f, api_text(f,
                            "{'age': 59, 'ttl': 60, 'href': '" CLAIMS "/%s',"
                            "'messages': [{'id': '%s', 'ttl': 300, 'age': 59,"
                            "'href': '/v2/queues/q/messages/%s?claim_id=%s',"
                            "'body': 'b'}]}",
                            claim, b, b, claim));
    f->c.now_ms += 1;
    ck_api(f, "GET", api_text(f, CLAIMS "/%s", claim), NULL, 404, NF);
    ck_api(f, "PATCH", api_text(f, CLAIMS "/%s", claim), "{}", 404, NF);
    ck_api(f, "DELETE", api_text(f, CLAIMS "/%s", claim), NULL, 204, NULL);
}

API_TEST(renewing_starts_the_claim_anew_and_prolongs_its_messages)
{
    const char *claim;

    api_post_letters(f, "q", "a");
    claim = api_take(f, "q", 1);
    f->c.now_ms += 50000;
    ck_api(f, "PATCH", api_text(f, CLAIMS "/%s", claim), "{\"ttl\":1000,\"grace\":100}",
           204, NULL);
    f->c.now_ms += 10000;
    ck_api(f, "GET", api_text(f, CLAIMS "/%s", claim), NULL, 200, NULL);
    ck_api_body(f, "{'age': 10, 'ttl': 1000, 'href': '*', 'messages': [{'id': '*',"
                   "'href': '*', 'ttl': 1150, 'age': 60, 'body': 'a'}]}");
}

/* The TTL of a claim without an own one. It ends, and the message is back. */
static void
expect_claim_ttl(struct api_fixture *f, const char *path, const char *body, int64_t ttl_s)
{
    const char *claim;

    ck_api(f, "POST", path, body, 201, NULL);
    claim = api_text(f, "%s", api_response_header(&f->c, "Location"));
    ck_api(f, "GET", claim, NULL, 200, NULL);
    ck_api_body(f, api_text(f,
                            "{'age': 0, 'ttl': %lld, 'href': '*', 'messages': [{"
                            "'id': '*', 'href': '*', 'ttl': '*', 'age': '*',"
                            " 'body': 'a'}]}",
                            (long long)ttl_s));
    ck_api(f, "DELETE", claim, NULL, 204, NULL);
}

API_TEST(a_claim_without_ttl_has_that_of_the_queue_in_all_versions)
{
    ck_api(f, "PUT", "/v2/queues/q", "{\"_default_claim_ttl\":900}", 201, NULL);
    ck_assert(api_response_header(&f->c, "Claimd-Warning") == NULL);
    api_post_letters(f, "q", "a");
    expect_claim_ttl(f, CLAIMS, NULL, 900);
    expect_claim_ttl(f, CLAIMS, "{}", 900);
    expect_claim_ttl(f, CLAIMS, "{\"ttl\":null,\"grace\":60}", 900);
    expect_claim_ttl(f, CLAIMS, "{\"ttl\":100}", 100);
    expect_claim_ttl(f, "/v1.1/queues/q/claims", NULL, 900);
    expect_claim_ttl(f, "/claimd/claims?queue=none&queue=q", NULL, 900);
    f->c.headers[API_HEADER_CONTENT_TYPE] =
        "application/openstack-messaging-v2.0-json-patch";
    ck_api(f, "PATCH", "/v2/queues/q",
           "[{\"op\":\"remove\",\"path\":\"/metadata/_default_claim_ttl\"}]", 200, NULL);
    f->c.headers[API_HEADER_CONTENT_TYPE] = NULL;
    expect_claim_ttl(f, CLAIMS, NULL, 300);
}

API_TEST(a_message_lives_for_the_grace_of_the_queue_behind_its_claim)
{
    ck_api(f, "PUT", "/v2/queues/q",
           "{\"_default_claim_ttl\":900,\"_default_claim_grace\":500}", 201, NULL);
    api_post_letters(f, "q", "a");
    ck_api(f, "POST", CLAIMS, NULL, 201, NULL);
    ck_api_body(f, "{'messages': [{'id': '*', 'href': '*', 'ttl': 1400, 'age': 0,"
                   " 'body': 'a'}]}");
}

API_TEST(a_renewal_without_ttl_has_that_of_the_queue_but_v1_names_it)
{
    const char *claim;

    ck_api(f, "PUT", "/v2/queues/q",
           "{\"_default_claim_ttl\":900,\"_default_claim_grace\":500}", 201, NULL);
    api_post_letters(f, "q", "a");
    claim = api_take(f, "q", 1);
    ck_api(f, "PATCH", api_text(f, CLAIMS "/%s", claim), "{}", 204, NULL);
    ck_api(f, "GET", api_text(f, CLAIMS "/%s", claim), NULL, 200, NULL);
    ck_api_body(f, "{'age': 0, 'ttl': 900, 'href': '*', 'messages': [{'id': '*',"
                   "'href': '*', 'ttl': 1400, 'age': 0, 'body': 'a'}]}");
    ck_api(f, "PATCH", api_text(f, "/v1/queues/q/claims/%s", claim), "{\"ttl\":2000}",
           204, NULL);
    ck_api(f, "GET", api_text(f, CLAIMS "/%s", claim), NULL, 200, NULL);
    ck_api_body(f, "{'age': 0, 'ttl': 2000, 'href': '*', 'messages': [{'id': '*',"
                   "'href': '*', 'ttl': 2000, 'age': 0, 'body': 'a'}]}"); /* grace 0 */
}

API_TEST(a_released_claim_gives_its_messages_back_at_once)
{
    const char *claim;

    api_post_letters(f, "q", "abc");
    claim = api_take(f, "q", 2);
    ck_api(f, "DELETE", api_text(f, CLAIMS "/%s", claim), NULL, 204, NULL);
    ck_api(f, "GET", api_text(f, CLAIMS "/%s", claim), NULL, 404, NF);
    ck_api(f, "POST", CLAIMS, NULL, 201, NULL);
    ck_assert_str_eq(api_pick(f, "messages.0.body"), "a");
    ck_assert_str_eq(api_pick(f, "messages.2.body"), "c");
}

API_TEST(a_claim_belongs_to_one_queue_of_one_project)
{
    const char *claim;

    api_post_letters(f, "q", "a");
    api_post_letters(f, "other", "b");
    claim = api_take(f, "q", 1);
    ck_api(f, "GET", api_text(f, "/v2/queues/other/claims/%s", claim), NULL, 404, NF);
    ck_api(f, "DELETE", api_text(f, "/v2/queues/other/claims/%s", claim), NULL, 204,
           NULL);
    ck_api(f, "GET", api_text(f, CLAIMS "/%s", claim), NULL, 200, NULL);
    f->c.headers[API_HEADER_PROJECT_ID] = "stranger";
    ck_api(f, "GET", api_text(f, CLAIMS "/%s", claim), NULL, 404, NF);
}

LIMITED_TEST(the_largest_claim_is_an_option, limits.max_messages_per_claim_or_pop = 100)
{
    api_post_letters(f, "q", "abcdefghijklmnopqrstuvw");
    ck_api(f, "POST", CLAIMS "?limit=101", NULL, 400, BV);
    ck_api(f, "POST", CLAIMS, NULL, 201, NULL);
    ck_assert_str_eq(api_pick(f, "messages.9.body"), "j");
    ck_api(f, "POST", CLAIMS "?limit=100", NULL, 201, NULL);
    ck_assert_str_eq(api_pick(f, "messages.12.body"), "w");
}

LIMITED_TEST(the_default_claim_is_never_more_than_the_largest,
             limits.max_messages_per_claim_or_pop = 2)
{
    api_post_letters(f, "q", "abc");
    ck_api(f, "POST", CLAIMS, NULL, 201, NULL);
    ck_api(f, "POST", CLAIMS, NULL, 201, NULL);
    ck_assert_str_eq(api_pick(f, "messages.0.body"), "c");
}
