#include "http/measure.h"
#include "support/check_main.h"

#include "claimd/http/server.h"

#include <stdlib.h>
#include <string.h>

/* What the workers of a server that never ran have counted. */
struct bench {
    struct mem *mem;
    struct server_config config;
    struct worker_shared shared;
    struct worker *workers;
    struct acceptor acceptor;
    struct buf text;
};

enum { WORKERS = 2 };

static struct bench b;

static void
open_bench(void)
{
    memset(&b, 0, sizeof(b));
    b.mem = mem_new(0);
    b.config.mem = b.mem;
    b.config.max_waiters = 7;
    b.shared.config = &b.config;
    b.workers = calloc(WORKERS, sizeof(*b.workers));
    ck_assert_ptr_nonnull(b.workers);
    b.acceptor.shared = &b.shared;
    b.acceptor.workers = b.workers;
    b.acceptor.worker_count = WORKERS;
    b.acceptor.max_connections = 9;
    for (size_t i = 0; i < WORKERS; i++)
        traffic_init(&b.workers[i].traffic, b.mem);
    buf_init(&b.text, b.mem);
}

static void
close_bench(void)
{
    buf_fini(&b.text);
    for (size_t i = 0; i < WORKERS; i++)
        traffic_fini(&b.workers[i].traffic);
    free(b.workers);
    mem_destroy(b.mem);
}

static void
write_text(void)
{
    struct exposition x;

    b.text.len = 0;
    exposition_begin(&x, &b.text, EXPOSITION_PROMETHEUS);
    measure_write(&b.acceptor, &x);
    buf_byte(&b.text, '\0');
}

static bool
has_line(const char *line)
{
    const char *at = b.text.data;
    const size_t len = strlen(line);

    while ((at = strstr(at, line)) != NULL) {
        if ((at == b.text.data || at[-1] == '\n') && at[len] == '\n')
            return true;
        at += len;
    }
    return false;
}

#define ck_line(line) ck_assert_msg(has_line(line), "no %s in\n%s", line, b.text.data)

TEST_CASE("measure", .setup = open_bench, .teardown = close_bench);

START_TEST(workers_are_summed)
{
    for (size_t i = 0; i < WORKERS; i++) {
        struct worker *w = &b.workers[i];

        counter_add(&w->conns.counts[CONN_RECEIVING], 2);
        counter_add(&w->conns.counts[CONN_PARKED], i);
        counter_add(&w->parked.counts[EXCHANGE_WAITING], 1);
        counter_add(&w->parked.counts[EXCHANGE_COMMIT], i);
    }
    counter_add(&b.acceptor.accepted, 5);
    counter_add(&b.acceptor.refused, 3);
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
    ck_line("claimd_http_requests_parked{reason=\"turn\"} 0");
    ck_line("claimd_http_max_waiters 7");
}
END_TEST

START_TEST(a_code_that_has_no_place_is_other_and_what_has_no_route_is_none)
{
    static const char ping[] = "/v2/ping";

    traffic_count(&b.workers[0].traffic, ping, METHOD_GET, 204, 60);
    traffic_count(&b.workers[1].traffic, ping, METHOD_GET, 204, 70000000);
    traffic_count(&b.workers[1].traffic, ping, METHOD_GET, 299, 60);
    traffic_count(&b.workers[1].traffic, NULL, METHOD_POST, 404, 60);
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
END_TEST

START_TEST(without_memory_for_rows_they_count_among_the_rest)
{
    static const char ping[] = "/v2/ping";

    traffic_count(&b.workers[0].traffic, ping, METHOD_GET, 204, 60);
    traffic_count(&b.workers[1].traffic, ping, METHOD_GET, 204, 60);
    ck_assert(buf_reserve(&b.text, 65536));
    mem_fail_from(b.mem, 1);
    write_text();
    mem_fail_from(b.mem, 0);
    ck_line("claimd_http_requests_total{route=\"none\",method=\"other\",code=\"204\"} 2");
}
END_TEST
