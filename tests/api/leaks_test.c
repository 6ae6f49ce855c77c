/* Messages and claims that tests left behind (docs/api.md 23.8). */
#include "support/testapi_fixture.h"

#include <jansson.h>
#include <string.h>

#define MESSAGES "/v2/queues/q/messages"
#define WORKER   "11111111-2b9e-11e3-b191-71861300734c"

static void
advance(int seconds)
{
    ck_api(&f, "POST", "/claimd/clock/advance", api_text(&f, "{\"seconds\":%d}", seconds),
           200, NULL);
}

/* Posts a message, which lives for an hour; its id. */
static const char *
post(const char *queue)
{
    ck_api(&f, "POST", api_text(&f, "/v2/queues/%s/messages", queue),
           "{\"messages\":[{\"body\":1,\"ttl\":3600}]}", 201, NULL);
    return api_pick_id(&f, "resources.0");
}

/* Claims as the worker does; the claim's id, NULL: there was nothing. */
static const char *
take(const char *queue, int limit)
{
    const char *client = f.c.headers[API_HEADER_CLIENT_ID], *claim;

    f.c.headers[API_HEADER_CLIENT_ID] = WORKER;
    claim = api_take(&f, queue, limit);
    f.c.headers[API_HEADER_CLIENT_ID] = client;
    return claim;
}

static void
fetch(const char *target)
{
    ck_api(&f, "GET", target, NULL, 200, NULL);
}

/* All that has leaked is this, of one page. */
#define ck_leaks(expected)                                                               \
    do {                                                                                 \
        fetch("/claimd/leaks");                                                          \
        ck_api_body(&f, expected);                                                       \
    } while (0)

/* A queue whose messages are dead letters after one claim, and one of these. */
static const char *
make_dead_letter(void)
{
    const char *id;

    ck_api(&f, "PUT", "/v2/queues/q",
           "{\"_max_claim_count\":1,\"_dead_letter_queue\":\"dead\"}", 201, NULL);
    id = post("q");
    ck_assert_ptr_nonnull(take("q", 1));
    advance(60);
    ck_assert_ptr_null(take("q", 1));
    return id;
}

TESTAPI_CASE("kinds");

START_TEST(nothing_is_forgotten_where_nothing_was_done)
{
    ck_leaks("{'leaks':[]}");
    ck_api(&f, "PUT", "/v2/queues/q", NULL, 201, NULL);
    ck_leaks("{'leaks':[]}");
}

START_TEST(a_live_claim_is_listed_once_with_its_client)
{
    const char *claim;

    post("q");
    post("q");
    advance(5);
    claim = take("q", 2);
    advance(10);
    ck_leaks(api_text(&f,
                      "{'leaks':[{'kind':'claim','project':'" API_CALL_PROJECT
                      "','queue':'q','claim':'%s','messages':2,'client':'" WORKER
                      "','at':'2026-01-31T12:00:05Z','at_ms':1769860805000}]}",
                      claim));
    ck_api(&f, "DELETE", api_text(&f, "/v2/queues/q/claims/%s", claim), NULL, 204, NULL);
    ck_leaks("{'leaks':[]}"); /* the messages were read */
}

START_TEST(a_claim_whose_messages_are_gone_is_finished)
{
    const char *id = post("q"), *claim = take("q", 1);

    ck_api(&f, "DELETE", api_text(&f, MESSAGES "/%s?claim_id=%s", id, claim), NULL, 204,
           NULL);
    ck_leaks("{'leaks':[]}");
}

START_TEST(an_unread_message_is_listed_with_its_producer)
{
    const char *id = post("q");

    advance(10);
    ck_leaks(api_text(&f,
                      "{'leaks':[{'kind':'unread','project':'" API_CALL_PROJECT
                      "','queue':'q','id':'%s','client':'" API_CALL_CLIENT
                      "','at':'2026-01-31T12:00:00Z','at_ms':1769860800000}]}",
                      id));
    advance(3600);
    ck_leaks("{'leaks':[]}"); /* it has expired */
}

START_TEST(one_that_is_delayed_is_not_read_either)
{
    ck_api(&f, "POST", MESSAGES, "{\"messages\":[{\"body\":1,\"ttl\":300,\"delay\":60}]}",
           201, NULL);
    fetch("/claimd/leaks");
    ck_assert_str_eq(api_pick(&f, "leaks.0.kind"), "unread");
}

START_TEST(whatever_shows_a_message_reads_it)
{
    const char *ways[] = {MESSAGES "?echo=true", MESSAGES "?ids=%s", MESSAGES "/%s",
                          "/v1.1/queues/q/messages/%s",
                          "/v1/queues/q/messages?echo=true"};

    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        const char *id = post("q");

        fetch("/claimd/leaks");
        ck_assert_str_eq(api_pick(&f, "leaks.0.id"), id);
        fetch(strstr(ways[i], "%s") == NULL
                  ? ways[i]
                  : api_text(&f, "%.*s%s", (int)(strlen(ways[i]) - 2), ways[i], id));
        ck_leaks("{'leaks':[]}");
    }
    fetch("/claimd/history?event=shown");
    ck_assert_str_eq(api_pick(&f, "history.0.action"), "messages:get_all");
    ck_assert_str_eq(api_pick(&f, "history.0.client"), API_CALL_CLIENT);
}

START_TEST(a_listing_that_leaves_a_message_out_does_not_read_it)
{
    post("q");
    fetch(MESSAGES); /* of the same client, without echo */
    fetch("/claimd/leaks");
    ck_assert_str_eq(api_pick(&f, "leaks.0.kind"), "unread");
}

START_TEST(dead_letters_are_listed_until_they_are_read)
{
    const char *id = make_dead_letter();

    advance(10);
    ck_leaks(api_text(&f,
                      "{'leaks':[{'kind':'dead_letter','project':'" API_CALL_PROJECT
                      "','queue':'dead','from':'q','id':'%s','client':'" WORKER
                      "','at':'2026-01-31T12:01:00Z','at_ms':1769860860000}]}",
                      id));
    fetch("/v2/queues/dead/messages?echo=true");
    ck_leaks("{'leaks':[]}");
}

START_TEST(a_message_read_before_its_move_is_still_a_dead_letter)
{
    ck_api(&f, "PUT", "/v2/queues/q",
           "{\"_max_claim_count\":1,\"_dead_letter_queue\":\"dead\"}", 201, NULL);
    post("q");
    fetch(MESSAGES "?echo=true");
    ck_assert_ptr_nonnull(take("q", 1));
    advance(60);
    ck_assert_ptr_null(take("q", 1));
    fetch("/claimd/leaks");
    ck_assert_str_eq(api_pick(&f, "leaks.0.kind"), "dead_letter");
}

START_TEST(claimed_dead_letters_are_expected)
{
    make_dead_letter();
    ck_assert_ptr_nonnull(take("dead", 1));
    advance(60); /* it is ready again */
    ck_leaks("{'leaks':[]}");
}

START_TEST(an_event_dropped_from_the_history_is_null)
{
    post("q");
    for (int i = 0; i < HISTORY_MOST; i++)
        history_add(testapi_history(f.testapi),
                    &(struct history_entry){.event = HISTORY_CLOCK});
    advance(7);
    ck_leaks("{'leaks':[{'kind':'unread','project':'" API_CALL_PROJECT
             "','queue':'q','id':'*','client':null,'at':'2026-01-31T12:00:00Z',"
             "'at_ms':1769860800000}]}");
}

TESTAPI_CASE("pages");

static void
post_as(const char *project, const char *queue)
{
    f.c.headers[API_HEADER_PROJECT_ID] = project;
    post(queue);
    f.c.headers[API_HEADER_PROJECT_ID] = NULL;
}

/* Follows the links from a page on; how many leaks there are, each of them once. */
static size_t
count_all(const char *target, size_t *pages)
{
    json_t *seen = json_object();
    size_t count;

    *pages = 0;
    while (target != NULL) {
        json_t *tree, *leak;
        size_t i;

        fetch(target);
        tree = json_loads(api_body(&f.c), 0, NULL);
        json_array_foreach(json_object_get(tree, "leaks"), i, leak)
        {
            const char *id = json_string_value(json_object_get(leak, "id"));

            ck_assert_ptr_null(json_object_get(seen, id));
            json_object_set_new(seen, id, json_true());
        }
        target = json_object_get(tree, "links") == NULL
                     ? NULL
                     : api_text(&f, "%s", api_pick(&f, "links.0.href"));
        json_decref(tree);
        ++*pages;
    }
    count = json_object_size(seen);
    json_decref(seen);
    return count;
}

START_TEST(pages_go_through_all_projects_and_queues)
{
    static const char *const projects[] = {"a", "a/b?c&d", "z"};
    size_t pages;

    for (int i = 0; i < 30; i++)
        post_as(projects[i % 3], api_text(&f, "q%d", i / 9));
    ck_assert_uint_eq(count_all("/claimd/leaks", &pages), 30);
    ck_assert_uint_eq(pages, 1);
    ck_assert_uint_eq(count_all("/claimd/leaks?limit=1", &pages), 30);
    ck_assert_uint_ge(pages, 30);
    ck_assert_uint_eq(count_all("/claimd/leaks?limit=7", &pages), 30);
    ck_assert_uint_eq(count_all("/claimd/leaks?limit=3&project=a%2Fb%3Fc%26d", &pages),
                      10);
    ck_assert_uint_eq(count_all("/claimd/leaks?project=none", &pages), 0);
    f.c.headers[API_HEADER_PROJECT_ID] = "z";
    ck_assert_uint_eq(count_all("/claimd/leaks", &pages), 10);
}

START_TEST(a_queue_that_has_gone_between_two_pages_is_passed)
{
    const char *next;

    for (int i = 0; i < 4; i++)
        post_as("p", api_text(&f, "q%d", i));
    fetch("/claimd/leaks?limit=2");
    next = api_text(&f, "%s", api_pick(&f, "links.0.href"));
    f.c.headers[API_HEADER_PROJECT_ID] = "p";
    ck_api(&f, "DELETE", "/v2/queues/q1", NULL, 204, NULL);
    fetch(next);
    ck_assert_str_eq(api_pick(&f, "leaks.0.queue"), "q2");
    ck_assert_str_eq(api_pick(&f, "leaks.1.queue"), "q3");
}

/* Of twenty messages each, so that it is not the limit that ends a page. */
START_TEST(one_response_looks_at_some_thousand_messages)
{
    enum { CLAIMS = 600 };
    const char *twenty = "{\"body\":1}";

    for (int i = 1; i < 20; i++)
        twenty = api_text(&f, "%s,{\"body\":1}", twenty);
    for (int i = 0; i < CLAIMS; i++) {
        ck_api(&f, "POST", MESSAGES, api_text(&f, "{\"messages\":[%s]}", twenty), 201,
               NULL);
        ck_assert_ptr_nonnull(take("q", 20));
    }
    fetch("/claimd/leaks?limit=1000");
    ck_assert_ptr_null(strstr(api_body(&f.c), "unread"));
    fetch(api_text(&f, "%s", api_pick(&f, "links.0.href")));
    ck_assert_str_eq(api_pick(&f, "leaks.0.kind"), "claim");
    ck_assert_ptr_null(strstr(api_body(&f.c), "links"));
}

START_TEST(wrong_parameters_are_refused)
{
    static const struct api_row rows[] = {
#define PARAMETER "Invalid parameter"
        {"GET", "/claimd/leaks?limit=0", NULL, 400, "Invalid API request"},
        {"GET", "/claimd/leaks?limit=1001", NULL, 400, "Invalid API request"},
        {"GET", "/claimd/leaks?marker=x", NULL, 400, PARAMETER},
        {"GET", "/claimd/leaks?marker=x/1", NULL, 400, PARAMETER},
        {"GET", "/claimd/leaks?marker=/1/p", NULL, 400, PARAMETER},
        {"GET", "/claimd/leaks?marker=q/012345678901234567890123456789012/p", NULL, 400,
         PARAMETER},
        {"GET", "/claimd/leaks?marker=q/1/p&project=r", NULL, 400, PARAMETER},
        {"POST", "/claimd/leaks", NULL, 405, NULL},
    };

    f.c.headers[API_HEADER_PROJECT_ID] = NULL;
    ck_api_rows(&f, rows);
    fetch("/claimd/leaks?marker=q/nonsense/");
    ck_api_body(&f, "{'leaks':[]}");
}

START_TEST(without_memory_it_says_so)
{
    int code = 503;

    make_dead_letter();
    post("q");
    ck_assert_ptr_nonnull(take("q", 1));
    post("q");
    for (uint64_t nth = 1; code == 503; nth++) {
        ck_assert_uint_lt(nth, 1000);
        mem_fail_nth(f.mem, nth);
        code = api_call(&f.c, "GET", "/claimd/leaks", NULL);
        mem_fail_nth(f.mem, 0);
    }
    ck_assert_int_eq(code, 200);
}

TEST_CASE("switched off");

START_TEST(without_the_test_api_there_is_no_report)
{
    struct api_fixture plain;

    api_fixture_open(&plain);
    ck_api(&plain, "GET", "/claimd/leaks", NULL, 404, NULL);
    api_fixture_close(&plain);
}
