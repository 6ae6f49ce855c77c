/* The identity stub: logins, catalogs, and what a token is good for (docs/api.md 15). */
#include "support/api_fixture.h"

#define UN    "Unauthorized"
#define V3    "/identity/v3/auth/tokens"
#define V2    "/identity/v2.0/tokens"
#define TOKEN API_HEADER_AUTH_TOKEN

/* {'auth': ...} with ' for ", NUL-terminated. */
static const char *
quote(struct api_fixture *f, const char *text)
{
    char *copy = (char *)(uintptr_t)api_text(f, "%s", text);

    for (char *at = copy; *at != '\0'; at++)
        if (*at == '\'')
            *at = '"';
    return copy;
}

static void
open_stub(struct api_fixture *f, const char *users)
{
    api_fixture_open_identity(f, users);
    f->c.headers[API_HEADER_HOST] = "queues.test:8888";
}

static void
log_in(struct api_fixture *f, const char *target, const char *document, int code,
       const char *title)
{
    ck_api(f, "POST", target, quote(f, document), code, title);
}

/* Logs ann in for a project (v3) and sends her token, and no project, from now on. */
static const char *
become_ann(struct api_fixture *f, const char *project)
{
    const char *token;

    log_in(f, V3,
           api_text(f,
                    "{'auth':{'identity':{'methods':['password'],'password':{'user':"
                    "{'name':'ann','password':'x','domain':{'id':'default'}}}},"
                    "'scope':{'project':{'name':'%s','domain':{'id':'default'}}}}}",
                    project),
           201, NULL);
    token = api_text(f, "%s", api_response_header(&f->c, "X-Subject-Token"));
    f->c.headers[TOKEN] = token;
    f->c.headers[API_HEADER_PROJECT_ID] = NULL;
    return token;
}

API_TEST(without_the_stub_there_is_no_identity)
{
    ck_api(f, "GET", "/identity", NULL, 404, "404 Not Found");
    f->c.headers[TOKEN] = "nonsense";
    ck_api(f, "GET", "/v2/queues", NULL, 200, NULL);
}

API_TEST_WITH(discovery_needs_no_headers_and_leads_back_to_this_server,
              open_stub(f, NULL))
{
    static const char *const targets[] = {"/identity/v3", "/identity/v3/",
                                          "/identity/v2.0", "/identity/v2.0/"};

    f->c.headers[API_HEADER_CLIENT_ID] = f->c.headers[API_HEADER_PROJECT_ID] = NULL;
    ck_api(f, "GET", "/identity", NULL, 300, NULL);
    ck_assert_str_eq(api_pick(f, "versions.values.0.id"), "v3.14");
    ck_assert_str_eq(api_pick(f, "versions.values.0.links.0.href"),
                     "http://queues.test:8888/identity/v3/");
    ck_assert_str_eq(api_pick(f, "versions.values.1.links.0.href"),
                     "http://queues.test:8888/identity/v2.0/");
    ck_api(f, "GET", "/identity/", NULL, 300, NULL);
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        ck_api(f, "GET", targets[i], NULL, 200, NULL);
        ck_assert_ptr_nonnull(strstr(api_pick(f, "version.links.0.href"), "/identity/v"));
    }
}

API_TEST_WITH(a_host_that_cannot_stand_in_a_link_is_refused, open_stub(f, NULL))
{
    static const char *const hosts[] = {NULL, "", "a\"b", "a/b", "a,b", "a b"};

    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        f->c.headers[API_HEADER_HOST] = hosts[i];
        ck_api(f, "GET", "/identity", NULL, 400, "Invalid API request");
    }
    f->c.headers[API_HEADER_HOST] = "[::1]:8888";
    ck_api(f, "GET", "/identity", NULL, 300, NULL);
}

API_TEST_WITH(v3_responds_to_a_login_with_a_token_and_a_catalog, open_stub(f, NULL))
{
    (void)become_ann(f, "a/b");
    ck_api_header(f, "Vary", "X-Auth-Token");
    ck_assert_str_eq(api_pick(f, "token.user.name"), "ann");
    ck_assert_str_eq(api_pick(f, "token.project.id"), "a/b");
    ck_assert_str_eq(api_pick(f, "token.issued_at"), "2026-01-31T12:00:00Z");
    ck_assert_str_eq(api_pick(f, "token.expires_at"), "2026-01-31T13:00:00Z");
    ck_assert_str_eq(api_pick(f, "token.catalog.1.type"), "messaging");
    ck_assert_str_eq(api_pick(f, "token.catalog.1.endpoints.0.interface"), "public");
    ck_assert_str_eq(api_pick(f, "token.catalog.1.endpoints.0.region"), "DFW");
    ck_assert_str_eq(api_pick(f, "token.catalog.1.endpoints.0.url"),
                     "http://queues.test:8888");
    ck_assert_str_eq(api_pick(f, "token.catalog.2.type"), "message");
    ck_assert_str_eq(api_pick(f, "token.catalog.3.name"), "cloudQueues");
    ck_assert_str_eq(api_pick(f, "token.catalog.3.endpoints.0.url"),
                     "http://queues.test:8888/v1/a%2fb");
}

API_TEST_WITH(v2_responds_to_a_login_as_rackspace_did, open_stub(f, NULL))
{
    log_in(f, V2,
           "{'auth':{'RAX-KSKEY:apiKeyCredentials':{'username':'ann','apiKey':'k'},"
           "'tenantId':'480924'}}",
           200, NULL);
    ck_assert_str_eq(api_pick(f, "access.token.tenant.id"), "480924");
    ck_assert_str_eq(api_pick(f, "access.token.expires"), "2026-01-31T13:00:00Z");
    ck_assert_str_eq(api_pick(f, "access.user.RAX-AUTH:defaultRegion"), "DFW");
    ck_assert_str_eq(api_pick(f, "access.serviceCatalog.3.type"), "rax:queues");
    ck_assert_str_eq(api_pick(f, "access.serviceCatalog.3.name"), "cloudQueues");
    ck_assert_str_eq(api_pick(f, "access.serviceCatalog.3.endpoints.0.publicURL"),
                     "http://queues.test:8888/v1/480924");
    f->c.headers[TOKEN] = api_pick(f, "access.token.id");
    ck_api(f, "PUT", "/v1/480924/queues/q", NULL, 201, NULL);
}

API_TEST_WITH(logins_come_in_many_forms, open_stub(f, NULL))
{
    static const struct {
        const char *target, *document;
        int code;
        const char *title;
    } cases[] = {
        {V3,
         "{'auth':{'identity':{'password':{'user':{'id':'ann','password':'x'}}},"
         "'scope':{'project':{'id':'p'}}}}",
         201, NULL},
        {V3, "{'auth':{'identity':{'password':{'user':{'name':'ann','password':'x'}}}}}",
         201, NULL},
        {V3,
         "{'auth':{'identity':{'application_credential':{'id':'ann','secret':'x'}},"
         "'scope':'unscoped'}}",
         201, NULL},
        {V2,
         "{'auth':{'passwordCredentials':{'username':'ann','password':'x'},"
         "'tenantName':'p'}}",
         200, NULL},
        {V3, "{'auth':{'identity':{'password':{'user':{'name':'ann'}}}}}", 400,
         "Invalid request body"},
        {V3, "{'auth':{'identity':{'token':{'id':'nonsense'}}}}", 401, UN},
        {V2, "{'auth':{'token':{'id':'nonsense'}}}", 401, UN},
        {V3,
         "{'auth':{'identity':{'password':{'user':{'id':'ann','password':'x'}}},"
         "'scope':{'OS-TRUST:trust':{'id':'t'}}}}",
         400, "Invalid request body"},
        {V2,
         "{'auth':{'passwordCredentials':{'username':'ann','password':'x'},"
         "'trust_id':'t'}}",
         400, "Invalid request body"},
        {V3, "{'auth':[]}", 400, "Invalid request body"},
        {V3, "[]", 400, "Invalid request body"},
        {V3, "", 400, "Invalid request body"},
        {V2, "{'auth':{'passwordCredentials':7}}", 400, "Invalid request body"},
        {V2, "{'auth':{'passwordCredentials':{'username':'','password':'x'}}}", 401, UN},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        log_in(f, cases[i].target, cases[i].document, cases[i].code, cases[i].title);
}

API_TEST_WITH(a_token_can_be_shown_and_exchanged_for_another_project, open_stub(f, NULL))
{
    const char *token;

    token = become_ann(f, "blue");
    f->c.headers[API_HEADER_SUBJECT_TOKEN] = token;
    ck_api(f, "GET", V3, NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "token.project.name"), "blue");
    ck_api_header(f, "X-Subject-Token", token);
    ck_api(f, "HEAD", V3, NULL, 200, NULL);
    ck_api(f, "GET", "/identity/v3/auth/projects", NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "projects.0.id"), "blue");
    ck_api(f, "GET", "/identity/v2.0/tenants", NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "tenants.0.id"), "blue");
    ck_api(f, "GET", "/identity/v3/auth/catalog", NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "catalog.0.type"), "identity");
    ck_api(f, "GET", "/identity/v3/services", NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "services.0.id"), "identity");
    ck_assert_str_eq(api_pick(f, "services.3.type"), "rax:queues");
    ck_api(f, "GET", "/identity/v3/services?type=messaging", NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "services.0.id"), "messaging");
    ck_api(f, "GET", "/identity/v3/services?type=compute", NULL, 200, NULL);
    ck_api_body(f, "{'services':[],'links':{'next':null,'previous':null}}");
    ck_api(f, "GET", "/identity/v3/endpoints", NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "endpoints.11.url"), "http://queues.test:8888/v1/blue");
    ck_api(f, "GET", "/identity/v3/endpoints?service_id=messaging&interface=internal",
           NULL, 200, NULL);
    ck_api_body(f, "{'endpoints':[{'id':'messaging-internal','service_id':'messaging',"
                   "'interface':'internal','region':'DFW','region_id':'DFW',"
                   "'url':'http://queues.test:8888','enabled':true}],"
                   "'links':{'next':null,'previous':null}}");
    ck_api(f, "POST", "/identity/v3/services", NULL, 405, NULL);
    ck_api(f, "DELETE", V3, NULL, 204, NULL);
    log_in(f, V3,
           api_text(f,
                    "{'auth':{'identity':{'token':{'id':'%s'}},'scope':{'project':"
                    "{'id':'green'}}}}",
                    token),
           201, NULL);
    ck_assert_str_eq(api_pick(f, "token.project.id"), "green");
    f->c.headers[API_HEADER_SUBJECT_TOKEN] = "nonsense";
    ck_api(f, "GET", V3, NULL, 401, UN);
    ck_api(f, "DELETE", V3, NULL, 401, UN);
}

API_TEST_WITH(a_token_implies_its_project, open_stub(f, NULL))
{
    (void)become_ann(f, "blue");
    ck_api(f, "PUT", "/v2/queues/q", NULL, 201, NULL);
    ck_api(f, "HEAD", "/v1/blue/queues/q", NULL, 204, NULL);
    f->c.headers[API_HEADER_PROJECT_ID] = "";
    ck_api(f, "PUT", "/v2/queues/q", NULL, 204, NULL);
    f->c.headers[API_HEADER_PROJECT_ID] = "blue";
    ck_api(f, "PUT", "/v1.1/queues/q", NULL, 204, NULL);
    f->c.headers[TOKEN] = NULL;
    ck_api(f, "PUT", "/v2/queues/q", NULL, 204, NULL);
}

/* Gets a token of this project with an existing one. Returns the document of the
 * response. */
static void
exchange(struct api_fixture *f, const char *token, const char *project, int code)
{
    log_in(f, V3,
           api_text(f,
                    "{'auth':{'identity':{'token':{'id':'%s'}},'scope':{'project':"
                    "{'id':'%s'}}}}",
                    token, project),
           code, code == 401 ? UN : NULL);
}

API_TEST_WITH(a_token_opens_no_project_that_the_password_would_not,
              open_stub(f, "ann:x:blue\nann:x:red\nbob:y:green\n"))
{
    const char *token;

    token = become_ann(f, "blue");
    exchange(f, token, "red", 201);
    ck_assert_str_eq(api_pick(f, "token.project.id"), "red");
    exchange(f, token, "green", 401);
    log_in(f, V2, api_text(f, "{'auth':{'token':{'id':'%s'},'tenantId':'green'}}", token),
           401, UN);
}

API_TEST_WITH(a_token_got_for_a_token_ends_with_it, open_stub(f, NULL))
{
    const char *token;

    token = become_ann(f, "blue");
    clock_advance(&f->real, 1800000);
    exchange(f, token, "green", 201);
    ck_assert_str_eq(api_pick(f, "token.issued_at"), "2026-01-31T12:30:00Z");
    ck_assert_str_eq(api_pick(f, "token.expires_at"), "2026-01-31T13:00:00Z");
    f->c.headers[TOKEN] =
        api_text(f, "%s", api_response_header(&f->c, "X-Subject-Token"));
    log_in(f, V2, api_text(f, "{'auth':{'token':{'id':'%s'}}}", f->c.headers[TOKEN]), 200,
           NULL);
    ck_assert_str_eq(api_pick(f, "access.token.expires"), "2026-01-31T13:00:00Z");
    f->c.headers[TOKEN] = api_text(f, "%s", api_pick(f, "access.token.id"));
    clock_advance(&f->real, 1799999);
    ck_api(f, "GET", "/v2/queues", NULL, 200, NULL);
    clock_advance(&f->real, 1);
    ck_api(f, "GET", "/v2/queues", NULL, 401, UN);
}

API_TEST_WITH(a_token_outlives_what_tests_do_to_their_clock, open_stub(f, NULL))
{
    (void)become_ann(f, "blue");
    f->c.now_ms += INT64_C(366) * 24 * 3600 * 1000;
    ck_api(f, "GET", "/v2/queues", NULL, 200, NULL);
    (void)become_ann(f, "blue");
    ck_assert_str_eq(api_pick(f, "token.expires_at"), "2026-01-31T13:00:00Z");
}

API_TEST_WITH(a_login_with_the_password_in_another_case_is_401,
              open_stub(f, "ann:Secret:blue\n"))
{
    log_in(f, V2,
           "{'auth':{'passwordCredentials':{'username':'ann','password':'Secret'}}}", 200,
           NULL);
    log_in(f, V2,
           "{'auth':{'passwordCredentials':{'username':'ann','password':'secret'}}}", 401,
           UN);
}

API_TEST_WITH(the_project_of_a_token_is_compared_with_its_case, open_stub(f, NULL))
{
    (void)become_ann(f, "Blue");
    ck_api(f, "PUT", "/v2/Blue/queues/q", NULL, 201, NULL);
    ck_api(f, "GET", "/v2/blue/queues", NULL, 403, "Not authorized");
    f->c.headers[API_HEADER_PROJECT_ID] = "BLUE";
    ck_api(f, "GET", "/v2/queues", NULL, 403, "Not authorized");
}

API_TEST_WITH(a_token_is_good_for_no_other_project, open_stub(f, NULL))
{
    (void)become_ann(f, "blue");
    ck_api(f, "GET", "/v2/green/queues", NULL, 403, "Not authorized");
    f->c.headers[API_HEADER_PROJECT_ID] = "green";
    ck_api(f, "GET", "/v2/queues", NULL, 403, "Not authorized");
}

API_TEST_WITH(a_wrong_token_is_401_before_anything_else_is_checked, open_stub(f, NULL))
{
    static const char *const targets[] = {"/v2/queues", "/v1.1/queues/!", "/v1/queues",
                                          "/v2/ping", "/v2/"};

    f->c.headers[TOKEN] = "nonsense";
    f->c.headers[API_HEADER_CLIENT_ID] = NULL;
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        ck_api(f, "GET", targets[i], NULL, 401, UN);
        ck_api_header(f, "WWW-Authenticate", "Keystone");
    }
    ck_api(f, "GET", "/", NULL, 300, NULL);
    ck_api(f, "GET", "/v1/health", NULL, 204, NULL);
}

API_TEST_WITH(a_token_ends, open_stub(f, NULL))
{
    (void)become_ann(f, "blue");
    clock_advance(&f->real, 3599999);
    ck_api(f, "GET", "/v2/queues", NULL, 200, NULL);
    clock_advance(&f->real, 1);
    ck_api(f, "GET", "/v2/queues", NULL, 401, UN);
}

API_TEST_WITH(with_a_list_of_users_a_token_is_needed, open_stub(f, "ann:x:blue\n"))
{
    ck_api(f, "GET", "/v2/queues", NULL, 401, UN);
    ck_api(f, "GET", "/v1/queues", NULL, 401, UN);
    ck_api(f, "GET", "/v1/health", NULL, 204, NULL);
    ck_api(f, "GET", "/", NULL, 300, NULL);
    log_in(f, V2, "{'auth':{'passwordCredentials':{'username':'ann','password':'y'}}}",
           401, UN);
    log_in(f, V2,
           "{'auth':{'passwordCredentials':{'username':'ann','password':'x'},"
           "'tenantName':'green'}}",
           401, UN);
    (void)become_ann(f, "blue");
    ck_api(f, "GET", "/v2/queues", NULL, 200, NULL);
}

START_TEST(with_a_list_of_users_metrics_are_denied)
{
    struct api_fixture f;

    open_stub(&f, "ann:x:blue\n");
    ck_api(&f, "GET", "/metrics", NULL, 401, UN);
    (void)become_ann(&f, "blue");
    ck_api(&f, "GET", "/metrics", NULL, 403, "Not authorized"); /* they are about all */
    api_fixture_close(&f);

    open_stub(&f, NULL);
    ck_api(&f, "GET", "/metrics", NULL, 200, NULL);
    api_fixture_close(&f);
}
