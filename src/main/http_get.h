/*
 * http_get: a GET request to a claimd over plain HTTP, without libcurl.
 */
#ifndef MAIN_HTTP_GET_H
#define MAIN_HTTP_GET_H

#include "claimd/base/buf.h"

/*
 * Requests a target of the server at ADDRESS:PORT, [IPv6]:PORT or unix:PATH. Returns the status of the
 * response, and in *body its body, as far as it came until the server closed the connection or until
 * until_ns, a time of clock_stopwatch_ns(). 0: there was no response. -1: it cannot connect, and errno
 * says why.
 */
int http_get(const char *address, const char *target, int64_t until_ns, struct buf *body);

#endif
