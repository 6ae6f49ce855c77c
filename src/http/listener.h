/*
 * listener: a listening socket, TCP or Unix, and its name in the file system; and socket addresses as texts:
 * "127.0.0.1:8888", "[::1]:0" and "unix:/path".
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

struct address {
    union {
        struct sockaddr any;
        struct sockaddr_storage storage;
        struct sockaddr_un local;
    } sock;
    socklen_t len;
};

/* ST_BAD_VALUE: the text has not the form of a listening address, with a reason that goes on behind the name
 * of the address ("must be ..."). Names are not looked up. */
enum status address_check(const char *text, struct reason *why);

/* Reads a listening address. Names are looked up, and the first result counts. ST_BAD_VALUE: as
 * address_check(); ST_IO: there is nothing by this name, with a reason. */
enum status address_parse(const char *text, struct address *out, struct reason *why);

/* Writes the address as address_parse() would take it; "unix" for an unnamed socket. */
void address_text(const struct sockaddr *sock, socklen_t len, char out[ADDRESS_TEXT_CAP]);

/* Permissions of a Unix socket. */
struct listener_access {
    mode_t mode;
    gid_t group; /* (gid_t)-1: as the process makes files */
};

struct listener {
    struct source source;  /* of the server's events */
    enum listen_kind kind; /* what is served there */
    bool watched;          /* in the server's epoll set */
    bool inherited;        /* others have the socket, too, and will go on with it */
    int fd;                /* owned; -1 when closed */
    bool
        loopback; /* TCP: 127.0.0.0/8 or ::1, which only programs of this machine reach */
    struct address address;      /* the real one, after port 0 was resolved */
    char text[ADDRESS_TEXT_CAP]; /* the same as text */
    dev_t device; /* of the Unix socket's file: by which we know it again */
    ino_t inode;
};

/*
 * Binds and listens, without blocking. A Unix socket without a server is replaced; a live one is
 * refused like a taken port. The file never has more permissions than `access`: it is made with
 * none, given to its group, and then gets them. Only then does the socket listen. An inherited
 * socket is taken as it is. ST_BAD_VALUE, ST_IO, with a reason.
 */
enum status listener_open(struct listener *l, const struct listen_entry *listen,
                          const struct listener_access *access, struct reason *why);

/*
 * Stops listening and removes the Unix socket's file, if it is one that we have made: when it was
 * removed meanwhile, and another server has made one by the same name, that one stays.
 * (Between looking and removing there is a moment: a process that replaces the file just then
 * loses it. Files can be removed by their name only.) Fine when closed already.
 */
void listener_close(struct listener *l);

#endif
