#include "http/request.h"

#include "claimd/base/invariant.h"
#include "http/respond.h"

#include <errno.h>
#include <unistd.h>

void
http_on_opened(struct conn *c)
{
    struct worker *w = worker_of(c);

    conn_table_add(&w->conns.table, c, w->loop.round.now_ms);
}

void
http_on_target(struct conn *c, const char *target)
{
    struct worker *w = worker_of(c);
    struct exchange *ex = exchange_begin(&w->exchanges, c, target);

    if (ex == NULL)
        return;
    request_ids_next(&w->ids, ex->id);
    ex->started_ns = w->loop.round.stopwatch_ns;
    c->exchange = ex;
}

static bool
refuse_request(struct worker *w, struct conn *c, enum refusal which)
{
    ENSURE(which != REFUSAL_NONE);
    c->linger = true; /* the client may still be sending */
    worker_set_phase(w, c, CONN_RESPONDING);
    return mhd_refuse(w->conns.mhd, c, which, true);
}

/* The address of the client, also behind a proxy; absent: not known. */
static struct bytes
find_address(const struct request_log *l, struct exchange *ex)
{
    const struct conn *c = ex->conn;
    char text[INET6_ADDRSTRLEN];

    if (c->from_proxy && bytes_present(ex->forwarded) &&
        proxies_client(l->proxies, ex->forwarded, text))
        return arena_copy(&ex->arena, bytes_str(text));
    return c->address[0] == '\0' ? BYTES_NONE : bytes_str(c->address);
}

bool
http_on_head(struct conn *c, enum refusal wrong)
{
    struct worker *w = worker_of(c);
    struct exchange *ex = c->exchange;
    size_t limit;

    ENSURE(ex != NULL && ex->state == EXCHANGE_BODY);
    if (wrong != REFUSAL_NONE)
        return refuse_request(w, c, wrong);
    if (request_log_one_in(&w->shared->log) > 0)
        request_log_keep_trace(ex);
    if (c->from_proxy)
        request_log_keep_client(ex);
    ex->request.address = find_address(&w->shared->log, ex);
    limit = api_body_limit(w->shared->config->api, ex->request.path);
    if (ex->head.content_length <= limit)
        return true;
    exchange_refuse_body(ex);
    if (!ex->head.expects_continue &&
        ex->head.content_length - limit <= BODY_DISCARD_MOST)
        return true;
    c->linger = true;
    return respond_request(w, ex, true);
}

bool
http_on_body(struct conn *c, const char *data, size_t len)
{
    struct worker *w = worker_of(c);
    struct exchange *ex = c->exchange;
    size_t limit = api_body_limit(w->shared->config->api, ex->request.path);

    exchange_append_body(ex, data, len, limit);
    if (ex->received <= limit || ex->received - limit <= BODY_DISCARD_MOST)
        return true;
    ENSURE(ex->head.chunked); /* otherwise http_on_head() would have refused it */
    return refuse_request(w, c, REFUSAL_TOO_LARGE);
}

/*
 * After a chunked body the connection ends with the response. claimd sees chunks only as
 * libmicrohttpd decodes them, and a proxy in front may have seen another end of the body.
 * So claimd never reads bytes behind the body as a request.
 */
bool
http_on_whole(struct conn *c, enum refusal wrong)
{
    if (wrong != REFUSAL_NONE)
        return refuse_request(worker_of(c), c, wrong);
    return respond_request(worker_of(c), c->exchange, c->exchange->head.chunked);
}

void
http_on_ended(struct conn *c, bool sent)
{
    struct worker *w = worker_of(c);
    struct exchange *ex = c->exchange;

    respond_end(w, ex, sent);
    c->exchange = NULL;
    traffic_count(&w->traffic, ex->response.route, ex->request.method, ex->code,
                  (clock_stopwatch_ns() - ex->started_ns) / 1000);
    request_log_write(&w->shared->log, &w->logged, w->loop.round.now_ms, ex);
    exchange_end(&w->exchanges, ex);
}

/*
 * Keeps a socket half open if its client may not have received the response yet. A client
 * with TLS sends record by record, so an empty socket does not mean that nothing is on
 * its way. And claimd gets no callback for what libmicrohttpd refuses before a target is
 * known.
 */
static void
linger_if_sending(struct worker *w, const struct conn *c)
{
    bool sending = c->linger || (c->kind == LISTEN_TLS && !worker_is_draining(w));
    char byte;
    ssize_t n = recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    int fd;

    if (n == 0 || (n < 0 && (errno != EAGAIN || !sending)))
        return;
    fd = dup(c->fd);
    if (fd >= 0)
        linger_add(&w->conns.linger, fd, w->loop.round.now_ms);
}

void
http_on_closed(struct conn *c)
{
    struct worker *w = worker_of(c);

    ENSURE(c->exchange == NULL);
    api_connection_closed(w->shared->config->api, &c->quota);
    if (c->phase != CONN_CLOSING)
        linger_if_sending(w, c);
    conn_table_remove(&w->conns.table, c);
    mem_free(w->shared->config->mem, c);
    atomic_fetch_sub_explicit(&w->conns.load, 1, memory_order_relaxed);
}

void
request_time_out(struct worker *w, struct conn *c)
{
    enum refusal why = REFUSAL_NONE;

    if (c->exchange != NULL && worker_is_draining(w))
        w->cut_off++;
    if (!worker_is_draining(
            w)) /* a drain ends also a connection with a response on its way */
        conn_drop_unsent(c);
    if (c->phase == CONN_RECEIVING)
        why = REFUSAL_SLOW;
    else if (c->exchange != NULL && c->exchange->state == EXCHANGE_TURN)
        why = REFUSAL_OVERDUE;
    respond_abort(w, c, why);
}
