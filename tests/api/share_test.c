/* Pre-signed URLs (docs/api.md 17). */
#include "support/api_fixture.h"

#include <string.h>

#define KEY   "0123456789abcdef0123456789abcdef"
#define OTHER "fedcba9876543210fedcba9876543210"
#define SHARE "/v2/queues/q/share"
#define ALL                                                                              \
    "{\"paths\":[\"subscriptions\",\"messages\",\"claims\"],"                            \
    "\"methods\":[\"POST\",\"GET\",\"DELETE\",\"PATCH\"],\"expires\":"                   \
    "\"2026-01-31T13:00:00\"}"

#define PATHS "/v2/queues/q/claims,/v2/queues/q/messages,/v2/queues/q/subscriptions"

static const char *const boss[] = {"boss admin * never"};

/* A server that allows the boss only. */
static void
open_signing(struct api_fixture *f, const char *keys)
{
    api_fixture_open_signing(f, keys);
    api_allow(f, boss, 1);
}

/* Has the boss share the queue, and holds what he gets; the boss goes away. */
static void
hold(struct api_fixture *f, const char *body)
{
    f->c.headers[API_HEADER_AUTH_TOKEN] = "boss";
    f->c.headers[API_HEADER_URL_SIGNATURE] = NULL;
    ck_api(f, "POST", SHARE, body, 200, NULL);
    f->c.headers[API_HEADER_AUTH_TOKEN] = NULL;
    f->c.headers[API_HEADER_URL_SIGNATURE] = api_pick(f, "signature");
    f->c.headers[API_HEADER_URL_EXPIRES] = api_pick(f, "expires");
    f->c.headers[API_HEADER_URL_METHODS] = "DELETE,GET,PATCH,POST";
    f->c.headers[API_HEADER_URL_PATHS] = PATHS;
}

/* With another header the request that was good is 404. */
static void
ck_refused(struct api_fixture *f, enum api_header which, const char *value)
{
    const char *good = f->c.headers[which];

    ck_api(f, "GET", "/v2/queues/q/messages", NULL, 200, NULL);
    f->c.headers[which] = value;
    ck_api(f, "GET", "/v2/queues/q/messages", NULL, 404, "404 Not Found");
    f->c.headers[which] = good;
}

API_TEST_WITH(a_grant_says_what_it_is, open_signing(f, KEY))
{
    hold(f, ALL);
    ck_api_body(f, "{'paths':['/v2/queues/q/claims','/v2/queues/q/messages',"
                   "'/v2/queues/q/subscriptions'],"
                   "'methods':['DELETE','GET','PATCH','POST'],'project':'480924',"
                   "'expires':'2026-01-31T13:00:00','signature':'*'}");
    hold(f, "{}");
    ck_api_body(f, "{'paths':['/v2/queues/q/messages'],'methods':['GET'],"
                   "'project':'480924','expires':'2026-02-01T12:00:00',"
                   "'signature':'*'}");
    hold(f, "{\"paths\":[],\"methods\":null,\"expires\":null}");
    ck_api_body(f, "{'paths':['/v2/queues/q/messages'],'methods':['GET'],"
                   "'project':'480924','expires':'2026-02-01T12:00:00',"
                   "'signature':'*'}");
}

/* claimd verifies the path that it gets, which lacks the prefix of a proxy. */
API_TEST_WITH(behind_a_proxy_a_grant_is_of_the_path_without_the_prefix,
              open_signing(f, KEY))
{
    f->c.from_proxy = true;
    f->c.headers[API_HEADER_FORWARDED_PREFIX] = "/mq";
    hold(f, ALL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\""
                                                  "/v2/queues/q/claims\""));
    ck_api(f, "GET", "/v2/queues/q/messages", NULL, 200, NULL);
}

API_TEST_WITH(a_signed_url_needs_no_token_for_its_paths, open_signing(f, KEY))
{
    const char *claim;

    ck_api(f, "GET", "/v2/queues/q/messages", NULL, 401, NULL);
    hold(f, ALL);
    ck_api(f, "POST", "/v2/queues/q/messages", "{\"messages\":[{\"body\":1}]}", 201,
           NULL);
    ck_api(f, "POST", "/v2/queues/q/claims", "{\"ttl\":60,\"grace\":60}", 201, NULL);
    claim = api_text(f, "%s", strrchr(api_response_header(&f->c, "Location"), '/'));
    ck_api(f, "PATCH", api_text(f, "/v2/queues/q/claims%s", claim), "{\"ttl\":60}", 204,
           NULL);
    ck_api(f, "DELETE", "/v2/queues/q/messages?pop=1", NULL, 200, NULL);
    ck_api(f, "GET", "/v2/queues/q/messages/none", NULL, 404, "Not found");
}

/* Adds a subscriber, as the boss; the id. */
static const char *
subscribe(struct api_fixture *f)
{
    f->c.headers[API_HEADER_AUTH_TOKEN] = "boss";
    ck_api(f, "POST", "/v2/queues/q/subscriptions",
           "{\"subscriber\":\"http://example.org\"}", 201, NULL);
    f->c.headers[API_HEADER_AUTH_TOKEN] = NULL;
    return api_pick(f, "subscription_id");
}

API_TEST_WITH(a_signed_url_for_subscriptions_subscribes_and_confirms,
              open_signing(f, KEY))
{
    const char *item;

    item = api_text(f, "/v2/queues/q/subscriptions/%s", subscribe(f));
    hold(f, "{\"paths\":[\"subscriptions\"],\"methods\":[\"PUT\",\"GET\"],\"expires\":"
            "\"2026-01-31T13:00:00\"}");
    f->c.headers[API_HEADER_URL_METHODS] = "GET,PUT";
    f->c.headers[API_HEADER_URL_PATHS] = "/v2/queues/q/subscriptions";
    ck_api(f, "PUT", api_text(f, "%s/confirm", item), "{\"confirmed\":true}", 204, NULL);
    ck_api(f, "GET", item, NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"confirmed\":true"));
    ck_api(f, "DELETE", item, NULL, 404, "404 Not Found");
    ck_api(f, "GET", "/v2/queues/q/messages", NULL, 404, "404 Not Found");
    ck_api(f, "GET", "/claimd/queues/q/subscriptions", NULL, 404, "404 Not Found");
}

/* The grant that a subscriber is sent: for its own confirmation, and for nothing else. */
API_TEST_WITH(a_subscriber_confirms_its_own_subscription_and_no_other,
              open_signing(f, KEY))
{
    char signature[SIGNATURE_DIGITS + 1];
    struct grant grant = {.methods = BYTES_LIT("PUT"),
                          .project = BYTES_LIT(API_CALL_PROJECT),
                          .expires = BYTES_LIT("2026-01-31T13:00:00")};
    const char *item, *path;

    item = api_text(f, "/v2/queues/q/subscriptions/%s", subscribe(f));
    path = api_text(f, "%s/confirm", item);
    grant.paths = bytes_str(path);
    ck_assert_int_eq(signer_sign(f->signer, &grant, &f->kept, signature), ST_OK);
    f->c.headers[API_HEADER_URL_SIGNATURE] = signature;
    f->c.headers[API_HEADER_URL_EXPIRES] = "2026-01-31T13:00:00";
    f->c.headers[API_HEADER_URL_METHODS] = "PUT";
    f->c.headers[API_HEADER_URL_PATHS] = path;
    ck_api(f, "PUT", path, "{\"confirmed\":true}", 204, NULL);
    ck_api_header(f, "Location", path);
    ck_api(f, "PUT", path, "{\"confirmed\":false}", 204, NULL);
    ck_api(f, "GET", item, NULL, 404, "404 Not Found");
    ck_api(f, "PATCH", item, "{\"ttl\":60}", 404, "404 Not Found");
    ck_api(f, "PUT", "/v2/queues/q/subscriptions/x/confirm", "{\"confirmed\":true}", 404,
           "404 Not Found");
    signature[0] = signature[0] == '0' ? '1' : '0';
    ck_api(f, "PUT", path, "{\"confirmed\":true}", 404, "404 Not Found");
    signature[0] = '\0';
    ck_api(f, "PUT", path, "{\"confirmed\":true}", 404, "404 Not Found");
    f->c.headers[API_HEADER_URL_SIGNATURE] = NULL;
    ck_api(f, "PUT", path, "{\"confirmed\":true}", 401, "Unauthorized");
}

API_TEST_WITH(it_is_good_for_no_other_place, open_signing(f, KEY))
{
    static const char *const paths[] = {
        "/v2/queues/q",
        "/v2/queues/q/stats",
        "/v2/queues/q/share",
        "/v2/queues",
        "/v2/queues/q2/messages",
        "/v2/queues/q/messagesx",
        "/v2/queues/q/message",
        "/v2/queues/Q/messages",
        "/v2/queues/%71/messages",
        "/v2/queues/q/%6dessages",
        "/v2//queues/q/messages",
        "//v2/queues/q/messages",
        "/v2/queues//q/messages",
        "/v2/queues/./q/messages",
        "/v2/queues/x/../q/messages",
        "/v1.1/queues/q/messages",
        "/v1/queues/q/messages",
        "/v2/480924/queues/q/messages",
        "/v2/queues/x/v2/queues/q/messages",
        "/",
        "/livez",
        "/metrics",
        "/openapi.json",
    };
    /* Below the path, so its signature is good; but nothing is there that could be
     * shown. */
    static const char *const nowhere[] = {
        "/v2/queues/q/messages/../stats", "/v2/queues/q/messages/%2e%2e/stats",
        "/v2/queues/q/messages/..%2fstats", "/v2/queues/q/messages//stats",
        "/v2/queues/q/messages/x/y"};

    hold(f, ALL);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        ck_api(f, "GET", paths[i], NULL, 404, "404 Not Found");
    for (size_t i = 0; i < sizeof(nowhere) / sizeof(nowhere[0]); i++)
        ck_api(f, "GET", nowhere[i], NULL, 404, NULL);
    ck_api(f, "PUT", "/v2/queues/q/messages", "{}", 404, "404 Not Found");
    ck_api(f, "HEAD", "/v2/queues/q/messages", NULL, 404, NULL);
    ck_api(f, "OPTIONS", "/v2/queues/q/messages", NULL, 404, "404 Not Found");
    ck_api(f, "other", "/v2/queues/q/messages", NULL, 404, "404 Not Found");
}

API_TEST_WITH(it_is_good_for_no_other_words, open_signing(f, KEY))
{
    hold(f, ALL);
    ck_refused(f, API_HEADER_PROJECT_ID, "480925");
    ck_refused(f, API_HEADER_URL_EXPIRES, "2026-01-31T13:00:01");
    ck_refused(f, API_HEADER_URL_EXPIRES, "2099-01-31T13:00:00");
    ck_refused(f, API_HEADER_URL_EXPIRES, "tomorrow");
    ck_refused(f, API_HEADER_URL_EXPIRES, NULL);
    ck_refused(f, API_HEADER_URL_METHODS, "GET");
    ck_refused(f, API_HEADER_URL_METHODS, "DELETE,GET,PATCH,POST,PUT");
    ck_refused(f, API_HEADER_URL_METHODS, NULL);
    ck_refused(f, API_HEADER_URL_PATHS, "/v2/queues/q/messages");
    ck_refused(f, API_HEADER_URL_PATHS, PATHS ",/v2/queues/r/messages");
    ck_refused(f, API_HEADER_URL_PATHS, "/");
    ck_refused(f, API_HEADER_URL_PATHS, ",");
    ck_refused(f, API_HEADER_URL_PATHS, NULL);
    ck_refused(f, API_HEADER_URL_SIGNATURE, "");
    ck_refused(f, API_HEADER_URL_SIGNATURE, "0");
    f->c.headers[API_HEADER_AUTH_TOKEN] =
        "boss"; /* of both credentials the first counts */
    ck_refused(f, API_HEADER_URL_SIGNATURE, "");
}

API_TEST_WITH(a_grant_allows_no_method_that_claimd_does_not_know, open_signing(f, KEY))
{
    static const char *const methods[] = {"other", "UNKNOWN", "get", ""};

    hold(f, "{\"methods\":[\"UNKNOWN\",\"GET\",\"other\"],\"expires\":"
            "\"2026-01-31T13:00:00\"}");
    f->c.headers[API_HEADER_URL_METHODS] = "UNKNOWN,GET,other";
    f->c.headers[API_HEADER_URL_PATHS] = "/v2/queues/q/messages";
    ck_api(f, "GET", "/v2/queues/q/messages", NULL, 200, NULL);
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
        ck_api(f, methods[i], "/v2/queues/q/messages", NULL, 404, "404 Not Found");
}

/* Signed with the key itself: claimd gives out no such grants. */
API_TEST_WITH(a_grant_ends_where_a_part_of_the_path_does, open_signing(f, KEY))
{
    static const char *const paths[] = {"/v2/queues/q", ","};
    char signature[SIGNATURE_DIGITS + 1];
    struct grant grant = {.methods = BYTES_LIT("GET"),
                          .project = BYTES_LIT(API_CALL_PROJECT),
                          .expires = BYTES_LIT("2026-01-31T13:00:00")};

    f->c.headers[API_HEADER_URL_EXPIRES] = "2026-01-31T13:00:00";
    f->c.headers[API_HEADER_URL_METHODS] = "GET";
    f->c.headers[API_HEADER_URL_SIGNATURE] = signature;
    for (size_t i = 0; i < 2; i++) {
        grant.paths = bytes_str(paths[i]);
        ck_assert_int_eq(signer_sign(f->signer, &grant, &f->kept, signature), ST_OK);
        f->c.headers[API_HEADER_URL_PATHS] = paths[i];
        ck_api(f, "GET", "/v2/queues/q/messages", NULL, i == 0 ? 200 : 404, NULL);
        ck_api(f, "GET", "/v2/queues/q2/messages", NULL, 404, "404 Not Found");
    }
}

API_TEST_WITH(its_lists_may_come_in_any_order, open_signing(f, KEY))
{
    hold(f, ALL);
    f->c.headers[API_HEADER_URL_METHODS] = "PATCH,POST,GET,DELETE";
    f->c.headers[API_HEADER_URL_PATHS] = "/v2/queues/q/subscriptions,"
                                         "/v2/queues/q/messages,/v2/queues/q/claims";
    ck_api(f, "GET", "/v2/queues/q/messages", NULL, 200, NULL);
}

API_TEST_WITH(it_ends_at_its_time, open_signing(f, KEY))
{
    hold(f, ALL);
    clock_advance(&f->real, 3600 * 1000 - 1);
    ck_api(f, "GET", "/v2/queues/q/messages", NULL, 200, NULL);
    clock_advance(&f->real, 1);
    ck_api(f, "GET", "/v2/queues/q/messages", NULL, 404, "404 Not Found");
}

API_TEST_WITH(a_new_key_signs_while_the_old_one_still_verifies, open_signing(f, KEY))
{
    struct reason why;
    size_t line;

    hold(f, ALL);
    ck_assert_int_eq(signer_replace(f->signer, bytes_str(OTHER "\n" KEY), &line, &why),
                     ST_OK);
    ck_api(f, "GET", "/v2/queues/q/messages", NULL, 200, NULL);
    ck_assert_int_eq(signer_replace(f->signer, bytes_str(OTHER), &line, &why), ST_OK);
    ck_api(f, "GET", "/v2/queues/q/messages", NULL, 404, "404 Not Found");
    hold(f, ALL);
    ck_api(f, "GET", "/v2/queues/q/messages", NULL, 200, NULL);
}

API_TEST_WITH(bodies_that_cannot_be_taken_are_refused, open_signing(f, KEY))
{
    static const struct {
        const char *body, *title;
    } rows[] = {
        {NULL, "Invalid request body"},
        {"", "Invalid request body"},
        {"{", "Invalid request body"},
        {"[]", "Invalid request body"},
        {"{\"path\":[\"messages\"]}", "Invalid API request"},
        {"{\"paths\":\"messages\"}", "Invalid API request"},
        {"{\"paths\":[\"stats\"]}", "Invalid API request"},
        {"{\"paths\":[1]}", "Invalid API request"},
        {"{\"methods\":\"GET\"}", "Invalid API request"},
        {"{\"methods\":[7]}", "Invalid API request"},
        {"{\"methods\":[\"\"]}", "Invalid API request"},
        {"{\"methods\":[\"GET,PUT\"]}", "Invalid API request"},
        {"{\"methods\":[\"GET\\\\nx\"]}", "Invalid API request"},
        {"{\"methods\":[\"G\\u00cbT\"]}", "Invalid API request"},
        {"{\"methods\":[\"ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG\"]}", "Invalid API request"},
        {"{\"expires\":\"2026-01-31T12:00:00\"}", "Invalid API request"},
        {"{\"expires\":\"tomorrow\"}", "Invalid API request"},
        {"{\"expires\":1800000000}", "Invalid API request"},
        {"{\"expires\":\"1800000000\"}", "Invalid API request"},
    };

    f->c.headers[API_HEADER_AUTH_TOKEN] = "boss";
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        ck_api(f, "POST", SHARE, rows[i].body, 400, rows[i].title);
    ck_api(f, "POST", SHARE, "{\"methods\":[\"\\u0047ET\"]}", 200, NULL);
    f->c.headers[API_HEADER_PROJECT_ID] = "a\\nb";
    ck_api(f, "POST", SHARE, "{}", 400, "Invalid API request");
}

API_TEST_WITH(more_methods_than_there_can_be_are_refused, open_signing(f, KEY))
{
    char body[1024] = "{\"methods\":[\"M\"";

    f->c.headers[API_HEADER_AUTH_TOKEN] = "boss";
    for (int i = 1; i < 32; i++)
        strcat(body, ",\"M\"");
    ck_api(f, "POST", SHARE, api_text(f, "%s]}", body), 200, NULL);
    ck_api(f, "POST", SHARE, api_text(f, "%s,\"M\"]}", body), 400, NULL);
}

API_TEST(without_a_key_sharing_is_refused)
{
    ck_api(f, "POST", SHARE, "{}", 400, "Invalid API request");
    ck_assert_ptr_nonnull(strstr(api_pick(f, "description"), "signing_keys"));
}

API_TEST_WITH(a_grant_is_signed_for_nothing_that_needs_more_than_the_queue,
              open_signing(f, KEY))
{
    hold(f, ALL);
    f->c.headers[API_HEADER_CLIENT_ID] = NULL;
    ck_api(f, "GET", "/v2/queues/q/messages", NULL, 200, NULL);
    f->c.headers[API_HEADER_PROJECT_ID] = NULL;
    ck_api(f, "GET", "/v2/queues/q/messages", NULL, 404, NULL); /* of no signature */
}
