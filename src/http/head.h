/*
 * head: what the front end must know of a request's headers, gathered in one pass.
 *
 * libmicrohttpd is lenient: it cuts texts at NUL bytes, joins folded lines wrongly, takes
 * the first of several Content-Lengths and prefers Transfer-Encoding to them. Whatever
 * two parsers could read differently is refused here, so that nothing behind a proxy can
 * be smuggled and nothing is stored that was not sent.
 */
#ifndef HTTP_HEAD_H
#define HTTP_HEAD_H

#include "claimd/api/api.h"
#include "http/room.h"

#include <microhttpd.h>

struct head {
    uint64_t content_length; /* 0 without the header */
    struct room_use use;     /* of the connection's memory */
    const char *end;         /* in there; the body comes in from here on */
    bool chunked;
    bool expects_continue; /* the client waits for 100 before it sends the body */
};

/*
 * Reads the headers into *out and req->headers, which then point into libmicrohttpd's
 * memory or req->arena. `target` is the request target as libmicrohttpd showed it first,
 * `method` and `version` are the handler's arguments: their places in memory tell whether
 * anything was cut out between them.
 * ST_BAD_VALUE for a head to be refused, ST_NO_MEMORY.
 */
enum status head_read(struct MHD_Connection *mhd, struct bytes target, const char *method,
                      const char *version, struct request *req, struct head *out);

/* Adds what has come behind a chunked body. */
void head_add_trailers(struct MHD_Connection *mhd, struct head *head);

/*
 * Splits a request target into path and query. The scheme and authority of an absolute
 * target are left out.
 */
void head_split_target(struct bytes target, struct bytes *path, struct bytes *query);

#endif
