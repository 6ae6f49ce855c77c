/*
 * http_get: a GET request to a server of ours over HTTP, without libcurl.
 *
 *     fd = http_dial(address, until_ns);
 *     status = http_get(fd, "/readyz", until_ns, NULL);
 *     (void)close(fd);
 *
 * Times are of clock_stopwatch_ns(); what is not done by then has failed.
 */
#ifndef MAIN_HTTP_GET_H
#define MAIN_HTTP_GET_H

#include "claimd/base/buf.h"

/* A socket to ADDRESS:PORT, [IPv6]:PORT or unix:PATH, owned; -1: errno says why not. */
int http_dial(const char *address, int64_t until_ns);

/*
 * The status of the answer; 0: there is none. Unless NULL, *body gets its body: what came of it
 * until the server closed.
 */
int http_get(int fd, const char *target, int64_t until_ns, struct buf *body);

#endif
