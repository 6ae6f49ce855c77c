/*
 * A server with its threads responds although any single allocation or all of them fail,
 * and leaves nothing behind. respond_test.c has the states of a request. Read
 * claimd/http/server.h next.
 */
#include "support/server_fixture.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

SERVER_TEST(it_serves_and_leaves_nothing_behind, server_fixture_open(f, 2))
{
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(server_fixture_post(f), 201);
}

SERVER_TEST(whichever_allocation_fails_there_is_a_response_and_the_next_one_is_good,
            server_fixture_open(f, 2))
{
    const struct store_queue queue = {.project = bytes_str("p"), .name = bytes_str("q")};
    struct store_stats stats;
    uint64_t posted = 0;

    for (uint64_t n = 1; n < 40; n++) {
        int status;

        mem_fail_nth(f->mem, n);
        status = server_fixture_post(f);
        mem_fail_nth(f->mem, 0);
        ck_assert_msg(status == 201 || status == 503, "allocation %d: status %d", (int)n,
                      status);
        posted += status == 201;
        ck_assert_int_eq(server_fixture_post(f), 201);
        posted++;
    }
    ck_assert_int_eq(
        store_queue_stats(f->store, STORE_AT(clock_now_ms(&f->clock)), &queue, &stats),
        ST_OK);
    ck_assert_uint_eq(stats.total, posted);
}

SERVER_TEST(without_any_memory_it_says_so_and_recovers, server_fixture_open(f, 2))
{
    for (int i = 0; i < 20; i++) {
        mem_fail_from(f->mem, 1);
        ck_assert_int_eq(server_fixture_post(f), 503);
        mem_fail_from(f->mem, 0);
    }
    ck_assert_int_eq(server_fixture_post(f), 201);
}

/* Sends a request and reads what comes, until the end or only the first piece of it. */
static void
fetch(int fd, const char *request, bool to_the_end)
{
    char response[2048];

    ck_assert_int_eq(send(fd, request, strlen(request), MSG_NOSIGNAL),
                     (ssize_t)strlen(request));
    ck_assert_int_gt(recv(fd, response, sizeof(response), 0), 0);
    while (to_the_end && recv(fd, response, sizeof(response), 0) > 0)
        continue;
}

SERVER_TEST(a_connection_that_is_gone_gets_no_events_of_its_socket,
            server_fixture_open(f, 2))
{
    int pipe_fds[2], status, fd;
    pid_t child;

    fd = server_fixture_dial(f);
    fetch(fd, "GET / HTTP/1.1\r\nHost: test\r\n\r\n", false);
    /* A child with copies of all descriptors: what the server closes stays open. */
    ck_assert_int_eq(pipe(pipe_fds), 0);
    child = fork();
    if (child == 0) {
        (void)close(pipe_fds[1]);
        (void)close(fd);
        /* Until the parent closes its end. */
        _exit(read(pipe_fds[0], &status, 1) == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    ck_assert_int_gt(child, 0);
    fetch(fd, "GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n", true);
    ck_assert_int_eq(close(fd), 0); /* an event on the server's half */
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(server_fixture_post(f), 201);
    ck_assert_int_eq(close(pipe_fds[1]), 0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(close(pipe_fds[0]), 0);
}

SERVER_TEST(a_server_that_cannot_be_opened_leaves_nothing_behind,
            server_fixture_open(f, 2))
{
    struct server_config config = {.socket_mode = 0600,
                                   .socket_group = -1,
                                   .workers = 2,
                                   .max_connections = 100,
                                   .max_header_bytes = 6144,
                                   .max_headers = 64,
                                   .idle_seconds = 60,
                                   .request_seconds = 60};
    struct server *second;
    struct reason why;

    config.api = f->api;
    config.store = f->store;
    config.mem = f->mem;
    config.clock = &f->clock;
    config.log = &f->log;
    config.listen = &f->list; /* taken */
    ck_assert_int_eq(server_open(&config, &second, &why), ST_IO);
    ck_assert_ptr_nonnull(strstr(why.text, "address already in use"));
    mem_fail_from(f->mem, 1);
    ck_assert_int_eq(server_open(&config, &second, &why), ST_NO_MEMORY);
    mem_fail_from(f->mem, 0);
    ck_assert_int_eq(server_fixture_post(f), 201);
}

START_TEST(stopping_twice_ends_the_drain)
{
    static const char request[] = "POST / HTTP/1.1\r\n"
                                  "Host: test\r\n"
                                  "Expect: 100-continue\r\n"
                                  "Content-Length: 5\r\n"
                                  "\r\n";
    struct server_fixture f;
    int fd;

    server_fixture_open(&f, 2);
    fd = server_fixture_dial(&f);
    fetch(fd, request, false); /* 100: it is under way */
    server_stop(f.server);
    ck_assert_int_eq(pthread_join(f.acceptor, NULL), 0);
    server_stop(f.server);
    ck_assert_uint_eq(server_drain(f.server, 3600 * 1000), 1);
    (void)close(fd);
    server_close(f.server);
    api_free(f.api);
    store_close(f.store);
    server_free(f.server);
    mem_destroy(f.mem);
    ck_assert_int_eq(rmdir(f.folder), 0);
}
