/* Requests for subscriptions (docs/api.md 18). tests/unit/notify tests deliveries. */
#include "support/api_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIST "/v2/queues/q/subscriptions"
#define HOOK "http://example.org/hook"
#define BAD  "Invalid API request"

/* Subscribes, and returns the id. */
static const char *
subscribe(struct api_fixture *f, const char *subscriber)
{
    ck_api(f, "POST", LIST, api_text(f, "{\"subscriber\":\"%s\"}", subscriber), 201,
           NULL);
    return api_pick(f, "subscription_id");
}

static const char *
item(struct api_fixture *f, const char *id)
{
    return api_text(f, LIST "/%s", id);
}

static const char *
confirmation(struct api_fixture *f, const char *id)
{
    return api_text(f, LIST "/%s/confirm", id);
}

TEST_CASE("subscriptions");

API_TEST(a_subscription_shows_what_was_said_and_the_defaults)
{
    const char *id;

    id = subscribe(f, HOOK);
    ck_api_header(f, "Location", LIST);
    f->c.now_ms += 12000;
    ck_api(f, "GET", item(f, id), NULL, 200, NULL);
    ck_api_body(f, api_text(f,
                            "{'id':'%s','source':'q','subscriber':'" HOOK
                            "','ttl':3600,'age':12,'options':{},'confirmed':false}",
                            id));
    ck_api(f, "POST", LIST,
           "{\"subscriber\":\"\\u006dailto:ann@example.org?subject=x\",\"ttl\":60,"
           "\"options\":{ \"from\" : \"bob@example.org\", \"size\": 1.50}}",
           201, NULL);
    ck_api(f, "GET", item(f, api_pick(f, "subscription_id")), NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c),
                                 "\"options\":{ \"from\" : \"bob@example.org\", "
                                 "\"size\": 1.50}"));
    ck_assert_str_eq(api_pick(f, "subscriber"), "mailto:ann@example.org?subject=x");
}

API_TEST(null_members_are_left_out)
{
    ck_api(f, "POST", LIST,
           "{\"subscriber\":\"" HOOK "\",\"ttl\":null,\"options\":null,\"x\":1}", 201,
           NULL);
    ck_api(f, "GET", LIST, NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "subscriptions.0.subscriber"), HOOK);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"ttl\":3600"));
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"options\":{}"));
}

#define CREATE(subscriber) "{\"subscriber\":\"" subscriber "\"}"

API_TEST(subscribers_are_uris_of_the_types_that_are_allowed)
{
    static const struct api_row rows[] = {
        {"POST", LIST, CREATE("HTTP://example.org"), 201, NULL},
        {"POST", LIST, CREATE("https://user:word@[::1]:8443/a?b=c#d"), 201, NULL},
        {"POST", LIST, CREATE("mailto:ann@example.org"), 201, NULL},
        {"POST", LIST, CREATE("ftp://example.org/"), 400, BAD},
        {"POST", LIST, CREATE("httpx://example.org/"), 400, BAD},
        {"POST", LIST, CREATE("htt://example.org/"), 400, BAD},
        {"POST", LIST, CREATE("example.org"), 400, BAD},
        {"POST", LIST, CREATE(""), 400, BAD},
        {"POST", LIST, CREATE(":"), 400, BAD},
        {"POST", LIST, CREATE("http"), 400, BAD},
        {"POST", LIST, CREATE("http:"), 400, BAD},
        {"POST", LIST, CREATE("http://"), 400, BAD},
        {"POST", LIST, CREATE("http:///path"), 400, BAD},
        {"POST", LIST, CREATE("http://:80/"), 400, BAD},
        {"POST", LIST, CREATE("http:example.org"), 400, BAD},
        {"POST", LIST, CREATE("mailto:"), 400, BAD},
        {"POST", LIST, CREATE("mailto:?subject=x"), 400, BAD},
        {"POST", LIST, CREATE("http://example.org/a b"), 400, BAD},
        {"POST", LIST, CREATE(" http://example.org/"), 400, BAD},
        {"POST", LIST, CREATE("http://example.org/\\r\\nHost: x"), 400, BAD},
        {"POST", LIST, CREATE("http://a.example\\\\@b.example/"), 400, BAD},
        {"POST", LIST, CREATE("http://example.org/\\u0000"), 400, BAD},
        {"POST", LIST, CREATE("http://example.org/\\u007f"), 400, BAD},
        {"POST", LIST, CREATE("mailto:ann@example.org\\nBcc:eve"), 400, BAD},
        {"POST", LIST, "{\"subscriber\":null}", 400, BAD},
        {"POST", LIST, "{\"subscriber\":[\"" HOOK "\"]}", 400, BAD},
    };

    ck_api_rows(f, rows);
    ck_api(f, "GET", LIST, NULL, 200, NULL);
    ck_assert_ptr_nonnull(api_pick(f, "subscriptions.2.id"));
    ck_assert_ptr_null(strstr(api_body(&f->c), "ftp"));
}

LIMITED_TEST(a_type_that_is_not_allowed_is_refused,
             limits.subscriber_types = 1U << SUBSCRIBER_HTTPS)
{
    ck_api(f, "POST", LIST, CREATE("https://example.org/"), 201, NULL);
    ck_api(f, "POST", LIST, CREATE("http://example.org/"), 400, BAD);
    ck_api_body(f, "{'title':'Invalid API request','description':'the scheme of "
                   "subscriber must be https (subscriber_types)'}");
    ck_api(f, "POST", LIST, CREATE("mailto:ann@example.org"), 400, BAD);
}

API_TEST(trusts_are_refused_by_name)
{
    ck_api(f, "POST", LIST, CREATE("trust+http://example.org/"), 400, BAD);
    ck_assert_ptr_nonnull(strstr(api_pick(f, "description"), "trust+"));
    ck_api(f, "POST", LIST, CREATE("Trust+HTTPS://example.org/"), 400, BAD);
    ck_assert_ptr_nonnull(strstr(api_pick(f, "description"), "trust+"));
}

/* 4 KB, with user and password; nothing of one that is refused comes back. */
START_TEST(a_long_uri_with_a_password_is_taken_and_never_repeated_in_refusals)
{
    static const char *const refused[] = {
        "{\"subscriber\":\"http://ann:secret@\\n\"}",
        "{\"subscriber\":\"ftp://ann:secret@example.org\"}",
        "{\"subscriber\":\"secret:secret@example.org\"}",
        "{\"subscriber\":\"trust+http://ann:secret@example.org\"}",
        "{\"subscriber\":\"http://ann:secret@example.org\",\"ttl\":\"secret\"}",
        "{\"subscriber\":\"http://ann:secret@example.org\",\"options\":\"secret\"}",
        ("{\"subscriber\":\"http://ann:secret@example.org\",\"options\":{"
         "\"_retry_policy\":\"secret\"}}"),
    };
    struct api_fixture f;
    char path[4096];
    const char *uri;

    memset(path, 'x', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    api_fixture_open(&f);
    uri = api_text(&f, "https://ann:secret@example.org/%s", path);
    ck_api(&f, "GET", item(&f, subscribe(&f, uri)), NULL, 200, NULL);
    ck_assert_str_eq(api_pick(&f, "subscriber"), uri);
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        ck_api(&f, "POST", LIST, refused[i], 400, BAD);
        ck_assert_msg(strstr(api_body(&f.c), "secret") == NULL, "%s", api_body(&f.c));
    }
    api_fixture_close(&f);
}

/* Subscribes with a subscriber and options of so many bytes. */
static void
ck_long(struct api_fixture *f, int subscriber, int options, int code)
{
    char *body = malloc((size_t)subscriber + (size_t)options + 64);

    ck_assert_ptr_nonnull(body);
    ck_assert_int_gt(
        sprintf(body, "{\"subscriber\":\"http://%0*d\",\"options\":{\"x\":\"%0*d\"}}",
                subscriber - 7, 1, options - 8, 1),
        0);
    ck_api(f, "POST", LIST, body, code, code == 400 ? BAD : NULL);
    free(body);
}

LIMITED_TEST(texts_may_have_60000_bytes_and_the_body_what_is_configured,
             limits.max_queue_metadata = 200000)
{
    ck_long(f, 60000, 60000, 201);
    ck_long(f, 60001, 10, 400);
    ck_long(f, 20, 60001, 400);
    ck_api(f, "GET", LIST, NULL, 200, NULL);
    f->c.body_too_large = true;
    ck_api(f, "POST", LIST, CREATE(HOOK), 400, BAD);
    ck_assert_ptr_nonnull(strstr(api_pick(f, "description"), "max_queue_metadata"));
}

API_TEST(a_ttl_is_from_60_seconds_to_the_end_of_dates)
{
    const int64_t left = INT64_C(253402300799) - API_FIXTURE_START_MS / 1000;

    ck_api(f, "POST", LIST,
           api_text(f, "{\"subscriber\":\"" HOOK "\",\"ttl\":%lld}", (long long)left),
           201, NULL);
    ck_api(
        f, "POST", LIST,
        api_text(f, "{\"subscriber\":\"" HOOK "/2\",\"ttl\":%lld}", (long long)left + 1),
        400, BAD);
    ck_api(f, "POST", LIST, "{\"subscriber\":\"" HOOK "/2\",\"ttl\":59}", 400, BAD);
    ck_api(f, "POST", LIST, "{\"subscriber\":\"" HOOK "/2\",\"ttl\":true}", 400, BAD);
    ck_api(f, "POST", LIST, "{\"subscriber\":\"" HOOK "/2\",\"ttl\":60.0}", 400, BAD);
    ck_api(f, "POST", LIST, "{\"subscriber\":\"" HOOK "/2\",\"ttl\":60}", 201, NULL);
}

#define POLICY(text)                                                                     \
    "{\"subscriber\":\"" HOOK "\",\"options\":{\"_retry_policy\":" text "}}"

API_TEST(a_retry_policy_is_looked_at)
{
    static const struct api_row rows[] = {
        {"POST", LIST, POLICY("[]"), 400, BAD},
        {"POST", LIST, POLICY("{\"minimum_delay\":\"5\"}"), 400, BAD},
        {"POST", LIST, POLICY("{\"minimum_delay\":25}"), 400, BAD},
        {"POST", LIST, POLICY("{\"retry_backoff_function\":\"cubic\"}"), 400, BAD},
        {"POST", LIST, POLICY("{\"\\u0000\":1}"), 400, BAD},
        {"POST", LIST, POLICY("{},\"_retry_policy\":7"), 400, BAD},
        {"POST", LIST, POLICY("7,\"_retry\\u005fpolicy\":{}"), 201, NULL},
        {"PATCH", LIST "/x", "{\"options\":{\"_retry_policy\":7}}", 400, BAD},
    };

    ck_api_rows(f, rows);
}

API_TEST(a_patch_changes_what_it_names)
{
    const char *one;

    one = item(f, subscribe(f, HOOK));
    (void)subscribe(f, "http://example.org/2");
    f->c.now_ms += 5000;
    ck_api(f, "PATCH", one, "{\"options\":{\"a\":1},\"color\":\"red\"}", 204, NULL);
    ck_api_header(f, "Location", one);
    ck_api(f, "GET", one, NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"age\":5,\"options\":{\"a\":1}"));
    ck_api(f, "PATCH", one, "{\"ttl\":100,\"subscriber\":null}", 204, NULL);
    ck_api(f, "GET", one, NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"ttl\":100,\"age\":0"));
    ck_api(f, "PATCH", one, "{\"subscriber\":\"http://example.org/2\"}", 409,
           "Resource conflict");
    ck_assert_ptr_null(api_response_header(&f->c, "Location"));
    ck_api(f, "PATCH", one, "{\"subscriber\":null,\"ttl\":null}", 400,
           "Unable to update subscription");
    ck_api(f, "PATCH", one, "[]", 400, BAD);
    ck_api(f, "PATCH", one, "{", 400, "Invalid request body");
    ck_api(f, "PATCH", one, "7", 400, "Invalid request body");
    ck_api(f, "GET", one, NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "subscriber"), HOOK);
}

API_TEST(a_confirmed_subscriber_cannot_subscribe_again)
{
    const char *id;

    id = subscribe(f, HOOK);
    ck_assert_str_eq(subscribe(f, HOOK), id);
    ck_api(f, "PUT", confirmation(f, id), "{\"confirmed\":false,\"confirmed\":true}", 204,
           NULL);
    ck_api_header(f, "Location", confirmation(f, id));
    ck_api(f, "POST", LIST, CREATE(HOOK), 409, "Resource conflict");
    ck_api_header(f, "Location", LIST);
    ck_api(f, "PUT", confirmation(f, id), "{\"confirmed\":\"false\"}", 400, BAD);
    ck_api(f, "PUT", confirmation(f, id), "[]", 400, BAD);
    ck_api(f, "GET", item(f, id), NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"confirmed\":true"));
    ck_api(f, "PUT", confirmation(f, id), "{\"confirmed\":false}", 204, NULL);
    ck_assert_str_eq(subscribe(f, HOOK), id);
}

API_TEST(an_id_of_any_other_form_is_not_found)
{
    static const char *const ids[] = {"x",   "%0d%0aX:%20y",
                                      "%00", "..",
                                      "%FF", "00000000000000000000000000000000000000"};

    (void)subscribe(f, HOOK);
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        ck_api(f, "GET", item(f, ids[i]), NULL, 404, "Not found");
        ck_api(f, "PATCH", item(f, ids[i]), "{\"ttl\":60}", 404, "Not found");
        ck_api(f, "PUT", confirmation(f, ids[i]), "{\"confirmed\":true}", 404,
               "Not found");
        ck_api(f, "DELETE", item(f, ids[i]), NULL, 204, NULL);
    }
    ck_api(f, "GET", LIST, NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "subscriptions.0.subscriber"), HOOK);
}

LIMITED_TEST(pages_follow_each_other_in_the_order_of_subscribing,
             limits.max_subscriptions_per_page = 2)
{
    const char *next = LIST "?limit=2";

    for (int i = 0; i < 5; i++)
        (void)subscribe(f, api_text(f, "http://example.org/%d", i));
    for (int i = 0; i < 5; i += 2) {
        ck_api(f, "GET", next, NULL, 200, NULL);
        ck_assert_str_eq(api_pick(f, "subscriptions.0.subscriber"),
                         api_text(f, "http://example.org/%d", i));
        next = api_pick(f, "links.0.href");
    }
    ck_api(f, "GET", next, NULL, 200, NULL);
    ck_api_body(f, "{'subscriptions':[],'links':[]}");
    ck_api(f, "GET", LIST, NULL, 200, NULL); /* the page is as long as it may be */
    ck_assert_str_eq(api_pick(f, "subscriptions.1.subscriber"), "http://example.org/1");
    ck_api(f, "GET", api_text(f, LIST "?marker=%s", api_pick(f, "subscriptions.1.id")),
           NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "subscriptions.0.subscriber"), "http://example.org/2");
    ck_api(f, "GET", LIST "?limit=3", NULL, 400, BAD);
    ck_api(f, "GET", LIST "?limit=x", NULL, 400, "Invalid parameter");
}

START_TEST(a_project_in_the_path_stays_there)
{
    struct api_fixture f;
    const char *id, *project;
    char p[256];

    memset(p, '{', sizeof(p) - 1);
    p[sizeof(p) - 1] = '\0';
    api_fixture_open(&f);
    f.c.headers[API_HEADER_PROJECT_ID] = NULL;
    project = api_text(&f, "/v2/%s/queues/q/subscriptions", p);
    ck_api(&f, "POST", project, CREATE(HOOK), 201, NULL);
    id = api_pick(&f, "subscription_id");
    ck_api(&f, "PUT", api_text(&f, "%s/%s/confirm", project, id), "{\"confirmed\":true}",
           204, NULL);
    ck_assert_ptr_nonnull(strstr(api_response_header(&f.c, "Location"), "/v2/%7"));
    ck_api(&f, "PUT", api_text(&f, "%s/%s/confirm/", project, id), "{\"confirmed\":true}",
           204, NULL);
    f.c.headers[API_HEADER_PROJECT_ID] = API_CALL_PROJECT;
    ck_api(&f, "GET", LIST, NULL, 200, NULL);
    ck_api_body(&f, "{'subscriptions':[],'links':[]}");
    api_fixture_close(&f);
}

API_TEST(operators_see_how_far_it_has_come)
{
    const char *id;

    id = subscribe(f, "http://ann:secret@example.org/");
    api_post_letters(f, "q", "abc");
    ck_api(f, "GET", api_text(f, "/claimd/queues/q/subscriptions/%s", id), NULL, 200,
           NULL);
    ck_api_body(f, api_text(f,
                            "{'id':'%s','confirmed':false,'ttl':3600,'age':0,"
                            "'delivered':0,'given_up':0,'fallen_out':0,'behind':3,"
                            "'failures':0,'failed':0,'delivering':false,'next_try':null}",
                            id));
    ck_api(f, "GET", "/claimd/queues/q/subscriptions?limit=1", NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "subscriptions.0.id"), id);
    ck_assert_ptr_nonnull(strstr(api_pick(f, "links.0.href"),
                                 "/claimd/queues/q/subscriptions?limit=1&marker="));
    ck_assert_ptr_null(strstr(api_body(&f->c), "secret"));
    ck_api(f, "GET", "/claimd/queues/q/subscriptions/x", NULL, 404, "Not found");
    ck_api(f, "GET", "/claimd/queues/a%20b/subscriptions", NULL, 400,
           "Invalid queue identification");
}

/* Leases what is due, and has it fail until a time. */
static void
fail_until(struct api_fixture *f, int64_t again_ms)
{
    struct store_delivery delivery = {.store = NULL};

    ck_assert_int_eq(store_delivery_next(f->store, STORE_AT(f->c.now_ms), &delivery),
                     ST_OK);
    store_delivery_done(f->store, STORE_AT(f->c.now_ms), &delivery, STORE_OUTCOME_FAILED,
                        again_ms);
}

API_TEST(operators_see_when_it_is_tried_again)
{
    const char *id, *path;

    id = subscribe(f, HOOK);
    path = api_text(f, "/claimd/queues/q/subscriptions/%s", id);
    api_post_letters(f, "q", "ab");
    fail_until(f, API_FIXTURE_START_MS + 30000);
    ck_api(f, "GET", path, NULL, 200, NULL);
    ck_api_body(f, api_text(f,
                            "{'id':'%s','confirmed':false,'ttl':3600,'age':0,"
                            "'delivered':0,'given_up':0,'fallen_out':0,'behind':2,"
                            "'failures':1,'failed':1,'delivering':false,"
                            "'next_try':'2026-01-31T12:00:30Z'}",
                            id));
    f->c.now_ms += 30000;
    ck_api(f, "GET", path, NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"next_try\":null"));
}
