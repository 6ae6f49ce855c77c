/*
 * The limits of a project (docs/api.md 16): requests per second, connections and
 * long-polling requests. The tests call src/api/quota.h with times of their own.
 * tests/api/quota_test.c tests the responses.
 */
#include "api/quota.h"

#include "claimd/base/mem.h"
#include "support/check_main.h"

#include <stdio.h>

enum { NOW_MS = 5000000 };

static struct mem *mem;
static struct quotas *quotas;

static void
open_quotas(void)
{
    mem = mem_new(0);
    ck_assert_int_eq(quotas_new(mem, &quotas), ST_OK);
}

static void
close_quotas(void)
{
    quotas_free(quotas);
    mem_destroy(mem);
}

static void
set(const struct api_project_limits limits)
{
    quotas_set(quotas, &limits);
}

static enum status
admit(const char *project, int64_t now_ms, struct api_connection *connection)
{
    return quotas_admit(quotas, bytes_str(project), now_ms, connection);
}

/* How many requests in a row are allowed. */
static int
burst(const char *project, int64_t now_ms)
{
    int count = 0;

    while (count < 1000 && admit(project, now_ms, NULL) == ST_OK)
        count++;
    return count;
}

TEST_CASE("quota", .setup = open_quotas, .teardown = close_quotas);

START_TEST(without_limits_nothing_is_remembered)
{
    struct api_connection connection = {NULL};
    struct api_tenant *tenant;

    ck_assert_int_eq(admit("p", NOW_MS, &connection), ST_OK);
    ck_assert_ptr_null(connection.tenant);
    ck_assert_int_eq(quotas_wait_begin(quotas, bytes_str("p"), NOW_MS, &tenant), ST_OK);
    ck_assert_ptr_null(tenant);
    quotas_wait_end(tenant);
    quotas_disconnect(&connection);
    ck_assert_uint_eq(quotas_tenants(quotas), 0);
}

START_TEST(a_bucket_has_a_second_s_worth_and_fills_with_time)
{
    set((struct api_project_limits){.requests_per_second = 10});
    ck_assert_int_eq(burst("p", NOW_MS), 10);
    ck_assert_int_eq(admit("p", NOW_MS + 99, NULL), ST_PROJECT_REQUESTS);
    ck_assert_int_eq(burst("p", NOW_MS + 100), 1);
    ck_assert_int_eq(burst("p", NOW_MS + 350), 2); /* and a half, which is kept */
    ck_assert_int_eq(burst("p", NOW_MS + 400), 1);
    ck_assert_int_eq(burst("p", NOW_MS + 100000), 10);
    ck_assert_int_eq(burst("p", NOW_MS), 0); /* time does not go back */
}

START_TEST(each_project_has_a_bucket_of_its_own)
{
    set((struct api_project_limits){.requests_per_second = 3});
    ck_assert_int_eq(burst("a", NOW_MS), 3);
    ck_assert_int_eq(burst("b", NOW_MS), 3);
    ck_assert_int_eq(burst("", NOW_MS), 3); /* the nameless one */
    ck_assert_int_eq(burst("a", NOW_MS), 0);
}

START_TEST(another_rate_counts_at_once)
{
    set((struct api_project_limits){.requests_per_second = 100});
    ck_assert_int_eq(burst("p", NOW_MS), 100);
    ck_assert_int_eq(admit("p", NOW_MS + 500, NULL), ST_OK); /* 49 are left */
    set((struct api_project_limits){.requests_per_second = 5});
    ck_assert_int_eq(burst("p", NOW_MS + 500), 5);
    set((struct api_project_limits){.requests_per_second = 0});
    ck_assert_int_eq(burst("p", NOW_MS + 500), 1000);
}

START_TEST(a_connection_counts_once_until_it_ends)
{
    struct api_connection connections[3] = {{NULL}};

    set((struct api_project_limits){.connections = 2});
    for (int i = 0; i < 10; i++) {
        ck_assert_int_eq(admit("p", NOW_MS, &connections[0]), ST_OK);
        ck_assert_int_eq(admit("p", NOW_MS, &connections[1]), ST_OK);
    }
    ck_assert_int_eq(admit("p", NOW_MS, &connections[2]), ST_PROJECT_CONNECTIONS);
    ck_assert_ptr_null(connections[2].tenant);
    ck_assert_int_eq(admit("other", NOW_MS, &connections[2]), ST_OK);
    quotas_disconnect(&connections[0]);
    quotas_disconnect(&connections[0]);
    ck_assert_int_eq(admit("p", NOW_MS, &connections[2]),
                     ST_OK); /* and leaves the other one */
    ck_assert_int_eq(admit("other", NOW_MS, &connections[0]), ST_OK);
    for (int i = 0; i < 3; i++)
        quotas_disconnect(&connections[i]);
}

START_TEST(so_many_may_wait)
{
    struct api_tenant *waits[3];

    set((struct api_project_limits){.waiters = 2});
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(quotas_wait_begin(quotas, bytes_str("p"), NOW_MS, &waits[i]),
                         ST_OK);
    ck_assert_int_eq(quotas_wait_begin(quotas, bytes_str("p"), NOW_MS, &waits[2]),
                     ST_PROJECT_WAITERS);
    ck_assert_int_eq(quotas_wait_begin(quotas, bytes_str("q"), NOW_MS, &waits[2]), ST_OK);
    quotas_wait_end(waits[0]);
    ck_assert_int_eq(quotas_wait_begin(quotas, bytes_str("p"), NOW_MS, &waits[0]), ST_OK);
    for (int i = 0; i < 3; i++)
        quotas_wait_end(waits[i]);
}

START_TEST(idle_tenants_are_freed)
{
    enum { CROWD = 5000 };
    struct api_connection connection = {NULL};
    char name[16];

    set((struct api_project_limits){.requests_per_second = 10, .connections = 1});
    ck_assert_int_eq(admit("stays", NOW_MS, &connection), ST_OK);
    for (int i = 0; i < CROWD; i++) {
        (void)snprintf(name, sizeof(name), "p%d", i);
        ck_assert_int_eq(admit(name, NOW_MS + 10 * i, NULL), ST_OK);
    }
    ck_assert_uint_lt(quotas_tenants(quotas), 300); /* of the last second, and some */
    ck_assert_int_eq(admit("stays", NOW_MS + 10 * CROWD, NULL), ST_OK);
    {
        struct api_connection other = {NULL};

        ck_assert_int_eq(admit("stays", NOW_MS + 10 * CROWD, &other),
                         ST_PROJECT_CONNECTIONS);
    }
    quotas_disconnect(&connection);
}

START_TEST(without_memory_requests_are_refused)
{
    struct api_tenant *tenant;

    set((struct api_project_limits){.requests_per_second = 10, .waiters = 10});
    mem_fail_from(mem, 1);
    ck_assert_int_eq(admit("p", NOW_MS, NULL), ST_NO_MEMORY);
    ck_assert_int_eq(quotas_wait_begin(quotas, bytes_str("p"), NOW_MS, &tenant),
                     ST_NO_MEMORY);
    mem_fail_from(mem, 0);
    ck_assert_int_eq(admit("p", NOW_MS, NULL), ST_OK);
}

START_TEST(refusals_are_counted_by_their_limit)
{
    quotas_count(quotas, ST_PROJECT_BYTES);
    quotas_count(quotas, ST_PROJECT_BYTES);
    quotas_count(quotas, ST_OK);
    quotas_count(quotas, ST_NOT_FOUND);
    for (size_t i = 0; i < QUOTA_KINDS; i++)
        ck_assert_uint_eq(quotas_refused(quotas, i),
                          i == ST_PROJECT_BYTES - ST_PROJECT_QUEUES ? 2 : 0);
}
