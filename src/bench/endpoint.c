#include "bench/endpoint.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

static bool
parse_unix(const char *path, struct endpoint *out)
{
    struct sockaddr_un local = {.sun_family = AF_UNIX};

    if (path[0] == '\0' || strlen(path) >= sizeof local.sun_path)
        return false;
    memcpy(local.sun_path, path, strlen(path) + 1);
    memcpy(&out->address, &local, sizeof local);
    out->address_len = sizeof local;
    snprintf(out->host, sizeof out->host, "localhost");
    return true;
}

static bool
resolve(const char *host, const char *port, struct endpoint *out)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found;

    if (getaddrinfo(host, port, &hints, &found) != 0)
        return false;
    memcpy(&out->address, found->ai_addr, found->ai_addrlen);
    out->address_len = found->ai_addrlen;
    freeaddrinfo(found);
    return true;
}

bool
endpoint_parse(const char *text, struct endpoint *out)
{
    char host[256];
    const char *colon;
    const char *start;
    size_t len;

    *out = (struct endpoint){.address_len = 0};
    if (strncmp(text, "unix:", 5) == 0)
        return parse_unix(text + 5, out);
    if (strncmp(text, "http://", 7) == 0)
        text += 7;
    colon = strrchr(text, ':');
    if (colon == NULL || colon == text || colon[1] == '\0')
        return false;
    start = text;
    len = (size_t)(colon - text);
    if (text[0] == '[' && colon[-1] == ']') {
        start++;
        len -= 2;
    }
    if (len == 0 || len >= sizeof host)
        return false;
    memcpy(host, start, len);
    host[len] = '\0';
    snprintf(out->host, sizeof out->host, "%s", text);
    out->host[strcspn(out->host, "/")] = '\0';
    {
        char port[8];

        snprintf(port, sizeof port, "%.*s", (int)strspn(colon + 1, "0123456789"),
                 colon + 1);
        return resolve(host, port, out);
    }
}

int
endpoint_connect(const struct endpoint *e)
{
    int family = e->address.ss_family;
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int on = 1;

    if (fd < 0)
        return -1;
    if (family != AF_UNIX)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(fd, (const struct sockaddr *)&e->address, e->address_len) != 0 &&
        errno != EINPROGRESS) {
        int why = errno;

        close(fd);
        errno = why;
        return -1;
    }
    return fd;
}
