/* Messages and claims that tests left behind (docs/api.md 23.8). */
#include "support/testapi_fixture.h"

#include <jansson.h>
#include <string.h>

#define MESSAGES "/v2/queues/q/messages"
#define WORKER   "11111111-2b9e-11e3-b191-71861300734c"

/* Moves the clock as a test that lets leases and messages expire on purpose. */
static void
advance(int seconds)
{
    ck_api(&f, "POST", "/claimd/clock/advance",
           api_text(&f, "{\"seconds\":%d,\"may_expire\":true}", seconds), 200, NULL);
}

/* Moves it as a test that does not say so. */
static void
advance_unaware(int seconds)
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

TESTAPI_CASE("hidden by a later test");

static void
use_project(const char *project)
{
    f.c.headers[API_HEADER_PROJECT_ID] = project;
}

/* All leaks of all projects, as "kind project queue ended_by ended_at_ms" each. */
static const char *
summary(void)
{
    const char *text = "", *project = f.c.headers[API_HEADER_PROJECT_ID];
    json_t *tree, *leak;
    size_t i;

    use_project(NULL);
    fetch("/claimd/leaks?limit=1000");
    use_project(project);
    tree = json_loads(api_body(&f.c), 0, NULL);
    json_array_foreach(json_object_get(tree, "leaks"), i, leak)
    {
        const char *by = json_string_value(json_object_get(leak, "ended_by"));

        text = api_text(&f, "%s%s %s %s %s %lld\n", text,
                        json_string_value(json_object_get(leak, "kind")),
                        json_string_value(json_object_get(leak, "project")),
                        json_string_value(json_object_get(leak, "queue")),
                        by == NULL ? "-" : by,
                        json_integer_value(json_object_get(leak, "ended_at_ms")));
    }
    json_decref(tree);
    return text;
}

/* A test in this project posts a message, claims it, and forgets the claim. */
static const char *
leak_claim(const char *project)
{
    const char *claim;

    use_project(project);
    post("q");
    claim = take("q", 1);
    ck_assert_ptr_nonnull(claim);
    return claim;
}

#define ck_summary(expected) ck_assert_str_eq(summary(), expected)

START_TEST(a_claim_that_ends_in_the_move_of_a_later_test_has_leaked)
{
    const char *claim = leak_claim("first");

    use_project("later");
    leak_claim("later");
    advance(60); /* the later test expects the end of its own lease only */
    ck_summary("claim first q time 1769860860000\n");
    use_project("first");
    ck_leaks(
        api_text(&f,
                 "{'leaks':[{'kind':'claim','project':'first','queue':'q','claim':'%s',"
                 "'messages':1,'client':'" WORKER "','at':'2026-01-31T12:00:00Z',"
                 "'at_ms':1769860800000,'ended_by':'time',"
                 "'ended_at':'2026-01-31T12:01:00Z','ended_at_ms':1769860860000}]}",
                 claim));
    use_project("later");
    ck_leaks("{'leaks':[]}");
}

START_TEST(a_later_test_of_the_same_project_does_not_hide_it)
{
    const char *first = leak_claim("p"), *second, *id;

    advance_unaware(60);
    second = take("q", 1); /* it gets the message, and finishes it */
    ck_assert_ptr_nonnull(second);
    ck_assert_str_ne(first, second);
    id = api_pick(&f, "messages.0.id");
    ck_api(&f, "DELETE", api_text(&f, MESSAGES "/%s?claim_id=%s", id, second), NULL, 204,
           NULL);
    ck_summary("claim p q time 1769860860000\n");
    advance(365 * 24 * 3600);
    ck_summary("claim p q time 1769860860000\n");
}

START_TEST(a_move_without_a_project_may_expire_all)
{
    leak_claim("a");
    leak_claim("b");
    use_project(NULL);
    advance(3600);
    ck_summary("");
}

START_TEST(a_setting_of_the_clock_may_expire_as_well)
{
    ck_api(&f, "PUT", "/claimd/clock", "{\"ahead_seconds\":0}", 200, NULL);
    leak_claim("a");
    ck_api(&f, "PUT", "/claimd/clock", "{\"ahead_seconds\":60,\"may_expire\":true}", 200,
           NULL);
    ck_summary("");
    leak_claim("a");
    ck_api(&f, "PUT", "/claimd/clock", "{\"ahead_seconds\":120,\"may_expire\":false}",
           200, NULL);
    ck_assert_ptr_nonnull(strstr(summary(), "claim a q time "));
}

START_TEST(the_end_of_a_move_ends_its_permission)
{
    leak_claim("a");
    advance(30);
    advance_unaware(30);
    ck_summary("claim a q time 1769860860000\n");
}

START_TEST(an_unread_message_that_expires_has_leaked)
{
    use_project("a");
    post("q");
    post("shown");
    fetch("/v2/queues/shown/messages?echo=true");
    advance_unaware(3600);
    ck_summary("unread a q time 1769864400000\n");
    fetch("/claimd/leaks");
    ck_assert_str_eq(api_pick(&f, "leaks.0.client"), API_CALL_CLIENT);
}

START_TEST(a_dead_letter_that_expires_unread_has_leaked)
{
    use_project("a");
    make_dead_letter();
    advance_unaware(30 * 24 * 3600);
    ck_assert_ptr_nonnull(strstr(summary(), "dead_letter a dead time "));
}

START_TEST(released_and_finished_claims_have_not)
{
    const char *claim = leak_claim("a"), *id = api_pick(&f, "messages.0.id");

    ck_api(&f, "DELETE", api_text(&f, MESSAGES "/%s?claim_id=%s", id, claim), NULL, 204,
           NULL);
    claim = leak_claim("a");
    ck_api(&f, "DELETE", api_text(&f, "/v2/queues/q/claims/%s", claim), NULL, 204, NULL);
    advance_unaware(3600); /* the released message was read */
    ck_summary("");
}

START_TEST(deleting_messages_and_queues_cleans_up)
{
    use_project("a");
    ck_api(&f, "DELETE", api_text(&f, MESSAGES "/%s", post("q")), NULL, 204, NULL);
    post("gone");
    ck_api(&f, "DELETE", "/v2/queues/gone", NULL, 204, NULL);
    leak_claim("a");
    ck_api(&f, "POST", "/v2/queues/q/purge", "{\"resource_types\":[\"messages\"]}", 204,
           NULL);
    advance_unaware(3600);
    ck_summary("");
}

START_TEST(a_clock_that_a_fault_moves_may_expire_the_leases_of_its_project)
{
    leak_claim("a");
    leak_claim("b");
    ck_api(&f, "PUT", "/claimd/faults",
           "{\"faults\":[{\"fault\":\"clock; seconds=60\",\"times\":1}]}", 204, NULL);
    fetch("/v2/queues/q/stats");
    ck_summary("claim a q time 1769860860000\n");
}

START_TEST(a_reset_keeps_what_leaked_before_it)
{
    use_project("a");
    make_dead_letter();
    post("q");
    post("shown");
    fetch("/v2/queues/shown/messages?echo=true");
    ck_assert_ptr_nonnull(take("q", 1));
    post("q");
    leak_claim("b");
    use_project("a");
    ck_api(&f, "POST", "/claimd/reset", NULL, 204, NULL);
    ck_summary("dead_letter a dead reset 1769860860000\n"
               "claim a q reset 1769860860000\n"
               "unread a q reset 1769860860000\n"
               "claim b q - 0\n");
    ck_api(&f, "POST", "/claimd/reset", NULL, 204, NULL); /* nothing is there twice */
    use_project(NULL);
    ck_api(&f, "POST", "/claimd/reset?leaks=forget&project=a", NULL, 204, NULL);
    ck_summary("claim b q - 0\n");
    ck_api(&f, "POST", "/claimd/reset", NULL, 204, NULL);
    ck_summary("claim b q reset 1769860860000\n");
    ck_api(&f, "POST", "/claimd/reset?leaks=forget", NULL, 204, NULL);
    ck_summary("");
}

START_TEST(a_state_keeps_what_leaked_in_the_one_before)
{
    leak_claim("a");
    ck_api(&f, "PUT", "/claimd/state", "{\"queue\":\"n\"}", 204, NULL);
    ck_summary("claim a q reset 1769860800000\n");
    post("n");
    ck_api(&f, "PUT", "/claimd/state?leaks=forget", "{\"end\":0}", 204, NULL);
    ck_summary("");
    post("n");
    ck_api(&f, "PUT", "/claimd/state", "nonsense", 400, NULL);
    ck_summary("unread a n - 0\n"); /* it is still there, and once */
}

START_TEST(a_reset_finds_the_leaks_of_long_queues)
{
    enum { POSTS = 60 };
    const char *ten = "{\"body\":1}";

    use_project("a");
    for (int i = 1; i < 10; i++)
        ten = api_text(&f, "%s,{\"body\":1}", ten);
    for (int i = 0; i < POSTS; i++)
        ck_api(&f, "POST", MESSAGES, api_text(&f, "{\"messages\":[%s]}", ten), 201, NULL);
    ck_assert_ptr_nonnull(take("q", 15));
    ck_api(&f, "POST", "/claimd/reset", NULL, 204, NULL);
    fetch("/claimd/leaks?limit=1000");
    ck_assert_str_eq(api_pick(&f, "leaks.0.kind"), "claim");
    ck_assert(strstr(api_body(&f.c), "\"messages\":15,") != NULL);
    ck_assert_str_eq(api_pick(&f, "leaks.585.kind"), "unread"); /* the last one */
    ck_assert(strstr(api_body(&f.c), "left_out") == NULL);
}

START_TEST(leaks_beyond_the_bound_are_counted)
{
    enum { MORE = 30 };

    use_project("a");
    for (int i = 0; i < LEAKS_KEPT_MOST + MORE; i++)
        post("q");
    advance_unaware(3600);
    use_project(NULL);
    fetch("/claimd/leaks?limit=1000");
    ck_assert(strstr(api_body(&f.c), "],\"left_out\":30,") != NULL);
    ck_assert_str_eq(api_pick(&f, "leaks.999.kind"), "unread");
    fetch("/claimd/leaks?project=b");
    ck_api_body(&f, "{'leaks':[]}");
    ck_api(&f, "POST", "/claimd/reset?leaks=forget", NULL, 204, NULL);
    ck_leaks("{'leaks':[]}");
}

START_TEST(many_messages_that_were_read_are_not_counted)
{
    enum { POSTS = 120 };
    const char *ten = "{\"body\":1,\"ttl\":300}", *next = MESSAGES "?echo=true&limit=20";

    use_project("a");
    for (int i = 1; i < 10; i++)
        ten = api_text(&f, "%s,{\"body\":1,\"ttl\":300}", ten);
    for (int i = 0; i < POSTS; i++)
        ck_api(&f, "POST", MESSAGES, api_text(&f, "{\"messages\":[%s]}", ten), 201, NULL);
    for (int i = 0; i < POSTS * 10 / 20; i++) {
        fetch(next);
        next = api_pick(&f, "links.0.href");
    }
    advance_unaware(300);
    use_project(NULL);
    ck_leaks("{'leaks':[]}");
}

START_TEST(other_words_are_refused)
{
    static const struct api_row rows[] = {
        {"POST", "/claimd/reset?leaks=keep", NULL, 400, "Invalid parameter"},
        {"PUT", "/claimd/state?leaks=all", "{\"end\":0}", 400, "Invalid parameter"},
        {"POST", "/claimd/clock/advance", "{\"seconds\":1,\"may_expire\":1}", 400,
         "Invalid request body"},
        {"POST", "/claimd/clock/advance", "{\"may_expire\":true}", 400,
         "Invalid request body"},
        {"PUT", "/claimd/clock", "{\"may_expire\":\"yes\"}", 400, "Invalid request body"},
        {"POST", "/claimd/clock/advance", "{\"seconds\":1,\"may\":true}", 400,
         "Invalid request body"},
    };

    ck_api_rows(&f, rows);
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

START_TEST(pages_begin_with_what_time_has_ended)
{
    size_t pages;

    for (int i = 0; i < 10; i++)
        post_as(i < 5 ? "a" : "b", "old");
    advance_unaware(3600);
    for (int i = 0; i < 10; i++)
        post_as(i < 5 ? "a" : "b", "new");
    ck_assert_uint_eq(count_all("/claimd/leaks", &pages), 20);
    for (int limit = 1; limit <= 11; limit++) {
        ck_assert_uint_eq(
            count_all(api_text(&f, "/claimd/leaks?limit=%d", limit), &pages), 20);
        ck_assert_uint_eq(
            count_all(api_text(&f, "/claimd/leaks?limit=%d&project=b", limit), &pages),
            10);
    }
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

    post("old");
    ck_assert_ptr_nonnull(take("old", 1));
    advance_unaware(60);
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
