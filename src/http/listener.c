#include "http/listener.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool
is_local(const struct listener *l)
{
    return l->address.sock.any.sa_family == AF_UNIX;
}

/* True if a server answers on this Unix socket. */
static bool
is_live(const struct address *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool live;

    if (fd < 0)
        return true; /* not known: better refuse than steal */
    /* EAGAIN: its backlog is full, so somebody listens. */
    live = connect(fd, &address->sock.any, address->len) == 0 || errno == EAGAIN;
    (void)close(fd);
    return live;
}

/* Removes what a server that is gone left behind; anything else is left alone. */
static void
remove_stale(const struct address *address)
{
    struct stat st;

    if (lstat(address->sock.local.sun_path, &st) != 0 || !S_ISSOCK(st.st_mode))
        return;
    if (!is_live(address))
        (void)unlink(address->sock.local.sun_path); /* bind() tells if this failed */
}

static void
set_options(int fd, int family)
{
    int on = 1;

    if (family == AF_UNIX)
        return;
    /* All three are improvements, not conditions: their failure is no reason to stop.
     * Accepted sockets inherit TCP_NODELAY. */
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

enum status
listener_open(struct listener *l, const char *listen_text, char *error, size_t error_cap)
{
    char why[256];
    enum status st;

    *l = (struct listener){.fd = -1};
    st = address_parse(listen_text, &l->address, why, sizeof(why));
    if (st != ST_OK) {
        (void)snprintf(error, error_cap, "cannot listen on %s: it %s", listen_text, why);
        return st;
    }
    l->fd = socket(l->address.sock.any.sa_family,
                   SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (l->fd < 0)
        goto fail;
    set_options(l->fd, l->address.sock.any.sa_family);
    if (is_local(l))
        remove_stale(&l->address);
    if (bind(l->fd, &l->address.sock.any, l->address.len) != 0)
        goto fail;
    if (listen(l->fd, SOMAXCONN) != 0)
        goto fail;
    if (!is_local(l)) {
        l->address.len = sizeof(l->address.sock);
        if (getsockname(l->fd, &l->address.sock.any, &l->address.len) != 0)
            goto fail;
    }
    address_text(&l->address.sock.any, l->address.len, l->text);
    return ST_OK;

fail:
    (void)snprintf(error, error_cap, "cannot listen on %s: %s", listen_text,
                   errno == EADDRINUSE ? "address already in use" : strerror(errno));
    if (l->fd >= 0)
        (void)close(l->fd);
    l->fd = -1;
    return ST_IO;
}

void
listener_close(struct listener *l)
{
    if (l->fd < 0)
        return;
    if (is_local(l))
        (void)unlink(l->address.sock.local.sun_path); /* somebody else may have done it */
    (void)close(l->fd);
    l->fd = -1;
}
