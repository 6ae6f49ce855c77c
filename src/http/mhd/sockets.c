/*
 * sockets: the events of sockets that libmicrohttpd misses or does not understand.
 * Declared in mhd.h and internal.h. mhd_event() decides by the state of the connection:
 *
 *     arrival_look()      it waits for its first bytes (arrival.c)
 *     mhd_resume()        it is in the middle of a chunked body, and was suspended
 *     tls_admit()         its handshake can continue, in one of the next rounds
 *     http_on_hung_up()   its client sends no more
 *
 * chunk_watchdog() finds chunked bodies that libmicrohttpd can never read.
 */
#include "claimd/base/invariant.h"
#include "claimd/http/tls.h"
#include "http/mhd/internal.h"

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>

bool
watch_socket(struct mhd *m, struct conn *c, int how, uint32_t what)
{
    struct epoll_event event = {.events = what | EPOLLRDHUP | EPOLLONESHOT,
                                .data.ptr = &c->source};

    return epoll_ctl(m->config.epoll_fd, how, c->fd, &event) == 0;
}

/* ------------------------------------------------------------------ handshakes of TLS */

/*
 * libmicrohttpd 0.9.75 continues a handshake when the connection is readable, but does
 * not notice when it has read everything. With a client that stops half way, it would try
 * again and again. So a connection without a request yet is suspended while there is
 * nothing to read. The worker's own epoll set tells when there is:
 *
 *     added --> suspended --readable--> tls_pending --its turn--> tls_handshaking
 *                   ^                                                |   |
 *                   +--------------- nothing to read ----------------+   +--> a request
 *
 * A handshake takes about a millisecond of the processor. Each round admits a few, so
 * that the worker serves other clients in between. If the client has gone, the connection
 * is only closed. Half a handshake costs nothing until the client continues, or its time
 * limit.
 */

/* CHECKED_A_ROUND includes connections whose client has gone, which cost little. */
enum { ADMITTED_A_ROUND = 4, CHECKED_A_ROUND = 64 };

static struct conn *
conn_of_handshake(struct list *link)
{
    return container_of(link, struct conn, mhd.handshake);
}

int
tls_certificate(gnutls_session_t session, const gnutls_datum_t *authorities,
                int authority_count, const gnutls_pk_algorithm_t *algorithms,
                int algorithm_count, gnutls_pcert_st **chain, unsigned *chain_count,
                gnutls_privkey_t *key)
{
    struct conn *c = mhd_conn_of(gnutls_session_get_ptr(session));
    const struct mhd *m = mhd_of(c);

    (void)authorities, (void)authority_count, (void)algorithms, (void)algorithm_count;
    if (c->mhd.pair == NULL)
        c->mhd.pair = tls_pin(m->config.server->tls);
    *chain = c->mhd.pair->chain;
    *chain_count = c->mhd.pair->count;
    *key = c->mhd.pair->key;
    return 0;
}

/* Suspends a connection until its socket is ready for the handshake. False without
 * memory. */
static bool
suspend_handshake(struct mhd *m, struct conn *c)
{
    if (!watch_socket(m, c, EPOLL_CTL_MOD,
                      gnutls_record_get_direction(c->mhd.tls) == 0 ? EPOLLIN : EPOLLOUT))
        return false;
    mhd_suspend_now(c);
    return true;
}

void
tls_wait(struct mhd *m, struct conn *c)
{
    if (c->mhd.tls != NULL && !suspend_handshake(m, c))
        list_add_before(&m->tls_handshaking, &c->mhd.handshake);
}

void
tls_admit(struct mhd *m)
{
    int admitted = 0, checked = 0;
    char input[4096];

    while (!list_empty(&m->tls_pending) && checked++ < CHECKED_A_ROUND &&
           admitted < ADMITTED_A_ROUND) {
        struct conn *c = conn_of_handshake(list_pop(&m->tls_pending));
        struct pollfd fd = {.fd = c->fd, .events = POLLRDHUP};

        if (!c->mhd.suspended)
            continue; /* it is about to close */
        /*
         * If the client has ended its side before it got our certificate, the handshake
         * cannot succeed. But GnuTLS would respond, and sign, before it reads the end. So
         * the input goes.
         */
        if (c->mhd.pair == NULL && poll(&fd, 1, 0) > 0)
            while (recv(c->fd, input, sizeof(input), MSG_DONTWAIT) > 0)
                continue;
        else
            admitted++;
        (void)watch_socket(m, c, EPOLL_CTL_MOD, 0); /* it was in the set before */
        mhd_resume(c);
        list_add_before(&m->tls_handshaking, &c->mhd.handshake);
    }
}

void
tls_suspend_idle(struct mhd *m)
{
    struct list *at = m->tls_handshaking.next;
    int on = 1;

    while (at != &m->tls_handshaking) {
        struct conn *c = conn_of_handshake(at);

        at = at->next;
        if (c->phase == CONN_CLOSING || conn_unread(c) != UNREAD_NOTHING ||
            !suspend_handshake(m, c))
            continue;
        list_remove(&c->mhd.handshake);
        /*
         * If the client's message ends the handshake, claimd sends nothing that could
         * carry the acknowledgement. A client without TCP_NODELAY would wait 40 ms for it
         * before its request. A Unix socket has no such option, and needs none.
         */
        (void)setsockopt(c->fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof(on));
    }
}

static void
end_handshake(struct conn *c)
{
    if (list_linked(&c->mhd.handshake))
        list_remove(&c->mhd.handshake);
    tls_pair_drop(c->mhd.pair);
    c->mhd.pair = NULL;
}

void
tls_handshake_done(struct mhd *m, struct conn *c)
{
    const struct server_config *config = m->config.server;

    end_handshake(c);
    if (c->mhd.tls != NULL && tls_authorities(config->tls) != NULL)
        c->certificate = tls_client_cert_read(config->mem, c->mhd.tls);
}

void
tls_end(struct mhd *m, struct conn *c)
{
    end_handshake(c);
    if (c->mhd.tls != NULL)
        transport_end(c);
    tls_client_cert_free(m->config.server->mem, c->certificate);
    c->certificate = NULL;
    c->mhd.tls = NULL;
}

/* ------------------------------------------------------------------ ends of input */

/* Two, because the first edge may come before libmicrohttpd has read everything. */
enum { REPLAYS = 2 };

void
replay_rdhup(struct mhd *m, struct conn *c)
{
    c->mhd.replays = REPLAYS;
    if (!list_linked(&c->mhd.ended))
        list_add_before(&m->ended, &c->mhd.ended);
}

void
replay_rdhups(struct mhd *m)
{
    struct list *at = m->ended.next;

    while (at != &m->ended) {
        struct conn *c = container_of(at, struct conn, mhd.ended);

        at = at->next;
        ENSURE(c->hung_up && c->mhd.replays > 0);
        /* While a response is under way, the replay waits for mhd_on_completed(). */
        if (c->phase != CONN_WAITING && c->phase != CONN_RECEIVING)
            c->mhd.replays = 1;
        else {
            (void)shutdown(c->fd, SHUT_RD); /* bytes in the socket can still be read */
            c->mhd.daemon->due = true;
        }
        if (--c->mhd.replays == 0)
            list_remove(&c->mhd.ended);
    }
}

/* ------------------------------------------------------------------ chunked bodies */

/*
 * If the line with the size of a chunk is longer than the memory of its connection,
 * libmicrohttpd can neither read further nor fail. It always claims that work is left,
 * and does not tell where. After such a round, chunk_watchdog() checks the connections in
 * the middle of a chunked body for which there was no callback in this round:
 *
 *     bytes or the end of input wait in the socket,     libmicrohttpd does not read them:
 *     IDLE_ROUNDS rounds in a row                       refused and closed
 *     nothing waits                                     stuck, or merely slow: suspended
 *                                                       until the client sends more,
 *                                                       which costs nothing
 *
 * Other rounds cost nothing. Such a round costs one or two system calls for each chunked
 * body.
 */
enum { IDLE_ROUNDS = 3 };

void
chunk_watchdog(struct mhd *m, const struct mhd_daemon *d)
{
    struct list *at = m->chunked.next;

    while (at != &m->chunked) {
        struct conn *c = container_of(at, struct conn, mhd.chunked);

        at = at->next; /* c may leave the list */
        if (c->mhd.daemon != d || c->mhd.suspended || c->phase == CONN_CLOSING)
            continue;
        if (c->mhd.round == m->config.round->number) {
            c->mhd.idle_rounds = 0;
        } else if (conn_unread(c) == UNREAD_NOTHING) {
            c->mhd.idle_rounds = 0;
            /* Without memory to watch it, the connection stays until its time limit. */
            if (watch_socket(m, c, EPOLL_CTL_MOD, EPOLLIN))
                mhd_suspend_now(c);
        } else if (++c->mhd.idle_rounds >= IDLE_ROUNDS) {
            mhd_end(c, REFUSAL_CHUNKS);
        }
    }
}

/* ------------------------------------------------------------------ events */

void
mhd_event(struct mhd *m, struct source *source)
{
    struct conn *c;

    if (source->kind == SOURCE_MHD) {
        container_of(source, struct mhd_daemon, source)->due = true;
        return;
    }
    ENSURE(source->kind == SOURCE_CONN);
    /* Alive: only mhd_run() and arrival_look() free it, and it has no other event in this
     * round. */
    c = container_of(source, struct conn, source);
    if (c->mhd.connection == NULL) {
        arrival_look(m, c);
    } else if (c->mhd.suspended && c->phase == CONN_RECEIVING) {
        (void)watch_socket(m, c, EPOLL_CTL_MOD, 0); /* it was in the set before */
        mhd_resume(c);
    } else if (c->mhd.tls != NULL && !c->used && c->mhd.suspended) {
        if (!list_linked(&c->mhd.handshake))
            list_add_before(&m->tls_pending, &c->mhd.handshake);
    } else {
        c->hung_up = true;
        http_on_hung_up(c);
        replay_rdhup(m, c);
    }
}
