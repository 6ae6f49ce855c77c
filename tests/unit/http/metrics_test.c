/*
 * The lines of /metrics for connections and responses (docs/metrics.md). traffic_test.c
 * tests the counting. Read src/http/metrics.h next.
 */
#include "http/metrics.h"
#include "support/check_main.h"

#include <string.h>

enum { WORKERS = 2 };

/* The counters of the workers of a server. */
static struct {
    struct mem *mem;
    struct http_counts counts;
    struct traffic traffic[WORKERS];
    struct buf text;
} m;

static void
open_counters(void)
{
    memset(&m, 0, sizeof(m));
    m.mem = mem_new(0);
    m.counts.workers = WORKERS;
    m.counts.max_waiters = 7;
    m.counts.max_connections = 9;
    for (size_t i = 0; i < WORKERS; i++)
        traffic_init(&m.traffic[i], m.mem);
    buf_init(&m.text, m.mem);
}

static void
close_counters(void)
{
    buf_fini(&m.text);
    for (size_t i = 0; i < WORKERS; i++)
        traffic_fini(&m.traffic[i]);
    mem_destroy(m.mem);
}

static void
write_text(void)
{
    struct exposition x;
    struct traffic sum;

    m.text.len = 0;
    traffic_init(&sum, m.mem);
    for (size_t i = 0; i < WORKERS; i++)
        traffic_merge(&sum, &m.traffic[i]);
    exposition_begin(&x, &m.text, EXPOSITION_PROMETHEUS);
    http_metrics_write(&m.counts, &sum, &x);
    buf_byte(&m.text, '\0');
    traffic_fini(&sum);
}

static bool
has_line(const char *line)
{
    const char *at = m.text.data;
    const size_t len = strlen(line);

    while ((at = strstr(at, line)) != NULL) {
        if ((at == m.text.data || at[-1] == '\n') && at[len] == '\n')
            return true;
        at += len;
    }
    return false;
}

#define ck_line(line) ck_assert_msg(has_line(line), "no %s in\n%s", line, m.text.data)

TEST_CASE("metrics", .setup = open_counters, .teardown = close_counters);

START_TEST(each_phase_and_each_reason_has_its_line)
{
    m.counts.connections[CONN_RECEIVING] = 4;
    m.counts.connections[CONN_SUSPENDED] = 1;
    m.counts.suspended[EXCHANGE_WAITING] = 2;
    m.counts.suspended[EXCHANGE_COMMIT] = 1;
    m.counts.suspended[EXCHANGE_IDENTITY] = 6;
    m.counts.accepted = 5;
    m.counts.refused = 3;
    write_text();
    ck_line("claimd_workers 2");
    ck_line("claimd_http_connections{phase=\"waiting\"} 0");
    ck_line("claimd_http_connections{phase=\"receiving\"} 4");
    ck_line("claimd_http_connections{phase=\"answering\"} 0");
    ck_line("claimd_http_connections{phase=\"parked\"} 1");
    ck_line("claimd_http_max_connections 9");
    ck_line("claimd_http_connections_accepted_total 5");
    ck_line("claimd_http_connections_refused_total 3");
    ck_line("claimd_http_requests_parked{reason=\"message\"} 2");
    ck_line("claimd_http_requests_parked{reason=\"journal\"} 1");
    ck_line("claimd_http_requests_parked{reason=\"remote\"} 0");
    ck_line("claimd_http_requests_parked{reason=\"identity\"} 6");
    ck_line("claimd_http_requests_parked{reason=\"turn\"} 0");
    ck_line("claimd_http_max_waiters 7");
}

START_TEST(a_code_without_a_slot_is_other_and_an_unknown_path_has_the_route_none)
{
    static const char ping[] = "/v2/ping";

    traffic_count(&m.traffic[0], ping, METHOD_GET, 204, 60);
    traffic_count(&m.traffic[1], ping, METHOD_GET, 204, 70000000);
    traffic_count(&m.traffic[1], ping, METHOD_GET, 299, 60);
    traffic_count(&m.traffic[1], NULL, METHOD_POST, 404, 60);
    write_text();
    ck_line(
        "claimd_http_requests_total{route=\"/v2/ping\",method=\"GET\",code=\"204\"} 2");
    ck_line(
        "claimd_http_requests_total{route=\"/v2/ping\",method=\"GET\",code=\"other\"} "
        "1");
    ck_line("claimd_http_requests_total{route=\"none\",method=\"other\",code=\"404\"} 1");
    ck_line(
        "claimd_http_request_duration_seconds_bucket{route=\"/v2/ping\",method=\"GET\","
        "le=\"0.0001\"} 2");
    ck_line(
        "claimd_http_request_duration_seconds_bucket{route=\"/v2/ping\",method=\"GET\","
        "le=\"60.0\"} 2");
    ck_line(
        "claimd_http_request_duration_seconds_count{route=\"/v2/ping\",method=\"GET\"} "
        "3");
    ck_line("claimd_http_request_duration_seconds_sum{route=\"/v2/ping\",method=\"GET\"} "
            "70.00012");
}

START_TEST(waits_for_the_disk_are_there_if_messages_may_be_on_it_only)
{
    traffic_count_load_wait(&m.traffic[0], 60);
    traffic_count_load_wait(&m.traffic[1], 70000000);
    write_text();
    ck_assert_ptr_null(strstr(m.text.data, "load_wait"));
    m.counts.unloads = true;
    write_text();
    ck_line("claimd_http_load_wait_seconds_bucket{le=\"0.00005\"} 0");
    ck_line("claimd_http_load_wait_seconds_bucket{le=\"0.0001\"} 1");
    ck_line("claimd_http_load_wait_seconds_bucket{le=\"60.0\"} 1");
    ck_line("claimd_http_load_wait_seconds_count 2");
    ck_line("claimd_http_load_wait_seconds_sum 70.00006");
}

START_TEST(without_memory_for_rows_they_count_among_the_rest)
{
    static const char ping[] = "/v2/ping";

    traffic_count(&m.traffic[0], ping, METHOD_GET, 204, 60);
    traffic_count(&m.traffic[1], ping, METHOD_GET, 204, 60);
    ck_assert(buf_reserve(&m.text, 65536));
    mem_fail_from(m.mem, 1);
    write_text();
    mem_fail_from(m.mem, 0);
    ck_line("claimd_http_requests_total{route=\"none\",method=\"other\",code=\"204\"} 2");
}
