/*
 * web_client: requests of a command to a server, by libcurl.
 *
 *   Memory   the answer, in a buffer of the caller's
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

/* token: X-Auth-Token; NULL: none. ST_UNAVAILABLE with the reason, ST_NO_MEMORY. */
enum status web_client_open(struct web_client *c, const char *url, const char *token,
                            struct reason *why);
void web_client_close(struct web_client *c);

/*
 * Asks for url + target, with a body (POST) or, absent, without (GET). *code: of the answer, whose
 * body is appended to `out`. ST_UNAVAILABLE: there was none, with the reason.
 */
enum status web_client_ask(struct web_client *c, const char *target, struct bytes body,
                           int *code, struct buf *out, struct reason *why);

#endif
