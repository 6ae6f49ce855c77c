#include "model/linear/client.h"

#include "claimd/base/clock.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { AGAIN_MS = 5, PATIENCE_MS = 60000 };

_Noreturn static void
give_up(const char *what)
{
    perror(what);
    exit(EXIT_FAILURE);
}

/* False: nothing listens there. */
static bool
try_to_connect(struct client *c)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    int on = 1, error;

    if (getaddrinfo(c->host, c->port, &hints, &found) != 0)
        give_up(c->host);
    c->fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0)
        give_up("socket");
    error = connect(c->fd, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    if (error != 0) {
        client_close(c);
        return false;
    }
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* only slower */
    return true;
}

/*
 * While the server is being started again nothing listens. Not at once: one that is
 * killed closes its sockets one after the other, and may still seem to listen.
 */
static void
connect_anew(struct client *c)
{
    const struct timespec pause = {.tv_nsec = AGAIN_MS * 1000000L};

    for (int ms = 0; ms < PATIENCE_MS; ms += AGAIN_MS) {
        (void)nanosleep(&pause, NULL);
        if (try_to_connect(c))
            return;
    }
    give_up("connect anew");
}

void
client_open(struct client *c, const char *host, const char *port)
{
    c->host = host;
    c->port = port;
    c->outlives = false;
    c->gate = NULL;
    c->prefer = c->key = c->unique = NULL;
    if (!try_to_connect(c))
        give_up("connect");
}

void
client_close(struct client *c)
{
    if (c->fd >= 0)
        (void)close(c->fd);
    c->fd = -1;
}

/* It broke. */
static void
note_break(struct client *c, const char *what)
{
    if (!c->outlives)
        give_up(what);
    client_close(c);
}

static bool
send_all(struct client *c, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = send(c->fd, text, len, MSG_NOSIGNAL);

        if (n <= 0) {
            note_break(c, "send");
            return false;
        }
        text += n;
        len -= (size_t)n;
    }
    return true;
}

/* The value of a header in the response's head, NULL if it is not there. */
static const char *
header(const struct client *c, const char *head_end, const char *name)
{
    const char *line = strstr(c->text, "\r\n");
    size_t len = strlen(name);

    for (; line != NULL && line < head_end; line = strstr(line + 2, "\r\n"))
        if (strncasecmp(line + 2, name, len) == 0 && line[2 + len] == ':')
            return line + 2 + len + strspn(line + 2 + len, ": ");
    return NULL;
}

/* Receives the whole response and returns where its body begins; NULL: it did not
 * come. */
static const char *
receive(struct client *c)
{
    size_t len = 0, whole = SIZE_MAX;
    const char *body = NULL, *length;

    while (len < whole) {
        ssize_t n = recv(c->fd, c->text + len, CLIENT_TEXT_MAX - 1 - len, 0);

        if (n <= 0) {
            note_break(c, "recv");
            return NULL;
        }
        len += (size_t)n;
        c->text[len] = '\0';
        if (body != NULL)
            continue;
        body = strstr(c->text, "\r\n\r\n");
        if (body == NULL)
            continue;
        length = header(c, body, "Content-Length");
        body += 4;
        whole = (size_t)(body - c->text) +
                (length == NULL ? 0 : (size_t)strtoull(length, NULL, 10));
    }
    return body;
}

void
client_fetch(struct client *c, const char *method, const char *target, const char *body,
             struct linear_response *out)
{
    char text[4096];
    const char *response = NULL, *location;
    int len =
        snprintf(text, sizeof(text),
                 "%s %s HTTP/1.1\r\nHost: localhost\r\nX-Project-ID: linear\r\n"
                 "Client-ID: 3381af92-2b9e-11e3-b191-71861300734c\r\n"
                 "%s%s%s%s%s%s%s%s%sContent-Length: %zu\r\n\r\n%s",
                 method, target,
                 c->prefer == NULL ? "" : "Prefer: ", c->prefer == NULL ? "" : c->prefer,
                 c->prefer == NULL ? "" : "\r\n",
                 c->key == NULL ? "" : "Idempotency-Key: ", c->key == NULL ? "" : c->key,
                 c->key == NULL ? "" : "\r\n", c->unique == NULL ? "" : "Claimd-Unique: ",
                 c->unique == NULL ? "" : c->unique, c->unique == NULL ? "" : "\r\n",
                 body == NULL ? 0 : strlen(body), body == NULL ? "" : body);

    if (c->fd < 0)
        connect_anew(c);
    *out = (struct linear_response){.call_ns = clock_stopwatch_ns()};
    if (c->gate != NULL)
        (void)pthread_barrier_wait(c->gate); /* fails only when misused */
    c->gate = NULL;
    c->prefer = c->key = c->unique = NULL;
    if (send_all(c, text, (size_t)len))
        response = receive(c);
    out->response_ns = clock_stopwatch_ns();
    if (response == NULL)
        return;
    out->code = atoi(c->text + sizeof("HTTP/1.1"));
    if (out->code == 503 && c->outlives)
        out->code = 0;
    if (out->code == 0)
        return;
    out->existing = header(c, response, "Claimd-Unique") != NULL;
    location = header(c, response, "Location");
    if (location != NULL)
        (void)snprintf(out->location, sizeof(out->location), "%.*s",
                       (int)strcspn(location, "\r\n"), location);
    if (response[0] != '\0')
        out->document = json_loads(response, 0, NULL);
}
