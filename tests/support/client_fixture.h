/*
 * client_fixture: clients of a server in this process (server_fixture.h) for which
 * time stands still and goes on when a test says so; link with --wrap=clock_gettime.
 * Nothing here sleeps: whatever a worker had to do has been done when it has responded
 * to requests that came later. For one file of a program.
 */
#ifndef TESTS_SUPPORT_CLIENT_FIXTURE_H
#define TESTS_SUPPORT_CLIENT_FIXTURE_H

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

/* Each thread that reads the clock calls this, unless NULL. A worker reads it when it
 * wakes up. */
static void (*_Atomic at_clock)(void);

int
__wrap_clock_gettime(clockid_t which, struct timespec *out)
{
    void (*hook)(void) = atomic_load(&at_clock);

    (void)which;
    if (hook != NULL)
        hook();
    *out = (struct timespec){(time_t)atomic_load(&time_s), 0};
    return 0;
}

/* ---------------------------------------------------------------------- clients */

#define WHO                                                                              \
    "Client-ID: 3381af92-2b9e-11e3-b191-71861300734c\r\n"                                \
    "X-Project-ID: p\r\n"
#define HEAD  "Host: test\r\n" WHO
#define HOME  "GET /v2/ HTTP/1.1\r\n" HEAD "\r\n"
#define STATS "GET /v2/queues/q/stats HTTP/1.1\r\n" HEAD "\r\n"
#define POST(queue)                                                                      \
    "POST /v2/queues/" queue "/messages HTTP/1.1\r\n" HEAD                               \
    "Content-Length: 25\r\n\r\n{\"messages\":[{\"body\":1}]}"
#define CLAIM                                                                            \
    "POST /v2/queues/q/claims?limit=1 HTTP/1.1\r\n" HEAD "Content-Length: 0\r\n\r\n"
#define WAITING                                                                          \
    "POST /v2/queues/q/claims?limit=1 HTTP/1.1\r\n" HEAD                                 \
    "Prefer: wait=30\r\nContent-Length: 0\r\n\r\n"
#define WAITING_POP                                                                      \
    "DELETE /v2/queues/q/messages?pop=1 HTTP/1.1\r\n" HEAD "Prefer: wait=30\r\n\r\n"
#define PURGE    "POST /v2/queues/q/purge HTTP/1.1\r\n" HEAD "Content-Length: 0\r\n\r\n"
#define MAKING   "PUT /v2/queues/q HTTP/1.1\r\n" HEAD "Content-Length: 0\r\n\r\n"
#define DELETION "DELETE /v2/queues/q HTTP/1.1\r\n" HEAD "\r\n"

static inline void
say(int fd, const char *text)
{
    ck_assert_int_eq(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* A connection on which this was said. */
static inline int
begin(const struct server_fixture *f, const char *text)
{
    int fd = server_fixture_dial(f);

    say(fd, text);
    return fd;
}

struct http_response {
    int code; /* 0: closed without one */
    char head[2048];
    char body[4096];
};

/* Reads one response and no more; waits for it. */
static inline struct http_response
receive(int fd)
{
    struct http_response a = {.code = 0};
    size_t len = 0, wanted = 0;
    const char *at;

    while (len < 4 || memcmp(a.head + len - 4, "\r\n\r\n", 4) != 0) {
        ssize_t n = recv(fd, a.head + len, 1, 0);

        ck_assert(n >= 0 || errno == ECONNRESET);
        if (n <= 0) {
            ck_assert_uint_eq(len, 0);
            return a;
        }
        len++;
        ck_assert_uint_lt(len, sizeof(a.head) - 1);
    }
    ck_assert_int_eq(strncmp(a.head, "HTTP/1.1 ", 9), 0);
    a.code = atoi(a.head + 9);
    at = strstr(a.head, "Content-Length: ");
    if (at != NULL)
        wanted = (size_t)atoi(at + 16);
    ck_assert_uint_lt(wanted, sizeof(a.body));
    if (wanted > 0)
        ck_assert_int_eq(recv(fd, a.body, wanted, MSG_WAITALL), (ssize_t)wanted);
    return a;
}

static inline void
expect_code(int fd, int code)
{
    struct http_response a = receive(fd);

    ck_assert_msg(a.code == code, "%d, wanted %d: %s%s", a.code, code, a.head, a.body);
}

static inline void
expect_closed(int fd)
{
    expect_code(fd, 0);
    (void)close(fd);
}

static inline void
end(int fd, int code)
{
    expect_code(fd, code);
    (void)close(fd);
}

/* Nothing has come. */
static inline void
expect_silence(const struct server_fixture *f, int fd)
{
    char byte;

    server_fixture_settle(f);
    ck_assert_int_eq(recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT), -1);
    ck_assert_int_eq(errno, EAGAIN);
}

/* A connection on which this was said, and nothing has come. */
static inline int
begin_suspended(const struct server_fixture *f, const char *text)
{
    int fd = begin(f, text);

    expect_silence(f, fd);
    return fd;
}

static inline void
fetch_once(const struct server_fixture *f, const char *text, int code)
{
    end(begin(f, text), code);
}

static const struct store_queue queue_q = {.project = {"p", 1}, .name = {"q", 1}};

static inline struct store_stats
stats_of(const struct server_fixture *f)
{
    struct store_stats now = {0};

    (void)store_queue_stats(f->store, STORE_AT(clock_now_ms(&f->clock)), &queue_q, &now);
    return now;
}

static inline void
pass_s(const struct server_fixture *f, int64_t seconds)
{
    atomic_fetch_add(&time_s, seconds);
    server_fixture_settle(f);
}

/* Spare exchanges, which are larger or smaller by what they were used for. */
enum { SPARE = 16384 };

/* Closing takes some of the worker's rounds; they come with requests. */
static inline void
await_memory(const struct server_fixture *f, size_t used)
{
    for (int i = 0; i < 1000 && mem_used(f->mem) > used + SPARE; i++)
        server_fixture_settle(f);
    ck_assert_uint_le(mem_used(f->mem), used + SPARE);
}

static inline void
open_waiting(struct server_fixture *f, size_t max_waiters)
{
    const struct server_fixture_options options = {
        .workers = 1, .max_connections = 1000, .max_waiters = max_waiters};

    server_fixture_open_with(f, &options);
}

/* The metric claimd_http_requests_parked, for one reason. */
static inline int
parked_requests(const struct server_fixture *f, const char *reason)
{
    struct metrics metrics = {.first = NULL};
    struct exposition x;
    struct buf text;
    const char *at;
    char name[64];
    int count;

    (void)snprintf(name, sizeof(name), "claimd_http_requests_parked{reason=\"%s\"} ",
                   reason);
    buf_init(&text, f->mem);
    exposition_begin(&x, &text, EXPOSITION_PROMETHEUS);
    server_measure(f->server, &metrics);
    metrics_write(&metrics, &x);
    buf_byte(&text, '\0');
    at = strstr(text.data, name);
    ck_assert_ptr_nonnull(at);
    count = atoi(at + strlen(name));
    buf_fini(&text);
    return count;
}

/* For a thread of its own: drains the server. */
static inline void *
drain(void *arg)
{
    struct server_fixture *f = arg;

    server_fixture_close(f);
    return NULL;
}

#endif
