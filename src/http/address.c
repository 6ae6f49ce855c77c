#include "http/address.h"

#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char unix_prefix[] = "unix:";

static enum status
parse_unix(const char *path, struct address *out, char *error, size_t error_cap)
{
    size_t len = strlen(path);

    if (len == 0 || len >= sizeof(out->sock.local.sun_path)) {
        (void)snprintf(error, error_cap, "a socket path has 1 to %zu bytes",
                       sizeof(out->sock.local.sun_path) - 1);
        return ST_BAD_VALUE;
    }
    out->sock.local.sun_family = AF_UNIX;
    memcpy(out->sock.local.sun_path, path, len + 1);
    out->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + 1);
    return ST_OK;
}

/* Copies [from, to) into out without the brackets of an IPv6 address. */
static bool
copy_host(const char *from, const char *to, char *out, size_t cap)
{
    if (to - from >= 2 && from[0] == '[' && to[-1] == ']') {
        from++;
        to--;
    } else if (memchr(from, ':', (size_t)(to - from)) != NULL) {
        return false; /* an IPv6 address without brackets: where does the port begin? */
    }
    if (from == to || (size_t)(to - from) >= cap)
        return false;
    memcpy(out, from, (size_t)(to - from));
    out[to - from] = '\0';
    return true;
}

enum status
address_parse(const char *text, struct address *out, char *error, size_t error_cap)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    const char *colon = strrchr(text, ':');
    struct addrinfo *found = NULL;
    char host[256];
    int failed;

    memset(out, 0, sizeof(*out));
    if (strncmp(text, unix_prefix, sizeof(unix_prefix) - 1) == 0)
        return parse_unix(text + sizeof(unix_prefix) - 1, out, error, error_cap);
    if (colon == NULL || colon[1] == '\0' ||
        !copy_host(text, colon, host, sizeof(host))) {
        (void)snprintf(error, error_cap,
                       "an address looks like 127.0.0.1:8888, [::1]:8888 or unix:/path");
        return ST_BAD_VALUE;
    }
    failed = getaddrinfo(host, colon + 1, &hints, &found);
    if (failed != 0) {
        (void)snprintf(error, error_cap, "%s", gai_strerror(failed));
        return ST_BAD_VALUE;
    }
    memcpy(&out->sock, found->ai_addr, found->ai_addrlen);
    out->len = found->ai_addrlen;
    freeaddrinfo(found);
    return ST_OK;
}

void
address_text(const struct sockaddr *sock, socklen_t len, char out[ADDRESS_TEXT_CAP])
{
    char host[NI_MAXHOST], port[NI_MAXSERV];

    if (sock->sa_family == AF_UNIX) {
        const struct sockaddr_un *local = (const struct sockaddr_un *)(const void *)sock;
        bool named = len > offsetof(struct sockaddr_un, sun_path);

        (void)snprintf(out, ADDRESS_TEXT_CAP, named ? "unix:%.*s" : "unix",
                       (int)sizeof(local->sun_path), local->sun_path);
    } else if (getnameinfo(sock, len, host, sizeof(host), port, sizeof(port),
                           NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
        (void)snprintf(out, ADDRESS_TEXT_CAP, "unknown");
    } else {
        (void)snprintf(out, ADDRESS_TEXT_CAP,
                       sock->sa_family == AF_INET6 ? "[%.64s]:%.8s" : "%.64s:%.8s", host,
                       port);
    }
}
