/*
 * http_answer: finds the end of one HTTP/1.x answer and the few things in it that a load
 * generator needs.
 *
 *   Cost     one pass over the head; the body is not looked at
 *   Limits   no chunked bodies: none of the measured servers sends them (reported as
 *            broken, never misread)
 */
#ifndef BENCH_HTTP_ANSWER_H
#define BENCH_HTTP_ANSWER_H

#include "claimd/base/bytes.h"

enum reading {
    READING_MORE,  /* not whole yet: call again with more bytes */
    READING_DONE,  /* whole */
    READING_BROKEN /* not an answer in this protocol */
};

struct http_answer {
    int status;
    bool close;            /* the server will close the connection */
    size_t length;         /* head and body, bytes */
    struct bytes body;     /* into the input; empty when there is none */
    struct bytes location; /* value of Location, into the input; absent when missing */
};

/*
 * Reads the answer at the start of `in`. `ended` says that the server closed the
 * connection: a body without a length is whole then. *out is written on READING_DONE.
 */
enum reading http_answer_read(struct bytes in, bool ended, struct http_answer *out);

#endif
