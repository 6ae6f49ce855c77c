#include "http/front.h"

#include "http/access_log.h"
#include "http/refusal.h"
#include "http/reply.h"

#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

static struct conn *
conn_of(struct MHD_Connection *mhd)
{
    return MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)
        ->socket_context;
}

static bool
draining(const struct worker *w)
{
    return atomic_load_explicit(&w->shared->draining, memory_order_relaxed);
}

void *
front_target(void *cls, const char *target, struct MHD_Connection *mhd)
{
    struct worker *w = cls;
    struct conn *c = conn_of(mhd);
    struct exchange *ex;

    w->called = true;
    conn_enter(&w->conns, c, CONN_RECEIVING, w->now_ms);
    ex = exchange_begin(&w->exchanges, c, target == NULL ? "" : target);
    if (ex == NULL)
        return NULL; /* front_request() answers */
    request_ids_next(&w->ids, ex->id);
    ex->started_ns = w->round_ns;
    c->exchange = ex;
    return ex;
}

/* Without memory for an answer: the prepared one. */
static enum MHD_Result
answer_no_memory(struct worker *w, struct MHD_Connection *mhd)
{
    conn_enter(&w->conns, conn_of(mhd), CONN_ANSWERING, w->now_ms);
    return MHD_queue_response(mhd, MHD_HTTP_SERVICE_UNAVAILABLE, w->no_memory);
}

/*
 * An answer before the body was read ends the connection (libmicrohttpd insists); the
 * client may still be sending.
 */
static enum MHD_Result
refuse_early(struct worker *w, struct MHD_Connection *mhd, struct exchange *ex,
             enum refusal which)
{
    ex->conn->linger = true;
    conn_enter(&w->conns, ex->conn, CONN_ANSWERING, w->now_ms);
    if (reply_refuse(mhd, ex, which, true) == MHD_YES)
        return MHD_YES;
    return answer_no_memory(w, mhd);
}

/* Asks the API and queues what it says. */
static enum MHD_Result
answer(struct worker *w, struct MHD_Connection *mhd, struct exchange *ex, bool closing)
{
    conn_enter(&w->conns, ex->conn, CONN_ANSWERING, w->now_ms);
    if (!ex->no_memory) {
        ex->request.now_ms = clock_now_ms(w->shared->config->clock);
        ex->request.body = buf_view(&ex->body);
        while (api_handle(w->shared->config->api, &ex->request, &ex->response) ==
               API_AGAIN)
            continue;
    }
    if (ex->no_memory)
        return reply_refuse(mhd, ex, REFUSAL_NO_MEMORY, closing) == MHD_YES
                   ? MHD_YES
                   : answer_no_memory(w, mhd);
    /*
     * Should the answer be lost here, the connection is closed: what the request asked for
     * may have happened, and 503 would say that it has not.
     */
    return reply_queue(mhd, ex, closing);
}

/* The headers are complete. */
static enum MHD_Result
take_head(struct worker *w, struct MHD_Connection *mhd, struct exchange *ex,
          const char *method, const char *version)
{
    size_t limit = w->shared->body_limit;
    enum status st;

    exchange_name_method(ex, bytes_str(method));
    ex->state = EXCHANGE_BODY;
    st = head_read(mhd, ex->raw_target, method, version, &ex->request, &ex->head);
    if (st != ST_OK)
        return refuse_early(w, mhd, ex,
                            st == ST_NO_MEMORY ? REFUSAL_NO_MEMORY : REFUSAL_BAD_HEAD);
    if (ex->head.content_length <= limit)
        return MHD_YES;
    exchange_refuse_body(ex);
    if (!ex->head.expects_continue && ex->head.content_length - limit <= FRONT_SWALLOW)
        return MHD_YES;
    ex->conn->linger = true;
    return answer(w, mhd, ex, true);
}

/* Answers on the socket itself, past libmicrohttpd, which has to close it then. */
static void
refuse_past(struct exchange *ex, enum refusal which)
{
    refusal_send(ex->conn->fd, which, ex->id);
    ex->code = refusal_code(which);
    ex->sent = refusal_document(which).len;
}

/* A piece of the body. */
static enum MHD_Result
take_body(struct worker *w, struct exchange *ex, const char *data, size_t len)
{
    size_t limit = w->shared->body_limit;

    exchange_take_body(ex, data, len, limit);
    if (ex->received <= limit || ex->received - limit <= FRONT_SWALLOW)
        return MHD_YES;
    /*
     * Only a chunked body gets here: of others the length was known. libmicrohttpd takes
     * no answer in the middle of a body, and nothing of ours is on its way: answer past
     * it, and have the connection closed.
     */
    refuse_past(ex, REFUSAL_TOO_LARGE);
    ex->conn->linger = true;
    return MHD_NO;
}

enum MHD_Result
front_request(void *cls, struct MHD_Connection *mhd, const char *url, const char *method,
              const char *version, const char *upload, size_t *upload_len, void **ctx)
{
    struct worker *w = cls;
    struct exchange *ex = *ctx;
    enum MHD_Result result;

    w->called = true;
    (void)url; /* the raw target is what counts */
    if (ex == NULL)
        return answer_no_memory(w, mhd);
    if (ex->state == EXCHANGE_HEAD)
        return take_head(w, mhd, ex, method, version);
    if (*upload_len == 0)
        return answer(w, mhd, ex, draining(w));
    result = take_body(w, ex, upload, *upload_len);
    *upload_len = 0;
    return result;
}

void
front_completed(void *cls, struct MHD_Connection *mhd, void **ctx,
                enum MHD_RequestTerminationCode how)
{
    struct worker *w = cls;
    struct conn *c = conn_of(mhd);
    struct exchange *ex = *ctx;

    w->called = true;
    /* An error of libmicrohttpd's own: it has answered without reading everything. */
    if (how == MHD_REQUEST_TERMINATED_WITH_ERROR && (ex == NULL || ex->code == 0))
        c->linger = true;
    conn_enter(&w->conns, c, CONN_WAITING, w->now_ms);
    if (ex == NULL)
        return;
    *ctx = NULL;
    c->exchange = NULL;
    access_log_write(w->shared->config, ex);
    exchange_end(&w->exchanges, ex);
}

/* Asks our own epoll set to tell when the client stops sending. */
static void
watch_end(struct worker *w, struct conn *c)
{
    struct epoll_event event = {.events = EPOLLRDHUP | EPOLLET, .data.ptr = c};

    /* Without memory for it the connection times out later than it could: no harm. */
    (void)epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, c->fd, &event);
}

void
front_hung_up(struct conn *c)
{
    /* What was sent can still be read, and then the end; this makes the edge. */
    (void)shutdown(c->fd, SHUT_RD);
}

/*
 * Closing the descriptor ends that only if nobody else has the socket open, such as a child
 * of this process that was forked and has not executed its program yet.
 */
static void
forget_end(struct worker *w, const struct conn *c)
{
    (void)epoll_ctl(w->epoll_fd, EPOLL_CTL_DEL, c->fd, NULL); /* or it was not there */
}

/* Keeps a socket half open whose client may not have seen the answer yet. */
static void
linger_if_sending(struct worker *w, const struct conn *c)
{
    char byte;
    ssize_t n = recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    int fd;

    if (n == 0 || (n < 0 && (errno != EAGAIN || !c->linger)))
        return;
    fd = dup(c->fd);
    if (fd >= 0)
        farewell_add(&w->farewell, fd, w->now_ms);
}

void
front_connection(void *cls, struct MHD_Connection *mhd, void **socket_ctx,
                 enum MHD_ConnectionNotificationCode what)
{
    struct worker *w = cls;
    struct conn *c = *socket_ctx;

    (void)mhd;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        *socket_ctx = w->adopting;
        conn_table_add(&w->conns, w->adopting, w->now_ms);
        watch_end(w, w->adopting);
        w->adopting = NULL;
        return;
    }
    forget_end(w, c); /* c is about to go */
    if (c->phase != CONN_DOOMED && !draining(w))
        linger_if_sending(w, c);
    conn_table_remove(&w->conns, c);
    mem_free(w->shared->config->mem, c);
    atomic_fetch_sub_explicit(&w->load, 1, memory_order_relaxed);
}

size_t
front_keep_escapes(void *cls, struct MHD_Connection *mhd, char *text)
{
    (void)cls;
    (void)mhd;
    return strlen(text);
}

void
front_time_out(struct worker *w, struct conn *c)
{
    struct exchange *ex = c->exchange;

    if (c->phase == CONN_RECEIVING && ex != NULL)
        refuse_past(ex, REFUSAL_SLOW);
    conn_enter(&w->conns, c, CONN_DOOMED, w->now_ms);
    (void)shutdown(c->fd, SHUT_RDWR); /* libmicrohttpd sees the end and closes */
}
