/*
 * listener: the listening socket, TCP or Unix, and its name in the file system.
 */
#ifndef HTTP_LISTENER_H
#define HTTP_LISTENER_H

#include "http/address.h"

#include <stdbool.h>

struct listener {
    int fd;                      /* owned; -1 when closed */
    struct address address;      /* the real one, after port 0 was resolved */
    char text[ADDRESS_TEXT_CAP]; /* the same as text */
};

/*
 * Binds and listens, without blocking. A Unix socket that nobody answers on is replaced;
 * a live one is refused like a taken port. ST_BAD_VALUE, ST_IO, with a text for people.
 */
enum status
listener_open(struct listener *l, const char *listen, char *error, size_t error_cap);

/* Stops listening and removes the Unix socket's name. Fine when closed already. */
void listener_close(struct listener *l);

#endif
