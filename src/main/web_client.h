/*
 * web_client: requests of a command to a server, by libcurl.
 *
 *   Memory   the response, in a buffer of the caller
 *   Threads  one
 */
#ifndef MAIN_WEB_CLIENT_H
#define MAIN_WEB_CLIENT_H

#include "claimd/base/buf.h"
#include "claimd/web/curl_library.h"

struct web_client {
    struct curl_library curl;
    CURL *handle;             /* owned */
    struct curl_slist *heads; /* owned */
    const char *url;          /* borrowed: "http://HOST:PORT", https, or "unix:PATH" */
    char error[CURL_ERROR_SIZE];
};

/*
 * Opens one for the URL of a server (NULL: that of a server with default options) and a file with a
 * token for X-Auth-Token (NULL: none). False after an error message. To be closed only on success.
 */
bool web_client_open(struct web_client *c, const char *url, const char *token_file,
                     struct mem *mem);
void web_client_close(struct web_client *c);

/*
 * Requests url + target, with a body (POST) or, absent, without (GET). *code: of the response, whose
 * body replaces what `out` has. An exit status; after an error message there is no response.
 */
int web_client_ask(struct web_client *c, const char *target, struct bytes body, int *code,
                   struct buf *out);

#endif
