/*
 * refusal: answers the front end gives by itself, as whole texts for the wire.
 *
 * Used where libmicrohttpd cannot answer: before it has the connection (503), while it
 * waits for the rest of a request (408), and in the middle of a body (400).
 */
#ifndef HTTP_REFUSAL_H
#define HTTP_REFUSAL_H

#include "claimd/base/bytes.h"

enum refusal {
    REFUSAL_BUSY,      /* 503: too many connections */
    REFUSAL_NO_MEMORY, /* 503: no memory for this request */
    REFUSAL_OVERDUE,   /* 503: not answered within the time of a request */
    REFUSAL_SLOW,      /* 408: the request was not whole in time */
    REFUSAL_BAD_HEAD,  /* 400: the head contradicts itself */
    REFUSAL_TOO_LARGE, /* 400: a body far above the limit */
    REFUSAL_CHUNKS,    /* 400: chunks that are not as they should be */
    REFUSAL_BEYOND,    /* 413: a length that no number of 64 bits holds */
    REFUSAL_TARGET,    /* 414: a request line beyond the limit */
    REFUSAL_HEADERS,   /* 431: too many headers, or no room for an answer behind them */
    REFUSAL_COUNT
};

/* HTTP status, and the error document. */
int refusal_code(enum refusal which);
struct bytes refusal_document(enum refusal which);

/* How long the client should wait, as a header value; NULL: no such advice. */
const char *refusal_retry_after(enum refusal which);

/*
 * Writes the whole answer to a socket, with "Connection: close"; id is the request id.
 * Nothing of another answer may be under way. What the socket's buffer does not take at
 * once is lost: a client that slow gets no explanation.
 */
void refusal_send(int fd, enum refusal which, const char *id);

#endif
