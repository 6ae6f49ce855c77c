/*
 * listen: where a server listens, and for what.
 *
 *     127.0.0.1:8888, tls:0.0.0.0:8443, metrics:[::1]:9090, unix:/run/claimd/socket
 *
 * is a list of addresses with commas or blanks in between; a Unix socket's path may have
 * blanks in it, and ends at the next comma. What stands in front of an address says what is
 * served there: nothing for the API, "tls:" for the API with TLS, "metrics:" for health and
 * metrics only.
 */
#ifndef CLAIMD_HTTP_LISTEN_H
#define CLAIMD_HTTP_LISTEN_H

#include "claimd/json/reason.h"

enum listen_kind {
    LISTEN_API,    /* HTTP */
    LISTEN_TLS,    /* HTTPS */
    LISTEN_METRICS /* HTTP: health and metrics, which need no token here */
};

enum { LISTEN_MAX = 8, LISTEN_ADDRESS_CAP = 192 };

struct listen_entry {
    enum listen_kind kind;
    char address[LISTEN_ADDRESS_CAP]; /* "127.0.0.1:8888", "[::1]:0", "unix:/path" */
    int inherited; /* a socket that listens already, of another process; or -1 */
};

struct listen_list {
    struct listen_entry entries[LISTEN_MAX];
    size_t count;
};

/*
 * Reads a list of one address or more. ST_BAD_VALUE with a reason that goes on behind the option's
 * name ("must be ..."), also for addresses that cannot be listened on at the same time. Names of hosts
 * are not looked up: that is done when listening.
 */
enum status listen_read(const char *text, struct listen_list *out, struct reason *why);

/*
 * Makes an entry of a socket of another process, which listens: it stays open there, and the
 * clients in its backlog wait there when claimd stops. It is made not to block, and not to be
 * handed on. False: *why says what is wrong with it ("is no socket").
 */
bool
listen_inherit(int fd, enum listen_kind kind, struct listen_entry *out, const char **why);

/* The word for a kind: "api", "tls", "metrics". */
const char *listen_kind_name(enum listen_kind kind);

/* The scheme of an address in a URL: "http://", "https://", or nothing for a Unix socket. */
const char *listen_scheme(enum listen_kind kind, const char *address);

#endif
