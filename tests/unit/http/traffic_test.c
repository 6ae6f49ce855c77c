/*
 * Requests are counted by route, method, status and duration. metrics_test.c tests the
 * text of /metrics. Read src/http/metrics.h next.
 */
#include "http/metrics.h"
#include "support/check_main.h"

static const char queues[] = "/v2/queues", claims[] = "/v2/queues/{queue}/claims";

/* How many responses with this code a row has; -1: there is no such row. */
static int64_t
count(const struct traffic *t, const char *route, enum method method, int code)
{
    size_t at = 0;

    while (at < TRAFFIC_CODES && traffic_codes[at] != code)
        at++;
    for (size_t i = 0; i < TRAFFIC_ROWS; i++) {
        const struct traffic_row *row = atomic_load(&t->rows[i]);

        if (row != NULL && row->route == route && row->method == method)
            return (int64_t)counter_read(&row->codes[at]);
    }
    return route == NULL ? (int64_t)counter_read(&t->rest.codes[at]) : -1;
}

#define TRAFFIC_TEST(id) MADE_TEST(id, struct mem, mem, mem_new(0), mem_destroy(mem))

TRAFFIC_TEST(requests_count_by_route_method_and_status)
{
    struct traffic t, sum;

    traffic_init(&t, mem);
    traffic_init(&sum, mem);
    traffic_count(&t, queues, METHOD_GET, 200, 120);
    traffic_count(&t, queues, METHOD_GET, 200, 120);
    traffic_count(&t, queues, METHOD_GET, 404, -5); /* the clock does not go back, but */
    traffic_count(&t, queues, METHOD_HEAD, 200, 0);
    traffic_count(&t, claims, METHOD_POST, 299, 0);
    traffic_count(&t, NULL, METHOD_GET, 400, 0);
    traffic_count(&t, claims, METHOD_POST, 0, 0); /* there was no response */
    traffic_merge(&sum, &t);
    traffic_merge(&sum, &t);
    ck_assert_int_eq(count(&t, queues, METHOD_GET, 200), 2);
    ck_assert_int_eq(count(&sum, queues, METHOD_GET, 200), 4);
    ck_assert_int_eq(count(&sum, queues, METHOD_GET, 404), 2);
    ck_assert_int_eq(count(&sum, queues, METHOD_HEAD, 200), 2);
    ck_assert_int_eq(count(&sum, claims, METHOD_POST, -1), 2); /* with all others */
    ck_assert_int_eq(count(&sum, NULL, METHOD_GET, 400), 2);
    ck_assert_int_eq(count(&sum, claims, METHOD_GET, 200), -1);
    traffic_fini(&t);
    traffic_fini(&sum);
}

TRAFFIC_TEST(durations_fall_into_buckets)
{
    const struct traffic_row *row = NULL;
    struct traffic t;

    traffic_init(&t, mem);
    traffic_count(&t, queues, METHOD_GET, 200, 50);
    traffic_count(&t, queues, METHOD_GET, 500, 51);
    for (size_t i = 0; i < TRAFFIC_ROWS && row == NULL; i++)
        row = atomic_load(&t.rows[i]);
    ck_assert_ptr_nonnull(row);
    ck_assert_uint_eq(counter_read(&row->took_us.counts[0]), 1);
    ck_assert_uint_eq(counter_read(&row->took_us.counts[1]), 1);
    ck_assert_uint_eq(counter_read(&row->took_us.sum), 101);
    traffic_fini(&t);
}

TRAFFIC_TEST(requests_without_a_row_count_as_other)
{
    static const char many[TRAFFIC_ROWS + 1];
    uint64_t rows = 0;
    struct traffic t;

    traffic_init(&t, mem);
    mem_fail_from(mem, 1);
    traffic_count(&t, queues, METHOD_GET, 200, 1);
    mem_fail_from(mem, 0);
    ck_assert_int_eq(count(&t, NULL, METHOD_GET, 200), 1);
    for (size_t i = 0; i < TRAFFIC_ROWS; i++)
        traffic_count(&t, many + i, METHOD_GET, 200, 1);
    for (size_t i = 0; i < TRAFFIC_ROWS; i++)
        rows += atomic_load(&t.rows[i]) != NULL;
    ck_assert_uint_eq(rows + (uint64_t)count(&t, NULL, METHOD_GET, 200),
                      TRAFFIC_ROWS + 1);
    ck_assert_uint_lt(rows, TRAFFIC_ROWS); /* a search always ends */
    traffic_fini(&t);
}
