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
 * A limit is for a whole phase, so a client that sends a byte now and then cannot keep a
 * connection for ever. SUSPENDED has no limit here (see respond.h). libmicrohttpd reports
 * a request when its target is known, not when its first byte arrives. So WAITING
 * includes the request line.
 *
 *   Cost     O(1) for each call: a phase has one limit, so its list is in the order of
 *            deadlines
 *   Threads  the accepting thread creates a conn and pushes it to a worker, which owns it
 *            then
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

/* The client's address. That of a Unix socket is not kept: clients do not bind theirs. */
union peer {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

struct certificate;
struct exchange;

/* ------------------------------------------------------------- for src/http/mhd only */

/* A body that is sent piece by piece. */
struct mhd_pieces {
    /* Writes up to cap bytes of the body from `at` on; 0: later; PIECES_... */
    ssize_t (*read)(struct exchange *ex, uint64_t at, char *out, size_t cap);
    size_t most;  /* bytes of a piece, at most */
    bool endless; /* the body has no length known before */
};

enum { PIECES_BREAK = -1 /* closes the connection */, PIECES_END = -2 /* of the body */ };

/* Between the socket and GnuTLS (mhd/transport.c). */
struct transport {
    char *input;      /* read; memory of the worker or its own; NULL: nothing is left */
    size_t at, end;   /* the bytes of it that GnuTLS has not taken */
    uint64_t emptied; /* run in which the last read emptied the socket; 0: it did not */
    uint64_t pulled;  /* run in which GnuTLS asked last */
    char *held;       /* the head of a response, to be sent with its body; as input */
    size_t held_len;
    bool hold;           /* the next record is a head, and its body follows at once */
    bool unwatched;      /* may not be in the epoll set of libmicrohttpd */
    struct list reading; /* may have input that libmicrohttpd has not read */
};

static inline bool
transport_has_input(const struct transport *t)
{
    return t->input != NULL;
}

struct MHD_Connection;
struct mhd_daemon;
struct tls_pair;

/* The part of a connection that mhd/ owns. Zero before mhd_add(). */
struct mhd_conn {
    struct MHD_Connection *connection; /* borrowed; NULL: it waits for its first bytes */
    struct mhd_daemon *daemon; /* borrowed; which has the connection; else the first */
    struct mhd_pieces pieces;  /* of the response under way */
    bool watched;              /* in the worker's epoll set */
    bool suspended;            /* libmicrohttpd leaves it alone */
    bool was_suspended;        /* now or before */
    bool in_body;              /* within the callback for a piece of a body */
    unsigned round;            /* of the last callback for this connection */
    unsigned idle_rounds;      /* in a row, with input that libmicrohttpd did not read */
    unsigned replays;          /* ends of input that will still be replayed */
    uint64_t ended_bytes;      /* bytes of all requests that have ended; not with TLS */
    gnutls_session_t tls;      /* libmicrohttpd's; NULL: none */
    struct transport transport;
    struct tls_pair *pair;       /* pinned during the handshake */
    struct list pending_suspend; /* to be suspended when libmicrohttpd returns */
    struct list chunked;         /* in the middle of a chunked body */
    struct list ended;           /* the client sends no more, which is to be replayed */
    struct list handshake;       /* tls_pending or tls_handshaking */
};

/* ------------------------------------------------------------------ a connection */

struct conn {
    struct source source;
    struct event event;    /* delivers the connection to the worker, then its events */
    struct eventq *eventq; /* of its worker, borrowed */
    struct list link;      /* in the list of its phase */
    struct list turn;      /* in a list of struct suspended */
    int fd;                /* libmicrohttpd's once the worker has it */
    enum listen_kind kind; /* of its listener */
    bool check_host;       /* of its requests: struct request */
    bool from_proxy;       /* likewise */
    bool used;             /* has brought a request */
    bool linger;           /* the client may still be sending when this is closed */
    bool hung_up;          /* the client will send no more */
    enum conn_phase phase;
    int64_t since_ms;                /* when the phase began; real time */
    struct exchange *exchange;       /* the request under way, borrowed; NULL: none */
    struct api_connection quota;     /* its part of its project's quota */
    struct certificate *certificate; /* of the client, owned; NULL: none was sent */
    union peer peer;
    socklen_t peer_len;
    char address[INET6_ADDRSTRLEN]; /* of the peer, without its port; empty: none */
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

/* Begins a phase. A closing connection stays in CLOSING. */
void conn_set_phase(struct conn_table *t, struct conn *c, enum conn_phase phase,
                    int64_t now_ms);

/* The connection whose limit ends first, and when. Without one: NULL and INT64_MAX. */
struct conn *conn_earliest(const struct conn_table *t, int64_t *due_ms);

/*
 * Tells whether input waits in the socket or in the buffer of TLS. Bytes of TLS in the
 * socket need not belong to a request. Makes a system call.
 */
enum conn_unread { UNREAD_NOTHING, UNREAD_DATA, UNREAD_END };
enum conn_unread conn_unread(const struct conn *c);

/*
 * True if libmicrohttpd can have read more than mhd.ended_bytes, and has not closed its
 * side. Always true if that is not known: with TLS, for a Unix socket, after an empty
 * line before a request, and often if the connection is closed. Makes up to two system
 * calls.
 */
bool conn_has_part(const struct conn *c);

/*
 * Bytes of responses that the client has not taken. (TCP: not acknowledged. Unix: not
 * read, with the kernel's records.) Makes a system call.
 */
size_t conn_unsent(const struct conn *c);

/*
 * If the client has not taken all bytes, the close of the socket drops them and resets
 * the connection. Otherwise the kernel would keep them for as long as the client is
 * there. Makes a system call or two.
 */
void conn_drop_unsent(const struct conn *c);

/* Counts connections with a request under way or unread. O(n): for the end of a drain. */
size_t conn_unfinished(const struct conn_table *t);

/* ------------------------------------------------------------------ lingering close */

/*
 * The lingering close of sockets that got a response before claimd had read all of their
 * input.
 *
 * Closing a socket with unread bytes resets the connection, and the reset may destroy the
 * response on its way. So claimd ends its own side of such a socket, discards further
 * input, and closes the socket at the end of the input, after LINGER_MS, or after
 * LINGER_BYTES. (SO_LINGER concerns bytes that claimd sends.)
 *
 *   Bounds   at most LINGER_SLOTS sockets; a new one replaces the oldest
 *   Threads  none: belongs to one event loop
 */
enum { LINGER_SLOTS = 64, LINGER_MS = 2000, LINGER_BYTES = 16 * 1024 * 1024 };

struct linger_slot {
    struct source source;
    int fd;           /* owned; -1: free */
    int64_t until_ms; /* time limit */
    size_t left;      /* bytes that may still arrive */
};

struct linger_set {
    int epoll_fd;      /* borrowed, of the loop that calls linger_read() */
    size_t slot_count; /* slots in use, from the first; 1 to LINGER_SLOTS */
    size_t count;      /* sockets */
    struct linger_slot slots[LINGER_SLOTS];
};

void linger_init(struct linger_set *l, int epoll_fd, size_t slot_count);

/* Closes all sockets. */
void linger_fini(struct linger_set *l);

/* Owns fd from now on. Its events are of SOURCE_LINGER. */
void linger_add(struct linger_set *l, int fd, int64_t now_ms);

/* Reads and discards input. Closes the socket at the end of the input. */
void linger_read(struct linger_set *l, struct source *source);

/* Closes sockets at their time limit. Returns the next limit, INT64_MAX if nothing
 * lingers. */
int64_t linger_expire(struct linger_set *l, int64_t now_ms);

#endif
