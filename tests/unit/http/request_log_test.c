/*
 * The access log: which requests have a line, its fields, and that a flood of refused
 * requests makes one line a second. Read src/http/request_log.h next.
 */
#include "http/request_log.h"

#include "claimd/http/proxies.h"
#include "support/check_main.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* An exchange that is over, and a log into a pipe. */
struct fixture {
    struct clock clock;
    struct log log;
    struct request_log requests;
    uint64_t logged;
    int64_t now_ms;
    struct conn conn;
    struct exchange ex;
    int reader;
    char text[65536];
};

static struct fixture f;

static void
fixture_open(bool access_log)
{
    int ends[2];

    ck_assert_int_eq(pipe2(ends, O_NONBLOCK), 0);
    memset(&f, 0, sizeof(f));
    f.reader = ends[0];
    clock_init_manual(&f.clock, 1700000000000);
    f.log = (struct log){.fd = ends[1], .level = LOG_INFO, .clock = &f.clock};
    request_log_init(&f.requests, &f.log, access_log ? 1 : 0);
    f.now_ms = 1000000;
    f.conn.peer.any.sa_family = AF_UNIX;
    f.conn.peer_len = sizeof(sa_family_t);
    f.ex.conn = &f.conn;
    f.ex.request.path = bytes_str("/v2/queues/q/messages");
    exchange_set_method(&f.ex, bytes_str("POST"));
    (void)snprintf(f.ex.id, sizeof(f.ex.id), "req-1");
}

static void
fixture_close(void)
{
    request_log_fini(&f.requests);
    (void)close(f.log.fd); /* a pipe of our own */
    (void)close(f.reader);
}

/* The text written since the last call. */
static const char *
written(void)
{
    ssize_t n = read(f.reader, f.text, sizeof(f.text) - 1);

    f.text[n > 0 ? n : 0] = '\0';
    return f.text;
}

static int
count_lines(const char *text)
{
    int lines = 0;

    for (; *text != '\0'; text++)
        lines += *text == '\n';
    return lines;
}

/* Ends a request with this response. */
static void
end_request(int code, enum status why)
{
    f.ex.code = code;
    f.ex.response.status = why;
    request_log_write(&f.requests, &f.logged, f.now_ms, &f.ex);
}

/* Expires entries at the worker's time. Returns when to do it again. */
static int64_t
settle(void)
{
    return request_log_expire(&f.requests, f.now_ms);
}

START_TEST(with_the_access_log_every_request_has_its_line)
{
    fixture_open(true);
    for (int i = 0; i < 10; i++)
        end_request(201, ST_OK);
    ck_assert_int_eq(count_lines(written()), 10);
    ck_assert_ptr_nonnull(strstr(f.text, " info request method=POST "
                                         "path=/v2/queues/q/messages status=201 "));
    ck_assert_ptr_nonnull(strstr(f.text, " request_id=req-1 client=unix\n"));
    for (int i = 0; i < 10; i++)
        end_request(503, ST_OVER_BUDGET);
    ck_assert_int_eq(count_lines(written()), 10);
    ck_assert_ptr_nonnull(strstr(f.text, " warn request method=POST "));
    ck_assert_ptr_nonnull(strstr(f.text, " client=unix reason=OVER_BUDGET\n"));
    end_request(404, ST_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(written(), " info request "));
    ck_assert_ptr_nonnull(strstr(f.text, " reason=NOT_FOUND\n"));
    ck_assert_int_eq(settle(), INT64_MAX);
    fixture_close();
}

START_TEST(a_line_names_the_queue_and_the_claim_of_the_request)
{
    fixture_open(true);
    f.ex.request.query = bytes_str("limit=5&marker=a b");
    f.ex.response.about = (struct response_subject){
        .project = bytes_str("p"), .queue = bytes_str("q"), .claim = bytes_str("c1")};
    f.ex.client_id = bytes_str("req-of-theirs");
    f.ex.traceparent =
        bytes_str("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    end_request(201, ST_OK);
    ck_assert_ptr_nonnull(
        strstr(written(), " path=/v2/queues/q/messages query=\"limit=5&marker=a b\" "
                          "status=201 "));
    ck_assert_ptr_nonnull(
        strstr(f.text, " client=unix project=p queue=q claim=c1 "
                       "client_request_id=req-of-theirs traceparent=00-4bf92f3577b34da6a"
                       "3ce929d0e0e4736-00f067aa0ba902b7-01\n"));
    f.ex.response.about = (struct response_subject){.project = bytes_str("")};
    f.ex.request.query = f.ex.client_id = f.ex.traceparent = BYTES_NONE;
    end_request(201, ST_OK);
    ck_assert_ptr_nonnull(strstr(written(), " client=unix\n"));
    ck_assert_ptr_null(strstr(f.text, "query="));
    fixture_close();
}

static void
from_proxy(const char *forwarded)
{
    f.ex.forwarded = bytes_str(forwarded);
    end_request(201, ST_OK);
    (void)written();
}

START_TEST(a_line_has_the_client_that_a_proxy_names)
{
    static const struct proxies proxies = {.unix_sockets = true};

    fixture_open(true);
    f.requests.proxies = &proxies;
    from_proxy("203.0.113.9");
    ck_assert_ptr_nonnull(strstr(f.text, " client=203.0.113.9 proxy=unix\n"));
    from_proxy("nonsense");
    ck_assert_ptr_nonnull(strstr(f.text, " client=unix\n"));
    from_proxy("");
    ck_assert_ptr_nonnull(strstr(f.text, " client=unix\n"));
    f.ex.forwarded = bytes_str("203.0.113.9");
    f.ex.response.audited = true;
    end_request(201, ST_OK);
    ck_assert_ptr_nonnull(strstr(written(), " audit "));
    ck_assert_ptr_nonnull(strstr(f.text, " client=203.0.113.9 proxy=unix\n"));
    fixture_close();
    fixture_open(false);
    f.requests.proxies = &proxies;
    f.ex.forwarded = bytes_str("203.0.113.9");
    end_request(503, ST_OVER_BUDGET);
    ck_assert_ptr_nonnull(strstr(written(), " refusing_requests reason=OVER_BUDGET "));
    ck_assert_ptr_nonnull(
        strstr(f.text, " client=203.0.113.9 proxy=unix suppressed=0\n"));
    fixture_close();
}

START_TEST(of_many_requests_one_in_so_many_has_a_line_but_all_that_failed)
{
    fixture_open(true);
    f.requests.one_in = 10;
    for (int i = 0; i < 100; i++) {
        end_request(201, ST_OK);
        end_request(404, ST_NOT_FOUND);
    }
    ck_assert_int_eq(count_lines(written()), 20);
    for (int i = 0; i < 10; i++)
        end_request(503, ST_OVER_BUDGET);
    ck_assert_int_eq(count_lines(written()), 10);
    fixture_close();
}

START_TEST(without_it_good_requests_and_clients_mistakes_have_none)
{
    fixture_open(false);
    end_request(201, ST_OK);
    end_request(404, ST_NOT_FOUND);
    end_request(0, ST_OK);
    ck_assert_str_eq(written(), "");
    ck_assert_int_eq(settle(), INT64_MAX); /* it causes no wake-up */
    fixture_close();
}

START_TEST(the_first_refused_request_is_logged_with_its_reason)
{
    fixture_open(false);
    end_request(503, ST_OVER_BUDGET);
    ck_assert_str_eq(written(),
                     "2023-11-14T22:13:20Z warn refusing_requests reason=OVER_BUDGET "
                     "status=503 method=POST path=/v2/queues/q/messages request_id=req-1 "
                     "client=unix suppressed=0\n");
    fixture_close();
}

START_TEST(a_flood_of_them_is_a_line_a_second_with_the_number_between)
{
    fixture_open(false);
    for (int second = 0; second < 5; second++) {
        for (int i = 0; i < 10000; i++) {
            f.now_ms = 1000000 + second * 1000 + i / 10;
            end_request(503, ST_OVER_BUDGET);
        }
        ck_assert_int_eq(count_lines(written()), 1);
        ck_assert_ptr_nonnull(strstr(f.text, " refusing_requests "));
        ck_assert_ptr_nonnull(
            strstr(f.text, second == 0 ? " suppressed=0\n" : " suppressed=9999\n"));
    }
    fixture_close();
}

START_TEST(each_reason_has_lines_of_its_own)
{
    fixture_open(false);
    for (int i = 0; i < 100; i++) {
        end_request(503, ST_OVER_BUDGET);
        end_request(503, ST_NO_MEMORY);
        end_request(500, ST_INTERNAL);
    }
    ck_assert_int_eq(count_lines(written()), 3);
    ck_assert_ptr_nonnull(strstr(f.text, "reason=OVER_BUDGET status=503"));
    ck_assert_ptr_nonnull(strstr(f.text, "reason=NO_MEMORY status=503"));
    ck_assert_ptr_nonnull(strstr(f.text, "reason=INTERNAL status=500"));
    fixture_close();
}

START_TEST(the_front_end_itself_refuses_only_for_lack_of_memory)
{
    fixture_open(false);
    end_request(503, ST_OK);
    ck_assert_ptr_nonnull(strstr(written(), "reason=NO_MEMORY status=503"));
    fixture_close();
}

START_TEST(the_end_is_logged_once_and_causes_no_further_wake_up)
{
    fixture_open(false);
    end_request(503, ST_OVER_BUDGET);
    f.now_ms += 500;
    end_request(503, ST_OVER_BUDGET);
    end_request(503, ST_OVER_BUDGET);
    f.now_ms += 400;
    end_request(503, ST_UNAVAILABLE);
    (void)written();
    ck_assert_int_eq(settle(), 1005000); /* it may be over then, had no more come */
    f.now_ms = 1005000;
    ck_assert_int_eq(settle(), 1005500);
    ck_assert_str_eq(written(), "");
    f.now_ms = 1005500;
    ck_assert_int_eq(settle(), 1005900);
    ck_assert_str_eq(written(), "2023-11-14T22:13:20Z warn refused_requests "
                                "reason=OVER_BUDGET requests=3 suppressed=2\n");
    f.now_ms = 1005900;
    ck_assert_int_eq(settle(), INT64_MAX);
    ck_assert_str_eq(written(), "2023-11-14T22:13:20Z warn refused_requests "
                                "reason=UNAVAILABLE requests=1 suppressed=0\n");
    end_request(503, ST_OVER_BUDGET); /* the first again */
    ck_assert_ptr_nonnull(strstr(written(), " suppressed=0\n"));
    fixture_close();
}

START_TEST(a_clock_read_earlier_by_another_worker_does_no_harm)
{
    fixture_open(false);
    end_request(503, ST_OVER_BUDGET);
    f.now_ms -= 10;
    end_request(503, ST_OVER_BUDGET);
    ck_assert_int_eq(count_lines(written()), 1);
    ck_assert_int_le(settle(), 1005000);
    f.now_ms = 1004999;
    ck_assert_int_eq(settle(), 1005000);
    ck_assert_str_eq(written(), "");
    fixture_close();
}

START_TEST(at_the_end_the_rest_is_logged)
{
    fixture_open(false);
    end_request(503, ST_OVER_BUDGET);
    end_request(503, ST_OVER_BUDGET);
    (void)written();
    (void)request_log_expire(&f.requests, INT64_MAX);
    ck_assert_ptr_nonnull(strstr(written(), " requests=2 suppressed=1\n"));
    (void)request_log_expire(&f.requests, INT64_MAX);
    ck_assert_str_eq(written(), "");
    fixture_close();
}
