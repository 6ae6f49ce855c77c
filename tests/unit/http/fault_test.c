/* Responses that go wrong because a test wants them to: what a client sees on the
 * wire. */
#include "support/client_fixture.h"
#include "support/slow_store.h"

#define WITH(fault)       HEAD "Claimd-Fault: " fault "\r\n"
#define STATS_WITH(fault) "GET /v2/queues/q/stats HTTP/1.1\r\n" WITH(fault) "\r\n"
#define POST_WITH(fault)                                                                 \
    "POST /v2/queues/q/messages HTTP/1.1\r\n" WITH(                                      \
        fault) "Content-Length: 25\r\n\r\n{\"messages\":[{\"body\":1}]}"
#define CLAIM_WITH(fault)                                                                \
    "POST /v2/queues/q/claims?limit=1 HTTP/1.1\r\n" WITH(                                \
        fault) "Content-Length: 0\r\n\r\n"
#define STREAM_WITH(head)                                                                \
    "GET /claimd/queues/q/claims HTTP/1.1\r\n" head "Accept: text/event-stream\r\n\r\n"

static void
open_with(struct server_fixture *f, unsigned slow_kinds, size_t threads)
{
    const struct server_fixture_options options = {.workers = 1,
                                                   .max_waiters = 10,
                                                   .testapi = true,
                                                   .slow = slow_kinds != 0,
                                                   .slow_kinds = slow_kinds,
                                                   .threads = threads,
                                                   .line = 10};

    server_fixture_open_with(f, &options);
}

static void
open_server(struct server_fixture *f)
{
    open_with(f, 0, 0);
}

static void
expect_stats(const struct server_fixture *f, uint64_t total, uint64_t claimed)
{
    struct store_stats now = stats_of(f);

    ck_assert_uint_eq(now.total, total);
    ck_assert_uint_eq(now.claimed, claimed);
}

/* All that comes until the connection is closed. */
static size_t
read_all(int fd, char *out, size_t capacity)
{
    size_t len = 0;
    ssize_t n;

    while ((n = recv(fd, out + len, capacity - 1 - len, 0)) > 0)
        len += (size_t)n;
    ck_assert_int_eq(n, 0); /* its end, and no reset */
    out[len] = '\0';
    (void)close(fd);
    return len;
}

/* The bytes that have come by now. */
static size_t
read_now(const struct server_fixture *f, int fd, char *out, size_t capacity)
{
    ssize_t n;

    server_fixture_settle(f);
    n = recv(fd, out, capacity - 1, MSG_DONTWAIT);
    ck_assert(n > 0 || (n < 0 && errno == EAGAIN));
    out[n < 0 ? 0 : n] = '\0';
    return n < 0 ? 0 : (size_t)n;
}

TEST_CASE("faults");

SERVER_TEST(a_cut_before_the_handler_prevents_and_after_it_hides, open_server(f))
{
    expect_closed(begin(f, POST_WITH("cut=before")));
    expect_stats(f, 0, 0);
    expect_closed(begin(f, POST_WITH("cut=after")));
    expect_stats(f, 1, 0);
    expect_closed(begin(f, STATS_WITH("cut=after") HOME)); /* nor is what stands behind */
}

SERVER_TEST(a_claim_whose_response_is_lost_stays, open_server(f))
{
    char text[4096];

    fetch_once(f, POST("q"), 201);
    fetch_once(f, POST("q"), 201);
    expect_closed(begin(f, CLAIM_WITH("cut=after")));
    server_fixture_settle(f);
    expect_stats(f, 2, 1);
    (void)read_all(begin(f, CLAIM_WITH("half")), text, sizeof(text));
    server_fixture_settle(f);
    expect_stats(f, 2, 2);
    pass_s(f, 400); /* and is over when its time is */
    expect_stats(f, 2, 0);
}

SERVER_TEST(half_of_a_response_is_its_head_and_half_of_its_body, open_server(f))
{
    char text[4096];
    const char *body;
    size_t wanted;

    fetch_once(f, POST("q"), 201);
    (void)read_all(begin(f, STATS_WITH("half") HOME), text, sizeof(text));
    ck_assert_int_eq(strncmp(text, "HTTP/1.1 200 OK\r\n", 17), 0);
    wanted = (size_t)atoi(strstr(text, "Content-Length: ") + 16);
    body = strstr(text, "\r\n\r\n") + 4;
    ck_assert_uint_gt(wanted, 100);
    ck_assert_uint_eq(strlen(body), wanted / 2);
}

SERVER_TEST(a_response_without_a_body_has_no_half, open_server(f))
{
    expect_closed(begin(f, CLAIM_WITH("half"))); /* 204 */
}

SERVER_TEST(a_stream_that_is_cut_has_no_response, open_server(f))
{
    fetch_once(f, POST("q"), 201);
    expect_closed(begin(f, STREAM_WITH(WITH("cut=before"))));
    expect_closed(begin(f, STREAM_WITH(WITH("cut=after"))));
    expect_closed(begin(f, STREAM_WITH(WITH("half"))));
}

SERVER_TEST(a_rule_cuts_a_stream_before_its_second_event, open_server(f))
{
    static const char rule[] =
        "PUT /claimd/faults HTTP/1.1\r\n" HEAD "Content-Length: 66\r\n\r\n"
        "{\"faults\":[{\"match\":{\"queue\":\"q\"},\"skip\":1,\"fault\":\"cut=before\"}]"
        "}";
    char text[4096];
    int fd;

    fetch_once(f, POST("q"), 201);
    fetch_once(f, rule, 204);
    fd = begin(f, STREAM_WITH(HEAD));
    ck_assert_uint_gt(read_now(f, fd, text, sizeof(text)), 0);
    ck_assert_ptr_nonnull(strstr(text, "data: {\"claims\":[]"));
    pass_s(f, 1);
    ck_assert_uint_eq(read_all(fd, text, sizeof(text)), 0);
}

SERVER_TEST(a_late_response_comes_when_its_time_is_there, open_server(f))
{
    int fd = begin_suspended(f, POST_WITH("latency; ms=5000") HOME);

    expect_stats(f, 1, 0);
    pass_s(f, 5);
    expect_silence(f, fd);
    pass_s(f, 1);
    expect_code(fd, 201);
    expect_code(fd, 200); /* the next response comes behind it */
    say(fd, HOME);
    end(fd, 200);
}

SERVER_TEST(the_time_limits_do_not_count_while_a_response_is_late_or_slow, open_server(f))
{
    char text[4096];
    int late, slow;

    late = begin(f, STATS_WITH("latency; ms=600000"));
    slow = begin(f, STATS_WITH("slow; bytes=65536; every_ms=600000"));
    server_fixture_settle(f);
    pass_s(f, 599);
    expect_silence(f, late);
    pass_s(f, 2);
    end(late, 200);
    end(slow, 200); /* it was one piece */
    slow = begin(f, STATS_WITH("slow; bytes=1; every_ms=600000"));
    ck_assert_uint_gt(read_now(f, slow, text, sizeof(text)), 0);
    pass_s(f, 601);
    ck_assert_uint_eq(read_now(f, slow, text, sizeof(text)), 1);
    (void)close(slow);
}

SERVER_TEST(a_slow_response_comes_in_pieces, open_server(f))
{
    char text[4096], whole[4096] = "";
    int fd = begin(f, HOME);

    strcpy(whole, receive(fd).body);
    (void)close(fd);
    fd = begin(f, "GET /v2/ HTTP/1.1\r\n" WITH("slow; bytes=100; every_ms=5000") "\r\n");
    ck_assert_uint_gt(read_now(f, fd, text, sizeof(text)), 100);
    for (size_t at = strlen(strstr(text, "\r\n\r\n") + 4); at < strlen(whole);) {
        size_t left = strlen(whole) - at, n;

        ck_assert_uint_eq(at % 100, 0);
        pass_s(f, 5);
        ck_assert_uint_eq(read_now(f, fd, text, sizeof(text)), 0);
        pass_s(f, 1);
        n = read_now(f, fd, text, sizeof(text));
        ck_assert_uint_eq(n, left < 100 ? left : 100);
        ck_assert_mem_eq(text, whole + at, n);
        at += n;
    }
    say(fd, HOME); /* the connection goes on */
    end(fd, 200);
}

SERVER_TEST(a_response_without_a_body_is_not_slow, open_server(f))
{
    int fd = begin(f, CLAIM_WITH("slow; bytes=1; every_ms=600000"));

    expect_code(fd, 204);
    say(fd, "HEAD /v2/queues/q HTTP/1.1\r\n" WITH("slow; bytes=1; every_ms=1") "\r\n");
    ck_assert_int_gt(recv(fd, (char[1]){0}, 1, 0), 0);
    (void)close(fd);
}

SERVER_TEST(a_half_closed_client_gets_its_response, open_server(f))
{
    static const char *const requests[] = {STATS_WITH("latency; ms=5000"),
                                           STATS_WITH("slow; bytes=65536; every_ms=5000"),
                                           STATS_WITH("slow; bytes=50; every_ms=5000")};
    char text[4096];

    fetch_once(f, POST("q"), 201);
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        int fd = begin(f, requests[i]);
        const char *body;

        ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
        for (int k = 0; k < 10; k++)
            pass_s(f, 6);
        (void)read_all(fd, text, sizeof(text));
        body = strstr(text, "\r\n\r\n");
        ck_assert_ptr_nonnull(body);
        ck_assert_uint_eq(strlen(body + 4),
                          (size_t)atoi(strstr(text, "Content-Length: ") + 16));
    }
}

SERVER_TEST(a_claim_is_released_if_its_late_response_has_no_client, open_server(f))
{
    int fd;

    fetch_once(f, POST("q"), 201);
    fd = begin_suspended(f, CLAIM_WITH("latency; ms=5000"));
    expect_stats(f, 1, 1);
    (void)close(fd);
    pass_s(f, 6);
    server_fixture_settle(f);
    expect_stats(f, 1, 0);
}

START_TEST(a_drain_waits_for_no_fault)
{
    struct server_fixture f;
    struct http_response a;
    pthread_t thread;
    int late, slow;

    open_server(&f);
    fetch_once(&f, POST("q"), 201);
    late = begin(&f, STATS_WITH("latency; ms=600000"));
    slow = begin(&f, STATS_WITH("slow; bytes=1; every_ms=600000"));
    server_fixture_settle(&f);
    server_fixture_stop(&f);
    ck_assert_int_eq(pthread_create(&thread, NULL, drain, &f), 0);
    expect_code(late, 200);
    a = receive(slow);
    ck_assert_int_eq(a.code, 200);
    ck_assert_uint_gt(strlen(a.body), 100);
    expect_closed(late);
    expect_closed(slow);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

START_TEST(a_server_that_is_cut_short_leaves_nothing_behind)
{
    struct server_fixture f;
    int fds[3];

    open_server(&f);
    fetch_once(&f, POST("q"), 201);
    fds[0] = begin(&f, CLAIM_WITH("latency; ms=600000"));
    fds[1] = begin(&f, STATS_WITH("slow; bytes=1; every_ms=600000"));
    fds[2] = begin(&f, STATS_WITH("slow; bytes=1; every_ms=600000"));
    server_fixture_settle(&f);
    (void)close(fds[2]);
    server_fixture_cut(&f);
    (void)close(fds[0]);
    (void)close(fds[1]);
}

SERVER_TEST(crowds_that_come_and_go_leave_nothing_behind, open_server(f))
{
    static const char *const requests[] = {STATS_WITH("latency; ms=3000"),
                                           STATS_WITH("slow; bytes=1; every_ms=3000"),
                                           STATS_WITH("half"), STATS_WITH("cut=after"),
                                           POST_WITH("slow; bytes=9; every_ms=1")};
    enum { CROWD = 50, KINDS = sizeof(requests) / sizeof(requests[0]) };
    int fds[CROWD];

    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < CROWD; i++)
            fds[i] = begin(f, requests[i % KINDS]);
        server_fixture_settle(f);
        for (int i = 0; i < CROWD; i++)
            if (i % 2 == round % 2)
                (void)close(fds[i]);
        pass_s(f, 4);
        for (int i = 0; i < CROWD; i++)
            if (i % 2 != round % 2)
                (void)close(fds[i]);
        pass_s(f, 4);
        pass_s(f, 4);
    }
}

SERVER_TEST(without_memory_for_it_there_is_no_response_but_503, open_server(f))
{
    bool whole = false;

    for (uint64_t nth = 1; !whole; nth++) {
        int fd = begin(f, "GET /v2/queues/q/stats HTTP/1.1\r\n" WITH(
                              "slow; bytes=1000; every_ms=1"));
        struct http_response a;

        server_fixture_settle(f);
        mem_fail_nth(f->mem, nth);
        say(fd, "\r\n");
        a = receive(fd);
        mem_fail_nth(f->mem, 0);
        whole = a.code == 200;
        ck_assert(a.code == 200 || a.code == 503 || a.code == 0);
        (void)close(fd);
        ck_assert_uint_lt(nth, 200);
    }
}

/* ---------------------------------------------------------------------- a log */

TEST_CASE("faults and a log");

SERVER_TEST(a_response_hidden_by_a_fault_is_durable_first,
            open_with(f, SLOW_STORE_LOGS, 0))
{
    static const char *const requests[] = {POST_WITH("cut=after"), POST_WITH("half"),
                                           POST_WITH("latency; ms=5000")};
    char text[4096];

    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        int fd = begin(f, requests[i]);

        expect_silence(f, fd); /* not even closed */
        pass_s(f, 10);         /* and the delay has not begun */
        expect_silence(f, fd);
        slow_store_make_durable(f->store, slow_store_lsn(f->store));
        if (i == 2)
            expect_silence(f, fd);
        pass_s(f, 6);
        (void)shutdown(fd, SHUT_WR);
        ck_assert_uint_eq(read_all(fd, text, sizeof(text)) == 0, i == 0);
    }
    ck_assert_uint_eq(stats_of(f).total, 3);
}

START_TEST(a_lost_response_is_not_sent_later)
{
    struct server_fixture f;
    int fd;

    open_with(&f, SLOW_STORE_LOGS, 0);
    fd = begin_suspended(&f, POST_WITH("latency; ms=5000"));
    slow_store_lose(f.store);
    expect_closed(fd);
    server_fixture_cut(&f);
}

/* --------------------------------------------------------------- a store that blocks */

TEST_CASE("faults and a store that blocks");

SERVER_TEST(faults_go_with_a_store_that_blocks, open_with(f, SLOW_STORE_BLOCKS, 2))
{
    int fd;

    fetch_once(f, POST("q"), 201);
    expect_closed(begin(f, CLAIM_WITH("cut=after")));
    ck_assert_uint_eq(stats_of(f).claimed, 1);
    fd = begin(f, STATS_WITH("latency; ms=0005"));
    pass_s(f, 1);
    for (int i = 0; i < 1000 && recv(fd, (char[1]){0}, 1, MSG_PEEK | MSG_DONTWAIT) < 0;
         i++)
        pass_s(f, 1); /* the executor takes its time */
    end(fd, 200);
}
