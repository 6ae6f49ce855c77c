#include "support/server_fixture.h"

#include "claimd/engine/engine.h"
#include "support/check_main.h"
#include "support/slow_store.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void *
accept_all(void *arg)
{
    server_run(arg);
    return NULL;
}

void
server_fixture_open(struct server_fixture *f, size_t workers)
{
    const struct server_fixture_options options = {.workers = workers};

    server_fixture_open_with(f, &options);
}

static void
open_store(struct server_fixture *f, const struct server_fixture_options *options,
           const struct engine_config *engine)
{
    const struct executor_config executor = {
        .mem = f->mem, .threads = options->threads, .line = options->line};

    if (options->slow)
        f->store = slow_store_open(engine, options->slow_kinds);
    else
        ck_assert_int_eq(engine_open(engine, &f->store), ST_OK);
    f->executor = NULL;
    if (options->threads > 0)
        ck_assert_int_eq(executor_open(&executor, &f->executor), ST_OK);
}

static void
ignore_move(void *ctx)
{
    (void)ctx;
}

static void
open_testapi(struct server_fixture *f, struct engine_config *engine)
{
    ck_assert_int_eq(testapi_new(f->mem, &f->testapi), ST_OK);
    engine->log = testapi_log(f->testapi, NULL);
}

static void
open_keystone(struct server_fixture *f, const struct server_fixture_options *options)
{
    const struct executor_config verifier = {.mem = f->mem,
                                             .threads = options->keystone_threads,
                                             .line = options->keystone_line};
    struct keystone_config config = {.mem = f->mem,
                                     .wire = &f->fake.wire,
                                     .roles = fake_keystone_roles,
                                     .cache_ms = 60000,
                                     .cache_tokens = 100,
                                     .timeout_ms = 60000};

    fake_keystone_init(&f->fake);
    f->verifier = NULL;
    f->keystone = NULL;
    f->access = NULL;
    if (options->keystone_threads == 0)
        return;
    ck_assert_int_eq(executor_open(&verifier, &f->verifier), ST_OK);
    config.executor = f->verifier;
    ck_assert_int_eq(keystone_new(&config, &f->keystone), ST_OK);
    ck_assert_int_eq(access_new(f->mem, &f->access), ST_OK);
    access_use_keystone(f->access, f->keystone);
}

void
server_fixture_open_with(struct server_fixture *f,
                         const struct server_fixture_options *options)
{
    struct engine_config engine = {.shards = 4,
                                   .message_ttl_s = 3600,
                                   .claim_ttl_s = 300,
                                   .claim_grace_s = 60,
                                   .max_message_ttl_s = 1209600};
    struct api_config api = {.limits = api_limits_default};
    struct server_config config = {.socket_mode = 0600,
                                   .socket_group = -1,
                                   .workers = options->workers,
                                   .max_connections = 100,
                                   .max_waiters = options->max_waiters,
                                   .fibers = options->fibers,
                                   .max_header_bytes = 6144,
                                   .max_headers = 64,
                                   .idle_seconds = SERVER_FIXTURE_SECONDS,
                                   .request_seconds = SERVER_FIXTURE_SECONDS};
    struct reason why;

    (void)snprintf(f->folder, sizeof(f->folder), "/tmp/claimd-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(f->folder));
    if (options->tcp)
        (void)snprintf(f->listen, sizeof(f->listen), "127.0.0.1:0");
    else
        (void)snprintf(f->listen, sizeof(f->listen), "unix:%s/socket", f->folder);
    f->mem = mem_new(0);
    ck_assert_ptr_nonnull(f->mem);
    clock_init_system(&f->clock);
    f->log = (struct log){.fd = STDERR_FILENO, .level = LOG_ERROR, .clock = &f->clock};
    engine.mem = f->mem;
    engine.now_ms = clock_now_ms(&f->clock);
    f->testapi = NULL;
    if (options->testapi)
        open_testapi(f, &engine);
    open_store(f, options, &engine);
    if (options->testapi)
        testapi_attach(f->testapi, f->store, NULL, ignore_move, NULL);
    open_keystone(f, options);
    api.testapi = f->testapi;
    api.access = f->access;
    api.real = &f->clock;
    api.store = f->store;
    api.mem = f->mem;
    ck_assert_int_eq(api_new(&api, &f->api), ST_OK);
    config.api = f->api;
    config.store = f->store;
    config.store_log = options->slow ? slow_store_log(f->store) : NULL;
    config.mem = f->mem;
    config.clock = f->testapi == NULL ? &f->clock : testapi_clock(f->testapi);
    config.log = &f->log;
    ck_assert_msg(listen_read(f->listen, &f->list, &why) == ST_OK, "%s", why.text);
    config.listen = &f->list;
    config.executor = f->executor;
    if (options->max_connections > 0)
        config.max_connections = options->max_connections;
    ck_assert_msg(server_open(&config, &f->server, &why) == ST_OK, "%s", why.text);
    ck_assert_int_eq(pthread_create(&f->acceptor, NULL, accept_all, f->server), 0);
    f->accepting = true;
}

void
server_fixture_stop(struct server_fixture *f)
{
    server_stop(f->server);
    ck_assert_int_eq(pthread_join(f->acceptor, NULL), 0);
    f->accepting = false;
}

/* Frees one that was drained. */
static void
free_all(struct server_fixture *f)
{
    executor_close(f->executor); /* it may still give claims back */
    server_close(f->server);
    api_free(f->api);
    executor_close(f->verifier);
    access_free(f->access);
    keystone_free(f->keystone);
    fake_keystone_fini(&f->fake);
    ck_assert(store_audit(f->store));
    store_close(f->store);
    server_free(f->server);
    testapi_free(f->testapi);
    mem_destroy(f->mem); /* asserts that nothing is left */
    ck_assert_int_eq(rmdir(f->folder), 0);
}

void
server_fixture_close(struct server_fixture *f)
{
    if (f->accepting)
        server_fixture_stop(f);
    ck_assert_uint_eq(server_drain(f->server, 60000), 0);
    free_all(f);
}

void
server_fixture_cut(struct server_fixture *f)
{
    if (f->accepting)
        server_fixture_stop(f);
    (void)server_drain(f->server, 0);
    free_all(f);
}

/* A connection over TCP to the listener that the server names. */
static int
dial_tcp(const char *listener)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    address.sin_port = htons((uint16_t)atoi(strrchr(listener, ':') + 1));
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

int
server_fixture_dial(const struct server_fixture *f)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd;

    if (strncmp(f->listen, "unix:", 5) != 0)
        return dial_tcp(server_address(f->server, 0));
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", f->listen + 5);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

/* The headers of every request. */
#define HEAD                                                                             \
    "Host: test\r\n"                                                                     \
    "Client-ID: 3381af92-2b9e-11e3-b191-71861300734c\r\n"                                \
    "X-Project-ID: p\r\n"                                                                \
    "Connection: close\r\n"

/* Sends a request on a connection of its own. Returns the status; 0: closed without a
 * response. */
static int
fetch(const struct server_fixture *f, const char *request)
{
    char response[2048];
    size_t len = 0;
    int fd = server_fixture_dial(f);
    ssize_t n;

    /* Fails only if the server has closed already: then there may still be a response. */
    (void)send(fd, request, strlen(request), MSG_NOSIGNAL);
    while ((n = recv(fd, response + len, sizeof(response) - 1 - len, 0)) > 0)
        len += (size_t)n;
    (void)close(fd);
    response[len] = '\0';
    if (len == 0)
        return 0;
    ck_assert_msg(strncmp(response, "HTTP/1.1 ", 9) == 0, "%s", response);
    return atoi(response + 9);
}

int
server_fixture_post(const struct server_fixture *f)
{
    return fetch(f,
                 "POST /v2/queues/q/messages HTTP/1.1\r\n" HEAD "Content-Length: 25\r\n"
                 "\r\n"
                 "{\"messages\":[{\"body\":1}]}");
}

void
server_fixture_settle(const struct server_fixture *f)
{
    /*
     * A round responses, and then does the rest: closes what is overdue, for one. It runs
     * its connections twice when mail comes in between, so it may respond two of these:
     * two in a round that had begun before, two in the next, and when the fifth is
     * responded to that next one has ended.
     */
    static const char request[] = "GET /livez HTTP/1.1\r\n" HEAD "\r\n";
    int status = fetch(f, request);

    /* If the time has moved on, a round that had begun before accepts the connection at
     * the old time, and then it is overdue. */
    if (status == 0)
        status = fetch(f, request);
    ck_assert_int_eq(status, 200);
    for (int i = 1; i < 5; i++)
        ck_assert_int_eq(fetch(f, request), 200);
}
