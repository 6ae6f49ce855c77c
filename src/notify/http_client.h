/*
 * http_client: sends deliveries with libcurl, by HTTP and by SMTP, many at a time, and reports their ends.
 *
 *   Cost     of a round: that of the sockets with news
 *   Threads  one
 */
#ifndef NOTIFY_HTTP_CLIENT_H
#define NOTIFY_HTTP_CLIENT_H

#include "notify/compose.h"
#include "notify/delivery.h"
#include "notify/outcome.h"

/* Bytes of a response's body; a longer one is a failure. */
enum { ANSWER_BODY_MOST = 65536 };

struct http_client {
    const struct notify_config *config; /* borrowed */
    struct composer composer;
    struct curl_library curl;
    bool loaded;
    CURLM *multi;     /* owned; NULL: nothing was sent since http_client_rest() */
    struct list sent; /* deliveries in progress */
};

void http_client_init(struct http_client *c, const struct notify_config *config);
void http_client_fini(struct http_client *c);

/*
 * Sends it, with libcurl loaded if it is not yet. ST_BAD_VALUE, ST_NOT_FOUND (there is no key to sign it with): it cannot be sent, with a reason;
 * ST_UNAVAILABLE: not now, likewise; ST_NO_MEMORY. Then nothing was done.
 */
enum status
http_client_send(struct http_client *c, struct delivery *p, struct reason *why);

/* Sets all options of its handle; the delivery stays where it is until it has ended. False: libcurl lacks an
 * option, or has no memory. Part of http_client_send(), for tests. */
bool curl_setup(const struct http_client *c, struct delivery *p);

/* One that has ended, no longer in progress, and how; NULL: there is none now. */
struct delivery *
http_client_next(struct http_client *c, struct ending *how, struct reason *why);

/* Goes on with all; then waits for more, or for the descriptor, or until the time is over. */
void http_client_go_on(struct http_client *c);
void http_client_wait(struct http_client *c, int fd, int timeout_ms);

/* Breaks off one that is in progress. */
void http_client_break_off(struct http_client *c, struct delivery *p);

/* Closes the connections that were kept. Nothing is in progress. */
void http_client_rest(struct http_client *c);

#endif
