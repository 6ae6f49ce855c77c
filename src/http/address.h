/*
 * address: "127.0.0.1:8888", "[::1]:0" and "unix:/path" to socket addresses and back.
 */
#ifndef HTTP_ADDRESS_H
#define HTTP_ADDRESS_H

#include "claimd/base/status.h"

#include <stddef.h>
#include <sys/socket.h>
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

/*
 * Reads a listening address; names are resolved and the first result counts.
 * ST_BAD_VALUE with a text for people in error[error_cap].
 */
enum status
address_parse(const char *text, struct address *out, char *error, size_t error_cap);

/* Writes the address as address_parse() would take it; "unix" for an unnamed socket. */
void address_text(const struct sockaddr *sock, socklen_t len, char out[ADDRESS_TEXT_CAP]);

#endif
