/*
 * floor_epoll ADDRESS [BATCH [BODY_BYTES]]: a bare epoll loop that responds to the
 * requests of `claimd-bench` with fixed documents: what the kernel and the loopback
 * allow.
 */
#include "bench/floor.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define REQUEST_CAP 300000U
#define EVENTS      128

struct client {
    int fd;
    size_t len;
    char in[REQUEST_CAP]; /* pages never touched cost nothing */
};

/* The responses as they go over the wire. */
struct wire {
    struct bytes text[FLOOR_KINDS];
};

static bool
build_wire(unsigned batch, size_t body_bytes, struct wire *wire)
{
    struct floor_response responses[FLOOR_KINDS];

    if (!floor_responses(batch, body_bytes, responses))
        return false;
    for (int kind = 0; kind < FLOOR_KINDS; kind++) {
        const struct floor_response *a = &responses[kind];
        char *text;
        size_t len;
        FILE *out = open_memstream(&text, &len);

        if (out == NULL)
            return false;
        fprintf(out,
                "HTTP/1.1 %d Fine\r\nDate: Sat, 21 Nov 2026 08:00:00 GMT\r\n"
                "X-Request-ID: req-0011223344556677\r\n",
                a->status);
        if (a->location != NULL)
            fprintf(out, "Location: %s\r\n", a->location);
        if (a->status != 204)
            fprintf(out, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
                    a->body.len);
        fprintf(out, "\r\n%.*s", (int)a->body.len, a->body.data);
        if (fclose(out) != 0)
            return false;
        wire->text[kind] = bytes_of(text, len);
    }
    return true;
}

/* The value of Content-Length in a head, 0 without one. */
static size_t
body_length(const char *head, const char *end)
{
    const char *line = head;

    while (line < end) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));

        if ((*line | 0x20) == 'c' && strncasecmp(line, "content-length:", 15) == 0)
            return strtoul(line + 15, NULL, 10);
        if (stop == NULL)
            break;
        line = stop + 1;
    }
    return 0;
}

static void
drop(struct client *c)
{
    close(c->fd);
    free(c);
}

/* Responds to the requests that are whole; false when the client is gone or too large. */
static bool
respond(struct client *c, const struct wire *wire)
{
    char *end = memmem(c->in, c->len, "\r\n\r\n", 4);
    const char *space, *path_end;
    struct bytes text;
    size_t whole;

    if (end == NULL)
        return c->len < sizeof c->in;
    whole = (size_t)(end - c->in) + 4 + body_length(c->in, end + 2);
    if (c->len < whole)
        return whole <= sizeof c->in;
    space = memchr(c->in, ' ', c->len);
    path_end = space == NULL ? NULL : memchr(space + 1, ' ', (size_t)(end - space - 1));
    if (path_end == NULL)
        return false;
    text = wire->text[floor_choose(bytes_of(c->in, (size_t)(space - c->in)),
                                   bytes_of(space + 1, (size_t)(path_end - space - 1)))];
    c->len = 0;
    return send(c->fd, text.data, text.len, MSG_NOSIGNAL) == (ssize_t)text.len;
}

static void
serve(struct client *c, const struct wire *wire)
{
    ssize_t n = recv(c->fd, c->in + c->len, sizeof c->in - c->len, 0);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        drop(c);
        return;
    }
    c->len += (size_t)n;
    if (!respond(c, wire))
        drop(c);
}

static void
admit(int epoll, int listener)
{
    int fd;

    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        struct client *c = malloc(sizeof *c);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
        int on = 1;

        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (c == NULL || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
            free(c);
            close(fd);
            return;
        }
        c->fd = fd;
        c->len = 0;
    }
}

int
main(int argc, char **argv)
{
    struct wire wire;
    int listener = argc < 2 ? -1 : floor_listen(argv[1]);
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};

    if (listener < 0 || epoll < 0 ||
        !build_wire(argc > 2 ? (unsigned)atoi(argv[2]) : 1,
                    argc > 3 ? (size_t)atol(argv[3]) : 100, &wire) ||
        epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) != 0)
        return EXIT_FAILURE;
    for (;;) {
        struct epoll_event events[EVENTS];
        int n = epoll_wait(epoll, events, EVENTS, -1);

        for (int i = 0; i < n; i++) {
            if (events[i].data.ptr == NULL)
                admit(epoll, listener);
            else
                serve(events[i].data.ptr, &wire);
        }
    }
}
