/*
 * request: a request on its way from its first line to its response: what the front end does when
 * libmicrohttpd calls (struct mhd_handler).
 *
 *     target known --> headers known --> body, piece by piece --> whole --> response sent
 *     on_target        on_head           on_body                  on_whole  on_ended
 *
 *   Bodies   up to api_body_limit() are kept. A longer one is refused with the API's own 400: if it
 *            is at most BODY_DISCARD_MOST longer, after it was read and discarded (so that a client
 *            which sends first and reads later sees the response and keeps its connection), else at
 *            once
 *   Threads  all run in the worker given as ctx
 */
#ifndef HTTP_REQUEST_H
#define HTTP_REQUEST_H

#include "http/respond.h"

enum { BODY_DISCARD_MOST = 1024 * 1024 };

extern const struct mhd_handler request_handler; /* its ctx is the worker */

/* A connection's phase took too long: tells the client if it can, and closes. */
void request_time_out(struct worker *w, struct conn *c);

#endif
