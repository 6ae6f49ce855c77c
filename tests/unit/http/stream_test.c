/*
 * Streams of events: a view of the API that sends its response again each second. A whole
 * server in this process, whose clock moves only when a test moves it.
 */
#include "support/client_fixture.h"

TEST_CASE("streams");

#define STREAM_OF(version)                                                               \
    "GET /claimd/queues/q/claims HTTP/" version "\r\n" HEAD                              \
    "Accept: text/event-stream\r\n\r\n"
#define STREAM    STREAM_OF("1.1")
#define NO_CLAIMS "data: {\"claims\":[],\"links\":[]}\n\n"

/* Reads chunks until the end of an event, or of the stream, which is "". */
static void
receive_event(int fd, char text[1024])
{
    size_t len = 0;

    text[0] = '\0';
    do {
        char line[16] = "", mark[2];
        size_t i = 0, size;

        while (i < sizeof(line) - 1 && recv(fd, line + i, 1, 0) == 1 && line[i] != '\n')
            i++;
        size = strtoul(line, NULL, 16);
        ck_assert_uint_lt(len + size, 1024);
        if (size > 0)
            ck_assert_int_eq(recv(fd, text + len, size, MSG_WAITALL), (ssize_t)size);
        ck_assert_int_eq(recv(fd, mark, 2, MSG_WAITALL), 2);
        if (size == 0)
            return;
        len += size;
        text[len] = '\0';
    } while (len < 2 || strcmp(text + len - 2, "\n\n") != 0);
}

#define ck_event(fd, expected)                                                           \
    do {                                                                                 \
        char ck_text[1024];                                                              \
                                                                                         \
        receive_event(fd, ck_text);                                                      \
        ck_assert_str_eq(ck_text, expected);                                             \
    } while (0)

static int
begin_stream(const struct server_fixture *f)
{
    int fd = begin(f, STREAM);
    const struct http_response a = receive(fd);

    ck_assert_int_eq(a.code, 200);
    ck_assert_ptr_nonnull(strstr(a.head, "Content-Type: text/event-stream\r\n"));
    ck_event(fd, NO_CLAIMS);
    return fd;
}

SERVER_TEST(a_stream_has_an_event_each_second, open_waiting(f, 10))
{
    int fd;

    fetch_once(f, POST("q"), 201);
    fd = begin_stream(f);
    expect_silence(f, fd);
    ck_assert_int_eq(parked_requests(f, "stream"), 1);
    for (int i = 0; i < 100; i++) {
        pass_s(f, 1);
        ck_event(fd, NO_CLAIMS);
        expect_silence(f, fd);
    }
    (void)close(fd);
}

/* Reads this text. HTTP/1.0 has no chunks. */
static void
receive_text(int fd, const char *expected)
{
    char text[1024];
    const size_t len = strlen(expected);

    ck_assert_uint_lt(len, sizeof(text));
    ck_assert_int_eq(recv(fd, text, len, MSG_WAITALL), (ssize_t)len);
    text[len] = '\0';
    ck_assert_str_eq(text, expected);
}

/* As behind nginx with its default settings. */
SERVER_TEST(a_stream_over_http_1_0_has_an_event_each_second, open_waiting(f, 10))
{
    struct http_response a;
    int fd;

    fetch_once(f, POST("q"), 201);
    fd = begin(f, STREAM_OF("1.0"));
    a = receive(fd);
    ck_assert_int_eq(a.code, 200);
    ck_assert_ptr_null(strstr(a.head, "Transfer-Encoding"));
    receive_text(fd, NO_CLAIMS);
    for (int i = 0; i < 100; i++) {
        expect_silence(f, fd);
        pass_s(f, 1);
        receive_text(fd, NO_CLAIMS);
    }
    fetch_once(f, DELETION, 204);
    pass_s(f, 1);
    receive_text(fd, "event: end\ndata: {\"title\":\"Not found\","
                     "\"description\":\"queue q does not exist\"}\n\n");
    expect_closed(fd);
}

SERVER_TEST(the_last_event_of_a_stream_is_an_error, open_waiting(f, 10))
{
    int fd;

    fetch_once(f, POST("q"), 201);
    fd = begin_stream(f);
    fetch_once(f, DELETION, 204);
    pass_s(f, 1);
    ck_event(fd, "event: end\ndata: {\"title\":\"Not found\","
                 "\"description\":\"queue q does not exist\"}\n\n");
    ck_event(fd, "");
    say(fd, HOME);
    end(fd, 200);
}

SERVER_TEST(a_stream_counts_as_a_waiter_until_it_ends, open_waiting(f, 1))
{
    struct http_response a;
    int fd, other;

    fetch_once(f, POST("q"), 201);
    fd = begin_stream(f);
    other = begin(f, STREAM);
    a = receive(other);
    ck_assert_int_eq(a.code, 200);
    ck_assert_str_eq(a.body, "{\"claims\":[],\"links\":[]}");
    (void)close(fd);
    pass_s(f, 2);
    (void)close(begin_stream(f));
    (void)close(other);
}

SERVER_TEST(a_stream_ends_if_the_client_hangs_up, open_waiting(f, 10))
{
    int fd;

    fetch_once(f, POST("q"), 201);
    fd = begin_stream(f);
    ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
    server_fixture_settle(f);
    pass_s(f, 1);
    ck_event(fd, ""); /* not another event */
    expect_closed(fd);
    ck_assert_int_eq(parked_requests(f, "stream"), 0);
}

SERVER_TEST(an_endless_stream_needs_no_further_memory, open_waiting(f, 10))
{
    size_t used;
    int fd;

    fetch_once(f, POST("q"), 201);
    fd = begin_stream(f);
    used = mem_used(f->mem);
    for (int i = 0; i < 1000; i++) {
        pass_s(f, 1);
        ck_event(fd, NO_CLAIMS);
    }
    ck_assert_uint_le(mem_used(f->mem), used + SPARE);
    (void)close(fd);
}

START_TEST(a_drain_ends_all_streams)
{
    struct server_fixture f;
    int fds[5];

    open_waiting(&f, 20);
    fetch_once(&f, POST("q"), 201);
    for (int i = 0; i < 5; i++)
        fds[i] = begin_stream(&f);
    server_fixture_close(&f);
    for (int i = 0; i < 5; i++) {
        ck_event(fds[i], "");
        expect_closed(fds[i]);
    }
}
