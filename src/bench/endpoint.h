/*
 * endpoint: where the measured server listens.
 */
#ifndef BENCH_ENDPOINT_H
#define BENCH_ENDPOINT_H

#include <stdbool.h>
#include <sys/socket.h>

struct endpoint {
    struct sockaddr_storage address;
    socklen_t address_len;
    char host[300]; /* for the Host header */
};

/*
 * Resolves "http://HOST:PORT", "HOST:PORT", "[v6]:PORT" or "unix:PATH". False if it is
 * none of these or the name does not resolve.
 */
bool endpoint_parse(const char *text, struct endpoint *out);

/*
 * Starts a non-blocking connection without Nagle's delay. Returns the socket (owned), or
 * -1 with errno; the connection is ready when it becomes writable.
 */
int endpoint_connect(const struct endpoint *e);

#endif
