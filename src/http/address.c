#include "http/address.h"

#include "claimd/base/bytes.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char unix_prefix[] = "unix:";

enum { PORT_MAX = 65535, HOST_CAP = 256 };

/* A text cut in two: "[::1]:80" is "::1" in brackets and "80". */
struct parts {
    char host[HOST_CAP];
    const char *port;
    bool bracketed;
};

/* Where an explanation goes. */
struct error {
    char *text;
    size_t cap;
};

static bool __attribute__((format(printf, 2, 3)))
bad(struct error *error, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(error->text, error->cap, format, args);
    va_end(args);
    return false;
}

/* The path of "unix:/path", NULL if it is another kind of address. */
static const char *
unix_path(const char *text)
{
    const size_t len = sizeof(unix_prefix) - 1;

    return strncmp(text, unix_prefix, len) == 0 ? text + len : NULL;
}

static bool
check_path(const char *path, struct error *error)
{
    const size_t cap = sizeof(((struct sockaddr_un *)NULL)->sun_path);
    size_t len = strlen(path);

    return (len > 0 && len < cap) ||
           bad(error, "must have a path of 1 to %zu bytes after unix:, not %zu", cap - 1,
               len);
}

/* Cuts at the last colon. */
static bool
cut(const char *text, struct parts *out, struct error *error)
{
    const char *colon = strrchr(text, ':');
    size_t len = colon == NULL ? 0 : (size_t)(colon - text);

    if (colon == NULL)
        return bad(error,
                   "must be ADDRESS:PORT, [IPv6]:PORT or unix:PATH, not \"%.100s\"",
                   text);
    if (len == 0)
        return bad(error,
                   "must have an address before the port: 127.0.0.1%.10s, or "
                   "0.0.0.0%.10s for all",
                   text, text);
    out->bracketed = len > 2 && text[0] == '[' && colon[-1] == ']';
    if (out->bracketed) {
        text++;
        len -= 2;
    } else if (memchr(text, ':', len) != NULL) {
        return bad(error, "must have brackets around an IPv6 address and a port after "
                          "them: [::1]:8888");
    }
    if (len >= sizeof(out->host))
        return bad(error, "has a name that is too long: %zu characters", len);
    memcpy(out->host, text, len);
    out->host[len] = '\0';
    out->port = colon + 1;
    return true;
}

static bool
check_port(const char *port, struct error *error)
{
    uint64_t number;

    if (!bytes_to_u64(bytes_str(port), &number) || number > PORT_MAX)
        return bad(error,
                   "must have a port from 0 to %d after the last colon, not \"%.100s\"",
                   PORT_MAX, port);
    return true;
}

/* An IPv6 address, perhaps with a zone: "fe80::1%eth0". */
static bool
is_ipv6(const char *host)
{
    struct bytes rest = bytes_str(host), number = bytes_cut(&rest, '%');
    char plain[INET6_ADDRSTRLEN];
    struct in6_addr address;

    if (number.len >= sizeof(plain) || (bytes_present(rest) && rest.len == 0))
        return false;
    memcpy(plain, number.data, number.len);
    plain[number.len] = '\0';
    return inet_pton(AF_INET6, plain, &address) == 1;
}

static bool
check_host(const struct parts *parts, struct error *error)
{
    const char *host = parts->host, *dot = strrchr(host, '.');
    const char *last = dot == NULL ? host : dot + 1;
    struct in_addr address;

    if (parts->bracketed)
        return is_ipv6(host) ||
               bad(error, "must have an IPv6 address in its brackets, not \"%.100s\"",
                   host);
    for (const char *c = host; *c != '\0'; c++)
        if (!isalnum((unsigned char)*c) && strchr("-._", *c) == NULL)
            return bad(error,
                       "must have an address or the name of a host, not \"%.100s\"",
                       host);
    /* No name ends in a number: what does must be an address. */
    if (last[0] != '\0' && last[strspn(last, "0123456789")] == '\0' &&
        inet_aton(host, &address) == 0)
        return bad(error,
                   "must have an IPv4 address or the name of a host, not \"%.100s\"",
                   host);
    return true;
}

static bool
check(const char *text, struct parts *parts, struct error *error)
{
    return cut(text, parts, error) && check_port(parts->port, error) &&
           check_host(parts, error);
}

bool
address_check(const char *text, char *error, size_t error_cap)
{
    struct error to = {error, error_cap};
    const char *path = unix_path(text);
    struct parts parts;

    return path != NULL ? check_path(path, &to) : check(text, &parts, &to);
}

static void
set_path(const char *path, struct address *out)
{
    size_t len = strlen(path);

    out->sock.local.sun_family = AF_UNIX;
    memcpy(out->sock.local.sun_path, path, len + 1);
    out->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + 1);
}

enum status
address_parse(const char *text, struct address *out, char *error, size_t error_cap)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct error to = {error, error_cap};
    const char *path = unix_path(text);
    struct addrinfo *found = NULL;
    struct parts parts;
    int failed;

    memset(out, 0, sizeof(*out));
    if (path != NULL ? !check_path(path, &to) : !check(text, &parts, &to))
        return ST_BAD_VALUE;
    if (path != NULL) {
        set_path(path, out);
        return ST_OK;
    }
    failed = getaddrinfo(parts.host, parts.port, &hints, &found);
    if (failed != 0) {
        (void)bad(&to, "has the host %.100s, which cannot be looked up: %s", parts.host,
                  failed == EAI_SYSTEM ? strerror(errno) : gai_strerror(failed));
        return ST_IO;
    }
    memcpy(&out->sock, found->ai_addr, found->ai_addrlen);
    out->len = found->ai_addrlen;
    freeaddrinfo(found);
    return ST_OK;
}

bool
address_is_loopback(const struct address *address)
{
    const struct sockaddr_in *v4 = (const void *)&address->sock.any;
    const struct sockaddr_in6 *v6 = (const void *)&address->sock.any;

    if (address->sock.any.sa_family == AF_INET)
        return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
    if (address->sock.any.sa_family != AF_INET6)
        return false;
    return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr) ||
           (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr) && v6->sin6_addr.s6_addr[12] == 127);
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
