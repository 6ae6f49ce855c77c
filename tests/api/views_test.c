/* Views of queues, claims and messages for operators (docs/api.md 26). */
#include "support/api_fixture.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Posts messages to a queue of a project. */
static void
fill(struct api_fixture *f, const char *project, const char *queue, const char *letters)
{
    f->c.headers[API_HEADER_PROJECT_ID] = project;
    api_post_letters(f, queue, letters);
    f->c.headers[API_HEADER_PROJECT_ID] = API_CALL_PROJECT;
}

/* The names in the last response: "a b c". */
static const char *
names(struct api_fixture *f)
{
    json_t *tree = json_loads(api_body(&f->c), 0, NULL), *row;
    const char *all = "";
    size_t i;

    ck_assert_ptr_nonnull(tree);
    json_array_foreach(json_object_get(tree, "queues"), i, row) all =
        api_text(f, "%s%s%s", all, i > 0 ? " " : "",
                 json_string_value(json_object_get(row, "name")));
    json_decref(tree);
    return all;
}

static bool
has_next(struct api_fixture *f)
{
    return strstr(api_body(&f->c), "\"links\":[]") == NULL;
}

#define ck_names(f, target, expected)                                                    \
    do {                                                                                 \
        ck_api(f, "GET", target, NULL, 200, NULL);                                       \
        ck_assert_str_eq(names(f), expected);                                            \
    } while (0)

/* ------------------------------------------------------------------ all queues */

TEST_CASE("queues");

API_TEST(a_row_shows_the_contents_of_a_queue)
{
    ck_api(f, "PUT", "/v2/queues/jobs",
           "{\"_dead_letter_queue\":\"failed\",\"_max_claim_count\":3}", 201, NULL);
    api_post_letters(f, "jobs", "abc");
    ck_api(f, "POST", "/v2/queues/jobs/messages",
           "{\"messages\":[{\"body\":1,\"delay\":60}]}", 201, NULL);
    f->c.now_ms += 3999;
    (void)api_take(f, "jobs", 1);
    f->c.now_ms += 2001;
    ck_api(f, "GET", "/claimd/queues", NULL, 200, NULL);
    ck_api_body(f, "{'queues': [{'project': '" API_CALL_PROJECT
                   "', 'name': 'jobs', 'ready': 2, 'delayed': 1, 'claimed': 1,"
                   " 'oldest_ready_age': 6, 'oldest_claim_age': 2, 'waiters': 0,"
                   " 'dead_letters': 0, 'unloaded': 0, 'unloaded_bytes': 0,"
                   " 'dead_letter_queue': 'failed', 'paused': "
                   "{'claims': false, 'posts': false}, 'notices': [], 'rates': null}],"
                   " 'links': [], 'total': 1}");
    ck_api(f, "PUT", "/v2/queues/empty", NULL, 201, NULL);
    ck_api(f, "GET", "/claimd/queues?q=emp", NULL, 200, NULL);
    ck_api_body(f, "{'queues': [{'project': '" API_CALL_PROJECT
                   "', 'name': 'empty', 'ready': 0, 'delayed': 0, 'claimed': 0,"
                   " 'oldest_ready_age': null, 'oldest_claim_age': null, 'waiters': 0,"
                   " 'dead_letters': 0, 'unloaded': 0, 'unloaded_bytes': 0,"
                   " 'dead_letter_queue': null, 'paused': {'claims': "
                   "false, 'posts': false}, 'notices': [], 'rates': null}],"
                   " 'links': [], 'total': 2}");
    ck_assert_uint_eq(f->c.res.lsn, 0);
}

/* Rows of the snapshot from this one on. */
static void
ck_snapshot(struct api_fixture *f, const char *query, const char *expected, int matching)
{
    ck_api(f, "GET", api_text(f, "/claimd/queues?%s", query), NULL, 200, NULL);
    ck_assert_str_eq(names(f), expected);
    ck_assert_ptr_nonnull(
        strstr(api_body(&f->c), api_text(f, "\"matching\":%d,", matching)));
}

API_TEST(viewers_share_a_snapshot)
{
    if (api_fixture_on_redis())
        return; /* its survey is up to a second old, too */
    fill(f, "p", "b", "xx");
    f->c.now_ms += 5;
    fill(f, "p", "a", "x");
    fill(f, "o", "c", "xxx");
    f->c.headers[API_HEADER_PROJECT_ID] = NULL;
    ck_snapshot(f, "offset=0", "b c a", 3);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c),
                                 "\"totals\":{\"ready\":6,\"delayed\":0,\"claimed\":0,"
                                 "\"dead_letters\":0}"));
    ck_snapshot(f, "offset=1&limit=1", "c", 3);
    ck_snapshot(f, "offset=3", "", 3);
    ck_snapshot(f, "offset=0&sort=ready", "c b a", 3);
    ck_snapshot(f, "offset=0&sort=name&project=p", "a b", 2);
    ck_snapshot(f, "offset=0&q=b", "b", 1);
    fill(f, "p", "d", "x");
    f->c.headers[API_HEADER_PROJECT_ID] = NULL;
    ck_snapshot(f, "offset=0&sort=name", "c a b", 3);
    f->c.now_ms += 1000;
    ck_snapshot(f, "offset=0&sort=name", "c a b d", 4);
    f->c.headers[API_HEADER_PROJECT_ID] = "o";
    ck_snapshot(f, "offset=0", "c", 1);
}

/* The member `notices` of the last response, with ' for ", or "". */
static const char *
notices(struct api_fixture *f)
{
    json_t *tree = json_loads(api_body(&f->c), 0, NULL);
    const json_t *all = json_object_get(tree, "notices");
    char *text = all == NULL ? strdup("") : json_dumps(all, JSON_COMPACT);
    const char *copy;

    ck_assert_ptr_nonnull(text);
    for (char *at = text; (at = strchr(at, '"')) != NULL;)
        *at = '\'';
    copy = api_text(f, "%s", text);
    free(text);
    json_decref(tree);
    return copy;
}

#define NOTICED(project, name, messages)                                                 \
    "{'project':'" project "','name':'" name "','messages':" messages                    \
    ",'oldest_ready_age':3,'oldest_claim_age':null}"

API_TEST(notices_are_about_all_queues_of_the_caller)
{
    static const char of_o[] =
        "[{'notice':'paused','count':1,'messages':1,'queues':[" NOTICED("o", "e",
                                                                        "1") "]}]";

    if (api_fixture_on_redis())
        return; /* its survey is up to a second old */
    fill(f, "p", "a", "x");
    fill(f, "p", "b", "xxx");
    fill(f, "p", "c", "xx");
    fill(f, "p", "d", "xxxx");
    fill(f, "o", "e", "x");
    f->c.headers[API_HEADER_PROJECT_ID] = "o";
    ck_api(f, "POST", "/claimd/queues/e/pause", "{\"claims\":true}", 200, NULL);
    f->c.now_ms += 3000;
    f->c.headers[API_HEADER_PROJECT_ID] = NULL;
    ck_api(f, "GET", "/claimd/queues?offset=9&limit=1&q=none", NULL, 200, NULL);
    ck_assert_str_eq(notices(f),
                     "[{'notice':'no_worker','count':4,'messages':10,'queues'"
                     ":[" NOTICED("p", "d", "4") "," NOTICED("p", "b", "3") "," NOTICED(
                         "p", "c", "2") "]},{'notice':'paused','count'"
                                        ":1,'messages':1,'queues':"
                                        "[" NOTICED("o", "e", "1") "]}]");
    ck_api(f, "GET", "/claimd/queues?offset=0&project=o", NULL, 200, NULL);
    ck_assert_str_eq(notices(f), of_o);
    f->c.headers[API_HEADER_PROJECT_ID] = "o";
    ck_api(f, "GET", "/claimd/queues?offset=0", NULL, 200, NULL);
    ck_assert_str_eq(notices(f), of_o);
    ck_api(f, "GET", "/claimd/queues", NULL, 200, NULL);
    ck_assert_str_eq(notices(f), ""); /* only a snapshot has them */
    ck_assert_str_eq(api_pick(f, "queues.0.notices.0"), "paused");
    f->c.headers[API_HEADER_PROJECT_ID] = "none";
    ck_api(f, "GET", "/claimd/queues?offset=0", NULL, 200, NULL);
    ck_assert_str_eq(notices(f), "[]");
}

API_TEST(a_bad_offset_is_refused)
{
    static const struct api_row rows[] = {
        {"GET", "/claimd/queues?offset=x", NULL, 400, "Invalid parameter"},
        {"GET", "/claimd/queues?offset=-1", NULL, 400, "Invalid parameter"},
        {"GET", "/claimd/queues?offset=50001", NULL, 400, "Invalid parameter"},
        {"GET", "/claimd/queues?offset=1&marker=0000000000000000.70.61", NULL, 400,
         "Invalid parameter"},
    };

    ck_api_rows(f, rows);
}

API_TEST(the_most_urgent_queue_comes_first)
{
    api_post_letters(f, "b", "xx");
    f->c.now_ms += 1000;
    api_post_letters(f, "c", "xxxx");
    f->c.now_ms += 1000;
    api_post_letters(f, "a", "xxx");
    api_post_letters(f, "d", "xxx");
    ck_api(f, "PUT", "/v2/queues/e", NULL, 201, NULL);
    (void)api_take(f, "d", 3);
    (void)api_take(f, "a", 1);
    ck_names(f, "/claimd/queues", "b c a d e");
    ck_names(f, "/claimd/queues?sort=oldest_ready", "b c a d e");
    ck_names(f, "/claimd/queues?sort=ready", "c a b d e");
    ck_names(f, "/claimd/queues?sort=claimed", "d a b c e");
    ck_names(f, "/claimd/queues?sort=name", "a b c d e");
    /* The end of the oldest message changes the order. */
    (void)api_take(f, "b", 2);
    ck_names(f, "/claimd/queues", "c a b d e");
}

API_TEST(pages_of_every_order_fit_together)
{
    static const char *const sorts[] = {"oldest_ready", "ready", "claimed", "name"};

    for (int i = 0; i < 23; i++) {
        const char *queue = api_text(f, "q%02d", i);

        fill(f, i % 3 == 0 ? "p/ %" : "p2", queue, i % 4 == 0 ? "x" : "xyz");
        f->c.headers[API_HEADER_PROJECT_ID] = i % 3 == 0 ? "p/ %" : "p2";
        if (i % 5 == 0)
            (void)api_take(f, queue, 1);
        f->c.now_ms += i % 2;
    }
    f->c.headers[API_HEADER_PROJECT_ID] = NULL;
    for (size_t i = 0; i < sizeof(sorts) / sizeof(sorts[0]); i++) {
        const char *whole, *target, *pages;

        ck_api(f, "GET", api_text(f, "/claimd/queues?sort=%s", sorts[i]), NULL, 200,
               NULL);
        ck_assert(!has_next(f));
        whole = names(f);
        for (int limit = 1; limit <= 24; limit += limit < 6 ? 1 : 6) {
            target = api_text(f, "/claimd/queues?sort=%s&limit=%d", sorts[i], limit);
            pages = "";
            for (int page = 0;; page++) {
                ck_assert_int_lt(page, 25);
                ck_api(f, "GET", target, NULL, 200, NULL);
                pages = api_text(f, "%s%s%s", pages, page > 0 ? " " : "", names(f));
                if (!has_next(f))
                    break;
                target = api_pick(f, "links.0.href");
                f->c.now_ms += 100; /* ages grow, and pages still fit */
            }
            ck_assert_str_eq(pages, whole);
        }
    }
}

API_TEST(a_queue_deleted_between_two_pages_is_missing_and_no_other)
{
    static const char *const sorts[] = {"name", "ready"};

    for (size_t i = 0; i < 2; i++) {
        for (int k = 0; k < 6; k++)
            api_post_letters(f, api_text(f, "q%d", k), "x");
        ck_names(f, api_text(f, "/claimd/queues?sort=%s&limit=2", sorts[i]), "q0 q1");
        ck_api(f, "DELETE", "/v2/queues/q1", NULL, 204, NULL); /* the marker */
        ck_api(f, "DELETE", "/v2/queues/q2", NULL, 204, NULL);
        ck_api(f, "GET", api_text(f, "/claimd/queues?sort=%s&limit=2", sorts[i]), NULL,
               200, NULL);
        ck_assert_str_eq(names(f), "q0 q3");
        ck_names(f, api_pick(f, "links.0.href"), "q4 q5");
        ck_assert(!has_next(f));
        for (int k = 0; k < 6; k++)
            ck_api(f, "DELETE", api_text(f, "/v2/queues/q%d", k), NULL, 204, NULL);
    }
}

API_TEST(a_page_shows_the_names_that_have_the_part)
{
    api_post_letters(f, "mail-out", "x");
    api_post_letters(f, "mail-in", "x");
    api_post_letters(f, "jobs", "x");
    ck_names(f, "/claimd/queues?q=mail", "mail-in mail-out");
    ck_names(f, "/claimd/queues?q=-out", "mail-out");
    ck_names(f, "/claimd/queues?q=Mail", "");
    ck_names(f, "/claimd/queues?q=%00", "");
    ck_names(f, "/claimd/queues?q=mail&sort=name&limit=1", "mail-in");
    ck_names(f, api_pick(f, "links.0.href"), "mail-out");
    ck_assert(!has_next(f));
}

API_TEST(without_a_project_all_projects_are_shown)
{
    fill(f, "p1", "a", "x");
    fill(f, "p1", "b", "xx");
    fill(f, "p2", "c", "xxx");
    ck_names(f, "/claimd/queues", "");
    f->c.headers[API_HEADER_PROJECT_ID] = NULL;
    ck_names(f, "/claimd/queues", "a b c");
    ck_names(f, "/claimd/queues?project=p1", "a b");
    ck_names(f, "/claimd/queues?project=p3", "");
    ck_names(f, "/claimd/p2/queues", "c");
    ck_assert_str_eq(api_pick(f, "queues.0.project"), "p2");
    ck_names(f, "/claimd/queues?project=p1&limit=1&sort=name", "a");
    ck_names(f, api_pick(f, "links.0.href"), "b");
    ck_names(f, "/claimd/p1/queues?limit=1&sort=ready", "b");
    ck_names(f, api_pick(f, "links.0.href"), "a");
    f->c.headers[API_HEADER_PROJECT_ID] = "p1";
    ck_names(f, "/claimd/queues?project=p1", "a b");
    ck_api(f, "GET", "/claimd/queues?project=p2", NULL, 403, "Not authorized");
    f->c.headers[API_HEADER_PROJECT_ID] = "";
    ck_api(f, "GET", "/claimd/queues", NULL, 400, NULL);
}

API_TEST_WITH(only_callers_that_may_dump_see_all_projects, api_fixture_open_access(f))
{
    static const char *const lines[] = {
        "reader reader * never",
        "operator operator * never",
        "own operator " API_CALL_PROJECT " never",
        "two operator p1,p2 never",
        "worker worker p1 never",
    };
    static const struct {
        const char *token, *project, *names;
        int code;
    } cases[] = {
        {"operator", NULL, "a b", 200}, {"operator", "p1", "a", 200},
        {"reader", NULL, NULL, 403},    {"reader", "p2", "b", 200},
        {"own", NULL, "", 200},         {"own", "p1", NULL, 403},
        {"two", NULL, NULL, 400},       {"two", "p2", "b", 200},
        {"worker", NULL, "a", 200},     {"worker", "p1", "a", 200},
        {"worker", "p2", NULL, 403},
    };

    api_allow(f, lines, sizeof(lines) / sizeof(lines[0]));
    {
        static const char *const admin[] = {"admin admin * never"};

        api_allow(f, admin, 1);
        f->c.headers[API_HEADER_AUTH_TOKEN] = "admin";
        fill(f, "p1", "a", "x");
        fill(f, "p2", "b", "x");
        api_allow(f, lines, sizeof(lines) / sizeof(lines[0]));
    }
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        f->c.headers[API_HEADER_AUTH_TOKEN] = cases[i].token;
        f->c.headers[API_HEADER_PROJECT_ID] = cases[i].project;
        ck_api(f, "GET", "/claimd/queues?sort=name", NULL, cases[i].code, NULL);
        if (cases[i].names != NULL)
            ck_assert_str_eq(names(f), cases[i].names);
    }
    f->c.headers[API_HEADER_AUTH_TOKEN] = "worker";
    f->c.headers[API_HEADER_PROJECT_ID] = NULL;
    ck_api(f, "GET", "/claimd/queues?project=p2", NULL, 403, "Not authorized");
}

API_TEST_WITH(a_snapshot_of_a_project_shows_no_other_project, api_fixture_open_access(f))
{
    static const char *const lines[] = {"admin admin * never", "reader reader p1 never"};

    api_allow(f, lines, sizeof(lines) / sizeof(lines[0]));
    f->c.headers[API_HEADER_AUTH_TOKEN] = "admin";
    fill(f, "p1", "a", "x");
    fill(f, "p2", "b", "xy");
    fill(f, "p3", "c", "x");
    f->c.headers[API_HEADER_PROJECT_ID] = NULL;
    ck_api(f, "GET", "/claimd/queues?offset=0", NULL, 200, NULL);
    f->c.headers[API_HEADER_AUTH_TOKEN] = "reader";
    ck_api(f, "GET", "/claimd/queues?offset=0", NULL, 200, NULL);
    ck_assert_str_eq(names(f), "a");
    ck_assert_ptr_nonnull(
        strstr(api_body(&f->c),
               "\"total\":1,\"matching\":1,\"totals\":{\"ready\":1,\"delayed\":0,"
               "\"claimed\":0,\"dead_letters\":0}"));
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"complete\":true"));
    ck_assert_str_eq(api_pick(f, "notices.0.queues.0.name"), "a");
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"count\":1,\"messages\":1,"));
    ck_api(f, "GET", "/claimd/queues?offset=0&q=none", NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"total\":1,\"matching\":0,"));
}

API_TEST(bad_parameters_are_refused)
{
    static const struct api_row rows[] = {
        {"GET", "/claimd/queues?sort=age", NULL, 400, "Invalid parameter"},
        {"GET", "/claimd/queues?limit=0", NULL, 400, NULL},
        {"GET", "/claimd/queues?limit=1001", NULL, 400, NULL},
        {"GET", "/claimd/queues?limit=1000", NULL, 200, NULL},
        {"GET", "/claimd/queues?limit=x", NULL, 400, NULL},
        {"GET", "/claimd/queues?marker=x", NULL, 400, "Invalid parameter"},
        {"GET", "/claimd/queues?marker=0000000000000000.7", NULL, 400, NULL},
        {"GET", "/claimd/queues?marker=0000000000000000.70.7g", NULL, 400, NULL},
        {"GET", "/claimd/queues?marker=0000000000000000.70.71.72", NULL, 400, NULL},
        {"GET", "/claimd/queues?marker=000000000000000.70.71", NULL, 400, NULL},
        {"GET", "/claimd/queues?marker=0000000000000000.70.71", NULL, 200, NULL},
        {"POST", "/claimd/queues", "{}", 405, NULL},
        {"GET", "/claimd/queues/q/claims?limit=1001", NULL, 400, NULL},
        {"GET", "/claimd/queues/q!/claims", NULL, 400, NULL},
        {"GET", "/claimd/queues/none/claims", NULL, 404, "Not found"},
    };

    ck_api_rows(f, rows);
    f->c.headers[API_HEADER_CLIENT_ID] = "x";
    ck_api(f, "GET", "/claimd/queues", NULL, 400, NULL);
}

API_TEST(ten_thousand_queues_are_read_in_slices)
{
    enum { QUEUES = 10000, SLICE = 512 };
    int seen = 0;

    if (api_fixture_on_redis())
        return; /* which reads fewer */
    for (int i = 0; i < QUEUES; i++)
        ck_api(f, "PUT", api_text(f, "/v2/queues/q%05d", (i * 7919) % QUEUES), NULL, 201,
               NULL);
    api_post_letters(f, "q05000", "x");
    api_post_letters(f, "q05001", "xx");
    ck_api(f, "GET", "/claimd/queues?sort=ready&limit=3", NULL, 200, NULL);
    ck_assert_str_eq(names(f), "q05001 q05000 q00000");
    ck_assert_uint_eq(f->c.slices, QUEUES / SLICE + 1);
    ck_api(f, "GET", "/claimd/queues?sort=name&limit=50", NULL, 200, NULL);
    ck_assert_uint_eq(f->c.slices, 1);
    for (const char *target = "/claimd/queues?sort=claimed&limit=1000";;) {
        ck_api(f, "GET", target, NULL, 200, NULL);
        ck_assert_str_eq(api_pick(f, "queues.0.name"), api_text(f, "q%05d", seen));
        seen += 1000;
        if (!has_next(f))
            break;
        target = api_pick(f, "links.0.href");
    }
    ck_assert_int_eq(seen, QUEUES);
}

/* ------------------------------------------------------------------ claims */

TEST_CASE("claims");

API_TEST(a_worker_is_shown_by_its_name_and_its_address)
{
    static const char expected[] =
        "{'claims': [{'id': '*', 'client': null, 'address': '2001:db8::7', 'worker': "
        "'web3 4711', 'number': '*', 'age': 0, 'ttl_left': 60, 'messages': 1}],"
        " 'links': '*'}";
    const char *message;

    api_post_letters(f, "q", "a");
    message = api_pick_id(f, "resources.0");
    f->c.headers[API_HEADER_CLIENT_ID] = NULL;
    f->c.headers[API_HEADER_WORKER] = "web3 4711";
    f->c.address = "2001:db8::7";
    (void)api_take(f, "q", 1);
    ck_api(f, "GET", "/claimd/queues/q/claims", NULL, 200, NULL);
    ck_api_body(f, expected);
    ck_api(f, "GET", api_text(f, "/claimd/queues/q/messages/%s", message), NULL, 200,
           NULL);
    ck_assert_str_eq(api_pick(f, "claim.worker"), "web3 4711");
    ck_assert_str_eq(api_pick(f, "claim.address"), "2001:db8::7");
    ck_assert(strncmp(api_pick(f, "next.text"),
                      "Worker web3 4711 at 2001:db8::7 holds it. ", 42) == 0);
    ck_api(f, "GET", "/claimd/queues/q/messages?client=web3%204711", NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "messages.0.id"), message);
}

API_TEST(a_search_finds_the_longest_worker_and_address)
{
    static const char worker[] = "0123456789012345678901234567890123456789",
                      address[] = "abcd:ef01:2345:6789:abcd:ef01:2345:6789";

    api_post_letters(f, "q", "a");
    f->c.headers[API_HEADER_WORKER] = worker;
    f->c.address = address;
    (void)api_take(f, "q", 1);
    ck_api(f, "GET", api_text(f, "/claimd/queues/q/messages?client=%s", worker), NULL,
           200, NULL);
    ck_assert_str_eq(api_pick(f, "messages.0.state"), "claimed");
    ck_api(f, "GET", api_text(f, "/claimd/queues/q/messages?client=%s", address), NULL,
           200, NULL);
    ck_assert_str_eq(api_pick(f, "messages.0.state"), "claimed");
}

API_TEST(a_worker_name_has_at_most_40_visible_characters)
{
    f->c.headers[API_HEADER_WORKER] = "0123456789012345678901234567890123456789";
    ck_api(f, "POST", "/v2/queues/q/claims", NULL, 204, NULL);
    f->c.headers[API_HEADER_WORKER] = "01234567890123456789012345678901234567890";
    ck_api(f, "POST", "/v2/queues/q/claims", NULL, 400, "Invalid API request");
    f->c.headers[API_HEADER_WORKER] = "a\tb";
    ck_api(f, "POST", "/v2/queues/q/claims", NULL, 400, "Invalid API request");
    ck_api(f, "GET", "/v2/queues/q/messages", NULL, 200, NULL); /* it has no claim */
}

API_TEST(claims_are_listed_with_their_client)
{
    const char *id, *second, *number;

    api_post_letters(f, "q", "abcd");
    id = api_take(f, "q", 2);
    number = api_response_header(&f->c, "Claim-Number");
    number = api_text(f, "%s", number);
    f->c.now_ms += 2500;
    f->c.headers[API_HEADER_CLIENT_ID] = "00000000-0000-0000-0000-000000000009";
    second = api_take(f, "q", 1);
    ck_api(f, "GET", "/claimd/queues/q/claims?limit=1", NULL, 200, NULL);
    ck_api_body(f, api_text(f,
                            "{'claims': [{'id': '%s', 'client': '" API_CALL_CLIENT
                            "', 'address': null, 'worker': null, 'number': %s, 'age': 2, "
                            "'ttl_left': 57, 'messages': 2}],"
                            " 'links': '*'}",
                            id, number));
    ck_api(f, "GET", api_pick(f, "links.0.href"), NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "claims.0.id"), second);
    ck_assert_str_eq(api_pick(f, "claims.0.client"),
                     "00000000-0000-0000-0000-000000000009");
    ck_assert(!has_next(f));
    ck_api(f, "PATCH", api_text(f, "/v2/queues/q/claims/%s", id),
           "{\"ttl\":100,\"grace\":60}", 204, NULL);
    ck_api(f, "GET", "/claimd/queues/q/claims", NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "claims.0.client"),
                     "00000000-0000-0000-0000-000000000009");
    ck_api(f, "DELETE", api_text(f, "/v2/queues/q/claims/%s", id), NULL, 204, NULL);
    ck_api(f, "DELETE", api_text(f, "/v2/queues/q/claims/%s", second), NULL, 204, NULL);
    ck_api(f, "GET", "/claimd/queues/q/claims", NULL, 200, NULL);
    ck_api_body(f, "{'claims': [], 'links': []}");
}

API_TEST(a_claim_without_a_client_id_has_none)
{
    api_post_letters(f, "q", "a");
    f->c.headers[API_HEADER_CLIENT_ID] = NULL;
    ck_api(f, "POST", "/v1/queues/q/claims", "{\"ttl\":60,\"grace\":60}", 201, NULL);
    f->c.headers[API_HEADER_CLIENT_ID] = API_CALL_CLIENT;
    ck_api(f, "GET", "/claimd/queues/q/claims", NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"client\":null"));
}

/* ------------------------------------------------------------------ messages */

TEST_CASE("messages");

static void
explain(struct api_fixture *f, const char *id)
{
    ck_api(f, "GET", api_text(f, "/claimd/queues/q/messages/%s", id), NULL, 200, NULL);
}

/* Posts a message with these further members. */
static const char *
post_one(struct api_fixture *f, const char *more)
{
    ck_api(f, "POST", "/v2/queues/q/messages",
           api_text(f, "{\"messages\":[{\"body\":{\"secret\":1}%s}]}", more), 201, NULL);
    return api_pick_id(f, "resources.0");
}

API_TEST(a_ready_message_waits_for_a_claim)
{
    const char *id = post_one(f, ",\"ttl\":300");

    f->c.now_ms += 1000;
    explain(f, id);
    ck_api_body(f,
                api_text(f,
                         "{'id': '%s', 'state': 'ready', 'created_at': "
                         "'2026-01-31T12:00:00Z', 'expires_at': '2026-01-31T12:05:00Z',"
                         " 'delivery_count': 0, 'max_claim_count': null, 'next': {'what':"
                         " 'deliver', 'at': null, 'text': 'It is ready. A claim delivers"
                         " it after all older ready messages. If no worker claims it, it"
                         " expires at 2026-01-31T12:05:00Z.'}}",
                         id));
    ck_assert_ptr_null(strstr(api_body(&f->c), "secret"));
    f->c.now_ms += 299000;
    ck_api(f, "GET", api_text(f, "/claimd/queues/q/messages/%s", id), NULL, 404,
           "Not found");
    ck_api(f, "GET", "/claimd/queues/q/messages/none", NULL, 404, "Not found");
    ck_api(f, "GET", "/claimd/queues/none/messages/none", NULL, 404, "Not found");
}

API_TEST(a_delayed_message_says_when_it_is_ready)
{
    const char *id = post_one(f, ",\"ttl\":300,\"delay\":100");

    explain(f, id);
    ck_assert_str_eq(api_pick(f, "state"), "delayed");
    ck_assert_str_eq(api_pick(f, "delayed_until"), "2026-01-31T12:01:40Z");
    ck_assert_str_eq(api_pick(f, "next.what"), "end_of_delay");
    ck_assert_str_eq(api_pick(f, "next.at"), "2026-01-31T12:01:40Z");
    ck_assert_str_eq(
        api_pick(f, "next.text"),
        "It is delayed, and ready at 2026-01-31T12:01:40Z. A claim delivers it "
        "after all older ready messages.");
    f->c.now_ms += 100000;
    explain(f, id);
    ck_assert_str_eq(api_pick(f, "state"), "ready");
    ck_assert_str_eq(api_pick(f, "next.what"), "deliver");
}

API_TEST(a_delayed_message_can_expire_first)
{
    static const char id[] = "b1c20f3400000000000000a7";

    /* A dump of an older version has such messages. */
    ck_api(f, "POST", "/claimd/load",
           api_text(f,
                    "{\"project\":\"" API_CALL_PROJECT "\",\"queue\":\"q\",\"metadata\":{"
                    "\"_default_message_ttl\":60,\"_default_message_delay\":100}}\n"
                    "{\"project\":\"" API_CALL_PROJECT "\",\"queue\":\"q\",\"message\":{"
                    "\"id\":\"%s\",\"ttl\":60,\"delay\":60,\"body\":1}}\n",
                    id),
           200, NULL);
    explain(f, id);
    ck_assert_str_eq(api_pick(f, "next.what"), "expire");
    ck_assert_str_eq(api_pick(f, "next.at"), "2026-01-31T12:01:00Z");
}

API_TEST(a_claimed_message_names_its_worker)
{
    const char *id = post_one(f, ""), *claim = api_take(f, "q", 1);

    f->c.now_ms += 10000;
    explain(f, id);
    ck_assert_str_eq(api_pick(f, "state"), "claimed");
    ck_assert_str_eq(api_pick(f, "claim.id"), claim);
    ck_assert_str_eq(api_pick(f, "claim.client"), API_CALL_CLIENT);
    ck_assert_str_eq(api_pick(f, "claim.ends_at"), "2026-01-31T12:01:00Z");
    ck_assert_str_eq(api_pick(f, "next.what"), "end_of_claim");
    ck_assert_str_eq(api_pick(f, "next.at"), "2026-01-31T12:01:00Z");
    ck_assert_str_eq(
        api_pick(f, "next.text"),
        "Client " API_CALL_CLIENT " holds it. Unless that worker deletes it or "
        "renews the claim, it is ready again at 2026-01-31T12:01:00Z. A claim "
        "delivers it after all older ready messages.");
    f->c.now_ms += 50000;
    explain(f, id);
    ck_assert_str_eq(api_pick(f, "state"), "ready");
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"delivery_count\":1"));
}

API_TEST(a_message_on_its_last_attempt_moves_at_the_end_of_the_claim)
{
    const char *id;

    ck_api(f, "PUT", "/v2/queues/q",
           "{\"_dead_letter_queue\":\"failed\",\"_max_claim_count\":1}", 201, NULL);
    id = post_one(f, "");
    (void)api_take(f, "q", 1);
    explain(f, id);
    ck_assert_str_eq(api_pick(f, "next.what"), "end_of_claim");
    ck_assert_ptr_nonnull(strstr(api_pick(f, "next.text"),
                                 "it moves to the dead-letter queue failed at "
                                 "2026-01-31T12:01:00Z, because its delivery count is 1 "
                                 "and _max_claim_count is 1."));
    f->c.now_ms += 60000;
    ck_api(f, "GET", api_text(f, "/claimd/queues/q/messages/%s", id), NULL, 404, NULL);
    ck_api(f, "GET", api_text(f, "/claimd/queues/failed/messages/%s", id), NULL, 200,
           NULL);
    ck_assert_str_eq(api_pick(f, "origin_queue"), "q");
    ck_assert_str_eq(api_pick(f, "dead_lettered_at"), "2026-01-31T12:01:00Z");
}

API_TEST(a_message_that_was_released_at_the_limit_moves_at_the_next_claim)
{
    const char *id;

    ck_api(f, "PUT", "/v2/queues/q",
           "{\"_dead_letter_queue\":\"failed\",\"_max_claim_count\":2}", 201, NULL);
    id = post_one(f, "");
    for (int i = 0; i < 2; i++) {
        const char *claim = api_take(f, "q", 1);

        f->c.now_ms += 60000 - 1;
        ck_api(f, "DELETE", api_text(f, "/v2/queues/q/claims/%s", claim), NULL, 204,
               NULL);
        f->c.now_ms += 1;
    }
    explain(f, id);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"max_claim_count\":2"));
    ck_assert_str_eq(api_pick(f, "next.what"), "dead_letter");
    ck_assert_str_eq(
        api_pick(f, "next.text"),
        "It is ready. The next claim moves it to the dead-letter queue failed, "
        "because it was delivered 2 times and _max_claim_count is 2. If no "
        "worker claims it, it expires at 2026-01-31T13:00:00Z.");
    ck_api(f, "POST", "/v2/queues/q/claims", NULL, 204, NULL);
    ck_api(f, "GET", api_text(f, "/claimd/queues/q/messages/%s", id), NULL, 404, NULL);
    ck_api(f, "GET", api_text(f, "/claimd/queues/failed/messages/%s", id), NULL, 200,
           NULL);
    ck_assert_str_eq(api_pick(f, "origin_queue"), "q");
    ck_assert_str_eq(api_pick(f, "dead_lettered_at"), "2026-01-31T12:02:00Z");
}

API_TEST(the_last_reason_is_shown)
{
    const char *id = post_one(f, ""), *claim = api_take(f, "q", 1);

    ck_api(
        f, "POST", api_text(f, "/claimd/queues/q/claims/%s/finish", claim),
        api_text(f,
                 "{\"release\":[{\"id\":\"%s\",\"delay\":30,\"reason\":\"no \\u00e9\"}]}",
                 id),
        200, NULL);
    explain(f, id);
    ck_assert_str_eq(api_pick(f, "last_reason"), "no \xc3\xa9");
    ck_assert_str_eq(api_pick(f, "last_client"), API_CALL_CLIENT);
    ck_assert_str_eq(api_pick(f, "next.what"), "end_of_delay");
}

/* ------------------------------------------------------------------ history */

TEST_CASE("history");

static void
advance(struct api_fixture *f, int seconds)
{
    ck_api(f, "POST", "/claimd/clock/advance", api_text(f, "{\"seconds\":%d}", seconds),
           200, NULL);
}

API_TEST_WITH(history_follows_the_clock_of_tests,
              api_fixture_open_testapi(f, &api_limits_default))
{
    json_t *tree, *all;

    ck_api(f, "PUT", "/claimd/clock", "{\"state\":\"frozen\"}", 200, NULL);
    api_post_letters(f, "q", "abcdef");
    ck_api(f, "GET", "/claimd/queues/q/history", NULL, 404, "Not found");
    ck_api(f, "GET", "/claimd/queues", NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"rates\":null"));
    advance(f, 10);
    (void)api_take(f, "q", 2);
    advance(f, 50);
    ck_api(f, "GET", "/claimd/queues/q/history", NULL, 200, NULL);
    tree = json_loads(api_body(&f->c), 0, NULL);
    all = json_object_get(tree, "samples");
    ck_assert_int_eq(json_integer_value(json_object_get(tree, "interval")), 5);
    ck_assert_uint_eq(json_array_size(all), 12);
    ck_assert_int_eq(
        json_integer_value(json_object_get(json_array_get(all, 0), "posted")), 6);
    ck_assert_int_eq(json_integer_value(json_object_get(json_array_get(all, 1), "ready")),
                     6);
    ck_assert_int_eq(
        json_integer_value(json_object_get(json_array_get(all, 2), "delivered")), 2);
    ck_assert_int_eq(
        json_integer_value(json_object_get(json_array_get(all, 2), "claimed")), 2);
    ck_assert_int_eq(
        json_integer_value(json_object_get(json_array_get(all, 2), "oldest_claim_age")),
        5);
    ck_assert(json_is_null(json_object_get(json_array_get(all, 1), "oldest_claim_age")));
    json_decref(tree);
    ck_api(f, "GET", "/claimd/queues", NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c),
                                 "\"rates\":{\"posted\":0.100,\"delivered\":0.033,"
                                 "\"deleted\":0.000,\"requeued\":0.000,"
                                 "\"dead_lettered\":0.000,\"expired\":0.000}"));
    advance(f, 12 * 3600);
    ck_api(f, "GET", "/claimd/queues/q/history", NULL, 200, NULL);
    tree = json_loads(api_body(&f->c), 0, NULL);
    ck_assert_uint_eq(json_array_size(json_object_get(tree, "samples")), 720);
    json_decref(tree);
    ck_api(f, "DELETE", "/v2/queues/q", NULL, 204, NULL);
    advance(f, 5);
    ck_api(f, "GET", "/claimd/queues/q/history", NULL, 404, "Not found");
}

API_TEST(without_a_sampler_there_is_no_history)
{
    api_post_letters(f, "q", "a");
    ck_api(f, "GET", "/claimd/queues/q/history", NULL, 404, "Not found");
}
