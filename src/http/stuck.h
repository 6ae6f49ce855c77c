/*
 * stuck: chunked bodies that libmicrohttpd cannot get on with.
 *
 * When the line with the size of a chunk is longer than the memory of its connection,
 * libmicrohttpd can neither read on nor give up, and says for ever that work is left. It does
 * not say where. So a worker that was told so in vain looks at the connections that are in
 * the middle of a chunked body and were not heard of in this round:
 *
 *     bytes or the end of them wait in the socket,      libmicrohttpd does not read them:
 *     three rounds in a row                             refused and closed
 *     nothing waits                                     stuck, or merely slow: held (that
 *                                                       ends the noise, and costs nothing)
 *                                                       until the client sends more
 *
 *   Cost     nothing in a round that gets all its work done; else a system call or two for
 *            each connection with a chunked body
 *   Threads  none: belongs to the worker
 */
#ifndef HTTP_STUCK_H
#define HTTP_STUCK_H

#include "http/worker.h"

/* After a round in which libmicrohttpd had work to the end in this section. */
void stuck_look(struct worker *w, const struct section *s);

/* There is something to read for a connection that is held in the middle of its body. */
void stuck_wake(struct worker *w, struct conn *c);

#endif
