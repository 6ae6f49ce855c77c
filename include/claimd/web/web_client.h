/*
 * web_client: requests of a command to a server, one after the other. All commands of
 * claimd and claimd-client use it.
 *
 *   Memory   that of libcurl, and the response
 *   Threads  one
 */
#ifndef CLAIMD_WEB_WEB_CLIENT_H
#define CLAIMD_WEB_WEB_CLIENT_H

#include "claimd/base/buf.h"
#include "claimd/web/curl_library.h"

enum { WEB_ERROR_CAP = 1536 };

/* All but the handle is borrowed, and set by the caller. */
struct web_client {
    const struct curl_library *curl;
    struct mem *mem;
    const char *url; /* http://HOST:PORT, https, or unix:PATH (server_url.h) */
    const char *ca, *certificate, *certificate_key; /* files; NULL: none */
    CURL *handle; /* owned; keeps its connection between requests; NULL: none yet */
};

struct web_request {
    const char *path;                 /* begins with a slash; with its query */
    const char *method;               /* NULL: GET, or POST with a body */
    struct bytes body;                /* absent: none */
    const struct curl_slist *headers; /* NULL: none */
    int64_t timeout_ms;               /* for all of it; 0: only 10 seconds to connect */
    size_t response_most;             /* maximum size of the body of the response */
};

struct web_response {
    long status; /* 0: no response, or not all of it */
    struct buf body;
    char error[WEB_ERROR_CAP]; /* why there is none */
    CURLcode code;             /* the same for programs */
};

/*
 * Sends a request and reads the response. Returns true if there is one, whatever its
 * status. Call web_response_fini() in any case.
 */
bool web_client_send(struct web_client *c, const struct web_request *request,
                     struct web_response *response);
void web_response_fini(struct web_response *response);

/* Closes the connection. */
void web_client_close(struct web_client *c);

/*
 * Sets the URL of a path on a handle, and the options for TLS and Unix sockets. For
 * requests that the caller sends itself. False without memory, or if the URL is too long.
 */
bool web_client_set_target(const struct web_client *c, CURL *handle, const char *path);

#endif
