/*
 * stream: a response that is a stream of events (docs/api.md 26.6).
 *
 *     1. The API makes an event as it makes a response, with response.stream.
 *     2. stream_read_event() sends it, and suspends the exchange in STREAM for a second.
 *     3. stream_continue() says whether the API may make the next event: back to 1.
 *     4. The stream ends with the event that the API marks as the last, with the
 *        connection, or with a drain.
 *
 *   Threads  the worker
 */
#ifndef HTTP_STREAM_H
#define HTTP_STREAM_H

#include "http/states.h"

enum { STREAM_PIECE = 8192 }; /* bytes of an event that libmicrohttpd copies at once */

/* The read() of struct mhd_pieces for a stream. */
ssize_t stream_read_event(struct exchange *ex, uint64_t at, char *out, size_t cap);

enum stream_step {
    STREAM_NEXT,      /* call the API for the next event */
    STREAM_SUSPENDED, /* nothing to do */
    STREAM_NOT_TAKEN  /* the client has not taken the last event within the limit of a
                      * response */
};

/*
 * The pause behind an event has ended. While the client has not taken the last event,
 * there is no next one: the kernel would keep it, and it would be old when the client
 * reads it.
 */
enum stream_step stream_continue(struct worker *w, struct exchange *ex);

#endif
