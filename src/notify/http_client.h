/*
 * http_client: sends deliveries with libcurl, by HTTP and by SMTP, many at a time, and
 * reports how they end.
 *
 *     http_client_send() --> in progress --> http_client_next_ended() --> ended
 *                                 +--------> http_client_abort() -------> not in progress
 *
 *   Cost     of http_client_perform(): that of the sockets with events
 *   Memory   at most `workers` idle connections, until http_client_close_idle()
 *   Threads  one
 */
#ifndef NOTIFY_HTTP_CLIENT_H
#define NOTIFY_HTTP_CLIENT_H

#include "notify/compose.h"
#include "notify/delivery.h"

/* Maximum size of the body of a response. A longer one is a failure. */
enum { RESPONSE_BODY_MOST = 65536 };

struct http_client {
    const struct notify_config *config; /* borrowed */
    struct composer composer;
    struct curl_library curl;
    bool loaded;
    CURLM *multi;     /* owned; NULL: nothing was sent since http_client_close_idle() */
    struct list sent; /* deliveries in progress */
};

void http_client_init(struct http_client *c, const struct notify_config *config);

/* No delivery may be in progress. */
void http_client_fini(struct http_client *c);

/*
 * Composes and sends a delivery. The first call loads libcurl. With an error nothing was
 * sent:
 *
 *     ST_BAD_VALUE     the notification can never be sent. *why says why
 *     ST_NOT_FOUND     likewise, because there is no key to sign it
 *     ST_UNAVAILABLE   it cannot be sent now. *why says why
 *     ST_NO_MEMORY
 */
enum status
http_client_send(struct http_client *c, struct delivery *d, struct reason *why);

/* Sets all options of the handle. The delivery must not move until it has ended. False:
 * libcurl lacks an option, or has no memory. A part of http_client_send(), for tests. */
bool curl_setup(const struct http_client *c, struct delivery *d);

/* Returns a delivery that has ended, and how. NULL: none has ended since. */
struct delivery *
http_client_next_ended(struct http_client *c, struct ending *how, struct reason *why);

/* Continues all transfers, without blocking. */
void http_client_perform(struct http_client *c);

/* Waits for an event of a transfer or of the descriptor, or until the time is over. */
void http_client_wait(struct http_client *c, int fd, int timeout_ms);

/* Aborts a delivery in progress. */
void http_client_abort(struct http_client *c, struct delivery *d);

/* Closes idle connections. No delivery may be in progress. */
void http_client_close_idle(struct http_client *c);

#endif
