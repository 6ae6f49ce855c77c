/*
 * request: a request on its way from its first line to its response: what the front end does when
 * libmicrohttpd calls (struct mhd_handler).
 *
 *     target known --> headers known --> body, piece by piece --> whole --> response sent
 *     request_target   request_head      request_body             request_whole
 *                                                                 request_ended
 *
 *   Bodies   up to api_body_limit() are kept. A longer one is refused with the API's own 400: if it
 *            is at most BODY_DISCARD_MOST longer, after it was read and discarded (so that a client
 *            which sends first and reads later sees the response and keeps its connection), else at
 *            once
 *   Threads  all run in the worker given as ctx
 */
#ifndef HTTP_REQUEST_H
#define HTTP_REQUEST_H

#include "http/worker.h"

enum { BODY_DISCARD_MOST = 1024 * 1024 };

/* See struct mhd_handler. */
void request_opened(void *ctx, struct conn *c);
void request_target(void *ctx, struct conn *c, const char *target);
bool request_head(void *ctx, struct conn *c, enum refusal wrong);
bool request_body(void *ctx, struct conn *c, const char *data, size_t len);
bool request_whole(void *ctx, struct conn *c, enum refusal wrong);
bool request_ready(void *ctx, struct conn *c);
void request_ended(void *ctx, struct conn *c, bool sent);
void request_hung_up(void *ctx, struct conn *c);
void request_closed(void *ctx, struct conn *c);

/* A connection's phase took too long: tells the client if it can, and closes. */
void request_time_out(struct worker *w, struct conn *c);

#endif
