#include "http/front.h"

#include "claimd/base/invariant.h"
#include "http/access_log.h"
#include "http/answer.h"
#include "http/refusal.h"
#include "http/reply.h"
#include "http/secure.h"
#include "http/trace.h"

#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

static bool
draining(const struct worker *w)
{
    return atomic_load_explicit(&w->shared->draining, memory_order_relaxed);
}

/*
 * libmicrohttpd looks for arguments behind the question mark next, and would use up the
 * connection's memory for a record of each. It finds an empty text. (It shows its own
 * memory, which it is about to change itself.)
 */
static void
hide_arguments(const char *target)
{
    char *mark = (char *)(uintptr_t)strchr(target, '?');

    if (mark != NULL)
        mark[1] = '\0';
}

void *
front_target(void *cls, const char *target, struct MHD_Connection *mhd)
{
    struct worker *w = cls;
    struct conn *c = worker_conn(mhd);
    struct exchange *ex;

    w->called = true;
    conn_enter(&w->conns, c, CONN_RECEIVING, w->now_ms);
    if (!c->used)
        secure_used(w, c);
    c->used = true;
    ex = exchange_begin(&w->exchanges, c, target == NULL ? "" : target);
    if (target != NULL)
        hide_arguments(target);
    if (ex == NULL)
        return NULL; /* front_request() answers */
    request_ids_next(&w->ids, ex->id);
    ex->started_ns = w->round_ns;
    c->exchange = ex;
    return ex;
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

/*
 * Answers on the socket itself, past libmicrohttpd, which has to close it then. What TLS has
 * begun only TLS can go on with: there the connection is closed without an answer.
 */
static void
refuse_past(struct exchange *ex, enum refusal which)
{
    if (ex->conn->tls == NULL)
        refusal_send(ex->conn->fd, which, ex->id);
    ex->code = refusal_code(which);
    ex->sent = refusal_document(which).len;
    ex->conn->linger = true;
}

/*
 * Answers before the body, or behind all of it: past libmicrohttpd, whose memory may not do for
 * an answer; but through it where there is TLS, and if that fails it closes the connection.
 */
static enum MHD_Result
refuse_head(struct worker *w, struct MHD_Connection *mhd, struct exchange *ex,
            enum refusal which)
{
    if (ex->conn->tls != NULL)
        return refuse_early(w, mhd, ex, which);
    refuse_past(ex, which);
    return MHD_NO;
}

/* Is the head within the limits, and will that of the answer find room? REFUSAL_COUNT: yes. */
static enum refusal
judge_size(const struct worker *w, const struct exchange *ex)
{
    const struct room_use *use = &ex->head.use;
    const struct server_config *config = w->shared->config;

    if (ex->raw_target.len > config->max_header_bytes)
        return REFUSAL_TARGET;
    if (use->head > config->max_header_bytes || use->records > config->max_headers ||
        !room_suffices(w->block, use))
        return REFUSAL_HEADERS;
    return REFUSAL_COUNT;
}

/* Without memory for a copy the log does not have it: no harm. */
static struct bytes
keep(struct exchange *ex, struct bytes text)
{
    return bytes_present(text) ? arena_copy(&ex->arena, text) : BYTES_NONE;
}

static void
keep_trace(struct exchange *ex)
{
    const struct bytes *headers = ex->request.headers;

    ex->their_id = keep(ex, trace_id(headers[API_HEADER_REQUEST_ID]));
    ex->traceparent = keep(ex, trace_parent(headers[API_HEADER_TRACEPARENT]));
}

static size_t
body_limit(const struct worker *w, const struct exchange *ex)
{
    return api_body_limit(w->shared->config->api, ex->request.path);
}

/* The headers are complete. */
static enum MHD_Result
take_head(struct worker *w, struct MHD_Connection *mhd, struct exchange *ex,
          const char *method, const char *version)
{
    enum refusal why;
    enum status st;
    size_t limit;

    exchange_name_method(ex, bytes_str(method));
    ex->state = EXCHANGE_BODY;
    st = head_read(mhd, ex->raw_target, method, version, &ex->request, &ex->head);
    if (st == ST_NO_MEMORY)
        return refuse_early(w, mhd, ex, REFUSAL_NO_MEMORY);
    if (st != ST_OK)
        return refuse_head(w, mhd, ex, REFUSAL_BAD_HEAD);
    why = judge_size(w, ex);
    if (why != REFUSAL_COUNT)
        return refuse_head(w, mhd, ex, why);
    if (access_log_one_in(w->shared) > 0)
        keep_trace(ex);
    if (ex->head.chunked)
        list_add_before(&w->chunked, &ex->conn->turn);
    limit = body_limit(w, ex);
    if (ex->head.content_length <= limit)
        return MHD_YES;
    exchange_refuse_body(ex);
    if (!ex->head.expects_continue && ex->head.content_length - limit <= FRONT_SWALLOW)
        return MHD_YES;
    ex->conn->linger = true;
    return answer_request(w, mhd, ex, true);
}

/*
 * A chunked body is whole. The connection ends with the answer: of chunks we see only what
 * libmicrohttpd makes of them, and somebody in front may have taken another byte for their
 * end. What stands behind it is then never taken for a request.
 */
static enum MHD_Result
end_chunks(struct worker *w, struct MHD_Connection *mhd, struct exchange *ex)
{
    list_remove(&ex->conn->turn);
    head_add_trailers(mhd, &ex->head);
    if (judge_size(w, ex) == REFUSAL_COUNT)
        return answer_request(w, mhd, ex, true);
    return refuse_head(w, mhd, ex, REFUSAL_HEADERS);
}

/*
 * True if the line in front of this piece, with the size of the chunk, ends with a bare LF,
 * which others may not take for its end. It can be seen only where line and chunk came
 * together: a piece that came later stands where the last one began.
 */
static bool
behind_bare_lf(const struct exchange *ex, const char *data)
{
    return data != ex->head.end && data[-1] == '\n' && data[-2] != '\r';
}

/* A piece of the body. */
static enum MHD_Result
take_body(struct worker *w, struct exchange *ex, const char *data, size_t len)
{
    size_t limit = body_limit(w, ex);

    if (ex->head.chunked && behind_bare_lf(ex, data)) {
        refuse_past(ex, REFUSAL_CHUNKS);
        return MHD_NO;
    }
    exchange_take_body(ex, data, len, limit);
    if (ex->received <= limit || ex->received - limit <= FRONT_SWALLOW)
        return MHD_YES;
    /*
     * Only a chunked body gets here: of others the length was known. libmicrohttpd takes
     * no answer in the middle of a body, and nothing of ours is on its way: answer past
     * it, and have the connection closed.
     */
    refuse_past(ex, REFUSAL_TOO_LARGE);
    return MHD_NO;
}

/* See front_request(). */
static enum MHD_Result
take_request(void *cls, struct MHD_Connection *mhd, const char *url, const char *method,
             const char *version, const char *upload, size_t *upload_len, void **ctx)
{
    struct worker *w = cls;
    struct exchange *ex = *ctx;
    enum MHD_Result result;

    w->called = true;
    (void)url; /* the raw target is what counts */
    if (ex == NULL)
        return answer_no_memory(w, mhd);
    ex->conn->round = w->round;
    if (ex->conn->phase == CONN_DOOMED)
        return MHD_NO;
    if (ex->state == EXCHANGE_HEAD)
        return take_head(w, mhd, ex, method, version);
    if (ex->state == EXCHANGE_READY)
        return answer_ready(w, mhd, ex);
    if (ex->state >= EXCHANGE_SLICES)
        return MHD_YES; /* about to be held */
    if (*upload_len == 0)
        return ex->head.chunked ? end_chunks(w, mhd, ex)
                                : answer_request(w, mhd, ex, false);
    result = take_body(w, ex, upload, *upload_len);
    *upload_len = 0;
    return result;
}

enum MHD_Result
front_request(void *cls, struct MHD_Connection *mhd, const char *url, const char *method,
              const char *version, const char *upload, size_t *upload_len, void **ctx)
{
    const struct exchange *ex = *ctx;
    const char *outer = invariant_context(ex == NULL ? NULL : ex->id);
    enum MHD_Result result =
        take_request(cls, mhd, url, method, version, upload, upload_len, ctx);

    (void)invariant_context(outer);
    return result;
}

/* The first edge may come too early: there is something left to read. */
enum { PUSHES = 2 };

static void
push_later(struct worker *w, struct conn *c)
{
    c->pushes = PUSHES;
    if (!list_linked(&c->ended))
        list_add_before(&w->ended, &c->ended);
}

/* The request is over, whatever has become of it. */
static void
end_request(struct worker *w, struct conn *c, bool whole)
{
    struct exchange *ex = c->exchange;

    if (list_linked(&c->turn))
        list_remove(&c->turn);
    if (list_linked(&c->fresh))
        list_remove(&c->fresh);
    if (ex == NULL)
        return;
    answer_end(w, ex, whole);
    c->exchange = NULL;
    traffic_count(&w->traffic, ex->response.route, ex->request.method, ex->code,
                  (clock_stopwatch_ns() - ex->started_ns) / 1000);
    access_log_write(w, ex);
    exchange_end(&w->exchanges, ex);
}

void
front_completed(void *cls, struct MHD_Connection *mhd, void **ctx,
                enum MHD_RequestTerminationCode how)
{
    struct worker *w = cls;
    struct conn *c = worker_conn(mhd);

    w->called = true;
    /* An error of libmicrohttpd's own: it has answered without reading everything. */
    if (how == MHD_REQUEST_TERMINATED_WITH_ERROR &&
        (c->exchange == NULL || c->exchange->code == 0))
        c->linger = true;
    conn_enter(&w->conns, c, CONN_WAITING, w->now_ms);
    *ctx = NULL;
    end_request(w, c, how == MHD_REQUEST_TERMINATED_COMPLETED_OK);
    if (c->hung_up)
        push_later(w, c);
}

/* Is the head of c complete, and has neither been given to us nor answered? */
static bool
is_just_headed(const struct conn *c)
{
    const union MHD_ConnectionInfo *size =
        MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

    return c->exchange != NULL && c->exchange->state == EXCHANGE_HEAD && size != NULL &&
           size->header_size > 0 &&
           MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_HTTP_STATUS) == NULL;
}

/* That connection, NULL if there is none; there is never more than one. */
static struct conn *
just_headed(const struct worker *w)
{
    const struct list *head = &w->conns.phases[CONN_RECEIVING];

    for (const struct list *at = head->prev; at != head; at = at->prev) {
        struct conn *c = container_of(at, struct conn, link);

        if (is_just_headed(c))
            return c;
    }
    return NULL;
}

/* The only connection in the middle of a chunked body; NULL if there are others, or none. */
static struct conn *
only_chunked(const struct worker *w)
{
    struct conn *only = NULL;

    for (const struct list *at = w->chunked.next; at != &w->chunked; at = at->next) {
        struct conn *c = container_of(at, struct conn, turn);

        if (c->held)
            continue;
        if (only != NULL)
            return NULL;
        only = c;
    }
    return only;
}

void
front_own_page(struct worker *w, unsigned code)
{
    struct conn *c = just_headed(w);
    enum refusal which = REFUSAL_BAD_HEAD;

    if (c == NULL) {
        c = only_chunked(w);
        which = REFUSAL_CHUNKS;
    }
    if (c == NULL || c->exchange->code != 0)
        return;
    if (c->tls != NULL && which == REFUSAL_CHUNKS)
        return; /* its own page comes once, and is better than none */
    if (code == MHD_HTTP_CONTENT_TOO_LARGE)
        which = REFUSAL_BEYOND;
    else if (code == MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE)
        which = REFUSAL_HEADERS;
    refuse_past(c->exchange, which);
    (void)shutdown(c->fd, SHUT_WR); /* what libmicrohttpd sends now goes nowhere */
    if (c->tls != NULL) /* nor is it asked again, when it gives the request to us */
        conn_enter(&w->conns, c, CONN_DOOMED, w->now_ms);
}

bool
front_watch(struct worker *w, struct conn *c, int how, uint32_t what)
{
    struct epoll_event event = {.events = what | EPOLLRDHUP | EPOLLONESHOT,
                                .data.ptr = &c->source};

    return epoll_ctl(w->epoll_fd, how, c->fd, &event) == 0;
}

void
front_hung_up(struct worker *w, struct conn *c)
{
    c->hung_up = true;
    answer_hung_up(w, c);
    push_later(w, c);
}

void
front_push_ends(struct worker *w)
{
    struct list *at = w->ended.next;

    while (at != &w->ended) {
        struct conn *c = container_of(at, struct conn, ended);

        at = at->next;
        /* One that is being answered is told when it has been. */
        if (c->phase != CONN_WAITING && c->phase != CONN_RECEIVING)
            c->pushes = 1;
        else {
            (void)shutdown(c->fd, SHUT_RD); /* what was sent can still be read */
            c->section->due = true;
        }
        if (--c->pushes == 0)
            list_remove(&c->ended);
    }
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

/*
 * Keeps a socket half open whose client may not have seen the answer yet. With TLS a client
 * sends record by record: that nothing is there does not say that nothing is on its way, and
 * of what libmicrohttpd refuses by itself before a target is known we do not hear.
 */
static void
linger_if_sending(struct worker *w, const struct conn *c)
{
    bool sending = c->linger || (c->kind == LISTEN_TLS && !draining(w));
    char byte;
    ssize_t n = recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    int fd;

    if (n == 0 || (n < 0 && (errno != EAGAIN || !sending)))
        return;
    fd = dup(c->fd);
    if (fd >= 0)
        linger_add(&w->linger, fd, w->now_ms);
}

void
front_connection(void *cls, struct MHD_Connection *mhd, void **socket_ctx,
                 enum MHD_ConnectionNotificationCode what)
{
    struct worker *w = cls;
    struct conn *c = *socket_ctx;

    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        c = *socket_ctx = w->adopting;
        ENSURE(c != NULL);
        c->mhd = mhd;
        c->section->conns++;
        secure_begin(c);
        conn_table_add(&w->conns, c, w->now_ms);
        /* Without memory for it the connection times out later than it could: no harm. */
        (void)front_watch(w, c, EPOLL_CTL_ADD, 0);
        w->adopting = NULL;
        return;
    }
    end_request(w, c, false); /* libmicrohttpd may have ended without saying so */
    secure_end(w, c);
    if (list_linked(&c->ended))
        list_remove(&c->ended);
    forget_end(w, c); /* c is about to go */
    api_leave(w->shared->config->api, &c->seat);
    if (c->phase != CONN_DOOMED)
        linger_if_sending(w, c);
    conn_table_remove(&w->conns, c);
    ENSURE(c->section->conns > 0);
    c->section->conns--;
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

/*
 * Who waits for nothing is told in the words of TLS that there will be no more: by libmicrohttpd,
 * when it sees the end of the input.
 */
static int
end_of(const struct conn *c)
{
    return c->tls != NULL && c->phase == CONN_WAITING ? SHUT_RD : SHUT_RDWR;
}

/*
 * libmicrohttpd sees the end of a connection in its epoll set and closes. One that was held is
 * not in there any more while it is stuck; what libmicrohttpd looks at then is only the
 * time, of which a second is the least.
 */
void
front_end(struct worker *w, struct conn *c)
{
    int how = end_of(c);

    conn_enter(&w->conns, c, CONN_DOOMED, w->now_ms);
    (void)shutdown(c->fd, how);
    if (c->exchange != NULL)
        answer_unpark(w, c->exchange); /* nothing more is done for nobody */
    if (c->held)
        worker_let_go(w, c);
    if (c->was_held)
        (void)MHD_set_connection_option(c->mhd, MHD_CONNECTION_OPTION_TIMEOUT, 1U);
    c->section->due = true; /* it may have to look at the time again */
}

void
front_give_up(struct worker *w, struct conn *c, enum refusal which)
{
    if (c->exchange != NULL && c->exchange->code == 0)
        refuse_past(c->exchange, which);
    front_end(w, c);
}

void
front_time_out(struct worker *w, struct conn *c)
{
    if (c->exchange != NULL && draining(w))
        w->cut_off++;
    if (c->phase == CONN_RECEIVING)
        front_give_up(w, c, REFUSAL_SLOW);
    else if (c->exchange != NULL && c->exchange->state == EXCHANGE_SLICES)
        front_give_up(w, c, REFUSAL_OVERDUE);
    else
        front_end(w, c);
}
