/* Limits of each project as clients see them (docs/api.md 16). */
#include "claimd/engine/engine.h"
#include "support/pending.h"

#include <string.h>

#define ONE "{\"messages\":[{\"body\":1}]}"

static void
limit(struct api_fixture *f, const struct api_project_limits limits)
{
    api_limit(f->api, &limits);
}

API_TEST(requests_beyond_the_rate_get_a_time_to_come_again)
{
    limit(f, (struct api_project_limits){.requests_per_second = 2});
    ck_api(f, "GET", "/v2/queues", NULL, 200, NULL);
    ck_api(f, "GET", "/v2/queues", NULL, 200, NULL);
    ck_api(f, "GET", "/v2/queues", NULL, 429, "Too many requests");
    ck_api_header(f, "Retry-After", "1");
    f->c.headers[API_HEADER_PROJECT_ID] = "another";
    ck_api(f, "GET", "/v2/queues", NULL, 200, NULL);
    f->c.headers[API_HEADER_PROJECT_ID] = API_CALL_PROJECT;
    ck_api(f, "GET", "/livez", NULL, 200, NULL); /* of no project */
    ck_api(f, "GET", "/metrics", NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(
        api_body(&f->c), "\nclaimd_project_limit{limit=\"requests_per_second\"} 2\n"));
    ck_assert_ptr_nonnull(strstr(
        api_body(&f->c),
        "\nclaimd_project_limit_refusals_total{limit=\"requests_per_second\"} 1\n"));
    f->c.now_ms += 500;
    ck_api(f, "GET", "/v2/queues", NULL, 200, NULL);
    ck_api(f, "GET", "/v2/queues", NULL, 429, "Too many requests");
}

API_TEST_WITH(the_rate_is_that_of_the_wall_clock_though_that_of_tests_stands,
              api_fixture_open_testapi(f, &api_limits_default))
{
    limit(f, (struct api_project_limits){.requests_per_second = 1});
    ck_api(f, "GET", "/v2/queues", NULL, 200, NULL);
    clock_advance(testapi_clock(f->testapi), 60000);
    ck_api(f, "GET", "/v2/queues", NULL, 429, "Too many requests");
    clock_advance(&f->real, 1000);
    ck_api(f, "GET", "/v2/queues", NULL, 200, NULL);
}

API_TEST(each_quota_of_the_store_has_its_own_title)
{
    engine_limit(f->store, &(struct engine_limits){.queues = 1});
    ck_api(f, "POST", "/v2/queues/q/messages", ONE, 201, NULL);
    ck_api(f, "PUT", "/v2/queues/r", NULL, 429, "Too many queues");
    ck_api_header(f, "Retry-After", "5");
    engine_limit(f->store, &(struct engine_limits){.messages = 1});
    ck_api(f, "POST", "/v2/queues/q/messages", ONE, 429, "Too many messages");
    engine_limit(f->store, &(struct engine_limits){.bytes = 1});
    ck_api(f, "POST", "/v2/queues/q/messages", ONE, 429, "Too many bytes of messages");
    ck_api(f, "POST", "/v2/queues/q/claims", "{}", 201, NULL); /* working goes on */
}

/* Sends a request on a connection. */
static int
fetch(struct api_fixture *f, struct api_connection *connection)
{
    f->c.connection = connection;
    (void)api_call(&f->c, "GET", "/v2/queues", NULL);
    f->c.connection = NULL;
    return f->c.res.code;
}

API_TEST(connections_count_for_the_project_of_their_last_request)
{
    struct api_connection connections[2] = {{NULL}};

    limit(f, (struct api_project_limits){.connections = 1});
    ck_assert_int_eq(fetch(f, &connections[0]), 200);
    ck_assert_int_eq(fetch(f, &connections[0]), 200);
    ck_assert_int_eq(fetch(f, &connections[1]), 429);
    ck_assert_int_eq(f->c.res.status, ST_PROJECT_CONNECTIONS);
    f->c.headers[API_HEADER_PROJECT_ID] = "another";
    ck_assert_int_eq(fetch(f, &connections[0]), 200);
    f->c.headers[API_HEADER_PROJECT_ID] = API_CALL_PROJECT;
    ck_assert_int_eq(fetch(f, &connections[1]), 200);
    api_connection_closed(f->api, &connections[0]);
    api_connection_closed(f->api, &connections[1]);
}

/* Requests a stream of events. True: the response is its first event; false: that of one
 * moment. */
static bool
begin_stream(struct pending *a, struct api_fixture *f)
{
    pending_prepare(a, f, "GET", "/claimd/queues/q/claims", NULL);
    a->req.headers[API_HEADER_ACCEPT] = bytes_str("text/event-stream");
    ck_assert_int_eq(pending_fetch(a), API_SEND);
    ck_assert_int_eq(a->res.code, 200);
    return a->res.stream;
}

API_TEST(streams_count_as_long_polling_requests_until_they_end)
{
    struct pending first, second;

    ck_api(f, "POST", "/v2/queues/q/messages", ONE, 201, NULL);
    limit(f, (struct api_project_limits){.waiters = 1});
    ck_assert(begin_stream(&first, f));
    ck_assert(!begin_stream(&second, f));
    pending_end(&second);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(pending_fetch(&first), API_SEND);
        ck_assert(first.res.stream);
    }
    pending_end(&first);
    ck_assert(begin_stream(&second, f));
    pending_end(&second);
}

API_TEST(a_lower_limit_ends_no_stream)
{
    struct pending first, second;

    ck_api(f, "POST", "/v2/queues/q/messages", ONE, 201, NULL);
    ck_assert(begin_stream(&first, f));
    limit(f, (struct api_project_limits){.waiters = 1});
    ck_assert(begin_stream(&second, f));
    ck_assert_int_eq(pending_fetch(&first), API_SEND);
    ck_assert(first.res.stream);
    pending_end(&first);
    pending_end(&second);
}
