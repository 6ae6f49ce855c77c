/*
 * listener: listening sockets, TCP and Unix, with the files of the latter, and socket
 * addresses as texts: "127.0.0.1:8888", "[::1]:0" and "unix:/path".
 *
 *   Errors   a reason that continues the name of the option or the address ("must be
 *            ...")
 *   Threads  the thread of the server
 */
#ifndef HTTP_LISTENER_H
#define HTTP_LISTENER_H

#include "claimd/http/listen.h"
#include "http/eventq.h"

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

/* Longest text address_text() writes, with its NUL. */
#define ADDRESS_TEXT_CAP (sizeof(((struct sockaddr_un *)NULL)->sun_path) + 64)

struct listen_address {
    union {
        struct sockaddr any;
        struct sockaddr_storage storage;
        struct sockaddr_un local;
    } sock;
    socklen_t len;
};

/* Checks the form of a listening address, without looking up names. ST_BAD_VALUE with a
 * reason. */
enum status address_check(const char *text, struct reason *why);

/* Reads a listening address, and looks up its name: the first result counts.
 * ST_BAD_VALUE; ST_IO: the name has no address. Both with a reason. */
enum status
address_parse(const char *text, struct listen_address *out, struct reason *why);

/* Writes an address as address_parse() reads it. "unix" for an unnamed socket. */
void address_text(const struct sockaddr *sock, socklen_t len, char out[ADDRESS_TEXT_CAP]);

/* Permissions of a Unix socket. */
struct listener_access {
    mode_t mode;
    gid_t group; /* (gid_t)-1: as the process makes files */
};

struct listener {
    struct source source; /* of the server's epoll set */
    enum listen_kind kind;
    bool watched;   /* in the server's epoll set */
    bool inherited; /* another process has the socket, too, and keeps it */
    int fd;         /* owned; -1 when closed */
    bool loopback;  /* TCP: 127.0.0.0/8 or ::1, for programs of this machine */
    struct listen_address address; /* with the real port */
    char text[ADDRESS_TEXT_CAP];   /* of `address` */
    dev_t device; /* with `inode` the identity of the Unix socket's file */
    ino_t inode;
};

/*
 * Bounds of the kernel's buffers of an accepted TCP socket, in bytes. The kernel adds as
 * much again for its own records. Without bounds Linux lets a connection that is not read
 * grow to several megabytes. A client 50 ms away gets 2.6 MB a second with this bound. (A
 * Unix socket has a fixed bound, net.core.wmem_default.)
 */
enum { SEND_BUFFER = 131072, RECEIVE_BUFFER = 131072 };

/*
 * Binds and listens, without blocking. Replaces the file of a Unix socket that no server
 * listens on, and refuses the address of a live server. The file never has more
 * permissions than `access`: listener_open() creates it without permissions, gives it to
 * its group, adds the permissions, and then listens. It uses an inherited socket as it
 * is. ST_BAD_VALUE, ST_IO, with a reason.
 *
 * unread_ms: the kernel drops an accepted TCP connection, also after close(), if the
 * client takes nothing for so long of bytes that were sent to it.
 */
enum status listener_open(struct listener *l, const struct listen_entry *listen,
                          const struct listener_access *access, int64_t unread_ms,
                          struct reason *why);

/*
 * Stops listening. Removes the file of the Unix socket if it is the one that
 * listener_open() created, not one that another server has created since. (Files can be
 * removed by name only, so a file that another process creates between the check and the
 * removal is lost.) Does nothing if closed.
 */
void listener_close(struct listener *l);

#endif
