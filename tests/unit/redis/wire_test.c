/*
 * The thread of the wire. Requests over it are tested with the cluster (cluster_test.c).
 */
#include "redis/wire.h"

#include "support/check_main.h"

#include <poll.h>
#include <sys/epoll.h>

int __real_epoll_wait(int fd, struct epoll_event *events, int most, int timeout_ms);
int __wrap_epoll_wait(int fd, struct epoll_event *events, int most, int timeout_ms);
int __wrap_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
                 const sigset_t *mask);

static _Atomic int sleeps;

/* Returns only once there is an event, as if the thread had been interrupted here until
 * then. */
int
__wrap_epoll_wait(int fd, struct epoll_event *events, int most, int timeout_ms)
{
    struct pollfd event = {.fd = fd, .events = POLLIN};

    (void)poll(&event, 1, -1);
    return __real_epoll_wait(fd, events, most, timeout_ms);
}

/* Notes that the thread would sleep, and returns at once. */
int
__wrap_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
             const sigset_t *mask)
{
    (void)fds;
    (void)count;
    (void)timeout;
    (void)mask;
    atomic_fetch_add(&sleeps, 1);
    return 0;
}

TEST_CASE("wire");

/* wire_close() writes the event that ends a sleep. A round may read it before the thread
 * sleeps. */
START_TEST(a_closed_wire_does_not_sleep_after_its_wake_up_was_read)
{
    struct cluster_config config = {.mem = mem_new(0)};
    struct wire w = {.event_fd = -1};
    int slept;

    atomic_store(&sleeps, 0);
    ck_assert_int_eq(wire_open(&w, &config), ST_OK);
    wire_close(&w);
    slept = atomic_load(&sleeps);
    ck_assert_int_eq(slept, 0);
    mem_destroy(config.mem);
}
