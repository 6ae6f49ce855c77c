/*
 * conn: one client connection as its worker sees it, and the time limits of its phases.
 *
 *     accepted --> WAITING --target--> RECEIVING --body whole--> RESPONDING
 *                     ^                    |                      |  ^   |
 *                     |                    | too slow: 408        v  |   | response sent
 *                     |                    v                  SUSPENDED  |
 *                     |                 CLOSING (socket shut down)       |
 *                     +--------------------------------------------------+
 *
 * The limits are on the whole of a phase, so that one byte now and then does not keep a connection
 * for ever. SUSPENDED has none here (respond.h). libmicrohttpd reports a request when its target is
 * known, not when its first byte arrives: WAITING includes the request line.
 *
 *   Cost     every step O(1): within a phase connections stand in the order of their
 *            deadlines, since the limit is the same for all
 *   Threads  the accepting thread makes a conn and gives it away; from then on its worker's
 */
#ifndef HTTP_CONN_H
#define HTTP_CONN_H

#include "claimd/api/api.h"
#include "claimd/base/counter.h"
#include "claimd/base/mem.h"
#include "claimd/ds/list.h"
#include "claimd/http/listen.h"
#include "http/eventq.h"

#include <gnutls/gnutls.h>
#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

enum conn_phase {
    CONN_WAITING,    /* for the target of a request */
    CONN_RECEIVING,  /* its headers and body */
    CONN_RESPONDING, /* the response is being made or sent */
    CONN_SUSPENDED,  /* the response has to wait for something */
    CONN_PHASES,
    CONN_CLOSING = CONN_PHASES /* shut down; libmicrohttpd is about to notice */
};

/* The client's address; Unix sockets have no name worth keeping. */
union peer {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

struct certificate;
struct exchange;

/* ------------------------------------------------------------------ for src/http/mhd only */

/* A body that is sent piece by piece. */
struct mhd_pieces {
    /* Writes up to cap bytes of the body from `at` on; 0: later; less: closes the connection. */
    ssize_t (*read)(struct exchange *ex, uint64_t at, char *out, size_t cap);
    size_t most; /* bytes of a piece, at most */
};

struct MHD_Connection;
struct mhd_daemon;
struct tls_pair;

/* What the wall keeps in a connection. Zero before mhd_add(). */
struct mhd_conn {
    struct MHD_Connection *connection; /* borrowed */
    struct mhd_daemon *daemon;         /* borrowed; which has the connection */
    struct mhd_pieces pieces;          /* of the response under way */
    bool suspended;                    /* libmicrohttpd leaves it alone */
    bool was_suspended;                /* now or before */
    bool in_body;                      /* libmicrohttpd is giving us a piece of a body */
    unsigned round;                    /* in which libmicrohttpd called us for it last */
    unsigned idle_rounds;        /* in a row, in which it had input and was not read */
    unsigned replays;            /* ends of input that will still be replayed */
    gnutls_session_t tls;        /* libmicrohttpd's; NULL: none */
    struct tls_pair *pair;       /* pinned during the handshake */
    struct list pending_suspend; /* to be suspended when libmicrohttpd returns */
    struct list chunked;         /* in the middle of a chunked body */
    struct list ended;           /* the client sends no more: to be replayed */
    struct list handshake;       /* tls_pending or tls_handshaking */
};

/* ------------------------------------------------------------------ a connection */

struct conn {
    struct source source;
    struct event event;    /* brings the connection, and then what happens to it */
    struct eventq *eventq; /* of its worker, borrowed */
    struct list link;      /* in the list of its phase */
    struct list turn;      /* in a list of struct suspended */
    int fd;                /* libmicrohttpd's once the worker has it */
    enum listen_kind kind; /* of its listener */
    bool check_host;       /* of its requests: struct request */
    bool used;             /* has brought a request */
    bool linger;           /* the client may still be sending when this is closed */
    bool hung_up;          /* the client will send no more */
    enum conn_phase phase;
    int64_t since_ms;                /* when the phase began; real time */
    struct exchange *exchange;       /* the request under way, borrowed; NULL: none */
    struct api_seat seat;            /* its part of its project's quota */
    struct certificate *certificate; /* of the client, owned; NULL: none was sent */
    union peer peer;
    socklen_t peer_len;
    struct mhd_conn mhd;
};

struct conn_table {
    struct list phases[CONN_PHASES];
    int64_t limit_ms[CONN_PHASES];
    size_t count; /* connections in any phase, closing ones too */
    struct counter counts[CONN_PHASES + 1]; /* of each phase, for any thread to read */
};

void conn_table_init(struct conn_table *t, int64_t idle_ms, int64_t request_ms);

/* Adds a connection in phase WAITING. t borrows it until conn_table_remove(). */
void conn_table_add(struct conn_table *t, struct conn *c, int64_t now_ms);
void conn_table_remove(struct conn_table *t, struct conn *c);

/* Begins a phase. A closing connection stays so. */
void conn_set_phase(struct conn_table *t, struct conn *c, enum conn_phase phase,
                    int64_t now_ms);

/* A connection whose phase lasts too long, NULL if there is none. */
struct conn *conn_overdue(const struct conn_table *t, int64_t now_ms);

/* When the next connection is overdue, INT64_MAX if never. */
int64_t conn_next_ms(const struct conn_table *t);

/*
 * The input that waits to be read, in the socket or in the buffer of TLS. Of bytes in the
 * socket it is not known yet what they are: a record of TLS need not be of a request. A system
 * call.
 */
enum conn_unread { UNREAD_NOTHING, UNREAD_DATA, UNREAD_END };
enum conn_unread conn_unread(const struct conn *c);

/* Connections with a request under way, or unread. O(n): for the end of a drain. */
size_t conn_unfinished(const struct conn_table *t);

/* ------------------------------------------------------------------ lingering close */

/*
 * The lingering close of sockets that got a response before everything they sent was read.
 *
 * Closing a socket with unread bytes resets the connection, and the reset may destroy the response
 * on its way. So such a socket is kept half open: it says "no more from us", discards what still
 * comes, and is closed at the end of the input, after a short time, or when too much came.
 * (SO_LINGER is another thing: it is about bytes of ours.)
 *
 *   Bounds   at most LINGER_SLOTS sockets; the oldest makes way for a new one
 *   Threads  none: belongs to one event loop
 */
enum { LINGER_SLOTS = 64, LINGER_MS = 2000, LINGER_BYTES = 16 * 1024 * 1024 };

struct linger_slot {
    struct source source;
    int fd;           /* owned; -1: free */
    int64_t until_ms; /* closed then at the latest */
    size_t left;      /* bytes that may still come */
};

struct linger_set {
    int epoll_fd;      /* borrowed: the loop that calls linger_read() */
    size_t slot_count; /* those that are used, from the first */
    size_t count;
    struct linger_slot slots[LINGER_SLOTS];
};

/* For at most slot_count sockets, 1 to LINGER_SLOTS. */
void linger_init(struct linger_set *l, int epoll_fd, size_t slot_count);

/* Closes all. */
void linger_fini(struct linger_set *l);

/* Takes fd; its events are of SOURCE_LINGER. */
void linger_add(struct linger_set *l, int fd, int64_t now_ms);

/* Reads and discards; closes at the end of the input. */
void linger_read(struct linger_set *l, struct source *source);

/* Closes what is overdue. Returns when the next is due, INT64_MAX if nothing lingers. */
int64_t linger_expire(struct linger_set *l, int64_t now_ms);

#endif
