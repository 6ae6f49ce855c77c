/*
 * request: a request from its first byte to its last, as libmicrohttpd calls back
 * (mhd/mhd.h), and the end of its connection. respond.h continues with the whole request.
 *
 *   Bodies   up to api_body_limit() are kept. A longer body is refused with the API's own
 *            400. If it is at most BODY_DISCARD_MOST longer, the worker reads and
 *            discards it first, so that a client which sends everything before it reads
 *            gets the response and keeps its connection
 *   Threads  the worker
 */
#ifndef HTTP_REQUEST_H
#define HTTP_REQUEST_H

#include "http/worker.h"

enum { BODY_DISCARD_MOST = 1024 * 1024 };

/* The limit of a connection's phase has ended: refuses the request if possible, and
 * closes. */
void request_time_out(struct worker *w, struct conn *c);

#endif
