/*
 * mhd/internal: structures and functions that the parts of the wall (mhd.h) share.
 *
 *   Threads  a struct mhd belongs to one worker
 */
#ifndef HTTP_MHD_INTERNAL_H
#define HTTP_MHD_INTERNAL_H

#include "http/mhd/mhd.h"

#include <gnutls/abstract.h>
#include <microhttpd.h>

/*
 * Limits of a head for which each connection has memory. For larger ones, up to
 * max_header_size and max_headers, at most LARGE_CONNS connections of a worker have
 * memory, and as many with TLS.
 */
enum { SMALL_HEAD = 4096, SMALL_LINES = 36, LARGE_CONNS = 256 };

enum { MHD_DAEMON_CONNS = 512, HEADERS_CAP = RESPONSE_HEAD_MAX + 256 };

struct mhd_daemon {
    struct source source;
    struct mhd *mhd;           /* borrowed */
    struct MHD_Daemon *daemon; /* owned; NULL: not open */
    bool tls;                  /* it speaks TLS */
    bool large;                /* for large heads */
    size_t block;              /* memory of a connection */
    size_t conns;
    bool refuses;   /* libmicrohttpd sends a page or closes, which no callback reports */
    bool due;       /* it must run in this round */
    int64_t due_ms; /* when it must run anyway; real time, INT64_MAX: never */
    /* Rounds in a row in which it claimed to have work but did none. */
    unsigned idle_polls;
};

struct transport_buffers; /* opaque */

struct mhd {
    struct mhd_config config;
    struct mhd_daemon *daemons; /* owned; the first `count` are open */
    size_t count, capacity;
    bool strict; /* libmicrohttpd refuses malformed heads and chunks: strict_library() */
    struct MHD_Response *no_memory; /* owned; a prepared response */
    struct MHD_Response *empty; /* owned; for all responses without a body or headers */
    char *empty_start;          /* borrowed; the place of its request ids and date */
    int64_t date_s;             /* second of the wall clock that `date` is of */
    char date[CLOCK_HTTP_CAP];
    char filler[HEADERS_CAP];   /* a text of any length, up to its end (response.c) */
    size_t block;               /* memory of most connections */
    size_t large_block;         /* memory of a connection for large heads; 0: none */
    struct conn *adding;        /* within MHD_add_connection() */
    struct mhd_daemon *running; /* that runs, or ran last; NULL: none did */
    bool called;                /* the daemon that runs has called a callback */
    struct list pending_suspend, chunked, ended, tls_pending, tls_handshaking;
    struct transport_buffers *buffers; /* owned; NULL: no listener has TLS */
    struct list reading;               /* see struct transport */
};

static inline struct conn *
mhd_conn_of(struct MHD_Connection *connection)
{
    return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)
        ->socket_context;
}

static inline struct mhd *
mhd_of(const struct conn *c)
{
    return c->mhd.daemon->mhd;
}

static inline void
mhd_set_phase(const struct mhd *m, struct conn *c, enum conn_phase phase)
{
    conn_set_phase(m->config.table, c, phase, m->config.round->now_ms);
}

/* Suspends at once. */
void mhd_suspend_now(struct conn *c);

/* Gives a connection to libmicrohttpd, with memory for large heads if there is any. */
void mhd_admit(struct mhd *m, struct conn *c, bool large);

/* ------------------------------------------------------------------ arrival.c */

/* True if the first bytes of a connection are of a browser or a proxy, or of a large
 * head. */
bool arrival_wants_large(struct bytes first);

/* The same for the first bytes of a connection with TLS. */
bool arrival_is_browser(struct bytes hello);

/* Why to refuse a request with these first bytes of its head. They may be all of it, or
 * more. */
enum refusal arrival_check(struct bytes first);

/* Gives a connection to libmicrohttpd, or waits for its first bytes, or closes it. */
void arrival_look(struct mhd *m, struct conn *c);

/* Closes a connection that libmicrohttpd does not have yet, and frees it. */
void arrival_close(struct mhd *m, struct conn *c);

/* ------------------------------------------------------------------ callbacks.c */

/* The callbacks of a daemon; cls is the struct mhd. */
void *mhd_on_target(void *cls, const char *target, struct MHD_Connection *connection);
enum MHD_Result mhd_on_request(void *cls, struct MHD_Connection *connection,
                               const char *url, const char *method, const char *version,
                               const char *upload, size_t *upload_len, void **ctx);
void mhd_on_completed(void *cls, struct MHD_Connection *connection, void **ctx,
                      enum MHD_RequestTerminationCode how);
void mhd_on_connection(void *cls, struct MHD_Connection *connection, void **socket_ctx,
                       enum MHD_ConnectionNotificationCode what);

/*
 * libmicrohttpd is about to send a built-in page, or to close a connection because of a
 * malformed request, and does not tell which connection. page: the page or the reason.
 * One of these gets a document of claimd past libmicrohttpd, and nothing more:
 *
 * - the one with a whole head that libmicrohttpd cannot read (Content-Length is no
 *   number, or the cookies do not fit into its memory), because libmicrohttpd 0.9.75
 *   would respond twice
 * - the only one in the middle of a chunked body, if the page is about chunks
 * - the only one of the running daemon of which libmicrohttpd can have read a part of a
 *   head
 *
 * Otherwise the client gets the built-in page.
 */
void mhd_replace_page(struct mhd *m, unsigned code, const char *page);

/*
 * The memory of a connection, for heads of at most this size and so many lines, with
 * cookies of at most this size.
 */
size_t head_space_block(size_t max_head, size_t max_lines, size_t max_cookies);

/* True if the head of a response fits into the block, whatever the client sends behind
 * its head. */
bool head_space_suffices(size_t block, const struct head_use *use);

/* ------------------------------------------------------------------ response.c */

/* Makes the response of a refusal. id: may be NULL. NULL without memory. */
struct MHD_Response *mhd_make_refusal(enum refusal which, bool closing, const char *id);

/* Makes m->empty. False without memory. */
bool mhd_make_empty(struct mhd *m);

/* Refuses past libmicrohttpd, which must then close. */
void mhd_refuse_past(struct exchange *ex, enum refusal which);

/* ------------------------------------------------------------------ sockets.c */

/* For MHD_OPTION_HTTPS_CERT_CALLBACK: pins the pair in force for the connection. */
int tls_certificate(gnutls_session_t session, const gnutls_datum_t *authorities,
                    int authority_count, const gnutls_pk_algorithm_t *algorithms,
                    int algorithm_count, gnutls_pcert_st **chain, unsigned *chain_count,
                    gnutls_privkey_t *key);

/* Suspends a connection that was just added, until its client sends the handshake. */
void tls_wait(struct mhd *m, struct conn *c);

/* Resumes some connections whose handshake can continue. */
void tls_admit(struct mhd *m);

/* After a run of libmicrohttpd: suspends connections in a handshake with nothing left to
 * read. */
void tls_suspend_idle(struct mhd *m);

/* The first request of c is there, so the handshake is over. Verifies the client's
 * certificate. */
void tls_handshake_done(struct mhd *m, struct conn *c);

/* The connection ends. Its session is gone. */
void tls_end(struct mhd *m, struct conn *c);

/* ------------------------------------------------------------------ transport.c */

/* False without memory. */
bool transport_open(struct mhd *m);
void transport_close(struct mhd *m);

/* Makes GnuTLS use the functions of this file for c. */
void transport_set(struct conn *c);

/* The connection ends. Its session is gone. */
void transport_end(struct conn *c);

/* The next record of c is the head of a response, and its body follows at once. */
void transport_hold_head(struct conn *c);

/* The response has ended. Sends a head that is still held. */
void transport_flush(struct conn *c);

/* c was suspended, or resumed. */
void transport_suspended(struct conn *c);
void transport_resumed(struct conn *c);

/* Before each run of libmicrohttpd. */
void transport_begin_run(struct mhd *m);

/*
 * After a run. False if libmicrohttpd may have left input unread that makes no further
 * event, of a connection of d that is not suspended.
 */
bool transport_is_read(struct mhd *m, const struct mhd_daemon *d);

/*
 * After some runs. GnuTLS reports EAGAIN after a record that is not for libmicrohttpd,
 * such as a key update, also if more input is there. Then libmicrohttpd waits for an
 * event. So this makes it read again. idle: it claims to have no work.
 */
void transport_reread(struct mhd *m, const struct mhd_daemon *d, bool idle);

/* ------------------------------------------------------------------ events */

/*
 * Asks the worker's epoll set for one event, when the client of c stops sending or when
 * `what` happens (EPOLLIN, EPOLLOUT, or 0). Only one, because epoll reports the end of
 * input again with each later event. how: EPOLL_CTL_ADD at first, then EPOLL_CTL_MOD.
 * False without memory.
 */
bool watch_socket(struct mhd *m, struct conn *c, int how, uint32_t what);

/*
 * The client of c sends no more. libmicrohttpd misses that if the end of the input comes
 * together with the last bytes, because it waits for another edge after a short read. It
 * would keep the connection until a time-out. So claimd replays the end, as an edge of
 * its own, when libmicrohttpd waits for input and has read all of it.
 */
void replay_rdhup(struct mhd *m, struct conn *c);
void replay_rdhups(struct mhd *m);

/* After a round in which libmicrohttpd always had work in this daemon: see sockets.c. */
void chunk_watchdog(struct mhd *m, const struct mhd_daemon *d);

#endif
