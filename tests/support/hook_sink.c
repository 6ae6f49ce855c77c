#include "support/hook_sink.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { REQUESTS_MOST = 4096, CONNECTIONS_MOST = 4096, REQUEST_MAX = 1 << 17 };

struct visitor {
    struct hook_sink *sink;
    pthread_t thread;
    int fd;
};

struct hook_sink {
    int fd, port;
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t moved;
    size_t request_count, visitor_count;
    char *requests[REQUESTS_MOST];
    struct visitor visitors[CONNECTIONS_MOST];
};

/* ---------------------------------------------------------------------- requests */

static bool
has_path(const char *request, const char *path)
{
    const char *at = strchr(request, ' ');
    size_t len = strlen(path);

    return at != NULL && strncmp(at + 1, path, len) == 0 &&
           (at[1 + len] == ' ' || at[1 + len] == '?');
}

static void
keep(struct hook_sink *s, const char *request)
{
    pthread_mutex_lock(&s->lock);
    if (s->request_count == REQUESTS_MOST)
        abort();
    s->requests[s->request_count++] = strdup(request);
    pthread_cond_broadcast(&s->moved);
    pthread_mutex_unlock(&s->lock);
}

static size_t
count(const struct hook_sink *s, const char *path)
{
    size_t n = 0;

    for (size_t i = 0; i < s->request_count; i++)
        n += has_path(s->requests[i], path);
    return n;
}

size_t
hook_sink_count(struct hook_sink *s, const char *path)
{
    size_t n;

    pthread_mutex_lock(&s->lock);
    n = count(s, path);
    pthread_mutex_unlock(&s->lock);
    return n;
}

void
hook_sink_await(struct hook_sink *s, const char *path, size_t wanted)
{
    pthread_mutex_lock(&s->lock);
    while (count(s, path) < wanted)
        pthread_cond_wait(&s->moved, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

const char *
hook_sink_request(struct hook_sink *s, const char *path, size_t n)
{
    const char *found = NULL;

    hook_sink_await(s, path, n + 1);
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; found == NULL; i++)
        if (has_path(s->requests[i], path) && n-- == 0)
            found = s->requests[i];
    pthread_mutex_unlock(&s->lock);
    return found;
}

size_t
hook_sink_connections(struct hook_sink *s)
{
    size_t n;

    pthread_mutex_lock(&s->lock);
    n = s->visitor_count;
    pthread_mutex_unlock(&s->lock);
    return n;
}

/* ---------------------------------------------------------------------- responses */

static bool
say(int fd, const char *text)
{
    size_t len = strlen(text);

    return send(fd, text, len, MSG_NOSIGNAL) == (ssize_t)len;
}

/* Until the other side closes. */
static void
hang(int fd)
{
    char unread[256];

    while (recv(fd, unread, sizeof(unread), 0) > 0)
        continue;
}

static void
say_for_ever(int fd, const char *text)
{
    while (say(fd, text))
        continue;
}

static bool
response_status_of(int fd, const char *request)
{
    char text[256], again[64] = "";
    unsigned code = 200, wait_s;

    switch (sscanf(strchr(request, ' '), " /status/%u/%u", &code, &wait_s)) {
    case 2:
        (void)snprintf(again, sizeof(again), "Retry-After: %u\r\n", wait_s);
        break;
    default:
        break;
    }
    (void)snprintf(text, sizeof(text),
                   "HTTP/1.1 %u Said\r\n%sContent-Length: %d\r\n\r\n%s", code, again,
                   code == 204 || code == 304 ? 0 : 2,
                   code == 204 || code == 304 ? "" : "ok");
    return say(fd, text);
}

/* True if another request may follow. */
static bool
response(struct hook_sink *s, int fd, const char *request)
{
    char text[256];

    if (has_path(request, "/hang")) {
        hang(fd);
    } else if (has_path(request, "/drip")) {
        (void)say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nx");
        hang(fd);
    } else if (has_path(request, "/huge")) {
        (void)say(fd, "HTTP/1.1 200 OK\r\n\r\n");
        say_for_ever(fd, "0123456789012345678901234567890123456789012345678901234567890");
    } else if (has_path(request, "/heads")) {
        (void)say(fd, "HTTP/1.1 200 OK\r\n");
        say_for_ever(fd, "X: 0123456789012345678901234567890123456789012345678901\r\n");
    } else if (has_path(request, "/noise")) {
        (void)say(fd, "-ERR unknown command\r\n");
    } else if (has_path(request, "/redirect")) {
        (void)snprintf(
            text, sizeof(text),
            "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:%d/status/200\r\n"
            "Content-Length: 0\r\n\r\n",
            s->port);
        return say(fd, text);
    } else if (!has_path(request, "/close")) {
        return response_status_of(fd, request);
    }
    return false;
}

/* Reads one request as a whole. */
static bool
read_request(int fd, char *text)
{
    size_t len = 0, whole = 0;

    while (whole == 0 || len < whole) {
        ssize_t n =
            len < REQUEST_MAX - 1 ? recv(fd, text + len, REQUEST_MAX - 1 - len, 0) : 0;
        const char *end, *length;

        if (n <= 0)
            return false;
        len += (size_t)n;
        text[len] = '\0';
        end = strstr(text, "\r\n\r\n");
        if (end == NULL || whole > 0)
            continue;
        length = strcasestr(text, "content-length: ");
        whole = (size_t)(end + 4 - text);
        if (length != NULL && length < end)
            whole += strtoul(length + 16, NULL, 10);
    }
    return true;
}

static void *
visit(void *arg)
{
    struct visitor *v = arg;
    char *text = malloc(REQUEST_MAX);

    if (text == NULL)
        abort();
    while (read_request(v->fd, text)) {
        keep(v->sink, text);
        if (!response(v->sink, v->fd, text))
            break;
    }
    (void)shutdown(v->fd, SHUT_RDWR);
    free(text);
    return NULL;
}

/* ---------------------------------------------------------------------- life */

static void *
serve(void *arg)
{
    struct hook_sink *s = arg;

    for (;;) {
        int fd = accept(s->fd, NULL, NULL);
        struct visitor *v;

        if (fd < 0)
            return NULL;
        pthread_mutex_lock(&s->lock);
        if (s->visitor_count == CONNECTIONS_MOST)
            abort();
        v = &s->visitors[s->visitor_count];
        v->sink = s;
        v->fd = fd;
        if (pthread_create(&v->thread, NULL, visit, v) != 0)
            abort();
        s->visitor_count++;
        pthread_mutex_unlock(&s->lock);
    }
}

struct hook_sink *
hook_sink_open(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_ANY)};
    socklen_t len = sizeof(address);
    struct hook_sink *s = calloc(1, sizeof(*s));

    if (s == NULL)
        abort();
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s->fd < 0 || bind(s->fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(s->fd, 1024) != 0 ||
        getsockname(s->fd, (struct sockaddr *)&address, &len) != 0)
        abort();
    s->port = ntohs(address.sin_port);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->moved, NULL);
    if (pthread_create(&s->thread, NULL, serve, s) != 0)
        abort();
    return s;
}

int
hook_sink_port(const struct hook_sink *s)
{
    return s->port;
}

void
hook_sink_close(struct hook_sink *s)
{
    (void)shutdown(s->fd, SHUT_RDWR);
    (void)pthread_join(s->thread, NULL);
    (void)close(s->fd);
    for (size_t i = 0; i < s->visitor_count; i++)
        (void)shutdown(s->visitors[i].fd, SHUT_RDWR);
    for (size_t i = 0; i < s->visitor_count; i++) {
        (void)pthread_join(s->visitors[i].thread, NULL);
        (void)close(s->visitors[i].fd);
    }
    for (size_t i = 0; i < s->request_count; i++)
        free(s->requests[i]);
    pthread_cond_destroy(&s->moved);
    pthread_mutex_destroy(&s->lock);
    free(s);
}
