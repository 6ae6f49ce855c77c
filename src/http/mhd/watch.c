#include "http/mhd/internal.h"

#include <sys/epoll.h>

bool
watch_socket(struct mhd *m, struct conn *c, int how, uint32_t what)
{
    struct epoll_event event = {.events = what | EPOLLRDHUP | EPOLLONESHOT,
                                .data.ptr = &c->source};

    return epoll_ctl(m->config.epoll_fd, how, c->fd, &event) == 0;
}

/* ------------------------------------------------------------------ ends of input */

/* The first edge may come too early: there is something left to read. */
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
        /* While a response is under way it has to wait until that is over. */
        if (c->phase != CONN_WAITING && c->phase != CONN_RECEIVING)
            c->mhd.replays = 1;
        else {
            (void)shutdown(c->fd, SHUT_RD); /* what was sent can still be read */
            c->mhd.daemon->due = true;
        }
        if (--c->mhd.replays == 0)
            list_remove(&c->mhd.ended);
    }
}

/* ------------------------------------------------------------------ chunked bodies */

/*
 * If the line with the size of a chunk is longer than the memory of its connection, libmicrohttpd
 * can neither read on nor give up. It says for ever that work is left, and not where. So a worker
 * that was told so in vain looks at the connections that are in the middle of a chunked body and
 * for which libmicrohttpd did not call in this round:
 *
 *     bytes or the end of them wait in the socket,      libmicrohttpd does not read them:
 *     IDLE_ROUNDS rounds in a row                       refused and closed
 *     nothing waits                                     stuck, or merely slow: suspended until the
 *                                                       client sends more, which costs nothing
 *
 * A round without such work costs nothing; else a system call or two for each chunked body.
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
            /* Not watched, for want of memory: it goes on until its time is up. */
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
    c = container_of(source, struct conn, source); /* freed in mhd_run() only: alive */
    if (c->mhd.suspended && c->phase == CONN_RECEIVING) {
        (void)watch_socket(m, c, EPOLL_CTL_MOD, 0); /* it was in the set before */
        mhd_resume(c);
    } else if (tls_is_waiting(c)) {
        tls_handshake_ready(m, c);
    } else {
        c->hung_up = true;
        m->config.handler->hung_up(m->config.ctx, c);
        replay_rdhup(m, c);
    }
}
