/* The page for operators, and the permissions of its user (docs/api.md 29); and the page
 * at "/" (6.1). */
#include "support/api_fixture.h"

#include <string.h>

static void
open_page(struct api_fixture *f)
{
    struct api_limits limits = api_limits_default;

    limits.ui = true;
    api_fixture_open_with(f, &limits);
}

#define UI_TEST(id) API_TEST_WITH(id, open_page(f))

TEST_CASE("files");

UI_TEST(the_page_runs_only_scripts_of_its_own)
{
    ck_api(f, "GET", "/claimd/ui/", NULL, 200, NULL);
    ck_api_header(f, "Content-Type", "text/html; charset=utf-8");
    ck_assert_ptr_nonnull(strstr(api_response_header(&f->c, "Content-Security-Policy"),
                                 "script-src 'self'"));
    ck_assert_ptr_nonnull(strstr(api_response_header(&f->c, "Content-Security-Policy"),
                                 "default-src 'none'"));
    ck_api(f, "GET", "/claimd/ui/main.js", NULL, 200, NULL);
    ck_api_header(f, "Content-Type", "text/javascript; charset=utf-8");
    ck_api(f, "GET", "/claimd/ui/page.css", NULL, 200, NULL);
    ck_api_header(f, "Content-Type", "text/css; charset=utf-8");
}

UI_TEST(without_a_slash_the_page_redirects_to_a_relative_path)
{
    ck_api(f, "GET", "/claimd/ui", NULL, 308, NULL);
    ck_api_header(f, "Location", "ui/");
}

UI_TEST(there_are_no_other_files)
{
    static const struct api_row rows[] = {
        {"GET", "/claimd/ui/none.js", NULL, 404, "404 Not Found"},
        {"GET", "/claimd/ui/..", NULL, 404, "404 Not Found"},
        {"GET", "/claimd/ui/%2e%2e%2fmain.js", NULL, 404, "404 Not Found"},
        {"GET", "/claimd/ui/a/main.js", NULL, 404, NULL},
        {"POST", "/claimd/ui/main.js", "{}", 405, NULL},
    };

    ck_api_rows(f, rows);
}

API_TEST(without_the_option_there_is_no_page)
{
    ck_api(f, "GET", "/claimd/ui/", NULL, 404, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "To enable it, set the option ui"));
    ck_api(f, "GET", "/claimd/ui", NULL, 404, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "To enable it, set the option ui"));
    ck_api(f, "GET", "/claimd/ui/main.js", NULL, 404, NULL);
}

TEST_CASE("start page");

static const char browser[] =
    "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

API_TEST(a_browser_gets_a_page_with_links)
{
    const char *policy;

    f->c.headers[API_HEADER_PROJECT_ID] = f->c.headers[API_HEADER_CLIENT_ID] = NULL;
    f->c.headers[API_HEADER_ACCEPT] = browser;
    ck_api(f, "GET", "/", NULL, 200, NULL);
    ck_api_header(f, "Content-Type", "text/html; charset=utf-8");
    ck_api_header(f, "Vary", "Accept");
    policy = api_response_header(&f->c, "Content-Security-Policy");
    ck_assert_ptr_nonnull(strstr(policy, "default-src 'none'"));
    ck_assert_ptr_null(strstr(policy, "script-src"));
    ck_assert_ptr_null(strstr(api_body(&f->c), "<script"));
    ck_assert_ptr_null(strstr(api_body(&f->c), "style"));
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "href=\"openapi.json\""));
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "/usr/share/doc/claimd/docs"));
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "<code>--ui</code>"));
    ck_assert_ptr_null(strstr(api_body(&f->c), "href=\"claimd/ui/\""));
    ck_api(f, "HEAD", "/", NULL, 200, NULL);
    ck_api_header(f, "Content-Type", "text/html; charset=utf-8");
}

UI_TEST(the_start_page_links_to_the_page_for_operators)
{
    f->c.headers[API_HEADER_ACCEPT] = "text/html";
    ck_api(f, "GET", "/", NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "href=\"claimd/ui/\""));
    ck_assert_ptr_null(strstr(api_body(&f->c), "--ui"));
    ck_api(f, "GET", "/claimd/ui/", NULL, 200, NULL);
}

API_TEST(other_clients_get_the_versions)
{
    static const char *const accepts[] = {
        NULL,
        "*/*",
        "application/json",
        "application/json, text/html;q=0.9",
        "text/html;q=0, */*",
        "application/*",
    };

    for (size_t i = 0; i < sizeof(accepts) / sizeof(accepts[0]); i++) {
        f->c.headers[API_HEADER_ACCEPT] = accepts[i];
        ck_api(f, "GET", "/", NULL, 300, NULL);
        ck_api_header(f, "Content-Type", "application/json");
        ck_assert_ptr_null(api_response_header(&f->c, "Vary"));
        ck_api(f, "HEAD", "/", NULL, 405, NULL);
        ck_api_header(f, "Allow", "GET, OPTIONS");
    }
    f->c.headers[API_HEADER_ACCEPT] = "text/plain";
    ck_api(f, "GET", "/", NULL, 406, NULL);
    f->c.headers[API_HEADER_ACCEPT] = browser; /* other paths do not change */
    ck_api(f, "GET", "/v2/ping", NULL, 204, NULL);
    ck_api(f, "POST", "/", "{}", 405, NULL);
    ck_api_header(f, "Allow", "GET, OPTIONS");
    ck_api(f, "OPTIONS", "/", NULL, 200, NULL);
    ck_api_header(f, "Allow", "GET");
}

TEST_CASE("permissions");

API_TEST(without_authentication_everything_is_allowed)
{
    f->c.headers[API_HEADER_PROJECT_ID] = NULL;
    ck_api(f, "GET", "/claimd/permissions", NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"all_projects\":true"));
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"queues:pause\""));
}

API_TEST_WITH(a_role_has_its_actions, api_fixture_open_access(f))
{
    static const char *const lines[] = {"eyes reader " API_CALL_PROJECT " never",
                                        "boss operator * never"};

    api_allow(f, lines, 2);
    f->c.headers[API_HEADER_AUTH_TOKEN] = "eyes";
    f->c.headers[API_HEADER_PROJECT_ID] = NULL;
    ck_api(f, "GET", "/claimd/permissions", NULL, 200, NULL);
    ck_api_body(
        f,
        "{'auth': true, 'name': 'eyes', 'role': 'reader', 'project': '" API_CALL_PROJECT
        "', 'all_projects': false, 'actions': ['claims:get', 'messages:get',"
        " 'messages:get_all', 'queues:get', 'queues:get_all', 'queues:stats',"
        " 'schedules:get', 'topics:get', 'topics:get_all', 'topics:stats', "
        "'subscription:get',"
        " 'subscription:get_all', 'home:get', 'ping:get']}");
    f->c.headers[API_HEADER_AUTH_TOKEN] = "boss";
    ck_api(f, "GET", "/claimd/permissions", NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"all_projects\":true"));
    f->c.headers[API_HEADER_AUTH_TOKEN] = "nobody";
    ck_api(f, "GET", "/claimd/permissions", NULL, 401, "Unauthorized");
}

TEST_CASE("actions");

/* A page of another site cannot act, even if the browser had a token. */
API_TEST_WITH(an_action_of_another_site_is_refused, api_fixture_open_access(f))
{
    static const char *const lines[] = {"boss operator * never"};
    static const struct {
        const char *origin, *site;
        int code;
    } rows[] = {
        {"http://queues.example", NULL, 204},
        {"http://other.example", NULL, 403},
        {"http://other.example", "cross-site", 403},
        {"null", NULL, 403},
        {NULL, NULL, 204},
        /* A proxy has replaced Host. */
        {"https://public.example", "same-origin", 204},
    };

    api_allow(f, lines, 1);
    f->c.headers[API_HEADER_AUTH_TOKEN] = "boss";
    f->c.headers[API_HEADER_HOST] = "queues.example";
    f->c.headers[API_HEADER_UI] = "1";
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        f->c.headers[API_HEADER_ORIGIN] = rows[i].origin;
        f->c.headers[API_HEADER_FETCH_SITE] = rows[i].site;
        ck_api(f, "POST", "/v2/queues/q/purge", NULL, rows[i].code, NULL);
        ck_assert(f->c.res.audited);
    }
    ck_assert(bytes_equal_str(f->c.res.caller, "boss"));
    ck_api(f, "GET", "/v2/queues/q/stats", NULL, 200, NULL);
    ck_assert(!f->c.res.audited);
}
