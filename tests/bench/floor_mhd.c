/*
 * floor_mhd ADDRESS [BATCH [BODY_BYTES]]: libmicrohttpd in the same set-up as claimd's
 * front end (an event loop of our own over a daemon in external epoll mode, small
 * connection pools). It reads each request whole into a buffer and responds with a fixed
 * document, in a response made for the request: what the library allows.
 */
#include "bench/floor.h"

#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define POOL_BYTES  (8 * 1024) /* as claimd has by default */
#define REQUEST_CAP 300000U

struct exchange {
    size_t len;
    char body[REQUEST_CAP]; /* pages never touched cost nothing */
};

struct floor_server {
    struct floor_response responses[FLOOR_KINDS];
    struct exchange exchange; /* one at a time: requests arrive whole here */
};

static enum MHD_Result
reply(struct MHD_Connection *connection, const struct floor_response *a)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(
        a->body.len, (void *)(uintptr_t)a->body.data, MHD_RESPMEM_PERSISTENT);
    enum MHD_Result result;

    if (response == NULL)
        return MHD_NO;
    MHD_add_response_header(response, "X-Request-ID", "req-0011223344556677");
    if (a->location != NULL)
        MHD_add_response_header(response, "Location", a->location);
    if (a->status != 204)
        MHD_add_response_header(response, "Content-Type", "application/json");
    result = MHD_queue_response(connection, (unsigned)a->status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result
handle(void *cls, struct MHD_Connection *connection, const char *url, const char *method,
       const char *version, const char *upload, size_t *upload_size, void **request)
{
    struct floor_server *server = cls;

    (void)version;
    if (*request == NULL) {
        *request = &server->exchange;
        server->exchange.len = 0;
        return MHD_YES;
    }
    if (*upload_size > 0) {
        struct exchange *ex = &server->exchange;
        size_t space = sizeof ex->body - ex->len;
        size_t n = *upload_size < space ? *upload_size : space;

        memcpy(ex->body + ex->len, upload, n);
        ex->len += n;
        *upload_size = 0;
        return MHD_YES;
    }
    return reply(connection,
                 &server->responses[floor_choose(bytes_str(method), bytes_str(url))]);
}

static void
admit(struct MHD_Daemon *daemon, int listener)
{
    struct sockaddr_storage peer;
    socklen_t len = sizeof peer;
    int fd;

    while ((fd = accept4(listener, (struct sockaddr *)&peer, &len,
                         SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        int on = 1;

        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (MHD_add_connection(daemon, fd, (struct sockaddr *)&peer, len) != MHD_YES)
            return; /* it has closed the socket */
        len = sizeof peer;
    }
}

static int
watch(int epoll, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

static int
run(struct MHD_Daemon *daemon, int listener)
{
    int inner = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    int epoll = epoll_create1(EPOLL_CLOEXEC);

    if (epoll < 0 || watch(epoll, inner) != 0 || watch(epoll, listener) != 0)
        return EXIT_FAILURE;
    for (;;) {
        struct epoll_event events[2];
        MHD_UNSIGNED_LONG_LONG limit;
        int wait = MHD_get_timeout(daemon, &limit) == MHD_YES && limit < 1000 ? (int)limit
                                                                              : 1000;
        int n = epoll_wait(epoll, events, 2, wait);

        for (int i = 0; i < n; i++) {
            if (events[i].data.fd == listener)
                admit(daemon, listener);
        }
        MHD_run(daemon);
    }
}

int
main(int argc, char **argv)
{
    static struct floor_server server;
    struct MHD_Daemon *daemon;
    int listener = argc < 2 ? -1 : floor_listen(argv[1]);

    if (listener < 0 ||
        !floor_responses(argc > 2 ? (unsigned)atoi(argv[2]) : 1,
                         argc > 3 ? (size_t)atol(argv[3]) : 100, server.responses))
        return EXIT_FAILURE;
    daemon =
        MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL, handle,
                         &server, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)POOL_BYTES,
                         MHD_OPTION_CONNECTION_LIMIT, 20000U, MHD_OPTION_END);
    if (daemon == NULL)
        return EXIT_FAILURE;
    return run(daemon, listener);
}
