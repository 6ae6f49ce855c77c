/* The permissions of callers over the API: every route, role, project and kind of
 * token (docs/api.md 15). */
#include "api/version.h"
#include "support/api_fixture.h"
#include "support/role_words.h"

#include <stdio.h>
#include <string.h>

#define NA    "Not authorized"
#define TOKEN API_HEADER_AUTH_TOKEN

/* A certificate of each role for the project of the fixture, and one for another. */
static void
use_certificates(struct api_fixture *f)
{
    struct token_list *certificates;
    struct reason why;
    struct buf list;
    size_t bad_line;

    buf_init(&list, f->mem);
    for (size_t i = 0; i < ROLE_WORDS; i++)
        buf_printf(&list, "%s %s " API_CALL_PROJECT " dns:%s.example\n",
                   role_words[i].role, role_words[i].role, role_words[i].role);
    buf_str(&list, "elsewhere admin blue uri:elsewhere\n");
    ck_assert_int_eq(token_list_read(f->mem, buf_view(&list), certificate_line_read,
                                     &certificates, &bad_line, &why),
                     ST_OK);
    access_use_certificates(f->access, certificates);
    buf_fini(&list);
}

/* A token of each role for the project of the fixture, named like its role, and some
 * others. */
static void
open_with_tokens(struct api_fixture *f)
{
    static const char *const tokens[] = {
        "reader reader " API_CALL_PROJECT " never",
        "producer producer " API_CALL_PROJECT " never",
        "worker worker " API_CALL_PROJECT " never",
        "operator operator " API_CALL_PROJECT " never",
        "admin admin " API_CALL_PROJECT " never",
        "elsewhere admin blue never",
        "several admin blue,green never",
        "everywhere admin * never",
        "over admin * 2026-01-31T12:00:00Z",
        "soon admin * 2026-01-31T12:01:00Z",
    };

    api_fixture_open_access(f);
    use_certificates(f);
    api_allow(f, tokens, sizeof(tokens) / sizeof(tokens[0]));
}

static bool
is_said(size_t role, enum action action)
{
    char word[64];

    (void)snprintf(word, sizeof(word), " %s ", action_name(action));
    return strstr(role_words[role].may, word) != NULL;
}

/* A path for a pattern: queue q, and an id that is none. */
static const char *
path_of(struct api_fixture *f, const char *pattern)
{
    struct buf path;
    const char *text;

    buf_init(&path, f->mem);
    for (const char *at = pattern; *at != '\0'; at++) {
        const char *name = strncmp(at, "{queue}", 7) == 0 ? "q" : "none";

        if (*at == '{') {
            buf_str(&path, name);
            at = strchr(at, '}');
        } else {
            buf_byte(&path, *at);
        }
    }
    text = api_text(f, "%.*s%s", (int)path.len, path.data,
                    strchr(pattern, '?') != NULL ? "=1" : "");
    buf_fini(&path);
    return text;
}

static bool
was_kept_out(const struct api_fixture *f)
{
    return f->c.res.status == ST_UNAUTHORIZED || f->c.res.status == ST_FORBIDDEN;
}

/* Keystone's tokens say which roles they have in which project; others are named. */
static const char *
token_of(struct api_fixture *f, const char *role)
{
    return f->keystone != NULL ? api_text(f, "%s@" API_CALL_PROJECT, role) : role;
}

static bool
is_open(const struct route *r)
{
    return (r->flags & ROUTE_OPEN) != 0 || r->action == ACTION_OPEN;
}

static void
try_route(struct api_fixture *f, const struct route *r)
{
    const char *path = path_of(f, r->pattern);
    bool open = is_open(r);
    bool guarded = (r->flags & ROUTE_GUARDED) != 0; /* for tokens of all projects only */

    for (size_t role = 0; role < ROLE_WORDS; role++) {
        f->c.headers[API_HEADER_PROJECT_ID] = API_CALL_PROJECT;
        f->c.headers[TOKEN] = token_of(f, role_words[role].role);
        (void)api_call(&f->c, api_method_name(r->method), path, "{}");
        ck_assert_msg(was_kept_out(f) ==
                          (!open && (guarded || !is_said(role, r->action))),
                      "%s %s by a %s: %d %s", api_method_name(r->method), path,
                      role_words[role].role, f->c.res.code, api_body(&f->c));
        f->c.headers[API_HEADER_PROJECT_ID] = "another";
        (void)api_call(&f->c, api_method_name(r->method), path, "{}");
        ck_assert_msg(was_kept_out(f) == !open, "%s %s elsewhere",
                      api_method_name(r->method), path);
    }
    f->c.headers[TOKEN] = "everywhere";
    (void)api_call(&f->c, api_method_name(r->method), path, "{}");
    ck_assert_msg(was_kept_out(f) == (f->keystone != NULL && !open), "%s %s everywhere",
                  api_method_name(r->method), path); /* Keystone does not know it */
    f->c.headers[API_HEADER_PROJECT_ID] = API_CALL_PROJECT;
    for (size_t i = 0; i < 3; i++) {
        static const char *const none[] = {NULL, "", "admin "};

        f->c.headers[TOKEN] = none[i] != NULL && none[i][0] != '\0' ? "admi" : none[i];
        (void)api_call(&f->c, api_method_name(r->method), path, "{}");
        ck_assert_msg((f->c.res.status == ST_UNAUTHORIZED) == !open,
                      "%s %s with token %s", api_method_name(r->method), path, none[i]);
    }
}

/* The identity of a request with this certificate, and perhaps a token. */
static bool
lets_in(struct api_fixture *f, const struct route *r, const char *path, bool good,
        const char *names, const char *token)
{
    const struct certificate shown = {good, bytes_str(names)};

    f->c.certificate = &shown;
    f->c.headers[TOKEN] = token;
    (void)api_call(&f->c, api_method_name(r->method), path, "{}");
    f->c.certificate = NULL;
    f->c.headers[TOKEN] = NULL;
    return !was_kept_out(f);
}

static void
try_route_with_certificates(struct api_fixture *f, const struct route *r)
{
    const char *path = path_of(f, r->pattern);
    bool open = is_open(r);
    bool guarded = (r->flags & ROUTE_GUARDED) != 0;

    for (size_t role = 0; role < ROLE_WORDS; role++) {
        const char *name = api_text(f, "email:x\ndns:%s.example", role_words[role].role);
        bool may = open || (!guarded && is_said(role, r->action));

        f->c.headers[API_HEADER_PROJECT_ID] = API_CALL_PROJECT;
        ck_assert_msg(lets_in(f, r, path, true, name, NULL) == may, "%s by a %s", path,
                      role_words[role].role);
        ck_assert(lets_in(f, r, path, false, name, NULL) == open);
        ck_assert(lets_in(f, r, path, true, name, role_words[role].role) == open);
        f->c.headers[API_HEADER_PROJECT_ID] = "another";
        ck_assert(lets_in(f, r, path, true, name, NULL) == open);
    }
    f->c.headers[API_HEADER_PROJECT_ID] = API_CALL_PROJECT;
    ck_assert(lets_in(f, r, path, true, "dns:admin", NULL) == open);
    ck_assert(lets_in(f, r, path, true, "", NULL) == open);
    ck_assert(lets_in(f, r, path, true, "uri:elsewhere", NULL) == open);
    ck_assert(lets_in(f, r, path, true, "dns:admin", "everywhere"));
    ck_assert(lets_in(f, r, path, false, "", "everywhere"));
    /* The browser adds it to the request of any page. It does not know a token. */
    f->c.headers[API_HEADER_HOST] = "queues.example";
    f->c.headers[API_HEADER_ORIGIN] = "https://other.example";
    ck_assert(lets_in(f, r, path, true, "dns:admin.example", NULL) == open);
    ck_assert(lets_in(f, r, path, false, "", "everywhere"));
    f->c.headers[API_HEADER_ORIGIN] = "https://queues.example";
    ck_assert(lets_in(f, r, path, true, "dns:admin.example", NULL) == (open || !guarded));
    f->c.headers[API_HEADER_ORIGIN] = NULL;
    /* Behind the door for metrics there is none of these. */
    f->c.listener = API_LISTENER_METRICS;
    (void)lets_in(f, r, path, true, "dns:admin.example", NULL);
    ck_assert((f->c.res.code == 404) == ((r->flags & ROUTE_METRICS) == 0));
    f->c.listener = API_LISTENER_MAIN;
}

static void
try_routes(struct api_fixture *f, void (*try)(struct api_fixture *, const struct route *))
{
    static const struct version *const versions[] = {
        &version_v2,       &version_v1_1,    &version_v1,   &version_claimd,
        &version_operator, &version_testapi, &version_root, &version_ui};
    size_t routes = 0;

    f->c.headers[API_HEADER_CONTENT_TYPE] =
        "application/openstack-messaging-v2.0-json-patch";
    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
        for (const struct route *r = versions[i]->routes; r->pattern != NULL;
             r++, routes++)
            try(f, r);
    ck_assert_uint_gt(routes, 50);
}

API_TEST_WITH(every_route_allows_exactly_the_roles_of_its_row, open_with_tokens(f))
{
    try_routes(f, try_route);
    try_routes(f, try_route_with_certificates);
}

/* Roles of a Keystone that are called like ours. */
static void
open_keystone(struct api_fixture *f)
{
    static const char table[] = "reader=reader,producer=producer,worker=worker,"
                                "operator=operator,admin=admin,member=worker,"
                                "member=producer";
    struct role_map roles;
    struct reason why;

    ck_assert_int_eq(role_map_read(&roles, bytes_str(table), &why), ST_OK);
    api_fixture_open_keystone(f, &roles);
}

API_TEST_WITH(every_route_allows_exactly_the_roles_of_keystone, open_keystone(f))
{
    try_routes(f, try_route);
}

/* Sends a request with a token and a project. Returns the status. */
static enum status
status_by(struct api_fixture *f, const struct route *r, const char *token,
          const char *project)
{
    const char *path = path_of(f, r->pattern);

    f->c.headers[TOKEN] = token;
    f->c.headers[API_HEADER_PROJECT_ID] = project;
    (void)api_call(&f->c, api_method_name(r->method), path, "{}");
    return f->c.res.status;
}

/* Properties that only tokens of Keystone have. */
static void
try_keystone(struct api_fixture *f, const struct route *r)
{
    bool open = is_open(r);
    bool guarded = (r->flags & ROUTE_GUARDED) != 0;
    bool may = open || (!guarded && (is_said(1, r->action) || is_said(2, r->action)));
    static const char *const both[] = {"member@" API_CALL_PROJECT,
                                       "worker,producer@" API_CALL_PROJECT,
                                       "boss,producer,worker@" API_CALL_PROJECT};
    static const char *const none[] = {"admin@", "@" API_CALL_PROJECT,
                                       "boss@" API_CALL_PROJECT,
                                       "Admin@" API_CALL_PROJECT, "admin@other"};

    for (size_t i = 0; i < sizeof(both) / sizeof(both[0]); i++) {
        (void)status_by(f, r, both[i], API_CALL_PROJECT);
        ck_assert_msg(was_kept_out(f) == !may, "%s by %s", r->pattern, both[i]);
        (void)status_by(f, r, both[i], NULL);
        ck_assert_msg(was_kept_out(f) == !may, "%s by %s", r->pattern, both[i]);
    }
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        ck_assert_msg((status_by(f, r, none[i], API_CALL_PROJECT) == ST_FORBIDDEN) ==
                          !open,
                      "%s by %s", r->pattern, none[i]);
}

API_TEST_WITH(roles_of_keystone_add_up_and_unknown_ones_allow_nothing, open_keystone(f))
{
    try_routes(f, try_keystone);
}

static void
try_without_response(struct api_fixture *f, const struct route *r)
{
    bool open = is_open(r);
    enum status st = status_by(f, r, "admin@" API_CALL_PROJECT, API_CALL_PROJECT);

    ck_assert_msg((st == ST_UNAVAILABLE) == !open, "%s: %d", r->pattern, f->c.res.code);
    if (!open) {
        ck_assert_int_eq(f->c.res.code, 503);
        ck_api_header(f, "Retry-After", "1");
    }
}

API_TEST_WITH(no_route_allows_a_caller_while_keystone_is_down, open_keystone(f))
{
    static const int codes[] = {200, 204, 302, 400, 401, 403, 429, 500, 503};

    f->fake.status = ST_UNAVAILABLE;
    try_routes(f, try_without_response);
    f->fake.status = ST_OK;
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        f->fake.code = codes[i];
        try_routes(f, try_without_response);
    }
}

API_TEST_WITH(a_token_of_keystone_stands_for_its_project_until_it_ends, open_keystone(f))
{
    f->c.headers[TOKEN] = "member@blue";
    f->c.headers[API_HEADER_PROJECT_ID] = NULL;
    ck_api(f, "PUT", "/v1/queues/first", NULL, 201, NULL); /* not of the nameless one */
    f->c.headers[API_HEADER_PROJECT_ID] = "blue";
    ck_api(f, "GET", "/v2/queues/first", NULL, 200, NULL);
    f->c.headers[API_HEADER_PROJECT_ID] = NULL;
    ck_api(f, "GET", "/v2/green/queues/first", NULL, 403, NA);
    ck_api(f, "GET", "/v2/blue/queues/first", NULL, 200, NULL);
    clock_advance(&f->real, FAKE_KEYSTONE_END_MS - API_FIXTURE_START_MS - 1);
    ck_api(f, "GET", "/v2/queues/first", NULL, 200, NULL);
    clock_advance(&f->real, 1);
    ck_api(f, "GET", "/v2/queues/first", NULL, 401, "Unauthorized");
    ck_api_header(f, "WWW-Authenticate", "Keystone");
}

API_TEST_WITH(an_unknown_method_is_405_only_after_authentication, open_with_tokens(f))
{
    ck_api(f, "PUT", "/v2/queues/q/claims", NULL, 401, "Unauthorized");
    ck_api(f, "OPTIONS", "/v2/queues/q/claims", NULL, 401, "Unauthorized");
    f->c.headers[TOKEN] = "reader";
    ck_api(f, "PUT", "/v2/queues/q/claims", NULL, 405, NULL);
    ck_api(f, "OPTIONS", "/v2/queues/q/claims", NULL, 200, NULL);
    ck_api(f, "GET", "/v2/nowhere", NULL, 404, NULL);
}

API_TEST_WITH(the_list_of_versions_is_for_every_client, open_with_tokens(f))
{
    ck_api(f, "GET", "/", NULL, 300, NULL);
    ck_api(f, "GET", "/v2/", NULL, 401, "Unauthorized");
    ck_api_header(f, "WWW-Authenticate", "Bearer");
}

API_TEST_WITH(a_token_may_stand_in_either_header, open_with_tokens(f))
{
    f->c.headers[API_HEADER_AUTHORIZATION] = "Bearer admin";
    ck_api(f, "GET", "/v2/queues", NULL, 200, NULL);
    f->c.headers[API_HEADER_AUTHORIZATION] = "bearer   admin ";
    ck_api(f, "GET", "/v2/queues", NULL, 200, NULL);
    f->c.headers[API_HEADER_AUTHORIZATION] = "Basic YWRtaW46YWRtaW4=";
    ck_api(f, "GET", "/v2/queues", NULL, 401, "Unauthorized");
    f->c.headers[API_HEADER_AUTHORIZATION] = "Beareradmin";
    ck_api(f, "GET", "/v2/queues", NULL, 401, "Unauthorized");
    f->c.headers[API_HEADER_AUTHORIZATION] = "Bearer ";
    ck_api(f, "GET", "/v2/queues", NULL, 401, "Unauthorized");
    f->c.headers[API_HEADER_AUTHORIZATION] = NULL;
    f->c.headers[TOKEN] = "admin,admin"; /* sent twice */
    ck_api(f, "GET", "/v2/queues", NULL, 401, "Unauthorized");
    f->c.headers[TOKEN] = " admin ";
    ck_api(f, "GET", "/v2/queues", NULL, 200, NULL);
}

/* A proxy that requires a password passes it on, and one with a login adds a
 * token of its own. */
API_TEST_WITH(beside_x_auth_token_authorization_is_ignored, open_with_tokens(f))
{
    static const char *const others[] = {
        "Basic YWRtaW46YWRtaW4=", "Bearer eyJhbGciOiJIUzI1NiJ9.e30.x", "Bearer admin",
        "Negotiate x"};

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        f->c.headers[API_HEADER_AUTHORIZATION] = others[i];
        f->c.headers[TOKEN] = "reader";
        ck_api(f, "GET", "/v2/queues", NULL, 200, NULL);
        ck_api(f, "PUT", "/v2/queues/q", NULL, 403, NA);
        f->c.headers[TOKEN] = "unknown";
        ck_api(f, "GET", "/v2/queues", NULL, 401, "Unauthorized");
    }
}

static void
post_one(struct api_fixture *f, const char *target)
{
    ck_api(f, "POST", target, "{\"messages\":[{\"body\":1}]}", 201, NULL);
}

API_TEST_WITH(a_token_of_one_project_stands_for_it, open_with_tokens(f))
{
    f->c.headers[TOKEN] = "elsewhere";
    f->c.headers[API_HEADER_PROJECT_ID] = NULL;
    post_one(f, "/v2/queues/q/messages");
    ck_api(f, "PUT", "/v1/queues/first", NULL, 201, NULL); /* not of the nameless one */
    f->c.headers[API_HEADER_PROJECT_ID] = "";
    ck_api(f, "GET", "/v2/queues/q/stats", NULL, 200, NULL);
    f->c.headers[API_HEADER_PROJECT_ID] = "blue";
    ck_api(f, "GET", "/v2/queues/q/stats", NULL, 200, NULL);
    ck_api_body(
        f, "{'messages':{'free':1,'claimed':0,'total':1,'oldest':'*','newest':'*'}}");
    ck_api(f, "GET", "/v2/queues/first", NULL, 200, NULL);
    f->c.headers[API_HEADER_PROJECT_ID] = NULL;
    ck_api(f, "GET", "/v2/blue/queues/q", NULL, 200, NULL);
    ck_api(f, "GET", "/v2/green/queues/q", NULL, 403, NA);
    ck_api(f, "GET", "/v1/green/queues/q", NULL, 403, NA);
}

API_TEST_WITH(a_token_of_several_projects_has_to_be_given_one, open_with_tokens(f))
{
    f->c.headers[TOKEN] = "several";
    f->c.headers[API_HEADER_PROJECT_ID] = NULL;
    ck_api(f, "GET", "/v2/queues", NULL, 400, "Project-Id Missing");
    ck_api(f, "GET", "/v1/queues", NULL, 400, "Project-Id Missing");
    f->c.headers[API_HEADER_PROJECT_ID] = "green";
    ck_api(f, "GET", "/v2/queues", NULL, 200, NULL);
    f->c.headers[API_HEADER_PROJECT_ID] = "red";
    ck_api(f, "GET", "/v2/queues", NULL, 403, NA);
    f->c.headers[TOKEN] = "everywhere";
    ck_api(f, "GET", "/v2/queues", NULL, 200, NULL);
    f->c.headers[API_HEADER_PROJECT_ID] = NULL;
    ck_api(f, "GET", "/v2/queues", NULL, 400, "Project-Id Missing");
    ck_api(f, "PUT", "/v1/queues/q", NULL, 201, NULL); /* of the nameless project */
}

API_TEST_WITH(a_token_expires_by_real_time, open_with_tokens(f))
{
    f->c.headers[TOKEN] = "over";
    ck_api(f, "GET", "/v2/queues", NULL, 401, "Unauthorized");
    f->c.headers[TOKEN] = "soon";
    f->c.now_ms += 3600000; /* the store's clock says nothing about it */
    ck_api(f, "GET", "/v2/queues", NULL, 200, NULL);
    clock_advance(&f->real, 59999);
    ck_api(f, "GET", "/v2/queues", NULL, 200, NULL);
    clock_advance(&f->real, 1);
    ck_api(f, "GET", "/v2/queues", NULL, 401, "Unauthorized");
}

API_TEST_WITH(several_queues_are_claimed_by_workers_only, open_with_tokens(f))
{
    f->c.headers[TOKEN] = "producer";
    post_one(f, "/v2/queues/q/messages");
    ck_api(f, "POST", "/claimd/claims?queue=q", "{}", 403, NA);
    f->c.headers[TOKEN] = "worker";
    ck_api(f, "POST", "/claimd/claims?queue=q", "{}", 201, NULL);
}

/* ------------------------------------------------------------------ parts of a finish */

/* Claims the oldest message of q as the admin. Returns the path of a finish of the claim,
 * and its id. */
static const char *
claim_one(struct api_fixture *f, const char **id)
{
    const char *claim;

    f->c.headers[TOKEN] = "admin";
    post_one(f, "/v2/queues/q/messages");
    claim = api_take(f, "q", 1);
    ck_assert_ptr_nonnull(claim);
    *id = api_pick(f, "messages.0.id");
    return api_text(f, "/claimd/queues/q/claims/%s/finish", claim);
}

/* A part of a finish, with %s for the id of a message, and the action of the plain
 * request. */
static const struct part {
    const char *action;
    const char *text;
} parts[] = {
    {"messages:delete", "\"delete\":[\"%s\"]"},
    {"claims:delete", "\"release\":[{\"id\":\"%s\"}]"},
    {"claims:delete", "\"dead_letter\":[\"%s\"]"},
    {"messages:create", "\"post\":[{\"queue\":\"n%s\",\"messages\":[{\"body\":1}]}]"},
};

/* Finishes a message with a part. */
static void
finish_part(struct api_fixture *f, const char *token, const struct part *p, int code)
{
    const char *id, *path = claim_one(f, &id);
    const char *at = strstr(p->text, "%s");
    const char *body =
        api_text(f, "{%.*s%s%s,\"renew\":{}}", (int)(at - p->text), p->text, id, at + 2);

    f->c.headers[TOKEN] = token;
    ck_api(f, "POST", path, body, code, code == 403 ? NA : NULL);
    if (code == 403)
        ck_assert_msg(strstr(api_body(&f->c), p->action) != NULL, "%s", api_body(&f->c));
}

/* A policy of all default rules but one. Each role has one token. */
static void
use_policy(struct api_fixture *f, const char *action, const char *rule)
{
    static const char *const tokens[] = {"worker worker " API_CALL_PROJECT " never",
                                         "admin admin " API_CALL_PROJECT " never"};
    struct policy policy = policy_default;
    struct reason why;

    ck_assert_int_eq(policy_read(&policy,
                                 bytes_str(api_text(f, "{\"%s\":\"%s\"}", action, rule)),
                                 &why),
                     ST_OK);
    api_allow_by(f, tokens, 2, &policy);
}

API_TEST_WITH(each_part_of_a_finish_needs_the_action_of_the_plain_request,
              open_with_tokens(f))
{
    enum { PARTS = sizeof(parts) / sizeof(parts[0]), WORKER_PARTS = 3 };

    f->c.headers[TOKEN] = "admin";
    ck_api(f, "PUT", "/v2/queues/q", "{\"_dead_letter_queue\":\"dead\"}", 201, NULL);
    for (size_t i = 0; i < PARTS; i++) {
        finish_part(f, "worker", &parts[i], i < WORKER_PARTS ? 200 : 403);
        finish_part(f, "admin", &parts[i], 200);
    }
    for (size_t denied = 0; denied < PARTS; denied++) {
        use_policy(f, parts[denied].action, "role:admin");
        for (size_t i = 0; i < WORKER_PARTS; i++)
            finish_part(f, "worker", &parts[i],
                        strcmp(parts[i].action, parts[denied].action) == 0 ? 403 : 200);
    }
    use_policy(f, "messages:create", "role:admin or role:worker");
    finish_part(f, "worker", &parts[3], 200);
    use_policy(f, "claims:update", "role:admin");
    finish_part(f, "worker", &(struct part){"claims:update", "\"delete\":[\"%s\"]"}, 403);
}

API_TEST_WITH(a_refused_part_of_a_finish_leaves_the_rest_undone, open_with_tokens(f))
{
    const char *id, *path = claim_one(f, &id);

    use_policy(f, "messages:delete", "role:admin");
    f->c.headers[TOKEN] = "worker";
    ck_api(f, "POST", path,
           api_text(f,
                    "{\"delete\":[\"%s\"],\"renew\":{\"ttl\":600,\"grace\":60},"
                    "\"atomic\":false}",
                    id),
           403, NA);
    ck_api(f, "POST", path, "{\"delete\":[],\"post\":[],\"renew\":{}}", 200, NULL);
    ck_api(f, "GET", "/v2/queues/q/stats", NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"claimed\":1"));
}
