#include "http/listener.h"

#include <errno.h>
#include <fcntl.h>
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
    /* Any other error tells that a server listens (EAGAIN: the backlog is full), or nothing at
     * all (EACCES: it is not for us). */
    live = connect(fd, &address->sock.any, address->len) == 0 ||
           (errno != ECONNREFUSED && errno != ENOENT);
    (void)close(fd);
    return live;
}

/*
 * Binds a Unix socket, whose file a server that is gone may have left behind, and then gives its file
 * the group and permissions that are configured. Linux makes the file with the permissions of the
 * socket: none at first. No client can connect before listen() anyway.
 */
static bool
bind_local(struct listener *l, const struct listener_access *access)
{
    const char *path = l->address.sock.local.sun_path;
    struct stat st;

    if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) && !is_live(&l->address))
        (void)unlink(path); /* bind() tells if this failed */
    if (fchmod(l->fd, 0) != 0 || bind(l->fd, &l->address.sock.any, l->address.len) != 0)
        return false;
    if (lstat(path, &st) == 0 &&
        (access->group == (gid_t)-1 || lchown(path, (uid_t)-1, access->group) == 0) &&
        fchmodat(AT_FDCWD, path, access->mode, AT_SYMLINK_NOFOLLOW) == 0) {
        l->device = st.st_dev;
        l->inode = st.st_ino;
        return true;
    }
    (void)unlink(path); /* it was made a moment ago */
    return false;
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

/* The socket listens: notes its address. */
static bool
note_address(struct listener *l)
{
    l->address.len = sizeof(l->address.sock);
    if (getsockname(l->fd, &l->address.sock.any, &l->address.len) != 0)
        return false;
    l->loopback = address_is_loopback(&l->address);
    address_text(&l->address.sock.any, l->address.len, l->text);
    return true;
}

/* Takes a socket that listens already. */
static enum status
inherit_socket(struct listener *l, const struct listen_entry *entry, char *error,
               size_t error_cap)
{
    l->fd = entry->inherited;
    l->inherited = true;
    if (!note_address(l)) {
        (void)snprintf(error, error_cap, "cannot listen on %s: %s", entry->address,
                       strerror(errno));
        return ST_IO;
    }
    set_options(l->fd, l->address.sock.any.sa_family);
    return ST_OK;
}

enum status
listener_open(struct listener *l, const struct listen_entry *entry,
              const struct listener_access *access, char *error, size_t error_cap)
{
    char why[256];
    enum status st;

    *l = (struct listener){.source = {SOURCE_LISTENER}, .kind = entry->kind, .fd = -1};
    if (entry->inherited >= 0)
        return inherit_socket(l, entry, error, error_cap);
    st = address_parse(entry->address, &l->address, why, sizeof(why));
    if (st != ST_OK) {
        (void)snprintf(error, error_cap, "cannot listen on %s: it %s", entry->address,
                       why);
        return st;
    }
    l->fd = socket(l->address.sock.any.sa_family,
                   SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (l->fd < 0)
        goto fail;
    set_options(l->fd, l->address.sock.any.sa_family);
    if (is_local(l) ? !bind_local(l, access)
                    : bind(l->fd, &l->address.sock.any, l->address.len) != 0)
        goto fail;
    if (listen(l->fd, SOMAXCONN) != 0)
        goto fail;
    if (note_address(l))
        return ST_OK;

fail:
    (void)snprintf(error, error_cap, "cannot listen on %s: %s%s", entry->address,
                   errno == EADDRINUSE ? "address already in use" : strerror(errno),
                   errno == EACCES && !is_local(l)
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
    /* Our file's number is not given to another while our socket is open. */
    if (is_local(l) && !l->inherited && lstat(path, &st) == 0 && st.st_dev == l->device &&
        st.st_ino == l->inode)
        (void)unlink(path); /* another process may be quicker */
    (void)close(l->fd);
    l->fd = -1;
}
