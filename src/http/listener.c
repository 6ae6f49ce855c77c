#include "http/listener.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const char unix_prefix[] = "unix:";

/* ------------------------------------------------------------------ addresses */

enum { PORT_MAX = 65535, HOST_CAP = 256 };

/* An address without its colon: "[::1]:80" is "::1", bracketed, and "80". */
struct address_parts {
    char host[HOST_CAP];
    const char *port;
    bool bracketed;
};

/* The path of "unix:/path". NULL for another kind of address. */
static const char *
unix_path(const char *text)
{
    const size_t len = sizeof(unix_prefix) - 1;

    return strncmp(text, unix_prefix, len) == 0 ? text + len : NULL;
}

/* Cuts at the last colon. */
static enum status
cut_address(const char *text, struct address_parts *out, struct reason *why)
{
    const char *colon = strrchr(text, ':');
    size_t len = colon == NULL ? 0 : (size_t)(colon - text);

    if (colon == NULL)
        return reason_give(
            why, ST_BAD_VALUE,
            "must be ADDRESS:PORT, [IPv6]:PORT or unix:PATH, not \"%.100s\"", text);
    if (len == 0)
        return reason_give(why, ST_BAD_VALUE,
                           "must have an address before the port: 127.0.0.1%.10s, or "
                           "0.0.0.0%.10s for all",
                           text, text);
    out->bracketed = len > 2 && text[0] == '[' && colon[-1] == ']';
    if (out->bracketed) {
        text++;
        len -= 2;
    } else if (memchr(text, ':', len) != NULL) {
        return reason_give(why, ST_BAD_VALUE,
                           "must have brackets around an IPv6 address and a port after "
                           "them: [::1]:8888");
    }
    if (len >= sizeof(out->host))
        return reason_give(why, ST_BAD_VALUE,
                           "has a name that is too long: %zu characters", len);
    memcpy(out->host, text, len);
    out->host[len] = '\0';
    out->port = colon + 1;
    return ST_OK;
}

/* True for an IPv6 address, also with a zone: "fe80::1%eth0". */
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

static enum status
check_host(const struct address_parts *parts, struct reason *why)
{
    const char *host = parts->host, *dot = strrchr(host, '.');
    const char *last = dot == NULL ? host : dot + 1;
    struct in_addr address;

    if (parts->bracketed)
        return is_ipv6(host)
                   ? ST_OK
                   : reason_give(
                         why, ST_BAD_VALUE,
                         "must have an IPv6 address in its brackets, not \"%.100s\"",
                         host);
    for (const char *c = host; *c != '\0'; c++)
        if (!isalnum((unsigned char)*c) && strchr("-._", *c) == NULL)
            return reason_give(
                why, ST_BAD_VALUE,
                "must have an address or the name of a host, not \"%.100s\"", host);
    /* The last label of a name is never a number, so this must be an address. */
    if (last[0] != '\0' && last[strspn(last, "0123456789")] == '\0' &&
        inet_aton(host, &address) == 0)
        return reason_give(
            why, ST_BAD_VALUE,
            "must have an IPv4 address or the name of a host, not \"%.100s\"", host);
    return ST_OK;
}

/* Checks the form of an address and splits it. *path: of "unix:/path"; NULL: another
 * kind. */
static enum status
read_parts(const char *text, const char **path, struct address_parts *out,
           struct reason *why)
{
    const size_t cap = sizeof(((struct sockaddr_un *)NULL)->sun_path);
    enum status st;
    uint64_t port;

    *path = unix_path(text);
    if (*path != NULL && ((*path)[0] == '\0' || strlen(*path) >= cap))
        return reason_give(why, ST_BAD_VALUE,
                           "must have a path of 1 to %zu bytes after unix:, not %zu",
                           cap - 1, strlen(*path));
    if (*path != NULL)
        return ST_OK;
    st = cut_address(text, out, why);
    if (st != ST_OK)
        return st;
    if (!bytes_to_u64(bytes_str(out->port), &port) || port > PORT_MAX)
        return reason_give(
            why, ST_BAD_VALUE,
            "must have a port from 0 to %d after the last colon, not \"%.100s\"",
            PORT_MAX, out->port);
    return check_host(out, why);
}

enum status
address_check(const char *text, struct reason *why)
{
    const char *path;
    struct address_parts parts;

    return read_parts(text, &path, &parts, why);
}

enum status
address_parse(const char *text, struct listen_address *out, struct reason *why)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    const char *path;
    struct address_parts parts;
    enum status st = read_parts(text, &path, &parts, why);
    int failed;

    memset(out, 0, sizeof(*out));
    if (st != ST_OK)
        return st;
    if (path != NULL) {
        out->sock.local.sun_family = AF_UNIX;
        memcpy(out->sock.local.sun_path, path, strlen(path) + 1);
        out->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path) + 1);
        return ST_OK;
    }
    failed = getaddrinfo(parts.host, parts.port, &hints, &found);
    if (failed != 0)
        return reason_give(
            why, ST_IO, "has the host %.100s, which cannot be looked up: %s", parts.host,
            failed == EAI_SYSTEM ? strerror(errno) : gai_strerror(failed));
    memcpy(&out->sock, found->ai_addr, found->ai_addrlen);
    out->len = found->ai_addrlen;
    freeaddrinfo(found);
    return ST_OK;
}

static bool
is_loopback(const struct listen_address *address)
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
skip_prefix(const char **text)
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

static enum status
read_entry(struct bytes text, struct listen_entry *out, struct reason *why)
{
    char whole[LISTEN_ADDRESS_CAP];
    const char *address = whole;
    size_t prefix;

    text = bytes_trim(text);
    if (text.len >= sizeof(whole))
        return reason_give(why, ST_BAD_VALUE,
                           "has an address that is too long: %zu characters", text.len);
    memcpy(whole, text.data, text.len);
    whole[text.len] = '\0';
    out->kind = skip_prefix(&address);
    out->inherited = -1;
    (void)snprintf(out->address, sizeof(out->address), "%s", address);
    /* Letters and a colon in front of a valid address are an unknown prefix. */
    prefix = strspn(address, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
    if (prefix > 0 && address[prefix] == ':' && unix_path(address) == NULL &&
        address_check(address + prefix + 1, why) == ST_OK)
        return reason_give(
            why, ST_BAD_VALUE,
            "has the unknown prefix \"%.*s\". An address may begin with tls: "
            "or metrics:",
            (int)prefix + 1, address);
    return address_check(address, why);
}

static bool
is_everywhere(struct bytes host)
{
    return bytes_equal_str(host, "0.0.0.0") || bytes_equal_str(host, "[::]");
}

/* True if the second listener would find its address in use. Port 0 is a new port each
 * time. */
static bool
addresses_collide(const struct listen_entry *a, const struct listen_entry *b)
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

enum status
listen_read(const char *text, struct listen_list *out, struct reason *why)
{
    for (out->count = 0;;) {
        const struct listen_entry *last = &out->entries[out->count];
        const char *address;
        enum status st;
        size_t len;

        text += strspn(text, " \t");
        address = text;
        (void)skip_prefix(&address);
        len = strcspn(text, unix_path(address) != NULL ? "," : ", \t");
        if (len == 0)
            return reason_give(why, ST_BAD_VALUE, "must have an address %s its comma",
                               *text == ',' ? "before" : "after");
        if (out->count == LISTEN_MAX)
            return reason_give(why, ST_BAD_VALUE, "must have at most %d addresses",
                               LISTEN_MAX);
        st = read_entry(bytes_of(text, len), &out->entries[out->count], why);
        if (st != ST_OK)
            return st;
        for (const struct listen_entry *e = out->entries; e < last; e++)
            if (addresses_collide(e, last))
                return reason_give(
                    why, ST_BAD_VALUE,
                    "has %s%.150s and %s%.150s, which are the same address",
                    kinds[e->kind].prefix, e->address, kinds[last->kind].prefix,
                    last->address);
        out->count++;
        text += len;
        text += strspn(text, " \t");
        if (*text == '\0')
            return ST_OK;
        if (*text == ',')
            text++;
    }
}

/* ------------------------------------------------------------------ inherited */

/* The error of a socket. NULL if it is a stream socket that listens. */
static const char *
check_socket(int fd)
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
    struct listen_address address = {.len = sizeof(address.sock)};
    int flags;

    *why = check_socket(fd);
    if (*why != NULL)
        return false;
    flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
        fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 ||
        getsockname(fd, &address.sock.any, &address.len) != 0) {
        *why = strerror(errno);
        return false;
    }
    *out = (struct listen_entry){.kind = kind, .inherited = fd};
    address_text(&address.sock.any, address.len, out->address);
    return true;
}

/* ------------------------------------------------------------------ listening sockets */

static bool
is_unix_socket(const struct listener *l)
{
    return l->address.sock.any.sa_family == AF_UNIX;
}

/* True if a server answers on this Unix socket. */
static bool
has_live_server(const struct listen_address *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool live;

    if (fd < 0)
        return true; /* unknown: rather refuse than replace a live socket */
    /* Other errors mean that a server listens (EAGAIN: its backlog is full) or tell
     * nothing (EACCES). */
    live = connect(fd, &address->sock.any, address->len) == 0 ||
           (errno != ECONNREFUSED && errno != ENOENT);
    (void)close(fd);
    return live;
}

/*
 * Binds a Unix socket, after it has removed the file of a server that is gone. Then gives
 * the file its group and its permissions. Linux creates the file with the permissions of
 * the socket, which are none at first. No client can connect before listen().
 */
static bool
bind_local(struct listener *l, const struct listener_access *access)
{
    const char *path = l->address.sock.local.sun_path;
    struct stat st;

    if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) && !has_live_server(&l->address))
        (void)unlink(path); /* bind() fails if this fails */
    if (fchmod(l->fd, 0) != 0 || bind(l->fd, &l->address.sock.any, l->address.len) != 0)
        return false;
    if (lstat(path, &st) == 0 &&
        (access->group == (gid_t)-1 || lchown(path, (uid_t)-1, access->group) == 0) &&
        fchmodat(AT_FDCWD, path, access->mode, AT_SYMLINK_NOFOLLOW) == 0) {
        l->device = st.st_dev;
        l->inode = st.st_ino;
        return true;
    }
    (void)unlink(path); /* bind() has created it */
    return false;
}

static void
set_option(int fd, int level, int name, int value)
{
    (void)setsockopt(fd, level, name, &value, sizeof(value));
}

/*
 * claimd works without these options, so a failure is no error. Accepted sockets inherit
 * them. The sizes of buffers turn off the kernel's own tuning.
 */
static void
set_socket_options(int fd, int family, int64_t unread_ms)
{
    if (family == AF_UNIX)
        return;
    set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(fd, SOL_SOCKET, SO_SNDBUF, SEND_BUFFER);
    set_option(fd, SOL_SOCKET, SO_RCVBUF, RECEIVE_BUFFER);
    set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT,
               unread_ms > INT_MAX ? INT_MAX : (int)unread_ms);
}

/* Fills in the address of a socket that listens. */
static bool
read_bound_address(struct listener *l)
{
    l->address.len = sizeof(l->address.sock);
    if (getsockname(l->fd, &l->address.sock.any, &l->address.len) != 0)
        return false;
    l->loopback = is_loopback(&l->address);
    address_text(&l->address.sock.any, l->address.len, l->text);
    return true;
}

enum status
listener_open(struct listener *l, const struct listen_entry *entry,
              const struct listener_access *access, int64_t unread_ms, struct reason *why)
{
    struct reason what;
    enum status st;

    *l = (struct listener){.source = {SOURCE_LISTENER}, .kind = entry->kind, .fd = -1};
    if (entry->inherited >= 0) {
        l->fd = entry->inherited;
        l->inherited = true;
        if (!read_bound_address(l))
            return reason_give(why, ST_IO, "cannot listen on %s: %s", entry->address,
                               strerror(errno));
        set_socket_options(l->fd, l->address.sock.any.sa_family, unread_ms);
        return ST_OK;
    }
    st = address_parse(entry->address, &l->address, &what);
    if (st != ST_OK)
        return reason_give(why, st, "cannot listen on %s: it %s", entry->address,
                           what.text);
    l->fd = socket(l->address.sock.any.sa_family,
                   SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (l->fd >= 0) {
        set_socket_options(l->fd, l->address.sock.any.sa_family, unread_ms);
        if ((is_unix_socket(l)
                 ? bind_local(l, access)
                 : bind(l->fd, &l->address.sock.any, l->address.len) == 0) &&
            listen(l->fd, SOMAXCONN) == 0 && read_bound_address(l))
            return ST_OK;
    }
    (void)reason_give(why, ST_IO, "cannot listen on %s: %s%s", entry->address,
                      errno == EADDRINUSE ? "address already in use" : strerror(errno),
                      errno == EACCES && !is_unix_socket(l)
                          ? ". A port below 1024 needs CAP_NET_BIND_SERVICE, or a socket "
                            "from claimd.socket"
                          : "");
    if (l->fd >= 0)
        (void)close(l->fd);
    l->fd = -1;
    return ST_IO;
}

void
listener_close(struct listener *l)
{
    const char *path = l->address.sock.local.sun_path;
    struct stat st;

    if (l->fd < 0)
        return;
    /* The inode of our file is not used again while our socket is open. */
    if (is_unix_socket(l) && !l->inherited && lstat(path, &st) == 0 &&
        st.st_dev == l->device && st.st_ino == l->inode)
        (void)unlink(path); /* another process may have removed it */
    (void)close(l->fd);
    l->fd = -1;
}
