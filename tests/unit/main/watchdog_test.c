/* When a supervisor is told that the workers are alive. */
#include "main/supervisor.h"

#include "support/check_main.h"
#include "support/server_fixture.h"
#include "support/slow_store.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MINUTE_MS = 60000, SELF = 42 };

/* Somebody who listens at NOTIFY_SOCKET. */
struct ear {
    int fd;
    struct supervisor supervisor;
};

static void
ear_open(struct ear *ear)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char name[64];
    int len = snprintf(name, sizeof(name), "@claimd-watchdog-%ld", (long)getpid());

    memcpy(address.sun_path + 1, name + 1, (size_t)len - 1);
    ear->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    ck_assert_int_ge(ear->fd, 0);
    ck_assert_int_eq(
        bind(ear->fd, (const struct sockaddr *)(const void *)&address,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)len)),
        0);
    supervisor_init(&ear->supervisor, name);
}

/* How often it was told since the last call. */
static int
heard(const struct ear *ear)
{
    char text[64];
    ssize_t len;
    int count = 0;

    while ((len = recv(ear->fd, text, sizeof(text) - 1, 0)) > 0) {
        text[len] = '\0';
        ck_assert_str_eq(text, "WATCHDOG=1");
        count++;
    }
    return count;
}

/* Workers that do as the test says. */
struct crew {
    int asked;
    bool went;
};

static int64_t
crew_look(struct watchdog *w, const struct supervisor *s, struct crew *crew)
{
    bool ask;
    int64_t next_ms = watchdog_check(w, s, crew->went, &ask);

    crew->asked += ask;
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
    struct crew crew = {.went = true};
    struct ear ear;

    ear_open(&ear);
    ck_assert_int_eq(crew_look(&w, &ear.supervisor, &crew), MINUTE_MS);
    ck_assert_int_eq(heard(&ear), 0); /* it has only asked */
    ck_assert_int_eq(crew_look(&w, &ear.supervisor, &crew), MINUTE_MS);
    ck_assert_int_eq(heard(&ear), 1);
    ck_assert_int_eq(crew_look(&w, &ear.supervisor, &crew), MINUTE_MS);
    ck_assert_int_eq(heard(&ear), 1);
    ck_assert_int_eq(crew.asked, 3);
    ck_assert_int_eq(close(ear.fd), 0);
}
END_TEST

START_TEST(it_says_nothing_while_a_worker_hangs_and_looks_again_soon)
{
    struct watchdog w = watchdog_of("120000000");
    struct crew crew = {.went = false};
    struct ear ear;

    ear_open(&ear);
    ck_assert_int_eq(crew_look(&w, &ear.supervisor, &crew), MINUTE_MS);
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(crew_look(&w, &ear.supervisor, &crew), MINUTE_MS / 8 + 1);
    ck_assert_int_eq(heard(&ear), 0);
    ck_assert_int_eq(crew.asked, 1);
    crew.went = true;
    ck_assert_int_eq(crew_look(&w, &ear.supervisor, &crew), MINUTE_MS);
    ck_assert_int_eq(heard(&ear), 1);
    ck_assert_int_eq(close(ear.fd), 0);
}
END_TEST

START_TEST(it_never_looks_where_nobody_watches)
{
    struct crew crew = {.went = true};
    struct supervisor nobody;
    struct watchdog w;
    struct ear ear;

    ear_open(&ear);
    supervisor_init(&nobody, NULL);
    ck_assert(watchdog_init(&w, NULL, NULL, SELF));
    ck_assert_int_eq(crew_look(&w, &ear.supervisor, &crew), -1);
    ck_assert(watchdog_init(&w, "1000000", "43", SELF)); /* it watches another process */
    ck_assert_int_eq(crew_look(&w, &ear.supervisor, &crew), -1);
    w = watchdog_of("1000000");
    ck_assert_int_eq(crew_look(&w, &nobody, &crew), -1);
    ck_assert_int_eq(crew.asked, 0);
    ck_assert_int_eq(close(ear.fd), 0);
}
END_TEST

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
    ck_assert(watchdog_init(&w, "1000000", NULL, SELF)); /* whoever it is */
    ck_assert_int_eq(w.check_ms, 500);
    ck_assert(watchdog_init(&w, "1", "42", SELF));
    ck_assert_int_eq(w.check_ms, 1);
}
END_TEST

/* ------------------------------------------------------------------ real workers */

static int64_t
server_look(struct watchdog *w, const struct supervisor *s, struct server *server)
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
    struct ear ear;
    pthread_t client;

    ear_open(&ear);
    server_fixture_open_with(&f, &options);
    f.store->blocks = false; /* it does, and nobody has told the worker */
    (void)server_look(&w, &ear.supervisor, f.server);
    await_round(&f); /* nobody asks for anything: they were woken for this */
    slow_store_shut(f.store);
    ck_assert_int_eq(pthread_create(&client, NULL, post_one, &f), 0);
    slow_store_await(f.store, 1);
    ck_assert_int_eq(server_look(&w, &ear.supervisor, f.server), MINUTE_MS);
    ck_assert_int_eq(heard(&ear), 1); /* of the round before */
    for (int i = 0; i < 1000; i++)
        ck_assert_int_lt(server_look(&w, &ear.supervisor, f.server), MINUTE_MS);
    ck_assert_int_eq(heard(&ear), 0);
    slow_store_unshut(f.store);
    ck_assert_int_eq(pthread_join(client, NULL), 0);
    await_round(&f);
    ck_assert_int_eq(server_look(&w, &ear.supervisor, f.server), MINUTE_MS);
    ck_assert_int_eq(heard(&ear), 1);
    server_fixture_close(&f);
    ck_assert_int_eq(close(ear.fd), 0);
}
END_TEST

START_TEST(a_worker_that_has_ended_is_not_waited_for)
{
    struct server_fixture f;

    server_fixture_open(&f, 2);
    server_fixture_stop(&f);
    ck_assert_uint_eq(server_drain(f.server, 60000), 0);
    server_ask_round(f.server);
    ck_assert(server_went_round(f.server));
    server_free(f.server);
    api_free(f.api);
    store_close(f.store);
    mem_destroy(f.mem);
    ck_assert_int_eq(rmdir(f.folder), 0);
}
END_TEST
