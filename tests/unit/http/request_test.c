/*
 * How connections end: by time limits, and after responses that came before everything
 * was read. This program is linked with --wrap=clock_gettime: time stands still, and goes
 * on when a test says so.
 */
#include "claimd/store/store.h"
#include "http/request.h"
#include "support/server_fixture.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

int __wrap_clock_gettime(clockid_t which, struct timespec *out);

static _Atomic int64_t time_s = 1000000;

int
__wrap_clock_gettime(clockid_t which, struct timespec *out)
{
    (void)which;
    *out = (struct timespec){(time_t)atomic_load(&time_s), 0};
    return 0;
}

static void
wait_s(const struct server_fixture *f, int64_t seconds)
{
    atomic_fetch_add(&time_s, seconds);
    server_fixture_settle(f);
}

static void
say(int fd, const void *data, size_t len)
{
    ck_assert_int_eq(send(fd, data, len, MSG_NOSIGNAL), (ssize_t)len);
}

static void
say_text(int fd, const char *text)
{
    say(fd, text, strlen(text));
}

/* Reads to the end of the input, or until so many bytes are there; returns how many. */
static size_t
receive(int fd, char *out, size_t most)
{
    size_t len = 0;

    while (len < most) {
        ssize_t n = recv(fd, out + len, most - len, 0);

        ck_assert_msg(n >= 0, "recv: %s", strerror(errno));
        if (n == 0)
            break;
        len += (size_t)n;
    }
    return len;
}

/* The rest of a response must have this status, and nothing follows. */
static void
receive_refusal(int fd, const char *status_line)
{
    char text[4096];
    size_t len = receive(fd, text, sizeof(text) - 1);

    text[len] = '\0';
    ck_assert_msg(strncmp(text, status_line, strlen(status_line)) == 0, "%s", text);
}

/* True if the server still takes what is sent. */
static bool
takes_more(int fd)
{
    ssize_t n = send(fd, "x", 1, MSG_NOSIGNAL);

    ck_assert(n == 1 || errno == EPIPE || errno == ECONNRESET);
    return n == 1;
}

/* ---------------------------------------------------------------------- time limits */

TEST_CASE("time limits");

enum { BODY = 200000, BODIES = 10 };

/* Posts more than sockets hold, so that a response waits until it is read. */
static void
fill(const struct server_fixture *f)
{
    const struct store_queue queue = {.project = bytes_str("p"),
                                      .name = bytes_str("big")};
    struct store_draft draft = {.ttl_s = 3600, .delay_s = 0};
    const struct store_post request = {
        .drafts = &draft, .count = 1, .client = 1, .create_queue = true};
    char *body = malloc(BODY);
    struct store_id id;

    ck_assert_ptr_nonnull(body);
    memset(body, '7', BODY);
    draft.body = bytes_of(body, BODY);
    for (int i = 0; i < BODIES; i++)
        ck_assert_int_eq(store_message_post(f->store, STORE_AT(clock_now_ms(&f->clock)),
                                            &queue, &request, &id),
                         ST_OK);
    free(body);
}

/* Sends a request without its last byte. It is under way then. */
static int
begin_request(const struct server_fixture *f)
{
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    int fd = server_fixture_dial(f);
    char text[sizeof(go_on)] = "";

    say_text(fd, "GET /v2/queues/big/messages?echo=true&limit=10 HTTP/1.1\r\n"
                 "Host: test\r\n"
                 "Client-ID: 3381af92-2b9e-11e3-b191-71861300734c\r\n"
                 "X-Project-ID: p\r\n"
                 "Connection: close\r\n"
                 "Expect: 100-continue\r\n"
                 "Content-Length: 1\r\n"
                 "\r\n");
    (void)receive(fd, text, sizeof(go_on) - 1);
    ck_assert_str_eq(text, go_on);
    return fd;
}

/* Sends the last byte and waits until the response begins. */
static void
end_request(int fd)
{
    char first;

    say_text(fd, "x");
    ck_assert_uint_eq(receive(fd, &first, 1), 1);
    ck_assert_int_eq(first, 'H');
}

/* How many bytes of the response come before the server closes; all are good ones. */
static size_t
receive_response(int fd)
{
    char *text = malloc(BODIES * BODY * 2);
    size_t len;

    ck_assert_ptr_nonnull(text);
    len = receive(fd, text, BODIES * BODY * 2);
    ck_assert_ptr_null(memmem(text, len, "HTTP/1.1 408", 12)); /* in the middle of it */
    free(text);
    return len;
}

SERVER_TEST(a_response_has_a_time_limit_of_its_own, server_fixture_open(f, 1))
{
    int fd;

    fill(f);
    fd = begin_request(f);
    wait_s(f, SERVER_FIXTURE_SECONDS - 1);
    end_request(fd);
    wait_s(f, SERVER_FIXTURE_SECONDS - 1); /* since the request began: too long */
    ck_assert_uint_gt(receive_response(fd), BODIES * BODY);
    ck_assert_int_eq(close(fd), 0);
}

SERVER_TEST(a_response_that_is_not_taken_in_its_time_is_cut_off,
            server_fixture_open(f, 1))
{
    int fd;

    fill(f);
    fd = begin_request(f);
    end_request(fd);
    wait_s(f, SERVER_FIXTURE_SECONDS);
    ck_assert_uint_lt(receive_response(fd), BODIES * BODY);
    ck_assert_int_eq(close(fd), 0);
}

SERVER_TEST(a_request_that_is_not_whole_in_its_time_is_refused, server_fixture_open(f, 1))
{
    int fd;

    fd = begin_request(f);
    wait_s(f, SERVER_FIXTURE_SECONDS - 1);
    wait_s(f, 1);
    receive_refusal(fd, "HTTP/1.1 408 ");
    ck_assert_int_eq(close(fd), 0);
}

/* ---------------------------------------------------------------- lingering close */

TEST_CASE("lingering close");

/*
 * The client has received the end of a response that came too early for it. It may go on
 * sending for a while, or a reset could take the response away from it; then the server
 * closes.
 */
static void
expect_lingering_close(const struct server_fixture *f, int fd)
{
    server_fixture_settle(f);
    for (int i = 0; i < 3; i++) {
        ck_assert(takes_more(fd));
        server_fixture_settle(f);
    }
    wait_s(f, SERVER_FIXTURE_SECONDS);
    ck_assert(!takes_more(fd));
}

SERVER_TEST(errors_of_libmicrohttpd_end_with_a_lingering_close, server_fixture_open(f, 1))
{
    int fd;

    fd = server_fixture_dial(f);
    say_text(fd, "GET / HTTP/1.1\r\nHost: test\r\nno colon\r\n\r\n");
    receive_refusal(fd, "HTTP/1.1 400 ");
    expect_lingering_close(f, fd);
    ck_assert_int_eq(close(fd), 0);
}

SERVER_TEST(a_chunked_body_far_too_large_is_refused_with_a_lingering_close,
            server_fixture_open(f, 1))
{
    static const char head[] = "POST /v2/queues/q/messages HTTP/1.1\r\n"
                               "Host: test\r\n"
                               "Client-ID: 3381af92-2b9e-11e3-b191-71861300734c\r\n"
                               "X-Project-ID: p\r\n"
                               "Transfer-Encoding: chunked\r\n"
                               "\r\n"
                               "fffffff\r\n";
    char *body, byte;
    size_t len;
    int fd;

    len = api_body_limit(f->api, BYTES_NONE) + BODY_DISCARD_MOST;
    body = malloc(len);
    ck_assert_ptr_nonnull(body);
    memset(body, ' ', len);
    fd = server_fixture_dial(f);
    say_text(fd, head);
    say(fd, body, len);
    server_fixture_settle(f);
    ck_assert_int_lt(recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT), 0);
    say_text(fd, " "); /* one too many, and nothing is left unread behind it */
    free(body);
    receive_refusal(fd, "HTTP/1.1 400 ");
    expect_lingering_close(f, fd);
    ck_assert_int_eq(close(fd), 0);
}
