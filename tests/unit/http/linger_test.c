/*
 * A closed connection reads on for a while, so that the client receives the last response
 * instead of a reset. Time, bytes and number of such connections are bounded. Declared in
 * src/http/conn.h.
 */
#include "http/conn.h"

#include "support/check_main.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { NOW_MS = 5000 };

static struct linger_set l;
static int epoll_fd;

static void
open_set(void)
{
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    ck_assert_int_ge(epoll_fd, 0);
    linger_init(&l, epoll_fd, LINGER_SLOTS);
}

static void
close_set(void)
{
    linger_fini(&l);
    ck_assert_int_eq(close(epoll_fd), 0);
}

/* Begins to close a socket; returns the client's end of it. */
static int
part(int64_t now_ms)
{
    int fds[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    linger_add(&l, fds[0], now_ms);
    return fds[1];
}

/* Sends a byte; false if the other end is closed. */
static bool
can_send(int fd)
{
    ssize_t n = send(fd, "x", 1, MSG_NOSIGNAL);

    ck_assert(n == 1 || errno == EPIPE);
    return n == 1;
}

/* Lets it read what has come to the sockets. */
static void
read_events(void)
{
    struct epoll_event events[LINGER_SLOTS];
    int n;

    while ((n = epoll_wait(epoll_fd, events, LINGER_SLOTS, 0)) > 0)
        for (int i = 0; i < n; i++) {
            ck_assert(((struct source *)events[i].data.ptr)->kind == SOURCE_LINGER);
            linger_read(&l, events[i].data.ptr);
        }
}

TEST_CASE("linger", .setup = open_set, .teardown = close_set);

START_TEST(a_client_reads_the_end_and_may_go_on_sending)
{
    int fd = part(NOW_MS);
    char byte;

    ck_assert_int_eq(recv(fd, &byte, 1, 0), 0);
    for (int i = 0; i < 10; i++) {
        ck_assert(can_send(fd));
        read_events();
    }
    ck_assert_uint_eq(l.count, 1);
    ck_assert_int_eq(close(fd), 0);
    read_events(); /* the end of the input */
    ck_assert_uint_eq(l.count, 0);
    ck_assert_int_eq(linger_expire(&l, NOW_MS), INT64_MAX);
}

START_TEST(lingering_ends_when_its_time_is_up)
{
    int first = part(NOW_MS), second = part(NOW_MS + 10);

    ck_assert_int_eq(linger_expire(&l, NOW_MS + LINGER_MS - 1), NOW_MS + LINGER_MS);
    ck_assert(can_send(first));
    ck_assert_int_eq(linger_expire(&l, NOW_MS + LINGER_MS), NOW_MS + 10 + LINGER_MS);
    ck_assert(!can_send(first));
    ck_assert(can_send(second));
    ck_assert_int_eq(linger_expire(&l, NOW_MS + 10 + LINGER_MS), INT64_MAX);
    ck_assert(!can_send(second));
    ck_assert_int_eq(close(first), 0);
    ck_assert_int_eq(close(second), 0);
}

START_TEST(lingering_ends_when_too_much_comes)
{
    static const char piece[65536];
    int fd = part(NOW_MS);
    size_t sent = 0;

    for (;;) {
        ssize_t n = send(fd, piece, sizeof(piece), MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno == EPIPE)
            break;
        if (n > 0)
            sent += (size_t)n;
        ck_assert_uint_le(sent,
                          LINGER_BYTES + sizeof(piece) * 16); /* bytes on their way */
        read_events();
    }
    ck_assert_uint_ge(sent, LINGER_BYTES);
    ck_assert_uint_eq(l.count, 0);
    ck_assert_int_eq(close(fd), 0);
}

START_TEST(the_oldest_makes_space)
{
    int fds[LINGER_SLOTS + 1];

    for (int i = 0; i <= LINGER_SLOTS; i++)
        fds[i] = part(NOW_MS + i);
    ck_assert_uint_eq(l.count, LINGER_SLOTS);
    for (int i = 0; i <= LINGER_SLOTS; i++) {
        ck_assert_int_eq(can_send(fds[i]), i > 0);
        ck_assert_int_eq(close(fds[i]), 0);
    }
}

START_TEST(it_keeps_to_the_slots_it_is_given)
{
    int fds[3];

    linger_init(&l, epoll_fd, 2);
    for (int i = 0; i < 3; i++)
        fds[i] = part(NOW_MS + i);
    ck_assert_uint_eq(l.count, 2);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(can_send(fds[i]), i > 0);
        ck_assert_int_eq(close(fds[i]), 0);
    }
}
