/* Finish, details and redrive (docs/api.md 25). */
#include "support/api_fixture.h"

#include <stdlib.h>
#include <string.h>

#define BB   "Invalid request body"
#define BV   "Invalid API request"
#define NF   "Not found"
#define CF   "Resource conflict"
#define JOBS "/claimd/queues/jobs/claims/"

/* A claim of messages of the queue `jobs`. */
struct held {
    const char *claim;
    const char *ids[4];
};

/* With queue `jobs`, which has a dead-letter queue. */
static void
open_jobs(struct api_fixture *f)
{
    api_fixture_open(f);
    ck_api(f, "PUT", "/v2/queues/jobs",
           "{\"_max_claim_count\":5,\"_dead_letter_queue\":\"dead\"}", 201, NULL);
}

#define JOBS_TEST(id) API_TEST_WITH(id, open_jobs(f))

/* Posts a message for each letter, and claims all. */
static struct held
hold(struct api_fixture *f, const char *letters)
{
    struct held h = {.claim = NULL};

    api_post_letters(f, "jobs", letters);
    for (size_t i = 0; letters[i] != '\0'; i++)
        h.ids[i] = api_pick_id(f, api_text(f, "resources.%zu", i));
    h.claim = api_take(f, "jobs", 10);
    ck_assert_ptr_nonnull(h.claim);
    return h;
}

static void
finish(struct api_fixture *f, const struct held *h, const char *body, int code,
       const char *title)
{
    ck_api(f, "POST", api_text(f, JOBS "%s/finish", h->claim), body, code, title);
}

/* The bodies of the ready messages of a queue, which are single letters, in order:
 * "a,b". */
static const char *
ready(struct api_fixture *f, const char *queue)
{
    const char *all = "", *at;

    ck_api(f, "GET", api_text(f, "/v2/queues/%s/messages?echo=true", queue), NULL, 200,
           NULL);
    for (at = api_body(&f->c); (at = strstr(at, "\"body\":\"")) != NULL; at++)
        all = api_text(f, "%s%s%c", all, *all == '\0' ? "" : ",", at[8]);
    return all;
}

/* The last response contains this text. */
static void
shows(struct api_fixture *f, const char *text)
{
    ck_assert_msg(strstr(api_body(&f->c), text) != NULL, "no %s in %s", text,
                  api_body(&f->c));
}

JOBS_TEST(one_step_deletes_releases_dead_letters_posts_and_renews)
{
    struct held h = hold(f, "abcd");

    finish(f, &h,
           api_text(f,
                    "{\"delete\":[\"%s\"],\"release\":[{\"id\":\"%s\"}],"
                    "\"dead_letter\":[{\"id\":\"%s\",\"reason\":\"bad JSON\"}],"
                    "\"post\":[{\"queue\":\"next\",\"messages\":[{\"body\":\"x\"},"
                    "{\"body\":\"y\"}]}],\"renew\":{\"ttl\":200,\"grace\":60}}",
                    h.ids[0], h.ids[1], h.ids[2]),
           200, NULL);
    ck_api_body(f, api_text(f,
                            "{'results': [{'id': '%s', 'result': 'deleted'},"
                            "{'id': '%s', 'result': 'released'},"
                            "{'id': '%s', 'result': 'dead_lettered'}],"
                            "'posted': [{'queue': 'next', 'resources': ['*', '*']}],"
                            "'renewed': true}",
                            h.ids[0], h.ids[1], h.ids[2]));
    ck_assert_ptr_nonnull(api_response_header(&f->c, "Claim-Number"));
    ck_assert_str_eq(ready(f, "jobs"), "b");
    ck_assert_str_eq(ready(f, "dead"), "c");
    ck_assert_str_eq(ready(f, "next"), "x,y");
    f->c.now_ms += 199999; /* d stays claimed as long as the renewal says */
    ck_api(f, "GET", api_text(f, "/v2/queues/jobs/claims/%s", h.claim), NULL, 200, NULL);
}

JOBS_TEST(a_misspelled_member_is_named_with_the_one_that_was_meant)
{
    struct held h = hold(f, "a");

    finish(f, &h,
           api_text(f, "{\"release\":[{\"id\":\"%s\",\"raeson\":\"x\"}]}", h.ids[0]), 400,
           BB);
    shows(f, "member \\\"raeson\\\" (did you mean \\\"reason\\\"?)");
    finish(f, &h, api_text(f, "{\"deletes\":[\"%s\"]}", h.ids[0]), 400, BB);
    shows(f, "member \\\"deletes\\\" (did you mean \\\"delete\\\"?)");
}

JOBS_TEST(hrefs_of_posts_lead_to_the_messages)
{
    struct held h = hold(f, "a");

    finish(
        f, &h,
        "{\"post\":[{\"queue\":\"next\",\"messages\":[{\"body\":\"x\",\"ttl\":100}]}]}",
        200, NULL);
    ck_api(f, "GET", api_pick(f, "posted.0.resources.0"), NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "body"), "x");
    shows(f, "\"ttl\":100,");
}

JOBS_TEST(an_atomic_step_with_a_message_that_is_not_held_changes_nothing)
{
    struct held h = hold(f, "ab");
    const char *body =
        api_text(f,
                 "{\"delete\":[\"%s\",\"%s\"],\"post\":[{\"queue\":\"next\","
                 "\"messages\":[{\"body\":1}]}]}",
                 h.ids[0], h.ids[1]);

    finish(f, &h, api_text(f, "{\"release\":[\"%s\"]}", h.ids[0]), 200, NULL);
    finish(f, &h, body, 409, CF);
    ck_api_body(f, api_text(f, "{'title': '*', 'description': '*', 'not_held': ['%s']}",
                            h.ids[0]));
    ck_api(f, "GET", "/v2/queues/next", NULL, 200, NULL);
    ck_assert_str_eq(ready(f, "next"), "");
    finish(f, &h, api_text(f, "{\"atomic\":false,%s", body + 1), 200, NULL);
    ck_api_body(f, api_text(f,
                            "{'results': [{'id': '%s', 'result': 'not_held'},"
                            "{'id': '%s', 'result': 'deleted'}],"
                            "'posted': [{'queue': 'next', 'resources': ['*']}]}",
                            h.ids[0], h.ids[1]));
    ck_assert_str_eq(ready(f, "jobs"), "a");
}

JOBS_TEST(a_claim_that_is_over_finishes_nothing)
{
    struct held h = hold(f, "a");
    const char *one = api_text(f, "{\"delete\":[\"%s\"]}", h.ids[0]);

    f->c.now_ms += 60000;
    finish(f, &h, one, 409, CF);
    finish(f, &h, api_text(f, "{\"atomic\":false,%s", one + 1), 404, NF);
    finish(f, &h, "{\"renew\":{\"ttl\":60,\"grace\":60}}", 404, NF);
    finish(f, &h, "{\"post\":[{\"queue\":\"next\",\"messages\":[{\"body\":1}]}]}", 404,
           NF);
    ck_assert_str_eq(ready(f, "jobs"), "a");
    ck_assert_str_eq(ready(f, "next"), "");
}

JOBS_TEST(a_delayed_release_is_ready_at_its_old_position_afterwards)
{
    struct held h = hold(f, "abc");

    finish(f, &h,
           api_text(f, "{\"release\":[{\"id\":\"%s\",\"delay\":30},\"%s\"]}", h.ids[0],
                    h.ids[1]),
           200, NULL);
    ck_assert_str_eq(ready(f, "jobs"), "b");
    f->c.now_ms += 29999;
    ck_assert_str_eq(ready(f, "jobs"), "b");
    f->c.now_ms += 1;
    ck_assert_str_eq(ready(f, "jobs"), "a,b");
    ck_api(f, "GET", api_text(f, "/v2/queues/jobs/messages/%s", h.ids[0]), NULL, 200,
           NULL);
    shows(f, "\"ttl\":330,"); /* the delay does not use up its life */
}

JOBS_TEST(an_uncounted_release_does_not_count_as_a_delivery)
{
    struct held h = hold(f, "ab");

    finish(f, &h,
           api_text(f, "{\"release\":[{\"id\":\"%s\",\"counted\":false},\"%s\"]}",
                    h.ids[0], h.ids[1]),
           200, NULL);
    f->c.headers[API_HEADER_PREFER] = "details";
    ck_api(f, "GET", "/v2/queues/jobs/messages?echo=true", NULL, 200, NULL);
    shows(f, "\"body\":\"a\",\"details\":{\"state\":\"ready\",\"delivery_count\":0,");
    shows(f, "\"body\":\"b\",\"details\":{\"state\":\"ready\",\"delivery_count\":1,");
}

JOBS_TEST(the_last_reason_stays_with_the_message_and_follows_it)
{
    struct held h = hold(f, "a");

    f->c.headers[API_HEADER_PREFER] = "details";
    finish(f, &h,
           api_text(f, "{\"release\":[{\"id\":\"%s\",\"reason\":\"no \\\"route\\\"\"}]}",
                    h.ids[0]),
           200, NULL);
    h.claim = api_take(f, "jobs", 1);
    ck_assert_str_eq(api_pick(f, "messages.0.details.last_reason"), "no \"route\"");
    ck_assert_str_eq(api_pick(f, "messages.0.details.state"), "claimed");
    finish(f, &h, api_text(f, "{\"release\":[\"%s\"]}", h.ids[0]), 200, NULL);
    h.claim = api_take(f, "jobs", 1);
    finish(f, &h, api_text(f, "{\"dead_letter\":[\"%s\"]}", h.ids[0]), 200, NULL);
    ck_api(f, "GET", "/v2/queues/dead/messages", NULL, 200, NULL); /* not its own */
    ck_api(f, "GET", api_text(f, "/v2/queues/dead/messages/%s", h.ids[0]), NULL, 200,
           NULL);
    ck_api_body(
        f, api_text(f,
                    "{'id': '%s', 'href': '*', 'ttl': 300, 'age': 0, 'body': 'a',"
                    "'details': {'state': 'ready', 'delivery_count': 0,"
                    "'created_at': '2026-01-31T12:00:00Z', 'expires_at': '*',"
                    "'last_reason': 'no \\\"route\\\"', 'last_client': '*',"
                    "'last_released_at': '2026-01-31T12:00:00Z', 'origin_queue': 'jobs',"
                    "'dead_lettered_at': '2026-01-31T12:00:00Z'}}",
                    h.ids[0]));
    ck_api(f, "POST", "/claimd/queues/dead/redrive", NULL, 200, NULL);
    ck_api_body(f, "{'moved': 1, 'remaining': 0, 'without_origin': 0, 'key_held': 0,"
                   "'by_target': {'jobs': 1}}");
    ck_api(f, "GET", api_text(f, "/v2/queues/jobs/messages/%s", h.ids[0]), NULL, 200,
           NULL);
    ck_assert_str_eq(api_pick(f, "details.last_reason"), "no \"route\"");
    ck_assert_ptr_null(strstr(api_body(&f->c), "origin_queue"));
}

JOBS_TEST(details_are_shown_only_to_those_that_prefer_them)
{
    static const char *const headers[] = {"wait=1", "detail", "\"details\"", NULL};

    api_post_letters(f, "jobs", "ab");
    for (size_t i = 0; headers[i] != NULL; i++) {
        f->c.headers[API_HEADER_PREFER] = headers[i];
        ck_api(f, "GET", "/v2/queues/jobs/messages?echo=true", NULL, 200, NULL);
        ck_assert_ptr_null(strstr(api_body(&f->c), "delivery_count"));
    }
    f->c.headers[API_HEADER_PREFER] = "wait=1, details";
    ck_api(f, "DELETE", "/v2/queues/jobs/messages?pop=1", NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "messages.0.details.state"), "ready");
    ck_api(f, "POST", "/v2/queues/jobs/claims", NULL, 201, NULL);
    ck_assert_str_eq(api_pick(f, "messages.0.details.state"), "claimed");
}

JOBS_TEST(bad_requests_are_refused_and_change_nothing)
{
    struct held h = hold(f, "ab");
    char *large = malloc(2000);
    static const struct {
        const char *body;
        int code;
        const char *title;
    } rows[] = {
        {"", 400, BB},
        {"[]", 400, BB},
        {"{}", 400, BV},
        {"{\"delete\":[]}", 400, BV},
        {"{\"remove\":[]}", 400, BB},
        {"{\"delete\":\"x\"}", 400, BB},
        {"{\"delete\":[1]}", 400, BB},
        {"{\"delete\":[{\"id\":\"x\"}]}", 400, BB},
        {"{\"release\":[{}]}", 400, BB},
        {"{\"release\":[{\"id\":1}]}", 400, BB},
        {"{\"release\":[{\"id\":\"x\",\"delay\":-1}]}", 400, BV},
        {"{\"release\":[{\"id\":\"x\",\"delay\":43201}]}", 400, BV},
        {"{\"release\":[{\"id\":\"x\",\"delay\":1.5}]}", 400, BB},
        {"{\"release\":[{\"id\":\"x\",\"reason\":1}]}", 400, BB},
        {"{\"release\":[{\"id\":\"x\",\"reason\":\"a\\u0000b\"}]}", 400, BV},
        {"{\"release\":[{\"id\":\"x\",\"counted\":1}]}", 400, BB},
        {"{\"dead_letter\":[{\"id\":\"x\",\"delay\":1}]}", 400, BB},
        {"{\"post\":{}}", 400, BB},
        {"{\"post\":[1]}", 400, BB},
        {"{\"post\":[{\"queue\":\"n\"}]}", 400, BV},
        {"{\"post\":[{\"queue\":\"n\",\"messages\":[]}]}", 400, BV},
        {"{\"post\":[{\"queue\":\"a/b\",\"messages\":[{\"body\":1}]}]}", 400,
         "Invalid queue identification"},
        {"{\"post\":[{\"queue\":\"n\",\"messages\":[{\"body\":1}]},"
         "{\"queue\":\"n\",\"messages\":[{\"body\":1}]}]}",
         400, BV},
        {"{\"post\":[{\"queue\":\"n\",\"messages\":[{\"body\":1,\"ttl\":60,\"delay\":60}]"
         "}]}",
         400, BV},
        {"{\"renew\":{\"ttl\":1}}", 400, BV},
        {"{\"renew\":1}", 400, BB},
        {"{\"atomic\":1,\"renew\":{\"ttl\":60,\"grace\":60}}", 400, BB},
    };

    ck_assert_ptr_nonnull(large);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        finish(f, &h, rows[i].body, rows[i].code, rows[i].title);
    memset(large, 'x', 1025);
    large[1025] = '\0';
    finish(
        f, &h,
        api_text(f, "{\"release\":[{\"id\":\"%s\",\"reason\":\"%s\"}]}", h.ids[0], large),
        400, BV);
    finish(f, &h,
           api_text(f, "{\"delete\":[\"%s\"],\"release\":[\"%s\"]}", h.ids[0], h.ids[0]),
           400, BV);
    large[1024] = '\0';
    finish(
        f, &h,
        api_text(f, "{\"release\":[{\"id\":\"%s\",\"reason\":\"%s\"}]}", h.ids[0], large),
        200, NULL);
    finish(f, &h, api_text(f, "{\"delete\":[\"%s\"]}", h.ids[1]), 200, NULL);
    free(large);
}

API_TEST(without_a_dead_letter_queue_nothing_is_dead_lettered)
{
    const char *claim, *id;

    api_post_letters(f, "q", "a");
    id = api_pick_id(f, "resources.0");
    claim = api_take(f, "q", 1);
    ck_api(f, "POST", api_text(f, "/claimd/queues/q/claims/%s/finish", claim),
           api_text(f, "{\"dead_letter\":[\"%s\"]}", id), 409, CF);
    ck_api(f, "GET", api_text(f, "/v2/queues/q/claims/%s", claim), NULL, 200, NULL);
}

JOBS_TEST(a_post_beyond_the_limit_of_its_queue_changes_nothing)
{
    struct held h = hold(f, "a");

    ck_api(f, "PUT", "/v2/queues/small", "{\"_max_messages_post_size\":60}", 201, NULL);
    finish(f, &h,
           api_text(f,
                    "{\"delete\":[\"%s\"],\"post\":[{\"queue\":\"small\",\"messages\":"
                    "[{\"body\":\"0123456789012345678901234567890123456789\"}]}]}",
                    h.ids[0]),
           400, BV);
    ck_api(f, "GET", api_text(f, "/v2/queues/jobs/claims/%s", h.claim), NULL, 200, NULL);
}

/* Dead-letters a message for each letter of `letters`. */
static struct held
make_dead_letters(struct api_fixture *f, const char *letters)
{
    struct held h = hold(f, letters);

    for (size_t i = 0; letters[i] != '\0'; i++)
        finish(f, &h, api_text(f, "{\"dead_letter\":[\"%s\"]}", h.ids[i]), 200, NULL);
    return h;
}

JOBS_TEST(a_redrive_moves_the_oldest_within_its_limit)
{
    (void)make_dead_letters(f, "abc");
    ck_api(f, "POST", "/claimd/queues/dead/redrive", "{\"limit\":2,\"dry_run\":true}",
           200, NULL);
    ck_api_body(f, "{'moved': 2, 'remaining': 1, 'without_origin': 0, 'key_held': 0,"
                   "'by_target': {'jobs': 2}}");
    ck_assert_str_eq(ready(f, "dead"), "a,b,c");
    ck_api(f, "POST", "/claimd/queues/dead/redrive", "{\"limit\":2}", 200, NULL);
    ck_assert_str_eq(ready(f, "dead"), "c");
    ck_assert_str_eq(ready(f, "jobs"), "a,b");
}

JOBS_TEST(a_redrive_takes_a_target_or_ids)
{
    struct held h = make_dead_letters(f, "abc");

    ck_api(f, "POST", "/claimd/queues/dead/redrive",
           api_text(f, "{\"ids\":[\"%s\",\"unknown\"],\"to\":{\"queue\":\"origin\"}}",
                    h.ids[1]),
           200, NULL);
    ck_api_body(f, "{'moved': 1, 'remaining': 2, 'without_origin': 0, 'key_held': 0,"
                   "'by_target': {'origin': 1}}");
    ck_assert_str_eq(ready(f, "origin"), "b");
    ck_api(f, "POST", "/claimd/queues/dead/redrive", "{\"to\":\"other\"}", 200, NULL);
    ck_assert_str_eq(ready(f, "other"), "a,c");
    ck_api(f, "POST", "/claimd/queues/other/redrive", NULL, 200, NULL);
    ck_api_body(f, "{'moved': 0, 'remaining': 0, 'without_origin': 0, 'key_held': 0, "
                   "'by_target': {}}");
}

JOBS_TEST(a_redrive_counts_a_message_that_is_named_twice_once)
{
    const struct held h = make_dead_letters(f, "abc");
    const char *ids = api_text(f, "[\"%s\",\"none\",\"%s\",\"\",\"%s\",\"none\",\"%s\"]",
                               h.ids[2], h.ids[0], h.ids[2], h.ids[2]);

    for (int dry = 1; dry >= 0; dry--) {
        ck_api(f, "POST", "/claimd/queues/dead/redrive",
               api_text(f, "{\"ids\":%s,\"dry_run\":%s}", ids, dry ? "true" : "false"),
               200, NULL);
        ck_api_body(f, "{'moved': 2, 'remaining': 1, 'without_origin': 0, 'key_held': 0,"
                       "'by_target': {'jobs': 2}}");
    }
    ck_assert_str_eq(ready(f, "dead"), "b");
    ck_assert_str_eq(ready(f, "jobs"), "c,a"); /* in the order of the list */
}

JOBS_TEST(a_redrive_counts_by_target_whatever_the_order_of_the_origins)
{
    struct held other;

    ck_api(f, "PUT", "/v2/queues/more", "{\"_dead_letter_queue\":\"dead\"}", 201, NULL);
    (void)make_dead_letters(f, "a");
    api_post_letters(f, "more", "bc");
    other.ids[0] = api_pick_id(f, "resources.0");
    other.ids[1] = api_pick_id(f, "resources.1");
    other.claim = api_take(f, "more", 10);
    ck_api(f, "POST", api_text(f, "/claimd/queues/more/claims/%s/finish", other.claim),
           api_text(f, "{\"dead_letter\":[\"%s\",\"%s\"]}", other.ids[0], other.ids[1]),
           200, NULL);
    (void)make_dead_letters(f, "d");
    ck_api(f, "POST", "/claimd/queues/dead/redrive", NULL, 200, NULL);
    ck_api_body(f, "{'moved': 4, 'remaining': 0, 'without_origin': 0, 'key_held': 0,"
                   "'by_target': {'jobs': 2, 'more': 2}}");
    ck_assert_str_eq(ready(f, "jobs"), "a,d");
    ck_assert_str_eq(ready(f, "more"), "b,c");
}

JOBS_TEST(a_bad_redrive_is_refused)
{
    static const struct api_row rows[] = {
        {"POST", "/claimd/queues/none/redrive", NULL, 404, NF},
        {"POST", "/claimd/queues/jobs/redrive", "[]", 400, BB},
        {"POST", "/claimd/queues/jobs/redrive", "{\"all\":true}", 400, BB},
        {"POST", "/claimd/queues/jobs/redrive", "{\"limit\":0}", 400, BV},
        {"POST", "/claimd/queues/jobs/redrive", "{\"limit\":1001}", 400, BV},
        {"POST", "/claimd/queues/jobs/redrive", "{\"to\":1}", 400, BB},
        {"POST", "/claimd/queues/jobs/redrive", "{\"to\":\"a/b\"}", 400,
         "Invalid queue identification"},
        {"POST", "/claimd/queues/jobs/redrive", "{\"dry_run\":1}", 400, BB},
        {"POST", "/claimd/queues/jobs/redrive", "{\"ids\":{}}", 400, BB},
        {"POST", "/claimd/queues/jobs/redrive", "{\"ids\":[1]}", 400, BB},
        {"POST", "/claimd/queues/jobs/redrive", "{}", 200, NULL},
    };

    ck_api_rows(f, rows);
    (void)make_dead_letters(f, "a");
    ck_api(f, "POST", "/claimd/queues/dead/redrive", "{\"to\":\"dead\"}", 409, CF);
    ck_api(f, "POST", "/claimd/queues/dead/redrive", api_text(f, "{%*s}", 70000, ""), 400,
           BB);
    ck_assert_str_eq(ready(f, "dead"), "a");
}
