/*
 * server_config: the parts and the limits of a server. All pointers are borrowed for the
 * server's life.
 */
#ifndef CLAIMD_HTTP_SERVER_CONFIG_H
#define CLAIMD_HTTP_SERVER_CONFIG_H

#include "claimd/api/api.h"
#include "claimd/base/clock.h"
#include "claimd/base/log.h"
#include "claimd/base/status.h"
#include "claimd/http/listen.h"
#include "claimd/http/proxies.h"
#include "claimd/store/log.h"

struct tls; /* claimd/http/tls.h */

struct server_config {
    const struct api *api;
    struct store *store; /* for housekeeping */
    /* Makes changes durable before their responses; NULL: the store has no log. */
    struct store_log *store_log;
    bool unloads; /* messages may be on the disk only, so metrics show waits for it */
    struct mem *mem;
    const struct clock *clock;
    const struct log *log;
    const struct listen_list *listen;
    const struct proxies *proxies; /* NULL: X-Forwarded headers have no effect */
    unsigned socket_mode;          /* permissions of a Unix socket's file */
    int64_t socket_group; /* numeric group of that file; -1: the default of the process */
    /* Requests need no token; the server checks Host on loopback listeners. */
    bool open_to_all;
    size_t workers;         /* 1 to 254 */
    struct tls *tls;        /* for listeners with TLS; NULL: no listener has TLS */
    size_t max_connections; /* maximum of all workers together */
    size_t max_waiters;     /* maximum of long-polling requests of all workers together */
    struct executor *executor; /* for blocking work of a store on Redis; else NULL */
    size_t fibers;           /* per worker, for requests that may block; 0: the default */
    size_t max_header_bytes; /* maximum size of the request line and the headers */
    /* Maximum number of header lines; each costs a connection 64 bytes. */
    size_t max_headers;
    int64_t idle_seconds; /* time limit of a connection without a request */
    /* Time limit for receiving a request, and for sending its response. */
    int64_t request_seconds;
    uint64_t access_log_one_in; /* see server_log_requests() */
};

#endif
