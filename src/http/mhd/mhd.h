/*
 * mhd: the wall around libmicrohttpd. All workarounds for the library are behind it. The rest of
 * the front end sees `conn` and `exchange`, implements the functions http_on_*, and makes the
 * calls below.
 *
 * A request on its way:
 *
 *     mhd_run() --> target --> head --> body, piece by piece --> whole --> mhd_respond()
 *                                                                  |  or mhd_suspend(), until
 *                                                                  |  mhd_resume() --> ready
 *                     ended, when the response is sent or lost <---+
 *
 * libmicrohttpd runs in external mode: without threads, without a listening socket. Its epoll sets
 * are in the worker's. Behind the wall, so that nothing else need know it:
 *
 *   daemon.c     One daemon has at most 512 connections, because resuming one walks all suspended
 *                ones. The options, and a nap for a daemon that claims to have work without end.
 *   callbacks.c  From libmicrohttpd's callbacks to the functions http_on_*. Its built-in HTML pages are
 *                replaced by claimd's documents where the connection is known. Heads that two parsers
 *                could read differently are refused, and heads that leave too little space in the
 *                connection's memory for the head of a response.
 *   response.c   Responses, through libmicrohttpd or past it, straight to the socket.
 *   sockets.c    Handshakes of TLS: a few in each round, and none while there is nothing to read.
 *                Ends of input that libmicrohttpd misses, and chunked bodies that it cannot read.
 *
 *   Threads  each struct mhd belongs to one worker
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
    REFUSAL_SLOW,      /* 408: the request was not whole in time */
    REFUSAL_BAD_HEAD,  /* 400: the head contradicts itself */
    REFUSAL_TOO_LARGE, /* 400: a body far above the limit */
    REFUSAL_CHUNKS,    /* 400: malformed chunks */
    REFUSAL_BEYOND,    /* 413: a length of more than 64 bits */
    REFUSAL_TARGET,    /* 414: a request line beyond the limit */
    REFUSAL_HEADERS,   /* 431: too many headers, or no space for a response behind them */
    REFUSAL_COUNT
};

/*
 * The front end's part of a request, which the wall calls (request.c, respond.c, suspended.c). All
 * run in the worker, within mhd_run(). False: libmicrohttpd closes the connection.
 */
void http_on_opened(struct conn *c);

/* The target is known: begins c->exchange. It stays NULL without memory. */
void http_on_target(struct conn *c, const char *target);

/* The head is in c->exchange. wrong: to be refused so; REFUSAL_NONE: the body follows. */
bool http_on_head(struct conn *c, enum refusal wrong);
bool http_on_body(struct conn *c, const char *data, size_t len);
bool http_on_whole(struct conn *c, enum refusal wrong);

/* The exchange is EXCHANGE_READY: queues its response. */
bool http_on_ready(struct conn *c);

/* The request is over. sent: the kernel has the whole response. c->exchange ends. */
void http_on_ended(struct conn *c, bool sent);

/* The client has closed its side of the connection: it does not wait for a message any more. */
void http_on_hung_up(struct conn *c);

/* The socket is about to be closed: frees c. */
void http_on_closed(struct conn *c);

/* Between two runs in one round: handles the events that the first one caused. */
void http_between_runs(struct worker *w);

/* The present round of the worker's loop. */
struct round {
    int64_t now_ms;       /* real time when it began */
    int64_t stopwatch_ns; /* the same of clock_stopwatch_ns() */
    unsigned number;
};

struct mhd_config {
    struct worker *worker; /* borrowed for its life, as all pointers here */
    const struct server_config *server;
    struct conn_table *table;
    const struct round *round;
    int epoll_fd; /* of the worker */
};

struct mhd; /* opaque */

/* Opens the daemons that each worker has: one, and one for TLS. ST_NO_MEMORY, ST_IO. */
enum status mhd_open(const struct mhd_config *config, struct mhd **out);

/* Ends all connections at once, and frees it. NULL is fine. */
void mhd_close(struct mhd *m);

/* The daemons, each with a descriptor, that a worker with so many connections needs at most. */
size_t mhd_daemons(const struct server_config *config, size_t connections);

/* ------------------------------------------------------------------ the loop */

/* Handles an event of SOURCE_MHD or SOURCE_CONN. */
void mhd_event(struct mhd *m, struct source *source);

/* Lets libmicrohttpd work where there is something to do. Returns when to run it again. */
int64_t mhd_run(struct mhd *m);

/* True if it must run again without delay. */
bool mhd_is_due(const struct mhd *m);

/* ------------------------------------------------------------------ connections */

/*
 * Gives a connection to libmicrohttpd, which takes its descriptor. False: out of memory before
 * `opened` was called; the socket is closed, and c is the caller's.
 */
bool mhd_add(struct mhd *m, struct conn *c);

/*
 * Has libmicrohttpd leave a connection alone, also within its call. (Suspended there, a connection
 * would be read from first when it resumes, and closed if its client has ended its input. So it is
 * suspended when libmicrohttpd returns, unless the rest of a body would be read meanwhile.)
 */
void mhd_suspend(struct conn *c);

static inline bool
mhd_is_suspended(const struct conn *c)
{
    return c->mhd.suspended;
}

/* libmicrohttpd goes on with it, in this round or the next. Fine if it is not suspended. */
void mhd_resume(struct conn *c);

/*
 * Closes a connection: its phase becomes CONN_CLOSING, and libmicrohttpd notices. why: tells the
 * client first, if no response has begun and there is no TLS; REFUSAL_NONE: says nothing.
 */
void mhd_end(struct conn *c, enum refusal why);

/* ------------------------------------------------------------------ responses */

/*
 * Queues ex->response, whose body is borrowed until the exchange ends. closing: the connection ends
 * after it. pieces: NULL: the body is sent as it is. False without memory.
 */
bool mhd_respond(struct exchange *ex, bool closing, const struct mhd_pieces *pieces);

/*
 * Refuses the request of c, which may have no exchange for want of memory. In the middle of a body,
 * or before it without TLS, the document goes past libmicrohttpd and the connection ends. False: it
 * must be closed.
 */
bool mhd_refuse(struct mhd *m, struct conn *c, enum refusal which, bool closing);

/*
 * Writes a whole refusal to a socket, with "Connection: close"; id is the request id. Bytes that
 * the socket's buffer does not take at once are lost: a client that slow gets no explanation.
 */
void mhd_refuse_socket(int fd, enum refusal which, const char *id);

#endif
