/* The action of each request, by which a policy allows or denies it (docs/api.md 15.4).
 * Declared in src/api/route.h. */
#include "api/route.h"
#include "api/version.h"
#include "api/wire/query.h"
#include "support/arena_fixture.h"

/* The action of a request; NULL if the resource lacks the method. */
static const char *
action_of(const struct version *v, enum method method, const char *path,
          const char *query)
{
    const struct resource *resource;
    const struct route *route;
    struct route_resources resources;
    struct path split;
    struct query parsed;

    ck_assert_int_eq(resources_build(f.mem, v->routes, &resources), ST_OK);
    ck_assert_int_eq(path_split(&f.arena, bytes_str(path), &split), ST_OK);
    ck_assert_int_eq(query_parse(bytes_str(query), &f.arena, &parsed), ST_OK);
    resource = resource_find(&resources, &split);
    ck_assert_ptr_nonnull(resource);
    ck_assert_ptr_null(strchr(resource->pattern, '?'));
    route = resource_route(resource, method, &parsed);
    resources_free(f.mem, &resources);
    return route != NULL ? action_name(route->action) : NULL;
}

ARENA_CASE("route");

START_TEST(a_request_has_the_action_of_its_path_and_method)
{
    ck_assert_str_eq(action_of(&version_v2, METHOD_GET, "/v2/queues/q/messages", ""),
                     "messages:get_all");
    ck_assert_str_eq(action_of(&version_v2, METHOD_POST, "/v2/queues/q/messages", ""),
                     "messages:create");
    ck_assert_str_eq(action_of(&version_v2, METHOD_PATCH, "/v2/queues/q", "pop=1"),
                     "queues:update");
    ck_assert_str_eq(action_of(&version_v1, METHOD_PUT, "/v1/queues/q/metadata", ""),
                     "queues:update");
    ck_assert_ptr_null(action_of(&version_v2, METHOD_PUT, "/v2/queues/q/messages", ""));
    ck_assert_ptr_null(action_of(&version_v2, METHOD_OPTIONS, "/v2/queues/q", ""));
    ck_assert_ptr_null(action_of(&version_v2, METHOD_OTHER, "/v2/queues/q", ""));
}

START_TEST(a_pop_is_another_action_than_deleting_by_ids)
{
    static const struct version *const pops[] = {&version_v2, &version_v1_1};
    static const char *const paths[] = {"/v2/queues/q/messages",
                                        "/v1.1/queues/q/messages"};

    for (size_t i = 0; i < 2; i++) {
        const struct version *v = pops[i];
        const char *path = paths[i];

        ck_assert_str_eq(action_of(v, METHOD_DELETE, path, "pop=1"), "messages:pop");
        ck_assert_str_eq(action_of(v, METHOD_DELETE, path, "x=1&p%6Fp=x"),
                         "messages:pop");
        ck_assert_str_eq(action_of(v, METHOD_DELETE, path, "ids=a&pop=1"),
                         "messages:pop");
        ck_assert_str_eq(action_of(v, METHOD_DELETE, path, "ids=a"),
                         "messages:delete_all");
        ck_assert_str_eq(action_of(v, METHOD_DELETE, path, "Pop=1&popp=1"),
                         "messages:delete_all");
        ck_assert_str_eq(action_of(v, METHOD_DELETE, path, "pop="),
                         "messages:delete_all");
        ck_assert_str_eq(action_of(v, METHOD_DELETE, path, ""), "messages:delete_all");
        ck_assert_str_eq(action_of(v, METHOD_GET, path, "pop=1"), "messages:get_all");
    }
}

START_TEST(v1_does_not_pop)
{
    ck_assert_str_eq(
        action_of(&version_v1, METHOD_DELETE, "/v1/queues/q/messages", "pop=1"),
        "messages:delete_all");
}
