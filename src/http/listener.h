/*
 * listener: a listening socket, TCP or Unix, and its name in the file system.
 */
#ifndef HTTP_LISTENER_H
#define HTTP_LISTENER_H

#include "claimd/http/listen.h"
#include "http/address.h"
#include "http/eventq.h"

#include <stdbool.h>
#include <sys/types.h>

/* Permissions of a Unix socket. */
struct listener_access {
    mode_t mode;
    gid_t group; /* (gid_t)-1: as the process makes files */
};

struct listener {
    struct source source;   /* of the acceptor's events */
    enum listen_kind kind;  /* what is served there */
    bool watched;           /* in the acceptor's epoll set */
    bool inherited;         /* others have the socket, too, and will go on with it */
    int fd;                 /* owned; -1 when closed */
    bool loopback;          /* TCP that only this machine, and its browsers, can reach */
    struct address address; /* the real one, after port 0 was resolved */
    char text[ADDRESS_TEXT_CAP]; /* the same as text */
    dev_t device; /* of the Unix socket's file: by which we know it again */
    ino_t inode;
};

/*
 * Binds and listens, without blocking. A Unix socket without a server is replaced; a live one is
 * refused like a taken port. The file never has more permissions than `access`: it is made with
 * none, given to its group, and then gets them. Only then does the socket listen. An inherited
 * socket is taken as it is. ST_BAD_VALUE, ST_IO, with a text for people.
 */
enum status
listener_open(struct listener *l, const struct listen_entry *listen,
              const struct listener_access *access, char *error, size_t error_cap);

/*
 * Stops listening and removes the Unix socket's file, if it is one that we have made: when it was
 * removed meanwhile, and another server has made one by the same name, that one stays.
 * (Between looking and removing there is a moment: a process that replaces the file just then
 * loses it. Files can be removed by their name only.) Fine when closed already.
 */
void listener_close(struct listener *l);

#endif
