/*
 * /openapi.json: it is JSON, it describes the served routes, and no others (docs/api.md
 * 6.6). tests/e2e/openapi_test.py compares it with a real server.
 */
#include "api/version.h"
#include "support/api_fixture.h"

#include <ctype.h>
#include <jansson.h>

static const struct version *const versions[] = {
    &version_root,     &version_v2,       &version_v1_1,    &version_v1, &version_claimd,
    &version_identity, &version_operator, &version_testapi, &version_ui};

enum { VERSIONS = sizeof(versions) / sizeof(versions[0]) };

/* The document as a tree, owned. */
static json_t *
fetch(struct api_fixture *f)
{
    json_error_t error;
    json_t *tree;

    ck_api(f, "GET", "/openapi.json", NULL, 200, NULL);
    ck_api_header(f, "Content-Type", "application/json");
    tree = json_loads(api_body(&f->c), JSON_REJECT_DUPLICATES, &error);
    ck_assert_msg(tree != NULL, "%s, at %d", error.text, error.position);
    return tree;
}

/* The member at this path of names, NULL if there is none. */
static json_t *
at(const json_t *tree, const char *first, const char *second, const char *third)
{
    tree = json_object_get(tree, first);
    if (second != NULL)
        tree = json_object_get(tree, second);
    return json_object_get(tree, third);
}

/* "get" for METHOD_GET. */
static const char *
word_of(struct api_fixture *f, enum method method)
{
    char word[8] = "";
    const char *name = api_method_name(method);

    for (size_t i = 0; name[i] != '\0' && i < sizeof(word) - 1; i++)
        word[i] = (char)tolower((unsigned char)name[i]);
    return api_text(f, "%s", word);
}

static size_t
count_operations(const json_t *tree)
{
    const char *path;
    size_t count = 0;
    json_t *item;

    json_object_foreach(json_object_get(tree, "paths"), path, item) count +=
        json_object_size(item);
    return count;
}

TEST_CASE("openapi");

/* Rows that a parameter, a last slash or a browser makes of another have no operation of
 * their own. */
static bool
is_of_its_own(const struct route *row)
{
    return strchr(row->pattern, '?') == NULL && (row->flags & ROUTE_HTML_ONLY) == 0 &&
           (strncmp(row->pattern, "/identity", 9) != 0 ||
            row->pattern[strlen(row->pattern) - 1] != '/');
}

API_TEST_WITH(every_route_is_described_and_nothing_else,
              api_fixture_open_identity(f, NULL))
{
    size_t described = 0;
    json_t *tree;

    tree = fetch(f);
    for (size_t i = 0; i < VERSIONS; i++)
        for (const struct route *r = versions[i]->routes; r->pattern != NULL; r++) {
            const json_t *operation =
                at(tree, "paths", r->pattern, word_of(f, r->method));

            if (!is_of_its_own(r) || (r->flags & ROUTE_ADMIN) != 0)
                continue;
            ck_assert_msg(json_is_object(operation), "%s %s", r->pattern, r->operation);
            ck_assert_str_eq(json_string_value(json_object_get(operation, "operationId")),
                             r->operation);
            ck_assert_ptr_nonnull(json_object_get(operation, "summary"));
            described++;
        }
    ck_assert_uint_gt(described, 70);
    ck_assert_uint_eq(count_operations(tree), described);
    json_decref(tree);
}

START_TEST(variants_of_a_route_by_parameter_share_an_operation)
{
    for (size_t i = 0; i < VERSIONS; i++)
        for (const struct route *r = versions[i]->routes; r->pattern != NULL; r++)
            if (strchr(r->pattern, '?') != NULL)
                ck_assert_str_eq(r->operation, r[-1].operation);
}

API_TEST_WITH(no_two_operations_have_one_name, api_fixture_open_identity(f, NULL))
{
    json_t *seen = json_object(), *tree, *item, *operation;
    const char *path, *method;

    tree = fetch(f);
    json_object_foreach(json_object_get(tree, "paths"), path, item)
        json_object_foreach(item, method, operation)
    {
        const char *id = json_string_value(json_object_get(operation, "operationId"));

        ck_assert_ptr_nonnull(id);
        ck_assert_msg(json_object_get(seen, id) == NULL, "%s, of %s", id, path);
        ck_assert_int_eq(json_object_set_new(seen, id, json_true()), 0);
    }
    json_decref(seen);
    json_decref(tree);
}

START_TEST(disabled_features_are_not_described)
{
    struct api_limits limits = api_limits_default;
    struct api_fixture f;
    json_t *tree;

    api_fixture_open(&f);
    tree = fetch(&f);
    ck_assert_ptr_nonnull(at(tree, "paths", NULL, "/v1/queues"));
    ck_assert_ptr_nonnull(at(tree, "paths", NULL, "/v1.1/queues"));
    ck_assert_ptr_nonnull(at(tree, "components", "schemas", "MessageV1"));
    ck_assert_ptr_null(at(tree, "paths", NULL, "/identity"));
    ck_assert_ptr_null(at(tree, "paths", NULL, "/v2/health"));
    ck_assert_ptr_null(at(tree, "paths", NULL, "/claimd/clock"));
    json_decref(tree);
    api_fixture_close(&f);

    limits.enable_v1 = limits.enable_v1_1 = false;
    limits.admin_mode = true;
    limits.ui = true;
    api_fixture_open_with(&f, &limits);
    tree = fetch(&f);
    ck_assert_ptr_null(strstr(api_body(&f.c), "/v1"));
    ck_assert_ptr_null(at(tree, "components", "schemas", "MessageV1"));
    ck_assert_ptr_null(at(tree, "components", "parameters", "ClientOptional"));
    ck_assert_ptr_nonnull(at(tree, "paths", NULL, "/v2/health"));
    json_decref(tree);
    api_fixture_close(&f);
}

START_TEST(the_limits_are_those_in_force)
{
    struct api_limits limits = api_limits_default;
    struct api_fixture f;

    limits.max_messages_per_page = 7;
    limits.max_queues_per_page = 50;
    limits.max_claim_ttl = 4711;
    limits.client_id_strict = false;
    limits.max_length_client_id = 99;
    api_fixture_open_with(&f, &limits);
    json_decref(fetch(&f));
    ck_assert_str_eq(api_pick(&f, "components.schemas.ClientId.type"), "string");
    ck_assert_ptr_nonnull(strstr(api_body(&f.c), "\"maxLength\":99"));
    ck_assert_ptr_nonnull(strstr(api_body(&f.c), "\"maximum\":7,\"default\":7"));
    ck_assert_ptr_nonnull(strstr(api_body(&f.c), "\"maximum\":50,\"default\":10"));
    ck_assert_ptr_nonnull(strstr(api_body(&f.c), "\"maximum\":4711"));
    ck_assert_ptr_null(strstr(api_body(&f.c), "\"maximum\":43200,\"default\":300"));
    api_fixture_close(&f);
}

/* Is 429 among what an operation responses? */
static bool
is_limited(const json_t *tree, const char *path, const char *method)
{
    const json_t *operation = at(tree, "paths", path, method);

    ck_assert_ptr_nonnull(operation);
    return at(operation, "responses", NULL, "429") != NULL;
}

API_TEST(limits_of_projects_are_described_when_they_are_in_force)
{
    static const struct {
        struct api_project_limits limits;
        bool listing, making, posting, posting_v1, claiming, deleting;
    } cases[] = {
        {{.queues = 0}, false, false, false, false, false, false},
        {{.queues = 1}, false, true, true, false, false, false},
        {{.messages = 1}, false, false, true, true, false, false},
        {{.bytes = 1}, false, false, true, true, false, false},
        {{.waiters = 1}, false, false, false, false, true, true},
        {{.connections = 1}, true, true, true, true, true, true},
        {{.requests_per_second = 1}, true, true, true, true, true, true},
        {{.queues = 0}, false, false, false, false, false, false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        json_t *tree;

        api_limit(f->api, &cases[i].limits);
        tree = fetch(f);
        ck_assert(is_limited(tree, "/v2/queues", "get") == cases[i].listing);
        ck_assert(is_limited(tree, "/v1/health", "get") == cases[i].listing);
        ck_assert(is_limited(tree, "/v2/queues/{queue}", "put") == cases[i].making);
        ck_assert(is_limited(tree, "/v2/queues/{queue}/messages", "post") ==
                  cases[i].posting);
        ck_assert(is_limited(tree, "/v1/queues/{queue}/messages", "post") ==
                  cases[i].posting_v1);
        ck_assert(is_limited(tree, "/claimd/claims", "post") == cases[i].claiming);
        ck_assert(is_limited(tree, "/v2/queues/{queue}/messages", "delete") ==
                  cases[i].deleting); /* pop */
        ck_assert(!is_limited(tree, "/livez", "get"));
        ck_assert(!is_limited(tree, "/metrics", "get"));
        json_decref(tree);
    }
}

/* -------------------------------------------------------------- permissions */

TEST_CASE("credentials");

/* Says of an operation's action which roles may do it. */
static size_t
count_roles(const json_t *tree, const char *path, const char *method, const char *action)
{
    return json_array_size(at(at(tree, "paths", path, method), "x-roles", NULL, action));
}

API_TEST(without_authentication_no_token_is_described)
{
    json_t *tree;

    tree = fetch(f);
    ck_assert_uint_eq(json_array_size(json_object_get(tree, "security")), 0);
    ck_assert_ptr_null(at(tree, "components", NULL, "securitySchemes"));
    ck_assert_ptr_null(
        at(at(tree, "paths", "/v2/queues", "get"), "responses", NULL, "401"));
    ck_assert_ptr_null(strstr(api_body(&f->c), "x-roles"));
    json_decref(tree);
}

/* Checks that each alternative names defined schemes, and notes them. */
static void
check_alternatives(const json_t *tree, const json_t *security, json_t *named)
{
    const char *name;
    size_t i;
    json_t *alternative, *scopes;

    json_array_foreach(security, i, alternative)
        json_object_foreach(alternative, name, scopes)
    {
        ck_assert_msg(at(tree, "components", "securitySchemes", name) != NULL, "%s",
                      name);
        ck_assert_int_eq(json_object_set_new(named, name, json_true()), 0);
    }
}

/* Every scheme that is named is defined, and the other way round. */
static void
check_schemes(struct api_fixture *f, size_t count)
{
    json_t *tree = fetch(f), *named = json_object(), *item, *operation;
    const char *path, *method;

    check_alternatives(tree, json_object_get(tree, "security"), named);
    json_object_foreach(json_object_get(tree, "paths"), path, item)
        json_object_foreach(item, method, operation)
            check_alternatives(tree, json_object_get(operation, "security"), named);
    ck_assert_uint_eq(json_object_size(named), count);
    ck_assert_uint_eq(json_object_size(at(tree, "components", NULL, "securitySchemes")),
                      count);
    json_decref(named);
    json_decref(tree);
}

START_TEST(each_security_scheme_that_is_named_is_defined)
{
    static const struct role_map roles = {.count = 0};
    struct token_list *none;
    struct reason why;
    size_t bad_line;
    struct api_fixture f;

    api_fixture_open(&f);
    check_schemes(&f, 0);
    api_fixture_close(&f);
    api_fixture_open_identity(&f, NULL); /* tokens are optional */
    check_schemes(&f, 1);
    api_fixture_close(&f);
    api_fixture_open_identity(&f, "alice:secret\n");
    check_schemes(&f, 1);
    api_fixture_close(&f);
    api_fixture_open_keystone(&f, &roles);
    check_schemes(&f, 2);
    api_fixture_close(&f);
    api_fixture_open_access(&f);
    check_schemes(&f, 2);
    ck_assert_int_eq(token_list_read(f.mem, bytes_str(""), certificate_line_read, &none,
                                     &bad_line, &why),
                     ST_OK);
    access_use_certificates(f.access, none);
    check_schemes(&f, 3);
    api_fixture_close(&f);
}

API_TEST_WITH(the_roles_are_those_of_the_policy_in_force, api_fixture_open_access(f))
{
    struct policy policy = policy_default;
    struct reason why;
    size_t bad_line;
    json_t *tree;

    ck_assert_int_eq(access_replace(f->access, bytes_str(""), &policy, &bad_line, &why),
                     ST_OK);
    tree = fetch(f);
    ck_assert_uint_eq(json_array_size(json_object_get(tree, "security")), 2);
    ck_assert_ptr_nonnull(
        at(at(tree, "paths", "/v2/queues", "get"), "responses", NULL, "401"));
    ck_assert_uint_eq(
        count_roles(tree, "/v2/queues/{queue}/messages", "post", "messages:create"), 2);
    ck_assert_uint_eq(
        count_roles(tree, "/v2/queues/{queue}/messages", "delete", "messages:delete_all"),
        3);
    ck_assert_uint_eq(
        count_roles(tree, "/v2/queues/{queue}/messages", "delete", "messages:pop"), 2);
    ck_assert_ptr_null(at(at(tree, "paths", "/livez", "get"), "responses", NULL, "401"));
    ck_assert_ptr_null(at(tree, "paths", "/livez", "x-roles"));
    json_decref(tree);

    ck_assert_int_eq(policy_read(&policy, bytes_str("{\"messages:create\":\"!\"}"), &why),
                     ST_OK);
    ck_assert_int_eq(access_replace(f->access, bytes_str(""), &policy, &bad_line, &why),
                     ST_OK);
    tree = fetch(f);
    ck_assert_uint_eq(
        count_roles(tree, "/v2/queues/{queue}/messages", "post", "messages:create"), 0);
    json_decref(tree);
}

/* Unlike most handlers it has no need of memory but its response's. */
API_TEST_WITH(it_needs_neither_a_token_nor_a_client, api_fixture_open_access(f))
{
    f->c.headers[API_HEADER_CLIENT_ID] = f->c.headers[API_HEADER_PROJECT_ID] = NULL;
    ck_api(f, "GET", "/openapi.json", NULL, 200, NULL);
    ck_api(f, "HEAD", "/openapi.json", NULL, 200, NULL);
    ck_api(f, "POST", "/openapi.json", NULL, 405, NULL);
}

/* ------------------------------------------------------------------ the notation */

TEST_CASE("placeholders");

START_TEST(no_placeholder_and_no_condition_is_left)
{
    struct api_limits limits = api_limits_default;
    struct api_fixture f;

    limits.admin_mode = true;
    limits.ui = true;
    for (int strict = 0; strict < 2; strict++) {
        limits.client_id_strict = strict == 1;
        api_fixture_open_with(&f, &limits);
        json_decref(fetch(&f));
        ck_assert_ptr_null(strstr(api_body(&f.c), "${"));
        ck_assert_ptr_null(strstr(api_body(&f.c), "$if"));
        ck_assert_ptr_nonnull(strstr(api_body(&f.c), " seconds, at most 45\""));
        ck_assert_ptr_nonnull(strstr(api_body(&f.c), "^wait=[0-9]+$\""));
        api_fixture_close(&f);
    }
}

/* Follows each reference of a tree, and notes it. */
static void
follow(const json_t *root, const json_t *tree, json_t *named)
{
    const char *key;
    size_t i;
    json_t *item;

    json_array_foreach(tree, i, item) follow(root, item, named);
    json_object_foreach((json_t *)tree, key, item)
    {
        char section[32], name[32];

        if (strcmp(key, "$ref") != 0) {
            follow(root, item, named);
            continue;
        }
        ck_assert_int_eq(
            sscanf(json_string_value(item), "#/components/%31[^/]/%31s", section, name),
            2);
        ck_assert_msg(at(root, "components", section, name) != NULL, "%s",
                      json_string_value(item));
        ck_assert_int_eq(json_object_set_new(named, json_string_value(item), json_true()),
                         0);
    }
}

static void
check_references(struct api_fixture *f)
{
    json_t *tree = fetch(f), *named = json_object(), *items, *item;
    const char *section, *name;

    follow(tree, tree, named);
    json_object_foreach(json_object_get(tree, "components"), section, items)
        json_object_foreach(items, name, item)
    {
        if (strcmp(section, "securitySchemes") == 0)
            continue; /* named without a reference */
        ck_assert_msg(json_object_get(named, api_text(f, "#/components/%s/%s", section,
                                                      name)) != NULL,
                      "nothing names %s/%s", section, name);
    }
    json_decref(named);
    json_decref(tree);
}

START_TEST(components_are_those_that_are_named)
{
    struct api_limits limits = api_limits_default;
    const struct api_project_limits few = {.queues = 1};
    struct api_fixture f;

    api_fixture_open(&f);
    check_references(&f);
    api_limit(f.api, &few);
    check_references(&f);
    api_fixture_close(&f);
    api_fixture_open_identity(&f, NULL);
    check_references(&f);
    api_fixture_close(&f);
    api_fixture_open_access(&f);
    check_references(&f);
    api_fixture_close(&f);
    limits.enable_v1 = limits.enable_v1_1 = false;
    api_fixture_open_with(&f, &limits);
    check_references(&f);
    api_fixture_close(&f);
}
