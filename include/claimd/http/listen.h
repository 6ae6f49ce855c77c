/*
 * listen: the addresses that a server listens on, and what it serves there.
 *
 *     127.0.0.1:8888, tls:0.0.0.0:8443, metrics:[::1]:9090, unix:/run/claimd/socket
 *
 * Commas or blanks separate the addresses. The path of a Unix socket may have blanks and
 * ends at the next comma. Without a prefix, an address serves the API. The prefix "tls:"
 * serves the API with TLS, and "metrics:" only health and metrics.
 *
 *   Threads  any: no state
 */
#ifndef CLAIMD_HTTP_LISTEN_H
#define CLAIMD_HTTP_LISTEN_H

#include "claimd/json/reason.h"

enum listen_kind {
    LISTEN_API,    /* HTTP */
    LISTEN_TLS,    /* HTTPS */
    LISTEN_METRICS /* HTTP: health and metrics, without a token */
};

enum { LISTEN_MAX = 8, LISTEN_ADDRESS_CAP = 192 };

struct listen_entry {
    enum listen_kind kind;
    char address[LISTEN_ADDRESS_CAP]; /* "127.0.0.1:8888", "[::1]:0", "unix:/path" */
    int inherited; /* a listening socket of another process; -1: none */
};

struct listen_list {
    struct listen_entry entries[LISTEN_MAX];
    size_t count;
};

/*
 * Reads a list of one address or more. Does not look up the names of hosts. ST_BAD_VALUE
 * with a reason that continues the option's name ("must be ..."), also for two addresses
 * that exclude each other.
 */
enum status listen_read(const char *text, struct listen_list *out, struct reason *why);

/*
 * Makes an entry of a listening socket of another process, which keeps it open: when
 * claimd stops, clients wait in the backlog. Sets O_NONBLOCK and FD_CLOEXEC. False: *why
 * is the error, a literal or of strerror() ("is no socket").
 */
bool
listen_inherit(int fd, enum listen_kind kind, struct listen_entry *out, const char **why);

/* "api", "tls" or "metrics". */
const char *listen_kind_name(enum listen_kind kind);

/* The scheme of an address in a URL: "http://" or "https://"; "" for a Unix socket. */
const char *listen_scheme(enum listen_kind kind, const char *address);

#endif
