/*
 * address: "127.0.0.1:8888", "[::1]:0" and "unix:/path" to socket addresses and back.
 */
#ifndef HTTP_ADDRESS_H
#define HTTP_ADDRESS_H

#include "claimd/base/status.h"

#include <stdbool.h>
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
 * True if the text has the form of a listening address; otherwise a text for people that
 * goes on behind the address's name ("must be ..."). Names are not looked up.
 */
bool address_check(const char *text, char *error, size_t error_cap);

/*
 * Reads a listening address; names are looked up and the first result counts.
 * ST_BAD_VALUE: address_check() says no; ST_IO: there is nothing by this name; with a
 * text for people in error[error_cap].
 */
enum status
address_parse(const char *text, struct address *out, char *error, size_t error_cap);

/* True for 127.0.0.0/8 and ::1, which only programs of this machine can reach. */
bool address_is_loopback(const struct address *address);

/* Writes the address as address_parse() would take it; "unix" for an unnamed socket. */
void address_text(const struct sockaddr *sock, socklen_t len, char out[ADDRESS_TEXT_CAP]);

#endif
