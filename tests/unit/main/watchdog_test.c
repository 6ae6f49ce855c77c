/* Signs of life for a supervisor, while all workers are alive. */
#include "claimd/base/supervisor.h"

#include "support/check_main.h"
#include "support/server_fixture.h"
#include "support/slow_store.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MINUTE_MS = 60000, SELF = 42 };

/* The socket of a supervisor. */
struct notify_socket {
    int fd;
    struct supervisor supervisor;
};

static void
socket_open(struct notify_socket *receiver)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char name[64];
    int len = snprintf(name, sizeof(name), "@claimd-watchdog-%ld", (long)getpid());

    memcpy(address.sun_path + 1, name + 1, (size_t)len - 1);
    receiver->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    ck_assert_int_ge(receiver->fd, 0);
    ck_assert_int_eq(
        bind(receiver->fd, (const struct sockaddr *)(const void *)&address,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)len)),
        0);
    supervisor_init(&receiver->supervisor, name);
}

/* Number of signs of life since the last call. */
static int
count_received(const struct notify_socket *receiver)
{
    char text[64];
    ssize_t len;
    int count = 0;

    while ((len = recv(receiver->fd, text, sizeof(text) - 1, 0)) > 0) {
        text[len] = '\0';
        ck_assert_str_eq(text, "WATCHDOG=1");
        count++;
    }
    return count;
}

/* Workers that the test controls. */
struct test_workers {
    int asked;
    bool went;
};

static int64_t
workers_check(struct watchdog *w, const struct supervisor *s,
              struct test_workers *workers)
{
    bool ask;
    int64_t next_ms = watchdog_check(w, s, workers->went, &ask);

    workers->asked += ask;
    return next_ms;
}

static struct watchdog
watchdog_of(const char *usec)
{
    struct watchdog w;

    ck_assert(watchdog_init(&w, usec, "42", SELF));
    return w;
}

START_TEST(it_notifies_twice_as_often_as_it_must)
{
    struct watchdog w = watchdog_of("120000000");
    struct test_workers workers = {.went = true};
    struct notify_socket receiver;

    socket_open(&receiver);
    ck_assert_int_eq(workers_check(&w, &receiver.supervisor, &workers), MINUTE_MS);
    ck_assert_int_eq(count_received(&receiver), 0); /* only a request to the workers */
    ck_assert_int_eq(workers_check(&w, &receiver.supervisor, &workers), MINUTE_MS);
    ck_assert_int_eq(count_received(&receiver), 1);
    ck_assert_int_eq(workers_check(&w, &receiver.supervisor, &workers), MINUTE_MS);
    ck_assert_int_eq(count_received(&receiver), 1);
    ck_assert_int_eq(workers.asked, 3);
    ck_assert_int_eq(close(receiver.fd), 0);
}

START_TEST(it_sends_nothing_while_a_worker_hangs_and_checks_again_soon)
{
    struct watchdog w = watchdog_of("120000000");
    struct test_workers workers = {.went = false};
    struct notify_socket receiver;

    socket_open(&receiver);
    ck_assert_int_eq(workers_check(&w, &receiver.supervisor, &workers), MINUTE_MS);
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(workers_check(&w, &receiver.supervisor, &workers),
                         MINUTE_MS / 8 + 1);
    ck_assert_int_eq(count_received(&receiver), 0);
    ck_assert_int_eq(workers.asked, 1);
    workers.went = true;
    ck_assert_int_eq(workers_check(&w, &receiver.supervisor, &workers), MINUTE_MS);
    ck_assert_int_eq(count_received(&receiver), 1);
    ck_assert_int_eq(close(receiver.fd), 0);
}

START_TEST(it_never_checks_without_a_watchdog)
{
    struct test_workers workers = {.went = true};
    struct supervisor no_supervisor;
    struct watchdog w;
    struct notify_socket receiver;

    socket_open(&receiver);
    supervisor_init(&no_supervisor, NULL);
    ck_assert(watchdog_init(&w, NULL, NULL, SELF));
    ck_assert_int_eq(workers_check(&w, &receiver.supervisor, &workers), -1);
    ck_assert(watchdog_init(&w, "1000000", "43", SELF)); /* it watches another process */
    ck_assert_int_eq(workers_check(&w, &receiver.supervisor, &workers), -1);
    w = watchdog_of("1000000");
    ck_assert_int_eq(workers_check(&w, &no_supervisor, &workers), -1);
    ck_assert_int_eq(workers.asked, 0);
    ck_assert_int_eq(close(receiver.fd), 0);
}

START_TEST(values_that_are_no_time_or_process_are_refused)
{
    static const char *const times[] = {"",     "0",  "-1",
                                        "soon", "1s", "18446744073709551615"};
    struct watchdog w;

    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        ck_assert_msg(!watchdog_init(&w, times[i], NULL, SELF), "%s", times[i]);
        ck_assert_int_eq(w.check_ms, 0);
    }
    ck_assert(!watchdog_init(&w, "1000000", "init", SELF));
    ck_assert(watchdog_init(&w, "1000000", NULL, SELF)); /* for any process */
    ck_assert_int_eq(w.check_ms, 500);
    ck_assert(watchdog_init(&w, "1", "42", SELF));
    ck_assert_int_eq(w.check_ms, 1);
}

/* ------------------------------------------------------------------ real workers */

static int64_t
server_check(struct watchdog *w, const struct supervisor *s, struct server *server)
{
    bool ask;
    int64_t next_ms = watchdog_check(w, s, server_went_round(server), &ask);

    if (ask)
        server_ask_round(server);
    return next_ms;
}

static void *
post_one(void *arg)
{
    ck_assert_int_eq(server_fixture_post(arg), 201);
    return NULL;
}

/* Returns when all have gone round: they are about to, whatever it takes. */
static void
await_round(const struct server_fixture *f)
{
    while (!server_went_round(f->server))
        (void)sched_yield();
}

START_TEST(a_worker_that_is_stuck_in_the_store_is_not_alive_and_an_idle_one_is)
{
    const struct server_fixture_options options = {
        .workers = 2, .slow = true, .slow_kinds = SLOW_STORE_BLOCKS};
    struct watchdog w = watchdog_of("120000000");
    struct server_fixture f;
    struct notify_socket receiver;
    pthread_t client;

    socket_open(&receiver);
    server_fixture_open_with(&f, &options);
    f.store->blocks = false; /* it does, and no_supervisor has notified the worker */
    (void)server_check(&w, &receiver.supervisor, f.server);
    await_round(&f); /* no_supervisor needs a notification: they were woken for this */
    slow_store_shut(f.store);
    ck_assert_int_eq(pthread_create(&client, NULL, post_one, &f), 0);
    slow_store_await(f.store, 1);
    ck_assert_int_eq(server_check(&w, &receiver.supervisor, f.server), MINUTE_MS);
    ck_assert_int_eq(count_received(&receiver), 1); /* of the round before */
    for (int i = 0; i < 1000; i++)
        ck_assert_int_lt(server_check(&w, &receiver.supervisor, f.server), MINUTE_MS);
    ck_assert_int_eq(count_received(&receiver), 0);
    slow_store_unshut(f.store);
    ck_assert_int_eq(pthread_join(client, NULL), 0);
    await_round(&f);
    ck_assert_int_eq(server_check(&w, &receiver.supervisor, f.server), MINUTE_MS);
    ck_assert_int_eq(count_received(&receiver), 1);
    server_fixture_close(&f);
    ck_assert_int_eq(close(receiver.fd), 0);
}

START_TEST(a_worker_that_has_ended_is_not_waited_for)
{
    struct server_fixture f;

    server_fixture_open(&f, 2);
    server_fixture_stop(&f);
    ck_assert_uint_eq(server_drain(f.server, 60000), 0);
    server_ask_round(f.server);
    ck_assert(server_went_round(f.server));
    server_close(f.server);
    api_free(f.api);
    store_close(f.store);
    server_free(f.server);
    mem_destroy(f.mem);
    ck_assert_int_eq(rmdir(f.folder), 0);
}
