/*
 * reply: a finished response into libmicrohttpd.
 */
#ifndef HTTP_REPLY_H
#define HTTP_REPLY_H

#include "http/exchange.h"
#include "http/refusal.h"

/*
 * Queues ex->response, whose body libmicrohttpd then borrows until the exchange ends.
 * closing: the connection ends after it. MHD_NO without memory: nothing was queued.
 */
enum MHD_Result
reply_queue(struct MHD_Connection *mhd, struct exchange *ex, bool closing);

/* Queues an answer of the front end's own instead. */
enum MHD_Result reply_refuse(struct MHD_Connection *mhd, struct exchange *ex,
                             enum refusal which, bool closing);

/*
 * An answer made in advance, for when there is no memory to make one; owned, to be queued
 * any number of times. It closes the connection and has no request id. NULL without
 * memory.
 */
struct MHD_Response *reply_prepared(enum refusal which);

#endif
