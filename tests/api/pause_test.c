/* Pausing a queue (docs/api.md 28). */
#include "support/api_fixture.h"

#include <string.h>

#define PAUSE "/claimd/queues/jobs/pause"

/* The end of a response: the last pause. */
#define BY(at, address, worker)                                                          \
    "'last_pause': {'at': '" at "', 'client': '" API_CALL_CLIENT                         \
    "', 'address': " address ", 'worker': " worker "}}"
#define ME       BY("2026-01-31T12:00:00Z", "null", "null")
#define NO_PAUSE "'last_pause': null}"

static void
pause_jobs(struct api_fixture *f, const char *body, const char *expected)
{
    ck_api(f, "POST", PAUSE, body, 200, NULL);
    ck_api_body(f, expected);
}

TEST_CASE("requests");

API_TEST(a_request_changes_only_what_it_names)
{
    api_post_letters(f, "jobs", "a");
    pause_jobs(f, NULL, "{'claims': true, 'posts': false, " ME);
    pause_jobs(f, "{}", "{'claims': true, 'posts': false, " ME);
    pause_jobs(f, "{\"posts\":true}", "{'claims': true, 'posts': true, " ME);
    pause_jobs(f, "{\"claims\":false,\"posts\":null}",
               "{'claims': false, 'posts': true, " ME);
    pause_jobs(f, "{\"claims\":false,\"posts\":false}",
               "{'claims': false, 'posts': false, " NO_PAUSE);
}

API_TEST(bad_requests_change_nothing)
{
    static const struct api_row rows[] = {
        {"POST", "/claimd/queues/unknown/pause", NULL, 404, "Not found"},
        {"POST", PAUSE, "[]", 400, "Invalid request body"},
        {"POST", PAUSE, "{\"claims\":1}", 400, "Invalid request body"},
        {"POST", PAUSE, "{\"claims\":true,\"pops\":true}", 400, "Invalid request body"},
        {"POST", PAUSE, "{\"claims\":true", 400, "Invalid request body"},
        {"GET", "/claimd/queues/unknown/pause", NULL, 404, "Not found"},
        {"PUT", PAUSE, "{}", 405, NULL},
        {"POST", "/claimd/topics/jobs/pause", NULL, 404, NULL},
    };

    api_post_letters(f, "jobs", "a");
    ck_api_rows(f, rows);
    ck_api(f, "GET", "/claimd/queues", NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"paused\":{\"claims\":false,"));
}

API_TEST(the_state_names_the_client_of_the_last_pause)
{
#define WEB3 BY("2026-01-31T12:00:05Z", "'10.0.0.7'", "'web3 4711'")
    api_post_letters(f, "jobs", "a");
    ck_api(f, "GET", PAUSE, NULL, 200, NULL);
    ck_api_body(f, "{'claims': false, 'posts': false, " NO_PAUSE);
    pause_jobs(f, NULL, "{'claims': true, 'posts': false, " ME);
    f->c.now_ms += 5000;
    f->c.address = "10.0.0.7";
    f->c.headers[API_HEADER_WORKER] = "web3 4711";
    pause_jobs(f, "{\"posts\":true}", "{'claims': true, 'posts': true, " WEB3);
    /* A client that pauses nothing more, or resumes one of both, is not the last. */
    f->c.now_ms += 5000;
    f->c.headers[API_HEADER_WORKER] = "web4 1";
    pause_jobs(f, NULL, "{'claims': true, 'posts': true, " WEB3);
    pause_jobs(f, "{\"claims\":false}", "{'claims': false, 'posts': true, " WEB3);
    ck_api(f, "GET", PAUSE, NULL, 200, NULL);
    ck_api_body(f, "{'claims': false, 'posts': true, " WEB3);
    f->c.headers[API_HEADER_WORKER] = "a\tb";
    ck_api(f, "POST", PAUSE, NULL, 400, NULL);
    f->c.headers[API_HEADER_WORKER] = NULL;
    pause_jobs(f, "{\"posts\":false}", "{'claims': false, 'posts': false, " NO_PAUSE);
}

TEST_CASE("effects");

API_TEST(a_paused_queue_delivers_nothing)
{
    const char *claim;

    api_post_letters(f, "jobs", "abc");
    claim = api_take(f, "jobs", 1);
    ck_api(f, "POST", PAUSE, NULL, 200, NULL);
    ck_api(f, "POST", "/v2/queues/jobs/claims", NULL, 204, NULL);
    ck_api_header(f, "Claimd-Paused", "claims");
    ck_api(f, "POST", "/v2/queues/jobs/claims", NULL, 204, NULL);
    ck_api(f, "DELETE", "/v2/queues/jobs/messages?pop=1", NULL, 200, NULL);
    ck_api_body(f, "{'messages': []}");
    ck_api_header(f, "Claimd-Paused", "claims");
    /* Work under way goes on. */
    ck_api(f, "PATCH", api_text(f, "/v2/queues/jobs/claims/%s", claim), "{\"ttl\":100}",
           204, NULL);
    ck_api(f, "DELETE", api_text(f, "/v2/queues/jobs/claims/%s", claim), NULL, 204, NULL);
    ck_api(f, "GET", "/v2/queues/jobs/messages?echo=true", NULL, 200, NULL);
    api_post_letters(f, "jobs", "d");
    ck_api(f, "POST", PAUSE, "{\"claims\":false}", 200, NULL);
    ck_api(f, "DELETE", "/v2/queues/jobs/messages?pop=4", NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "messages.0.body"), "a");
    ck_assert_str_eq(api_pick(f, "messages.3.body"), "d");
    ck_assert_ptr_null(api_response_header(&f->c, "Claimd-Paused"));
}

API_TEST(a_misspelled_member_is_refused_with_the_member_that_was_meant)
{
    ck_api(f, "POST", PAUSE, "{\"claim\":true}", 400, "Invalid request body");
    ck_api_body(
        f, "{'title': 'Invalid request body', 'description': 'the body has the "
           "unknown member \\\"claim\\\" (did you mean \\\"claims\\\"?). Allowed are "
           "claims and posts'}");
    ck_api(f, "POST", PAUSE, "{\"color\":true}", 400, "Invalid request body");
    ck_assert_ptr_null(strstr(api_body(&f->c), "did you mean"));
}

API_TEST(a_claim_of_several_queues_skips_a_paused_one)
{
    api_post_letters(f, "jobs", "a");
    api_post_letters(f, "more", "b");
    ck_api(f, "POST", PAUSE, NULL, 200, NULL);
    ck_api(f, "POST", "/claimd/claims?queue=jobs&queue=more", NULL, 201, NULL);
    ck_assert_str_eq(api_pick(f, "messages.0.body"), "b");
    ck_api(f, "POST", "/claimd/claims?queue=jobs&queue=more", NULL, 204, NULL);
    ck_api_header(f, "Claimd-Paused", "claims");
}

API_TEST(posts_to_a_paused_queue_are_refused)
{
    api_post_letters(f, "jobs", "a");
    ck_api(f, "POST", PAUSE, "{\"posts\":true}", 200, NULL);
    ck_api(f, "POST", "/v2/queues/jobs/messages", "{\"messages\":[{\"body\":1}]}", 503,
           "Queue is paused");
    ck_api_header(f, "Claimd-Paused", "posts");
    ck_api_header(f, "Retry-After", "10");
    ck_assert_ptr_nonnull(api_take(f, "jobs", 1));
}

API_TEST(changes_of_metadata_keep_the_pause)
{
    static const char *const patch =
        "[{\"op\":\"add\",\"path\":\"/metadata/x\",\"value\":1}]";

    ck_api(f, "PUT", "/v2/queues/jobs", "{\"x\":0}", 201, NULL);
    ck_api(f, "POST", PAUSE, NULL, 200, NULL);
    f->c.headers[API_HEADER_CONTENT_TYPE] =
        "application/openstack-messaging-v2.0-json-patch";
    ck_api(f, "PATCH", "/v2/queues/jobs", patch, 200, NULL);
    f->c.headers[API_HEADER_CONTENT_TYPE] = NULL;
    ck_assert_ptr_null(strstr(api_body(&f->c), "paused"));
    ck_api(f, "PUT", "/v1/queues/jobs/metadata", "{\"x\":2}", 204, NULL);
    ck_api(f, "GET", PAUSE, NULL, 200, NULL);
    ck_api_body(f, "{'claims': true, 'posts': false, " ME);
    ck_api(f, "POST", "/v2/queues/jobs/claims", NULL, 204, NULL);
    ck_api_header(f, "Claimd-Paused", "claims");
    /* A new queue of this name is not paused. */
    ck_api(f, "DELETE", "/v2/queues/jobs", NULL, 204, NULL);
    api_post_letters(f, "jobs", "a");
    ck_assert_ptr_nonnull(api_take(f, "jobs", 1));
}

API_TEST(the_explanation_of_a_message_names_the_pause)
{
    const char *path;

    ck_api(f, "POST", "/v2/queues/jobs/messages", "{\"messages\":[{\"body\":1}]}", 201,
           NULL);
    path = api_text(f, "/claimd/queues/jobs/messages/%s", api_pick_id(f, "resources.0"));
    ck_api(f, "POST", PAUSE, NULL, 200, NULL);
    ck_api(f, "GET", path, NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_pick(f, "next.text"),
                                 "Claims of the queue are paused. The last pause was at "
                                 "2026-01-31T12:00:00Z, by client " API_CALL_CLIENT
                                 ". When they resume, a claim delivers it"));
    ck_api(f, "POST", PAUSE, "{\"claims\":false}", 200, NULL);
    ck_api(f, "GET", path, NULL, 200, NULL);
    ck_assert_ptr_null(strstr(api_pick(f, "next.text"), "paused"));
}
