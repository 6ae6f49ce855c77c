#include "http/secure.h"

#include "claimd/base/invariant.h"
#include "claimd/http/tls.h"
#include "http/front.h"
#include "http/shown.h"

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>

/* LOOKED_AT_A_ROUND: with those who have gone, which costs little. */
enum { ADMITTED_A_ROUND = 4, LOOKED_AT_A_ROUND = 64 };

static struct conn *
conn_of_shake(struct list *link)
{
    return container_of(link, struct conn, shake);
}

void
secure_init(struct worker *w)
{
    list_init(&w->knocking);
    list_init(&w->shaking);
}

int
secure_certificate(gnutls_session_t session, const gnutls_datum_t *authorities,
                   int authority_count, const gnutls_pk_algorithm_t *algorithms,
                   int algorithm_count, gnutls_pcert_st **chain, unsigned *chain_count,
                   gnutls_privkey_t *key)
{
    struct conn *c = worker_conn(gnutls_session_get_ptr(session));
    const struct worker *w = container_of(c->mailbox, struct worker, mailbox);

    (void)authorities, (void)authority_count, (void)algorithms, (void)algorithm_count;
    if (c->pair == NULL)
        c->pair = tls_pin(w->shared->config->tls);
    *chain = tls_pair_chain(c->pair, chain_count);
    *key = tls_pair_key(c->pair);
    return 0;
}

void
secure_begin(struct conn *c)
{
    const union MHD_ConnectionInfo *info;

    if (c->kind != LISTEN_TLS)
        return;
    info = MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    ENSURE(info != NULL); /* its daemon has TLS */
    c->tls = info->tls_session;
}

/* What the handshake waits for. */
static uint32_t
awaited(const struct conn *c)
{
    return gnutls_record_get_direction(c->tls) == 0 ? EPOLLIN : EPOLLOUT;
}

/* False: it cannot be watched, for want of memory. It goes on, and costs what it costs. */
static bool
hold(struct worker *w, struct conn *c)
{
    if (!front_watch(w, c, EPOLL_CTL_MOD, awaited(c)))
        return false;
    worker_hold(w, c);
    return true;
}

/*
 * Where the client's words end the handshake nothing is said that could carry an
 * acknowledgement, for which clients without TCP_NODELAY wait before they ask: 40 ms.
 */
static void
acknowledge(const struct conn *c)
{
    int on = 1;

    /* On a Unix socket it fails, and is not needed. */
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof(on));
}

void
secure_wait(struct worker *w, struct conn *c)
{
    if (c->tls != NULL && !hold(w, c))
        list_add_before(&w->shaking, &c->shake);
}

bool
secure_is_waiting(const struct conn *c)
{
    return c->tls != NULL && !c->used && c->held;
}

void
secure_knock(struct worker *w, struct conn *c)
{
    if (!list_linked(&c->shake))
        list_add_before(&w->knocking, &c->shake);
}

/* It has ended its side before it has seen our certificate: the handshake leads nowhere. */
static bool
has_gone(const struct conn *c)
{
    struct pollfd fd = {.fd = c->fd, .events = POLLRDHUP};

    return c->pair == NULL && poll(&fd, 1, 0) > 0;
}

/* GnuTLS would answer what it has said, and sign it, before it sees the end. */
static void
forget_words(const struct conn *c)
{
    char words[4096];

    while (recv(c->fd, words, sizeof(words), MSG_DONTWAIT) > 0)
        continue;
}

bool
secure_admit(struct worker *w)
{
    int admitted = 0;

    for (int i = 0; i < LOOKED_AT_A_ROUND && admitted < ADMITTED_A_ROUND; i++) {
        struct list *link = list_pop(&w->knocking);
        struct conn *c;

        if (link == NULL)
            return false;
        c = conn_of_shake(link);
        if (!c->held)
            continue; /* it is about to end */
        if (has_gone(c))
            forget_words(c);
        else
            admitted++;
        (void)front_watch(w, c, EPOLL_CTL_MOD, 0); /* it was in the set before */
        worker_let_go(w, c);
        list_add_before(&w->shaking, &c->shake);
    }
    return !list_empty(&w->knocking);
}

void
secure_hold_idle(struct worker *w)
{
    struct list *at = w->shaking.next;

    while (at != &w->shaking) {
        struct conn *c = conn_of_shake(at);

        at = at->next;
        if (c->phase == CONN_DOOMED || conn_unread(c) != UNREAD_NOTHING || !hold(w, c))
            continue;
        list_remove(&c->shake);
        acknowledge(c);
    }
}

/* The handshake is over, one way or another. */
static void
settle(struct conn *c)
{
    if (list_linked(&c->shake))
        list_remove(&c->shake);
    tls_pair_drop(c->pair);
    c->pair = NULL;
}

void
secure_used(struct worker *w, struct conn *c)
{
    const struct server_config *config = w->shared->config;

    settle(c);
    if (c->tls != NULL && tls_authorities(config->tls) != NULL)
        c->certificate = shown_read(config->mem, c->tls);
}

void
secure_end(struct worker *w, struct conn *c)
{
    settle(c);
    shown_free(w->shared->config->mem, c->certificate);
    c->certificate = NULL;
    c->tls = NULL;
}
