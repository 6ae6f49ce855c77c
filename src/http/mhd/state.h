/*
 * mhd/state: what the wall around libmicrohttpd (mhd.h) keeps in a connection and in an exchange.
 * Only src/http/mhd writes these fields.
 */
#ifndef HTTP_MHD_STATE_H
#define HTTP_MHD_STATE_H

#include "claimd/ds/list.h"

#include <gnutls/gnutls.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct MHD_Connection;
struct exchange;
struct mhd_daemon;
struct tls_pair;

/* A body that is sent piece by piece. */
struct mhd_pieces {
    /* Writes up to cap bytes of the body from `at` on; 0: later; less: closes the connection. */
    ssize_t (*read)(struct exchange *ex, uint64_t at, char *out, size_t cap);
    size_t most; /* bytes of a piece, at most */
};

/* Of a connection. Zero before mhd_add(). */
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

/* The space that a request takes of its connection's memory besides the bytes of its head. */
struct head_use {
    size_t head;    /* bytes of the head */
    size_t records; /* headers and cookies */
    size_t cookies; /* bytes of the header that libmicrohttpd takes the cookies from */
};

/* Of an exchange: what its head says about the rest. */
struct head {
    uint64_t content_length; /* 0 without the header */
    struct head_use use;
    const char *end; /* in the connection's memory; the body is read from here on */
    bool chunked;
    bool expects_continue; /* the client waits for 100 before it sends the body */
};

#endif
