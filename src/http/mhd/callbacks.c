#include "claimd/base/invariant.h"
#include "http/mhd/internal.h"

#include <sys/epoll.h>

static void
set_phase(struct mhd *m, struct conn *c, enum conn_phase phase)
{
    conn_enter(m->config.table, c, phase, m->config.round->now_ms);
}

/* ------------------------------------------------------------------ requests */

void *
mhd_on_target(void *cls, const char *target, struct MHD_Connection *connection)
{
    struct mhd *m = cls;
    struct conn *c = mhd_conn_of(connection);
    char *mark;

    m->called = true;
    set_phase(m, c, CONN_RECEIVING);
    if (!c->used)
        tls_handshake_done(m, c);
    c->used = true;
    http_on_target(c, target == NULL ? "" : target);
    /*
     * libmicrohttpd looks for arguments behind the question mark next, and would use up the
     * connection's memory for a record of each. It finds an empty text. (It shows its own memory,
     * which it is about to change itself.)
     */
    mark = target == NULL ? NULL : (char *)(uintptr_t)strchr(target, '?');
    if (mark != NULL)
        mark[1] = '\0';
    return c->exchange;
}

/* The headers are complete. */
static bool
pass_head(struct mhd *m, struct conn *c, const char *method, const char *version)
{
    struct exchange *ex = c->exchange;
    enum refusal wrong;

    exchange_set_method(ex, bytes_str(method));
    ex->state = EXCHANGE_BODY;
    wrong = mhd_head_read(m, ex, method, version);
    if (wrong == REFUSAL_NONE && ex->head.chunked)
        list_add_before(&m->chunked, &c->mhd.chunked);
    return http_on_head(c, wrong);
}

/*
 * Refuses a piece if the line in front of it, with the size of the chunk, ends with a bare LF, which
 * others may not take for its end. It can be seen only where line and chunk came together: a piece
 * that came later stands where the last one began.
 */
static bool
pass_body(struct conn *c, const char *data, size_t len)
{
    const struct head *head = &c->exchange->head;
    bool next;

    if (head->chunked && data != head->end && data[-1] == '\n' && data[-2] != '\r') {
        mhd_refuse_past(c->exchange, REFUSAL_CHUNKS);
        return false;
    }
    c->mhd.in_body = true;
    next = http_on_body(c, data, len);
    c->mhd.in_body = false;
    return next;
}

/* See mhd_on_request(). */
static bool
pass_request(struct mhd *m, struct conn *c, const char *method, const char *version,
             const char *upload, size_t *upload_len)
{
    struct exchange *ex = c->exchange;
    bool next;

    if (ex == NULL) {
        set_phase(m, c, CONN_RESPONDING);
        return mhd_refuse(m, c, REFUSAL_NO_MEMORY, true);
    }
    c->mhd.round = m->config.round->number;
    if (c->phase == CONN_CLOSING)
        return false;
    if (ex->state == EXCHANGE_HEAD)
        return pass_head(m, c, method, version);
    if (ex->state == EXCHANGE_READY)
        return http_on_ready(c);
    if (ex->state >= EXCHANGE_TURN)
        return true; /* about to be suspended */
    if (*upload_len == 0 && ex->head.chunked) {
        list_remove(&c->mhd.chunked);
        return http_on_whole(c, mhd_head_add_trailers(m, ex));
    }
    if (*upload_len == 0)
        return http_on_whole(c, REFUSAL_NONE);
    next = pass_body(c, upload, *upload_len);
    *upload_len = 0;
    return next;
}

enum MHD_Result
mhd_on_request(void *cls, struct MHD_Connection *connection, const char *url,
               const char *method, const char *version, const char *upload,
               size_t *upload_len, void **ctx)
{
    struct mhd *m = cls;
    const struct exchange *ex = *ctx;
    struct conn *c = ex == NULL ? mhd_conn_of(connection) : ex->conn;
    const char *outer = invariant_context(ex == NULL ? NULL : ex->id);
    bool next;

    (void)url; /* the raw target is what counts */
    m->called = true;
    next = pass_request(m, c, method, version, upload, upload_len);
    (void)invariant_context(outer);
    return next ? MHD_YES : MHD_NO;
}

static void
remove_link(struct list *link)
{
    if (list_linked(link))
        list_remove(link);
}

static void
end_request(struct conn *c, bool sent)
{
    remove_link(&c->mhd.chunked);
    remove_link(&c->mhd.pending_suspend);
    if (c->exchange != NULL)
        http_on_ended(c, sent);
}

void
mhd_on_completed(void *cls, struct MHD_Connection *connection, void **ctx,
                 enum MHD_RequestTerminationCode how)
{
    struct mhd *m = cls;
    const struct exchange *ex = *ctx;
    struct conn *c = ex == NULL ? mhd_conn_of(connection) : ex->conn;

    m->called = true;
    /* An error of libmicrohttpd's own: it has responded without reading everything. */
    if (how == MHD_REQUEST_TERMINATED_WITH_ERROR &&
        (c->exchange == NULL || c->exchange->code == 0))
        c->linger = true;
    set_phase(m, c, CONN_WAITING);
    *ctx = NULL;
    end_request(c, how == MHD_REQUEST_TERMINATED_COMPLETED_OK);
    if (c->hung_up)
        replay_rdhup(m, c);
}

/* ------------------------------------------------------------------ connections */

void
mhd_on_connection(void *cls, struct MHD_Connection *connection, void **socket_ctx,
                  enum MHD_ConnectionNotificationCode what)
{
    struct mhd *m = cls;
    struct conn *c = *socket_ctx;

    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        c = *socket_ctx = m->adding;
        ENSURE(c != NULL);
        c->mhd.connection = connection;
        c->mhd.daemon->conns++;
        tls_begin(c);
        http_on_opened(c);
        /* Without memory for it the connection times out later than it could: no harm. */
        (void)watch_socket(m, c, EPOLL_CTL_ADD, 0);
        m->adding = NULL;
        return;
    }
    end_request(c, false); /* libmicrohttpd may have ended without saying so */
    tls_end(m, c);
    remove_link(&c->mhd.ended);
    /*
     * Closing the descriptor would do only if nothing else has the socket open, such as a child
     * of this process that was forked and has not executed its program yet.
     */
    (void)epoll_ctl(m->config.epoll_fd, EPOLL_CTL_DEL, c->fd, NULL);
    ENSURE(c->mhd.daemon->conns > 0);
    c->mhd.daemon->conns--;
    http_on_closed(c);
}

/* ------------------------------------------------------------------ built-in pages */

/*
 * The connection whose head is complete, and has neither been given to us nor been responded to.
 * NULL if there is none; there is never more than one.
 */
static struct conn *
find_only_head(const struct mhd *m)
{
    const struct list *head = &m->config.table->phases[CONN_RECEIVING];

    for (const struct list *at = head->prev; at != head; at = at->prev) {
        struct conn *c = container_of(at, struct conn, link);
        struct MHD_Connection *connection = c->mhd.connection;
        const union MHD_ConnectionInfo *size =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

        if (c->exchange != NULL && c->exchange->state == EXCHANGE_HEAD && size != NULL &&
            size->header_size > 0 &&
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_HTTP_STATUS) == NULL)
            return c;
    }
    return NULL;
}

/* The only connection in the middle of a chunked body; NULL if there are others, or none. */
static struct conn *
find_only_chunked(const struct mhd *m)
{
    struct conn *only = NULL;

    for (const struct list *at = m->chunked.next; at != &m->chunked; at = at->next) {
        struct conn *c = container_of(at, struct conn, mhd.chunked);

        if (c->mhd.suspended)
            continue;
        if (only != NULL)
            return NULL;
        only = c;
    }
    return only;
}

void
mhd_replace_page(struct mhd *m, unsigned code)
{
    struct conn *c = find_only_head(m);
    enum refusal which = REFUSAL_BAD_HEAD;

    if (c == NULL) {
        c = find_only_chunked(m);
        which = REFUSAL_CHUNKS;
    }
    if (c == NULL || c->exchange->code != 0)
        return;
    if (c->mhd.tls != NULL && which == REFUSAL_CHUNKS)
        return; /* the built-in page comes once, and is better than none */
    if (code == MHD_HTTP_CONTENT_TOO_LARGE)
        which = REFUSAL_BEYOND;
    else if (code == MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE)
        which = REFUSAL_HEADERS;
    mhd_refuse_past(c->exchange, which);
    (void)shutdown(c->fd, SHUT_WR); /* what libmicrohttpd sends now goes nowhere */
    if (c->mhd.tls != NULL) /* nor is it asked again, when it gives the request to us */
        set_phase(m, c, CONN_CLOSING);
}
