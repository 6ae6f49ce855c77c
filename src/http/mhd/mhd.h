/*
 * mhd: the wall around libmicrohttpd. All workarounds for the library are behind it. The
 * rest of the front end uses `conn` and `exchange`, implements the functions http_on_*,
 * and calls the functions below.
 *
 * The way of a request:
 *
 *     mhd_run() --> target --> head --> body, piece by piece --> whole --> mhd_respond()
 *                                                                  |
 *                                                                  |  or mhd_suspend(),
 *                                                                  |  until mhd_resume()
 *                     ended, when the response is sent or lost <---+  --> ready
 *
 * libmicrohttpd runs in external mode, without threads and without a listening socket.
 * The worker's epoll set contains its epoll sets. The files behind the wall:
 *
 *   daemon.c      daemons, their connections and their rounds
 *   arrival.c     the first bytes of a connection
 *   callbacks.c   from the callbacks of libmicrohttpd to the functions http_on_*
 *   response.c    responses and refusals
 *   sockets.c     handshakes of TLS, ends of input, chunked bodies
 *   transport.c   reads and writes the socket for GnuTLS
 *
 *   Threads  a struct mhd belongs to one worker
 */
#ifndef HTTP_MHD_MHD_H
#define HTTP_MHD_MHD_H

#include "claimd/http/server_config.h"
#include "http/exchange.h"

struct worker;

/* Responses of the front end itself. */
enum refusal {
    REFUSAL_NONE,
    REFUSAL_BUSY,      /* 503: too many connections */
    REFUSAL_NO_MEMORY, /* 503: no memory for this request */
    REFUSAL_OVERDUE,   /* 503: no response within the time limit of a request */
    REFUSAL_SLOW,      /* 408: the request was incomplete at its time limit */
    REFUSAL_BAD_HEAD,  /* 400: the head contradicts itself */
    REFUSAL_TOO_LARGE, /* 400: a body far above the limit */
    REFUSAL_CHUNKS,    /* 400: malformed chunks */
    REFUSAL_BEYOND,    /* 413: a length of more than 64 bits */
    REFUSAL_TARGET,    /* 414: a request line beyond the limit */
    REFUSAL_VERSION,   /* 505: neither HTTP/1.0 nor HTTP/1.1 */
    REFUSAL_HEADERS,   /* 431: too many headers, or no space for a response behind them */
    REFUSAL_COUNT
};

/*
 * The wall calls these functions of the front end (request.c, respond.c, suspended.c), in
 * the worker, within mhd_run(). False: libmicrohttpd closes the connection.
 */
void http_on_opened(struct conn *c);

/* The target is known: begins c->exchange. Without memory it stays NULL. */
void http_on_target(struct conn *c, const char *target);

/* The head is in c->exchange. wrong: why to refuse the request; REFUSAL_NONE: a body
 * follows. */
bool http_on_head(struct conn *c, enum refusal wrong);
bool http_on_body(struct conn *c, const char *data, size_t len);
bool http_on_whole(struct conn *c, enum refusal wrong);

/* The exchange is EXCHANGE_READY: queues its response. */
bool http_on_ready(struct conn *c);

/* The request has ended. sent: the kernel has the whole response. Ends c->exchange. */
void http_on_ended(struct conn *c, bool sent);

/* The client has closed its side of the connection, so it does not wait for a message any
 * more. */
void http_on_hung_up(struct conn *c);

/* The socket is about to be closed. Frees c. */
void http_on_closed(struct conn *c);

/* Between two runs of a round: handles the events that the first run caused. */
void http_between_runs(struct worker *w);

/* The present round of the worker's loop. */
struct round {
    int64_t now_ms;       /* real time at its beginning */
    int64_t stopwatch_ns; /* clock_stopwatch_ns() at its beginning */
    unsigned number;
};

struct mhd_config {
    struct worker *worker; /* borrowed for the life of the mhd, as all pointers here */
    const struct server_config *server;
    struct conn_table *table;
    const struct round *round;
    const struct clock *real; /* runs with the wall clock */
    int epoll_fd;             /* of the worker */
};

struct mhd; /* opaque */

/* Opens the initial daemons of a worker: one, and one for TLS. ST_NO_MEMORY, ST_IO. */
enum status mhd_open(const struct mhd_config *config, struct mhd **out);

/* Ends all connections at once, and frees the mhd. NULL is fine. */
void mhd_close(struct mhd *m);

/* Maximum number of daemons, each with a descriptor, of a worker with so many
 * connections. */
size_t mhd_daemons(const struct server_config *config, size_t connections);

/* ------------------------------------------------------------------ the loop */

/* Handles an event of SOURCE_MHD or SOURCE_CONN. */
void mhd_event(struct mhd *m, struct source *source);

/* Runs the daemons that are due. Returns when to call this again. */
int64_t mhd_run(struct mhd *m);

/* True if mhd_run() must be called again without delay. */
bool mhd_is_due(const struct mhd *m);

/* ------------------------------------------------------------------ connections */

/*
 * Adds a connection, and owns it and its descriptor until http_on_closed(). libmicrohttpd
 * gets it with its first bytes. Without memory the connection is closed.
 */
void mhd_add(struct mhd *m, struct conn *c);

/*
 * Makes libmicrohttpd leave a connection alone. (Within a callback, the suspension takes
 * effect when libmicrohttpd returns, unless it would read the rest of a body meanwhile. A
 * connection that is suspended within a callback is read first when it resumes, and
 * closed if its client has ended its input.)
 */
void mhd_suspend(struct conn *c);

static inline bool
mhd_is_suspended(const struct conn *c)
{
    return c->mhd.suspended;
}

/* Resumes a connection, in this round or the next. Does nothing if it is not
 * suspended. */
void mhd_resume(struct conn *c);

/*
 * Closes a connection, and frees it if it has not sent a byte yet. Otherwise its phase
 * becomes CONN_CLOSING, and libmicrohttpd notices. why: sends this refusal first, if no
 * response has begun. REFUSAL_NONE: sends nothing.
 */
void mhd_end(struct conn *c, enum refusal why);

/* ------------------------------------------------------------------ responses */

/*
 * Queues ex->response, and borrows its body until the exchange ends. closing: the
 * connection ends with the response. pieces: NULL: the body is sent as a whole. False
 * without memory.
 */
bool mhd_respond(struct exchange *ex, bool closing, const struct mhd_pieces *pieces);

/*
 * Refuses the request of c, which has no exchange if there was no memory for one. False:
 * the connection must be closed.
 */
bool mhd_refuse(struct mhd *m, struct conn *c, enum refusal which, bool closing);

/*
 * Writes a whole refusal with "Connection: close", the request id and the date to a
 * socket. Bytes for which the socket has no space at once are lost.
 */
void
mhd_refuse_socket(int fd, enum refusal which, const char *id, const struct clock *real);

#endif
