/* Paths, methods and versions: where a request goes (docs/api.md 2.3, 2.4, 3.6, 6). */
#include "support/api_fixture.h"

#define QI "Invalid queue identification"
#define NP "404 Not Found"
#define BM "405 Method Not Allowed"

TEST_CASE("paths");

API_TEST(unknown_paths_are_404_with_the_title_of_a_path)
{
    static const struct api_row rows[] = {
        {"GET", "/v2", NULL, 404, NP},
        {"GET", "/v3/queues", NULL, 404, NP},
        {"GET", "/v2/nonsense", NULL, 404, NP},
        {"GET", "/v2/nonsense/", NULL, 404, NP},
        {"GET", "//v2/queues", NULL, 404, NP},
        {"GET", "v2/queues", NULL, 404, NP},
        {"GET", "", NULL, 404, NP},
        {"GET", "/v2/queues/q/nonsense", NULL, 404, NP},
        {"GET", "/v2/queues/q/messages/a/b", NULL, 404, NP},
        {"GET", "/v2/queues/q/messages/a/b/c/d/e/f", NULL, 404, NP},
        {"GET", "/v2/queues/q/metadata", NULL, 404, NP},
        {"GET", "/v1.1/queues/q/subscriptions", NULL, 404, NP},
        {"GET", "/v2/queues/q/subscriptions/x/nonsense", NULL, 404, NP},
        {"GET", "/v2/queues/q/messages/x/confirm", NULL, 404, NP},
        {"GET", "/v1/topics", NULL, 404, NP},
        {"GET", "/v1.1/topics", NULL, 404, NP},
        {"POST", "/v2/topics/t/claims", NULL, 404, NP},
        {"POST", "/v2/topics/t/share", "{}", 404, NP},
        {"GET", "/v2/pools", NULL, 404, NP},
        {"GET", "/v2/flavors", NULL, 404, NP},
        {"GET", "/v2/health", NULL, 404, NP},
        {"GET", "/v1/ping", NULL, 404, NP},
        {"GET", "/v1/queues/q/purge", NULL, 404, NP},
        {"POST", "/v1.1/queues/q/purge", NULL, 404, NP},
        {"PUT", "/v2/queues/a%2Fb", NULL, 404, NP},
        {"GET", "/v2%2Fqueues", NULL, 404, NP},
        {"GET", "/v2/queues%2Fq", NULL, 404, NP},
    };

    ck_api_rows(f, rows);
    ck_api_body(f,
                "{'title': '404 Not Found', 'description': 'the path does not exist'}");
}

LIMITED_TEST(a_hidden_path_names_the_option_that_hides_it,
             limits.enable_v1 = limits.enable_v1_1 = false)
{
    ck_api(f, "GET", "/v2/health", NULL, 404, NP);
    ck_assert_str_eq(api_pick(f, "description"),
                     "/v2/health requires the option admin_mode");
    ck_api(f, "GET", "/v1/queues/q", NULL, 404, NP);
    ck_assert_str_eq(api_pick(f, "description"),
                     "/v1 is disabled on this server (enable_v1)");
    ck_api(f, "GET", "/v1.1", NULL, 404, NP);
    ck_assert_str_eq(api_pick(f, "description"),
                     "/v1.1 is disabled on this server (enable_v1_1)");
    ck_api(f, "POST", "/identity/v3/auth/tokens", "{}", 404, NP);
    ck_assert_str_eq(api_pick(f, "description"),
                     "/identity is disabled on this server (identity_stub)");
    ck_api(f, "GET", "/v2", NULL, 404, NP);
    ck_assert_str_eq(api_pick(f, "description"),
                     "the path does not exist. The home document is /v2/");
}

API_TEST(a_slash_behind_a_whole_path_means_nothing)
{
    static const struct api_row rows[] = {
        {"PUT", "/v2/queues/q/", "{}", 201, NULL},
        {"GET", "/v2/queues/q/", NULL, 200, NULL},
        {"POST", "/v2/queues/q/messages/", "{\"messages\":[{\"body\":1}]}", 201, NULL},
        {"GET", "/v2/queues/q/messages/?echo=true", NULL, 200, NULL},
        {"GET", "/v2/queues/q/stats/", NULL, 200, NULL},
        {"POST", "/v2/queues/q/claims/", NULL, 201, NULL},
        {"DELETE", "/v2/queues/q/claims/", NULL, 405, BM},
        {"POST", "/v2/queues/q/purge/", NULL, 204, NULL},
        {"GET", "/v2/ping/", NULL, 204, NULL},
        {"GET", "/v2/health/", NULL, 404, NP},
        {"GET", "/v2/queues/q/messages/nosuch/", NULL, 404, "Not found"},
        {"DELETE", "/v2/" API_CALL_PROJECT "/queues/q/claims/nosuch/", NULL, 204, NULL},
        {"GET", "/v1/queues/q/metadata/", NULL, 200, NULL},
        /* These mean something: the home document, an empty name. */
        {"GET", "/v2/", NULL, 200, NULL},
        {"GET", "/v2/queues/", NULL, 400, QI},
        {"GET", "/v2/" API_CALL_PROJECT "/queues/", NULL, 400, QI},
        /* And two are no slash behind a path. */
        {"GET", "//", NULL, 404, NP},
        {"GET", "/v2//", NULL, 404, NP},
        {"GET", "/v2/ping//", NULL, 404, NP},
        {"GET", "/v2/queues//", NULL, 404, NP},
        {"GET", "/v2/queues/q//", NULL, 404, NP},
        {"GET", "/v2/queues/q//messages", NULL, 404, NP},
        {"GET", "/v2/queues/q/messages//", NULL, 404, NP},
        {"GET", "/v2/queues/q/messages/x//", NULL, 404, NP},
        {"GET", "/v2/p/queues/q/messages//", NULL, 404, NP},
        {"GET", "/v2/p/queues/q/messages/x//", NULL, 404, NP},
        {"GET", "/v2/nonsense/", NULL, 404, NP},
        {"GET", "/v2/queues/q/%2F", NULL, 404, NP},
    };

    ck_api_rows(f, rows);
}

API_TEST(responses_to_a_path_with_a_slash_behind_it_name_it_without)
{
    ck_api(f, "PUT", "/v2/queues/q/", NULL, 201, NULL);
    ck_api_header(f, "Location", "/v2/queues/q");
    api_post_letters(f, "q", "a");
    ck_api(f, "GET", "/v1/queues/q/messages/?echo=true", NULL, 200, NULL);
    ck_api_header(f, "Content-Location", "/v1/queues/q/messages?echo=true");
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"/v1/queues/q/messages?echo=true&m"));
    ck_assert_ptr_null(strstr(api_body(&f->c), "//"));
}

API_TEST(an_unknown_path_is_404_before_any_header_is_looked_at)
{
    f->c.headers[API_HEADER_CLIENT_ID] = NULL;
    f->c.headers[API_HEADER_ACCEPT] = "text/html";
    ck_api(f, "GET", "/v2/nonsense", NULL, 404, NP);
}

API_TEST(segments_are_decoded_after_the_path_was_split)
{
    static const struct api_row rows[] = {
        {"PUT", "/v2/%71ueues/%6Aobs", NULL, 201, NULL},
        {"GET", "/%76%32/queues/jobs/stats", NULL, 200, NULL},
        {"PUT", "/v2/queues/", NULL, 400, QI},
        {"GET", "/v2/queues/", NULL, 400, QI},
        {"PUT", "/v2/queues/a%20b", NULL, 400, QI},
        {"PUT", "/v2/queues/a%00b", NULL, 400, QI},
        {"PUT", "/v2/queues/a%0A", NULL, 400, QI},
        {"PUT", "/v2/queues/a%zz", NULL, 400, QI},
        {"PUT", "/v2/queues/100%", NULL, 400, QI},
        {"GET", "/v2/queues/q/messages/%00", NULL, 404, "Not found"},
        {"DELETE", "/v2/queues/q/claims/%20", NULL, 204, NULL},
    };

    ck_api_rows(f, rows);
    ck_api(f, "PUT", "/%76%32/queues/jobs", NULL, 204, NULL);
    ck_api_header(f, "Location", "/v2/queues/jobs");
}

API_TEST(a_method_that_a_resource_lacks_is_405_and_names_the_others)
{
    static const struct {
        const char *method, *target, *allow;
    } cases[] = {
        {"POST", "/", "GET, OPTIONS"},
        {"POST", "/v2/", "GET, OPTIONS"},
        {"POST", "/v2/ping", "GET, HEAD, OPTIONS"},
        {"POST", "/v2/queues", "GET, OPTIONS"},
        {"HEAD", "/v2/queues", "GET, OPTIONS"},
        {"HEAD", "/v2/queues/q", "DELETE, GET, PATCH, PUT, OPTIONS"},
        {"UNKNOWN", "/v2/queues/q", "DELETE, GET, PATCH, PUT, OPTIONS"},
        {"get", "/v2/queues/q", "DELETE, GET, PATCH, PUT, OPTIONS"},
        {"PUT", "/v2/queues/q/stats", "GET, OPTIONS"},
        {"GET", "/v2/queues/q/purge", "POST, OPTIONS"},
        {"PATCH", "/v2/queues/q/messages", "DELETE, GET, POST, OPTIONS"},
        {"PUT", "/v2/queues/q/messages/x", "DELETE, GET, OPTIONS"},
        {"GET", "/v2/queues/q/claims", "POST, OPTIONS"},
        {"PUT", "/v2/queues/q/claims/x", "DELETE, GET, PATCH, OPTIONS"},
        {"PATCH", "/v1.1/queues/q", "DELETE, GET, PUT, OPTIONS"},
        {"PATCH", "/v1/queues/q", "DELETE, GET, HEAD, PUT, OPTIONS"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_api(f, cases[i].method, cases[i].target, NULL, 405, BM);
        ck_api_header(f, "Allow", cases[i].allow);
        ck_api_body(f, "{'title': '405 Method Not Allowed'}");
    }
}

API_TEST(options_lists_the_methods_without_a_body)
{
    ck_api(f, "OPTIONS", "/v2/queues/q/messages", NULL, 200, NULL);
    ck_api_header(f, "Allow", "DELETE, GET, POST");
    ck_assert_str_eq(api_body(&f->c), "");
    ck_api(f, "OPTIONS", "/v2/nonsense", NULL, 404, NP);
}

/* ------------------------------------------------------------------ versions */

TEST_CASE("versions");

API_TEST(the_version_list_needs_no_headers)
{
    f->c.headers[API_HEADER_CLIENT_ID] = NULL;
    f->c.headers[API_HEADER_PROJECT_ID] = NULL;
    ck_api(f, "GET", "/", NULL, 300, NULL);
    ck_api_header(f, "Content-Type", "application/json");
    ck_api_body(f, "{'versions': ["
                   "{'id': '1', 'status': 'DEPRECATED', 'updated': '2014-9-11T17:47:05Z',"
                   " 'media-types': [{'base': 'application/json', 'type':"
                   " 'application/vnd.openstack.messaging-v1+json'}],"
                   " 'links': [{'href': '/v1/', 'rel': 'self'}]},"
                   "{'id': '1.1', 'status': 'DEPRECATED',"
                   " 'updated': '2016-7-29T02:22:47Z',"
                   " 'media-types': [{'base': 'application/json', 'type':"
                   " 'application/vnd.openstack.messaging-v1_1+json'}],"
                   " 'links': [{'href': '/v1.1/', 'rel': 'self'}]},"
                   "{'id': '2', 'status': 'CURRENT', 'updated': '2014-9-24T04:06:47Z',"
                   " 'media-types': [{'base': 'application/json', 'type':"
                   " 'application/vnd.openstack.messaging-v2+json'}],"
                   " 'links': [{'href': '/v2/', 'rel': 'self'}]}]}");
}

LIMITED_TEST(a_version_switched_off_is_not_there,
             limits.enable_v1 = limits.enable_v1_1 = false)
{
    ck_api(f, "GET", "/v1/queues", NULL, 404, NP);
    ck_api(f, "GET", "/v1.1/queues", NULL, 404, NP);
    ck_api(f, "GET", "/v2/queues", NULL, 200, NULL);
    ck_api(f, "GET", "/", NULL, 300, NULL);
    ck_assert_str_eq(api_pick(f, "versions.0.id"), "2");
    ck_assert_ptr_null(strstr(api_body(&f->c), "DEPRECATED"));
}

API_TEST(home_documents_list_what_the_version_has)
{
    static const struct {
        const char *target, *there, *missing;
    } cases[] = {
        {"/v2/",
         "\"rel/queue_purge\":{\"href-template\":\"/v2/queues/{queue_name}/purge\"",
         "rel/queue-stats"},
        {"/v2/",
         "\"rel/messages\":{\"href-template\":\"/v2/queues/{queue_name}/messages"
         "{?marker,limit,echo,include_claimed}\",\"href-vars\":{\"queue_name\":"
         "\"param/queue_name\",\"marker\":\"param/marker\"",
         "rel/post-messages"},
        {"/v1.1/", "\"href-template\":\"/v1.1/ping\"", "subscription"},
        {"/v1.1/", "\"rel/claim\":{\"href-template\":\"/v1.1/queues/{queue_name}/claims/",
         "purge"},
        {"/v1/",
         "\"rel/claim\":{\"href-template\":\"/v1/queues/{queue_name}/claims{?limit}",
         "rel/ping"},
        {"/v1/", "\"rel/queue-metadata\"", "rel/queue_stats"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_api(f, "GET", cases[i].target, NULL, 200, NULL);
        ck_api_header(f, "Content-Type", "application/json-home");
        ck_api_header(f, "Cache-Control", "max-age=86400");
        ck_assert_msg(strstr(api_body(&f->c), cases[i].there) != NULL, "%s lacks %s: %s",
                      cases[i].target, cases[i].there, api_body(&f->c));
        ck_assert_ptr_null(strstr(api_body(&f->c), cases[i].missing));
    }
}

/* ------------------------------------------------------------------ prefixes */

TEST_CASE("prefixes");

API_TEST(a_project_in_the_path_is_used_and_kept_in_every_link)
{
    const char *id;

    f->c.headers[API_HEADER_PROJECT_ID] = NULL;
    ck_api(f, "PUT", "/v2/acme/queues/q", NULL, 201, NULL);
    ck_api_header(f, "Location", "/v2/acme/queues/q");
    ck_api(f, "POST", "/v2/acme/queues/q/messages", "{\"messages\":[{\"body\":1}]}", 201,
           NULL);
    id = api_pick_id(f, "resources.0");
    ck_api_header(f, "Location", api_text(f, "/v2/acme/queues/q/messages?ids=%s", id));
    ck_assert_str_eq(api_pick(f, "resources.0"),
                     api_text(f, "/v2/acme/queues/q/messages/%s", id));

    ck_api(f, "GET", "/v2/acme/queues?detailed=true&limit=5", NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "queues.0.href"), "/v2/acme/queues/q");
    ck_assert_str_eq(api_pick(f, "links.0.href"),
                     "/v2/acme/queues?limit=5&detailed=true&marker=q");
    ck_api(f, "GET", "/v2/acme/queues/q/stats", NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "messages.oldest.href"),
                     api_text(f, "/v2/acme/queues/q/messages/%s", id));
    ck_api(f, "POST", "/v2/acme/queues/q/claims", NULL, 201, NULL);
    ck_assert_ptr_nonnull(strstr(api_pick(f, "messages.0.href"), "/v2/acme/queues/q/"));
    ck_api(f, "GET", api_response_header(&f->c, "Location"), NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_pick(f, "href"), "/v2/acme/queues/q/claims/"));
}

API_TEST(a_project_in_the_path_is_the_same_as_in_the_header)
{
    f->c.headers[API_HEADER_PROJECT_ID] = NULL;
    ck_api(f, "PUT", "/v1/a%20b/queues/q", NULL, 201, NULL);
    ck_api_header(f, "Location", "/v1/a%20b/queues/q");
    f->c.headers[API_HEADER_PROJECT_ID] = "a b";
    ck_api(f, "HEAD", "/v1/queues/q", NULL, 204, NULL);
    f->c.headers[API_HEADER_PROJECT_ID] = "another";
    ck_api(f, "HEAD", "/v1/queues/q", NULL, 404, NULL);
    f->c.headers[API_HEADER_PROJECT_ID] = NULL;
    ck_api(f, "HEAD", "/v1/a%20b/queues/q", NULL, 204, NULL);
}

API_TEST(queues_right_behind_the_version_is_never_a_project)
{
    ck_api(f, "PUT", "/v2/queues/queues", NULL, 201, NULL);
    ck_api(f, "PUT", "/v2/" API_CALL_PROJECT "/queues/queues", NULL, 204, NULL);
    ck_api(f, "GET", "/v2/queues/queues/messages", NULL, 200, NULL);
    ck_api(f, "GET", "/v2/queues/queues/queues", NULL, 404, NP);
    ck_api(f, "GET", "/v2//queues", NULL, 404, NP);
    ck_api(f, "GET", "/v2/acme/ping", NULL, 404, NP);
}

API_TEST(bytes_that_a_link_cannot_hold_are_encoded_in_the_prefix)
{
    f->c.headers[API_HEADER_PROJECT_ID] = NULL;
    ck_api(f, "PUT", "/v1/a\"b\\c/queues/q", NULL, 201, NULL);
    ck_api_header(f, "Location", "/v1/a%22b%5cc/queues/q");
    ck_api(f, "GET", "/v1/a\"b\\c/queues", NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "queues.0.href"), "/v1/a%22b%5cc/queues/q");
    ck_api_header(f, "Content-Location", "/v1/a%22b%5cc/queues");
}

TEST_CASE("log");

API_TEST(the_route_is_noted_for_the_log)
{
    ck_api(f, "GET", "/v2/" API_CALL_PROJECT "/queues/q/claims/x", NULL, 404, NULL);
    ck_assert_str_eq(f->c.res.route, "/v2/queues/{queue}/claims/{id}");
    ck_assert_int_eq(f->c.res.status, ST_NOT_FOUND);
    ck_api(f, "GET", "/nonsense", NULL, 404, NULL);
    ck_assert_ptr_null(f->c.res.route);
    ck_api(f, "PUT", "/v2/ping", NULL, 405, NULL); /* strangers make no metrics more */
    ck_assert_ptr_null(f->c.res.route);
}
