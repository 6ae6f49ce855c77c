#include "claimd/http/listen.h"

#include "claimd/base/bytes.h"
#include "http/address.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char unix_prefix[] = "unix:";

/* ------------------------------------------------------------------ addresses */

enum { PORT_MAX = 65535, HOST_CAP = 256 };

/* A text cut in two: "[::1]:80" is "::1" in brackets and "80". */
struct parts {
    char host[HOST_CAP];
    const char *port;
    bool bracketed;
};

/* The text of an error, for people. */
struct error {
    char *text;
    size_t cap;
};

static bool __attribute__((format(printf, 2, 3)))
set_error(struct error *error, const char *format, ...)
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
           set_error(error, "must have a path of 1 to %zu bytes after unix:, not %zu",
                     cap - 1, len);
}

/* Cuts at the last colon. */
static bool
cut_address(const char *text, struct parts *out, struct error *error)
{
    const char *colon = strrchr(text, ':');
    size_t len = colon == NULL ? 0 : (size_t)(colon - text);

    if (colon == NULL)
        return set_error(error,
                         "must be ADDRESS:PORT, [IPv6]:PORT or unix:PATH, not \"%.100s\"",
                         text);
    if (len == 0)
        return set_error(error,
                         "must have an address before the port: 127.0.0.1%.10s, or "
                         "0.0.0.0%.10s for all",
                         text, text);
    out->bracketed = len > 2 && text[0] == '[' && colon[-1] == ']';
    if (out->bracketed) {
        text++;
        len -= 2;
    } else if (memchr(text, ':', len) != NULL) {
        return set_error(error,
                         "must have brackets around an IPv6 address and a port after "
                         "them: [::1]:8888");
    }
    if (len >= sizeof(out->host))
        return set_error(error, "has a name that is too long: %zu characters", len);
    memcpy(out->host, text, len);
    out->host[len] = '\0';
    out->port = colon + 1;
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
               set_error(error,
                         "must have an IPv6 address in its brackets, not \"%.100s\"",
                         host);
    for (const char *c = host; *c != '\0'; c++)
        if (!isalnum((unsigned char)*c) && strchr("-._", *c) == NULL)
            return set_error(error,
                             "must have an address or the name of a host, not \"%.100s\"",
                             host);
    /* No name ends in a number: what does must be an address. */
    if (last[0] != '\0' && last[strspn(last, "0123456789")] == '\0' &&
        inet_aton(host, &address) == 0)
        return set_error(
            error, "must have an IPv4 address or the name of a host, not \"%.100s\"",
            host);
    return true;
}

static bool
check_address(const char *text, struct parts *parts, struct error *error)
{
    uint64_t port;

    if (!cut_address(text, parts, error))
        return false;
    if (!bytes_to_u64(bytes_str(parts->port), &port) || port > PORT_MAX)
        return set_error(
            error, "must have a port from 0 to %d after the last colon, not \"%.100s\"",
            PORT_MAX, parts->port);
    return check_host(parts, error);
}

bool
address_check(const char *text, char *error, size_t error_cap)
{
    struct error to = {error, error_cap};
    const char *path = unix_path(text);
    struct parts parts;

    return path != NULL ? check_path(path, &to) : check_address(text, &parts, &to);
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
    if (path != NULL ? !check_path(path, &to) : !check_address(text, &parts, &to))
        return ST_BAD_VALUE;
    if (path != NULL) {
        out->sock.local.sun_family = AF_UNIX;
        memcpy(out->sock.local.sun_path, path, strlen(path) + 1);
        out->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path) + 1);
        return ST_OK;
    }
    failed = getaddrinfo(parts.host, parts.port, &hints, &found);
    if (failed != 0) {
        (void)set_error(&to, "has the host %.100s, which cannot be looked up: %s",
                        parts.host,
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

/* ------------------------------------------------------------------ kinds */

static const char blanks[] = " \t";

static const struct {
    const char *name, *prefix;
} kinds[] = {[LISTEN_API] = {"api", ""},
             [LISTEN_TLS] = {"tls", "tls:"},
             [LISTEN_METRICS] = {"metrics", "metrics:"}};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

const char *
listen_kind_name(enum listen_kind kind)
{
    return kinds[kind].name;
}

const char *
listen_scheme(enum listen_kind kind, const char *address)
{
    if (unix_path(address) != NULL)
        return "";
    return kind == LISTEN_TLS ? "https://" : "http://";
}

static enum listen_kind
take_prefix(const char **text)
{
    for (int kind = LISTEN_API + 1; kind < KINDS; kind++) {
        size_t len = strlen(kinds[kind].prefix);

        if (strncmp(*text, kinds[kind].prefix, len) == 0) {
            *text += len;
            return (enum listen_kind)kind;
        }
    }
    return LISTEN_API;
}

/* Letters and a colon before what is an address otherwise. */
static bool
has_unknown_prefix(const char *text)
{
    char unheard[LISTEN_ADDRESS_CAP];
    size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");

    return len > 0 && text[len] == ':' && unix_path(text) == NULL &&
           address_check(text + len + 1, unheard, sizeof(unheard));
}

static bool
read_entry(struct bytes text, struct listen_entry *out, struct error *why)
{
    char whole[LISTEN_ADDRESS_CAP];
    const char *address = whole;

    text = bytes_trim(text);
    if (text.len >= sizeof(whole))
        return set_error(why, "has an address that is too long: %zu characters",
                         text.len);
    memcpy(whole, text.data, text.len);
    whole[text.len] = '\0';
    out->kind = take_prefix(&address);
    out->inherited = -1;
    (void)snprintf(out->address, sizeof(out->address), "%s", address);
    if (!has_unknown_prefix(address))
        return address_check(address, why->text, why->cap);
    return set_error(
        why,
        "has the unknown prefix \"%.*s\". An address may begin with tls: or metrics:",
        (int)strcspn(address, ":") + 1, address);
}

static bool
is_everywhere(struct bytes host)
{
    return bytes_equal_str(host, "0.0.0.0") || bytes_equal_str(host, "[::]");
}

/* Would the second of them find its address taken? Port 0 is another port each time. */
static bool
collide(const struct listen_entry *a, const struct listen_entry *b)
{
    const char *a_port = strrchr(a->address, ':'), *b_port = strrchr(b->address, ':');
    const struct bytes a_host = bytes_of(a->address, (size_t)(a_port - a->address));
    const struct bytes b_host = bytes_of(b->address, (size_t)(b_port - b->address));
    uint64_t a_number, b_number;

    if (unix_path(a->address) != NULL || unix_path(b->address) != NULL)
        return strcmp(a->address, b->address) == 0;
    return bytes_to_u64(bytes_str(a_port + 1), &a_number) &&
           bytes_to_u64(bytes_str(b_port + 1), &b_number) && a_number == b_number &&
           a_number != 0 &&
           (bytes_equal_nocase(a_host, b_host) || is_everywhere(a_host) ||
            is_everywhere(b_host));
}

bool
listen_read(const char *text, struct listen_list *out, char *why, size_t why_cap)
{
    struct error error = {why, why_cap};

    for (out->count = 0;;) {
        const struct listen_entry *last = &out->entries[out->count];
        const char *address;
        size_t len;

        text += strspn(text, blanks);
        address = text;
        (void)take_prefix(&address);
        len = strcspn(text, unix_path(address) != NULL ? "," : ", \t");
        if (len == 0)
            return set_error(&error, "must have an address %s its comma",
                             *text == ',' ? "before" : "after");
        if (out->count == LISTEN_MAX)
            return set_error(&error, "must have at most %d addresses", LISTEN_MAX);
        if (!read_entry(bytes_of(text, len), &out->entries[out->count], &error))
            return false;
        for (const struct listen_entry *e = out->entries; e < last; e++)
            if (collide(e, last))
                return set_error(&error, "has %s%s and %s%s, which are the same address",
                                 kinds[e->kind].prefix, e->address,
                                 kinds[last->kind].prefix, last->address);
        out->count++;
        text += len;
        text += strspn(text, blanks);
        if (*text == '\0')
            return true;
        if (*text == ',')
            text++;
    }
}

/* ------------------------------------------------------------------ inherited */

/* The error of a socket, NULL if it is a stream socket that listens. */
static const char *
judge_socket(int fd)
{
    int type = 0, listens = 0;
    socklen_t type_len = sizeof(type), listens_len = sizeof(listens);

    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_len) != 0)
        return errno == EBADF ? "is not open" : "is no socket";
    if (type != SOCK_STREAM)
        return "is not a stream socket";
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &listens_len) != 0 ||
        listens == 0)
        return "does not listen";
    return NULL;
}

bool
listen_inherit(int fd, enum listen_kind kind, struct listen_entry *out, const char **why)
{
    char text[ADDRESS_TEXT_CAP];
    struct address address = {.len = sizeof(address.sock)};
    int flags;

    *why = judge_socket(fd);
    if (*why != NULL)
        return false;
    flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
        fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 ||
        getsockname(fd, &address.sock.any, &address.len) != 0) {
        *why = strerror(errno);
        return false;
    }
    address_text(&address.sock.any, address.len, text);
    *out = (struct listen_entry){.kind = kind, .inherited = fd};
    (void)snprintf(out->address, sizeof(out->address), "%s", text);
    return true;
}
