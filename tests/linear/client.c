#include "linear/client.h"

#include "claimd/base/clock.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

_Noreturn static void
give_up(const char *what)
{
    perror(what);
    exit(EXIT_FAILURE);
}

void
client_open(struct client *c, const char *host, const char *port)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    int on = 1;

    if (getaddrinfo(host, port, &hints, &found) != 0)
        give_up(host);
    c->gate = NULL;
    c->prefer = NULL;
    c->fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, found->ai_addr, found->ai_addrlen) != 0)
        give_up("connect");
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* only slower */
    freeaddrinfo(found);
}

void
client_close(struct client *c)
{
    (void)close(c->fd);
}

static void
send_all(struct client *c, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = send(c->fd, text, len, MSG_NOSIGNAL);

        if (n <= 0)
            give_up("send");
        text += n;
        len -= (size_t)n;
    }
}

/* The value of a header in the answer's head, NULL if it is not there. */
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

/* Receives the whole answer and returns where its body begins. */
static const char *
receive(struct client *c)
{
    size_t len = 0, whole = SIZE_MAX;
    const char *body = NULL, *length;

    while (len < whole) {
        ssize_t n = recv(c->fd, c->text + len, CLIENT_ROOM - 1 - len, 0);

        if (n <= 0)
            give_up("recv");
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
client_ask(struct client *c, const char *method, const char *target, const char *body,
           struct answer *out)
{
    char text[4096];
    const char *answer, *location;
    int len =
        snprintf(text, sizeof(text),
                 "%s %s HTTP/1.1\r\nHost: localhost\r\nX-Project-ID: linear\r\n"
                 "Client-ID: 3381af92-2b9e-11e3-b191-71861300734c\r\n"
                 "%s%s%sContent-Length: %zu\r\n\r\n%s",
                 method, target,
                 c->prefer == NULL ? "" : "Prefer: ", c->prefer == NULL ? "" : c->prefer,
                 c->prefer == NULL ? "" : "\r\n", body == NULL ? 0 : strlen(body),
                 body == NULL ? "" : body);

    *out = (struct answer){.call_ns = clock_stopwatch_ns()};
    if (c->gate != NULL)
        (void)pthread_barrier_wait(c->gate); /* fails only when misused */
    c->gate = NULL;
    c->prefer = NULL;
    send_all(c, text, (size_t)len);
    answer = receive(c);
    out->reply_ns = clock_stopwatch_ns();
    out->code = atoi(c->text + sizeof("HTTP/1.1"));
    location = header(c, answer, "Location");
    if (location != NULL)
        (void)snprintf(out->location, sizeof(out->location), "%.*s",
                       (int)strcspn(location, "\r\n"), location);
    if (answer[0] != '\0')
        out->document = json_loads(answer, 0, NULL);
}
