#include "claimd/http/server.h"

#include "claimd/engine/engine.h"
#include "support/check_main.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* A whole server in this process, on a Unix socket, so that its memory can be made fail. */
struct fixture {
    char folder[32];
    char listen[64];
    struct mem *mem;
    struct clock clock;
    struct log log;
    struct store *store;
    struct api *api;
    struct server *server;
    pthread_t acceptor;
};

static void *
accept_all(void *arg)
{
    server_run(arg);
    return NULL;
}

static void
fixture_open(struct fixture *f)
{
    struct engine_config engine = {
        .shards = 4, .message_ttl_s = 3600, .max_message_ttl_s = 1209600};
    struct api_config api = {.limits = api_limits_default};
    struct server_config config = {.socket_mode = 0600,
                                   .socket_group = -1,
                                   .workers = 2,
                                   .max_connections = 100,
                                   .max_header_bytes = 6144,
                                   .max_headers = 64,
                                   .idle_seconds = 60,
                                   .request_seconds = 60};
    char error[256];

    (void)snprintf(f->folder, sizeof(f->folder), "/tmp/claimd-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(f->folder));
    (void)snprintf(f->listen, sizeof(f->listen), "unix:%s/socket", f->folder);
    f->mem = mem_new(0);
    ck_assert_ptr_nonnull(f->mem);
    clock_init_system(&f->clock);
    f->log = (struct log){.fd = STDERR_FILENO, .level = LOG_ERROR, .clock = &f->clock};
    engine.mem = f->mem;
    engine.now_ms = clock_now_ms(&f->clock);
    ck_assert_int_eq(engine_open(&engine, &f->store), ST_OK);
    api.store = f->store;
    api.mem = f->mem;
    ck_assert_int_eq(api_new(&api, &f->api), ST_OK);
    config.api = f->api;
    config.store = f->store;
    config.mem = f->mem;
    config.clock = &f->clock;
    config.log = &f->log;
    config.listen = f->listen;
    ck_assert_msg(server_open(&config, &f->server, error, sizeof(error)) == ST_OK, "%s",
                  error);
    ck_assert_int_eq(pthread_create(&f->acceptor, NULL, accept_all, f->server), 0);
}

static void
fixture_close(struct fixture *f)
{
    server_stop(f->server);
    ck_assert_int_eq(pthread_join(f->acceptor, NULL), 0);
    ck_assert_uint_eq(server_drain(f->server, 60000), 0);
    server_free(f->server);
    api_free(f->api);
    ck_assert(store_audit(f->store));
    store_close(f->store);
    mem_destroy(f->mem); /* asserts that nothing is left */
    ck_assert_int_eq(rmdir(f->folder), 0);
}

static int
dial(const struct fixture *f)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", f->listen + 5);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

/* Posts one message and returns the status of the answer; 0: closed without one. */
static int
post(const struct fixture *f)
{
    static const char request[] = "POST /v2/queues/q/messages HTTP/1.1\r\n"
                                  "Host: test\r\n"
                                  "Client-ID: 3381af92-2b9e-11e3-b191-71861300734c\r\n"
                                  "X-Project-ID: p\r\n"
                                  "Connection: close\r\n"
                                  "Content-Length: 25\r\n"
                                  "\r\n"
                                  "{\"messages\":[{\"body\":1}]}";
    char answer[2048];
    size_t len = 0;
    int fd = dial(f);
    ssize_t n;

    /* Fails only if the server has closed already: then there may still be an answer. */
    (void)send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL);
    while ((n = recv(fd, answer + len, sizeof(answer) - 1 - len, 0)) > 0)
        len += (size_t)n;
    (void)close(fd);
    answer[len] = '\0';
    if (len == 0)
        return 0;
    ck_assert_msg(strncmp(answer, "HTTP/1.1 ", 9) == 0, "%s", answer);
    return atoi(answer + 9);
}

START_TEST(it_serves_and_leaves_nothing_behind)
{
    struct fixture f;

    fixture_open(&f);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(post(&f), 201);
    fixture_close(&f);
}
END_TEST

START_TEST(whichever_allocation_fails_there_is_an_answer_and_the_next_one_is_good)
{
    const struct store_queue queue = {bytes_str("p"), bytes_str("q")};
    struct store_stats stats;
    uint64_t posted = 0;
    struct fixture f;

    fixture_open(&f);
    for (uint64_t n = 1; n < 40; n++) {
        int status;

        mem_fail_nth(f.mem, n);
        status = post(&f);
        mem_fail_nth(f.mem, 0);
        ck_assert_msg(status == 201 || status == 503, "allocation %d: status %d", (int)n,
                      status);
        posted += status == 201;
        ck_assert_int_eq(post(&f), 201);
        posted++;
    }
    ck_assert_int_eq(store_queue_stats(f.store, clock_now_ms(&f.clock), &queue, &stats),
                     ST_OK);
    ck_assert_uint_eq(stats.total, posted);
    fixture_close(&f);
}
END_TEST

START_TEST(without_any_memory_it_says_so_and_recovers)
{
    struct fixture f;

    fixture_open(&f);
    for (int i = 0; i < 20; i++) {
        mem_fail_from(f.mem, 1);
        ck_assert_int_eq(post(&f), 503);
        mem_fail_from(f.mem, 0);
    }
    ck_assert_int_eq(post(&f), 201);
    fixture_close(&f);
}
END_TEST

/* Sends a request and reads what comes, until the end or only the first piece of it. */
static void
ask(int fd, const char *request, bool to_the_end)
{
    char answer[2048];

    ck_assert_int_eq(send(fd, request, strlen(request), MSG_NOSIGNAL),
                     (ssize_t)strlen(request));
    ck_assert_int_gt(recv(fd, answer, sizeof(answer), 0), 0);
    while (to_the_end && recv(fd, answer, sizeof(answer), 0) > 0)
        continue;
}

START_TEST(a_connection_that_is_gone_is_not_told_what_its_socket_does)
{
    int pipe_fds[2], status, fd;
    struct fixture f;
    pid_t child;

    fixture_open(&f);
    fd = dial(&f);
    ask(fd, "GET / HTTP/1.1\r\nHost: test\r\n\r\n", false);
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
    ask(fd, "GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n", true);
    ck_assert_int_eq(close(fd), 0); /* an event on the server's half */
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(post(&f), 201);
    ck_assert_int_eq(close(pipe_fds[1]), 0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(close(pipe_fds[0]), 0);
    fixture_close(&f);
}
END_TEST

START_TEST(a_server_that_cannot_be_opened_leaves_nothing_behind)
{
    struct fixture f;
    struct server_config config = {.socket_mode = 0600,
                                   .socket_group = -1,
                                   .workers = 2,
                                   .max_connections = 100,
                                   .max_header_bytes = 6144,
                                   .max_headers = 64,
                                   .idle_seconds = 60,
                                   .request_seconds = 60};
    struct server *second;
    char error[256];

    fixture_open(&f);
    config.api = f.api;
    config.store = f.store;
    config.mem = f.mem;
    config.clock = &f.clock;
    config.log = &f.log;
    config.listen = f.listen; /* taken */
    ck_assert_int_eq(server_open(&config, &second, error, sizeof(error)), ST_IO);
    ck_assert_ptr_nonnull(strstr(error, "address already in use"));
    mem_fail_from(f.mem, 1);
    ck_assert_int_eq(server_open(&config, &second, error, sizeof(error)), ST_NO_MEMORY);
    mem_fail_from(f.mem, 0);
    ck_assert_int_eq(post(&f), 201);
    fixture_close(&f);
}
END_TEST

START_TEST(stopping_twice_ends_the_drain)
{
    static const char request[] = "POST / HTTP/1.1\r\n"
                                  "Host: test\r\n"
                                  "Expect: 100-continue\r\n"
                                  "Content-Length: 5\r\n"
                                  "\r\n";
    struct fixture f;
    int fd;

    fixture_open(&f);
    fd = dial(&f);
    ask(fd, request, false); /* 100: it is under way */
    server_stop(f.server);
    ck_assert_int_eq(pthread_join(f.acceptor, NULL), 0);
    server_stop(f.server);
    ck_assert_uint_eq(server_drain(f.server, 3600 * 1000), 1);
    (void)close(fd);
    server_free(f.server);
    api_free(f.api);
    store_close(f.store);
    mem_destroy(f.mem);
    ck_assert_int_eq(rmdir(f.folder), 0);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("server");
    TCase *tc = test_case(suite, "server");

    tcase_add_test(tc, it_serves_and_leaves_nothing_behind);
    tcase_add_test(
        tc, whichever_allocation_fails_there_is_an_answer_and_the_next_one_is_good);
    tcase_add_test(tc, without_any_memory_it_says_so_and_recovers);
    tcase_add_test(tc, a_connection_that_is_gone_is_not_told_what_its_socket_does);
    tcase_add_test(tc, a_server_that_cannot_be_opened_leaves_nothing_behind);
    tcase_add_test(tc, stopping_twice_ends_the_drain);
    return check_main(suite);
}
