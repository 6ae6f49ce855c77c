/*
 * server_url: the URL of a server, as commands take it.
 *
 *   Forms    http://HOST:PORT, https://HOST:PORT or unix:PATH. Behind the port there may
 *            be the path below which a proxy serves claimd
 *   Threads  any: no state
 */
#ifndef CLAIMD_BASE_SERVER_URL_H
#define CLAIMD_BASE_SERVER_URL_H

#include "claimd/base/bytes.h"

/* A longer URL is refused. */
enum { SERVER_URL_MOST = 1024, SERVER_URL_WHY_CAP = SERVER_URL_MOST + 256 };

/* True for a URL of a server. False: `why` says what is wrong, and what to write
 * instead. */
bool server_url_check(const char *url, char why[SERVER_URL_WHY_CAP]);

/* True for a Unix socket, whose path is behind the first five characters. */
bool server_url_is_unix(const char *url);

/* The URL without slashes at its end, to append a path. Not for a Unix socket. */
struct bytes server_url_base(const char *url);

/* The path of the base, such as "/mq"; empty: none. Not for a Unix socket. */
struct bytes server_url_prefix(const char *url);

#endif
