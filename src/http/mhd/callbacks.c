/*
 * callbacks: turns the callbacks of libmicrohttpd into calls of the functions http_on_*
 * (mhd.h). Declared in internal.h.
 *
 *     1. mhd_on_connection() notes that libmicrohttpd has opened or closed a connection.
 *     2. mhd_on_target() begins the exchange when the request line is there.
 *     3. mhd_on_request() comes with the head, with each piece of the body, and at the
 *        end of the body. read_head() reads the headers, and refuses a head that two
 *        parsers could read differently, or that leaves too little memory for the head
 *        of a response.
 *     4. mhd_on_completed() ends the exchange.
 *
 * For a request that libmicrohttpd refuses by itself, mhd_replace_page() sends a
 * document of claimd instead of the HTML page. Read request.c next, which implements
 * http_on_head().
 */
#include "claimd/base/invariant.h"
#include "http/mhd/internal.h"

#include <sys/epoll.h>

/* ------------------------------------------------------------ space for the response */

/*
 * A connection of libmicrohttpd has one block of memory. The head of the request, and the
 * bytes that the client sends behind it, grow from its beginning. Records, one for each
 * header and cookie, grow from its end. The head of the response has to fit in between.
 * If it does not, libmicrohttpd closes the connection without a response.
 *
 *     | head | sent behind it |      free      | copy of cookies | records |
 *
 * So the block is large enough for a request at its limits. A small block may lack space
 * for a larger head or for its cookies. Then claimd refuses the request before it has any
 * effect.
 */

/*
 * Of libmicrohttpd 0.9.75: bytes of a record; bytes beyond the head by which a full read
 * buffer grows; alignment of an allocation.
 */
enum { RECORD = 64, OVERSHOOT = 256, ALIGNMENT = 16 };

/*
 * The head of a response. Besides the API's headers it has a status line, date, length,
 * request ids, connection, the headers of every response, and an empty line, at most 320
 * bytes.
 */
enum { RESPONSE = RESPONSE_HEAD_MAX + 320 };

size_t
head_space_block(size_t max_head, size_t max_lines, size_t max_cookies)
{
    size_t copy = max_cookies == 0 ? 0 : max_cookies + 1 + ALIGNMENT;
    size_t behind = max_lines * RECORD + copy + RESPONSE;
    size_t whole = max_head + OVERSHOOT + behind;

    /* The first read buffer takes half of the block, and may be full of the next
     * request. */
    return whole > 2 * behind ? whole : 2 * behind;
}

bool
head_space_suffices(size_t block, const struct head_use *use)
{
    size_t read = use->head + OVERSHOOT > block / 2 ? use->head + OVERSHOOT : block / 2;
    size_t copy = use->cookies == 0 ? 0 : use->cookies + 1 + ALIGNMENT;

    return read + use->records * RECORD + copy + RESPONSE <= block;
}

/* ------------------------------------------------------------------ headers */

/*
 * claimd refuses a head that two parsers could read differently. So no client can smuggle
 * a request past a proxy, and claimd stores what was sent. libmicrohttpd uses the first
 * of several Content-Lengths, and the first Transfer-Encoding. 0.9.75 prefers
 * Transfer-Encoding to them, cuts texts at NUL bytes, and joins folded lines wrongly.
 */

static const struct bytes name_length = BYTES_LIT("Content-Length");
static const struct bytes name_encoding = BYTES_LIT("Transfer-Encoding");
static const struct bytes name_expect = BYTES_LIT("Expect");
static const struct bytes name_cookie = BYTES_LIT("Cookie");
static const struct bytes value_chunked = BYTES_LIT("chunked");
static const struct bytes value_continue = BYTES_LIT("100-continue");

/* One pass over the headers. */
struct head_reader {
    struct request *req;
    struct head *head;
    bool strict;     /* of libmicrohttpd: the addresses need no check */
    const char *end; /* of the text in front of the next header, without CR LF */
    size_t lengths, encodings; /* headers of this name */
    enum status st;
};

/*
 * libmicrohttpd 0.9.75 writes a NUL over each byte of CR LF. So the next line begins this
 * many bytes behind the text of the last one. Otherwise a line ends with a bare LF, or
 * libmicrohttpd has cut a text at a NUL of the client, or moved a folded line.
 */
enum { LINE_END = 2 };

static bool
is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* The header came before, with the text *slot. Out of line: hardly any request has one
 * twice. */
static void __attribute__((noinline))
join_values(struct head_reader *p, struct bytes *slot, struct bytes value)
{
    size_t len = slot->len + 1 + value.len;
    char *joined = arena_alloc(p->req->arena, len);

    if (slot == &p->req->headers[API_HEADER_HOST]) {
        p->st = ST_BAD_VALUE; /* two parsers may use different ones */
    } else if (joined == NULL) {
        p->st = ST_NO_MEMORY;
    } else {
        memcpy(joined, slot->data, slot->len);
        joined[slot->len] = ',';
        memcpy(joined + slot->len + 1, value.data, value.len);
        *slot = bytes_of(joined, len);
    }
}

static void
set_api_header(struct head_reader *p, enum api_header which, struct bytes value)
{
    struct bytes *slot = &p->req->headers[which];

    if (bytes_present(*slot))
        join_values(p, slot, value);
    else
        *slot = value;
}

/* value: with the blanks at its end, because libmicrohttpd 0.9.75 takes "chunked " for
 * another encoding. */
static void
read_framing_header(struct head_reader *p, struct bytes name, struct bytes value)
{
    uint64_t length;

    if (bytes_equal_nocase(name, name_length)) {
        p->lengths++;
        if (!bytes_to_u64(value, &length))
            p->st = ST_BAD_VALUE;
        else
            p->head->content_length = length;
    } else if (bytes_equal_nocase(name, name_encoding)) {
        p->encodings++;
        p->head->chunked = true;
        if (!bytes_equal_nocase(value, value_chunked))
            p->st = ST_BAD_VALUE;
    } else if (bytes_equal_nocase(name, name_expect)) {
        p->head->expects_continue = bytes_equal_nocase(value, value_continue);
    } else if (bytes_equal_nocase(name, name_cookie) && p->head->use.cookies == 0) {
        p->head->use.cookies = value.len; /* libmicrohttpd reads only the first one */
    }
}

/*
 * The header of the API with this name; API_HEADER_COUNT: none. Most names mean nothing
 * to the API, so each comparison begins with a constant length.
 */
static enum api_header
find_api_header(struct bytes name)
{
#define API_HEADER_MATCH(id, text)                                                       \
    if (bytes_equal_nocase(name, bytes_of(text, sizeof(text) - 1)))                      \
        return API_HEADER_##id;
    API_HEADER_LIST(API_HEADER_MATCH)
#undef API_HEADER_MATCH
    return API_HEADER_COUNT;
}

static enum MHD_Result
read_header(void *ctx, enum MHD_ValueKind kind, const char *key, size_t key_len,
            const char *text, size_t text_len)
{
    struct head_reader *p = ctx;
    struct bytes name = bytes_of(key, key_len);
    struct bytes value = bytes_of(text, text_len);
    enum api_header which = find_api_header(name);

    (void)kind; /* always MHD_HEADER_KIND */
    p->head->use.records++;
    /* A first line that begins with a blank folds the request line. */
    if (!p->strict && (key != p->end + LINE_END || key_len == 0 || is_blank(key[0]) ||
                       memchr(key, ' ', key_len) != NULL || is_blank(key[key_len - 1])))
        p->st = ST_BAD_VALUE;
    p->end = text + text_len;
    if (which != API_HEADER_COUNT)
        set_api_header(p, which, bytes_trim(value));
    else
        read_framing_header(p, name, value);
    return p->st == ST_OK ? MHD_YES : MHD_NO;
}

/* Refuses a head beyond the limits, or one that leaves too little space for the
 * response's head. */
static enum refusal
check_head_size(const struct mhd *m, const struct exchange *ex)
{
    const struct server_config *server = m->config.server;
    const struct head_use *use = &ex->head.use;

    if (ex->raw_target.len > server->max_header_bytes)
        return REFUSAL_TARGET;
    if (use->head > server->max_header_bytes || use->records > server->max_headers ||
        !head_space_suffices(ex->conn->mhd.daemon->block, use))
        return REFUSAL_HEADERS;
    return REFUSAL_NONE;
}

/*
 * Reads the headers into ex->head and ex->request, which then point into libmicrohttpd's
 * memory or the arena. `method` and `version` are the callback's arguments, whose
 * addresses tell whether libmicrohttpd has cut out anything between them.
 */
static enum refusal
read_head(const struct mhd *m, struct exchange *ex, const char *method,
          const char *version)
{
    struct MHD_Connection *connection = ex->conn->mhd.connection;
    const struct bytes target = ex->raw_target;
    struct head_reader p = {.req = &ex->request,
                            .head = &ex->head,
                            .strict = m->strict,
                            .end = version + strlen(version)};
    size_t size =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE)
            ->header_size;
    const char *end = method + size;

    ex->head = (struct head){.use = {.head = size}, .end = end};
    /* libmicrohttpd 1.0 accepts two blanks with nothing in between. */
    if (target.len == 0 || target.data != method + strlen(method) + 1 ||
        version != target.data + target.len + 1 ||
        memchr(target.data, ' ', target.len) != NULL)
        return REFUSAL_BAD_HEAD;
    (void)MHD_get_connection_values_n(connection, MHD_HEADER_KIND, read_header, &p);
    if (p.st != ST_OK)
        return p.st == ST_NO_MEMORY ? REFUSAL_NO_MEMORY : REFUSAL_BAD_HEAD;
    if (ex->head.use.cookies > 0) {
        int count = MHD_get_connection_values(connection, MHD_COOKIE_KIND, NULL, NULL);

        ex->head.use.records += count < 0 ? 0 : (size_t)count;
    }
    /*
     * The head ends with an empty line. A CR that is left is inside of a line, and other
     * parsers may see the end of a line there.
     */
    if (!m->strict && (end != p.end + 2 * LINE_END || memchr(method, '\r', size) != NULL))
        return REFUSAL_BAD_HEAD;
    /* HTTP/1.1 requires a Host. */
    if (!bytes_present(ex->request.headers[API_HEADER_HOST]) &&
        strcmp(version, "HTTP/1.1") == 0)
        return REFUSAL_BAD_HEAD;
    if (p.lengths > 1 || p.encodings > 1 || (p.lengths > 0 && p.encodings > 0))
        return REFUSAL_BAD_HEAD;
    return check_head_size(m, ex);
}

static enum MHD_Result
add_trailer(void *ctx, enum MHD_ValueKind kind, const char *key, size_t key_len,
            const char *text, size_t text_len)
{
    struct head_use *use = ctx;

    (void)kind, (void)key, (void)text; /* claimd uses no trailers */
    use->records++;
    use->head += key_len + text_len + 4;
    return MHD_YES;
}

/* ------------------------------------------------------------------ requests */

void *
mhd_on_target(void *cls, const char *target, struct MHD_Connection *connection)
{
    struct mhd *m = cls;
    struct conn *c = mhd_conn_of(connection);
    char *mark;

    m->called = true;
    if (c->exchange !=
        NULL) /* mhd_replace_page() has refused it in the middle of its head */
        return c->exchange;
    mhd_set_phase(m, c, CONN_RECEIVING);
    if (!c->used)
        tls_handshake_done(m, c);
    c->used = true;
    http_on_target(c, target == NULL ? "" : target);
    /*
     * Next, libmicrohttpd would search for arguments behind the question mark, and use up
     * the connection's memory for their records. So claimd ends the text there. (The text
     * is in libmicrohttpd's own memory, which it is about to change itself.)
     */
    mark = target == NULL ? NULL : (char *)(uintptr_t)strchr(target, '?');
    if (mark != NULL)
        mark[1] = '\0';
    return c->exchange;
}

/*
 * If libmicrohttpd is lenient, this refuses a piece when the line in front of it, with
 * the size of the chunk, ends with a bare LF. Other parsers may not see the end of the
 * line there. claimd sees the line only if it came together with the chunk. Otherwise the
 * piece is at the address of the last one.
 */
static bool
pass_body(struct conn *c, const char *data, size_t len)
{
    const struct head *head = &c->exchange->head;
    bool next;

    if (!mhd_of(c)->strict && head->chunked && data != head->end && data[-1] == '\n' &&
        data[-2] != '\r') {
        mhd_refuse_past(c->exchange, REFUSAL_CHUNKS);
        return false;
    }
    ENSURE(!c->mhd.in_body);
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
    enum refusal wrong;
    bool next;

    if (ex == NULL) {
        mhd_set_phase(m, c, CONN_RESPONDING);
        return mhd_refuse(m, c, REFUSAL_NO_MEMORY, true);
    }
    c->mhd.round = m->config.round->number;
    /* mhd_replace_page() may have refused it in the middle. */
    if (c->phase == CONN_CLOSING || (ex->code != 0 && ex->state != EXCHANGE_RESPONDED))
        return false;
    if (ex->state == EXCHANGE_HEAD) { /* the headers are complete */
        exchange_set_method(ex, bytes_str(method));
        ex->state = EXCHANGE_BODY;
        wrong = read_head(m, ex, method, version);
        if (wrong == REFUSAL_NONE && ex->head.chunked)
            list_add_before(&m->chunked, &c->mhd.chunked);
        return http_on_head(c, wrong);
    }
    if (ex->state == EXCHANGE_READY)
        return http_on_ready(c);
    if (ex->state >= EXCHANGE_TURN)
        return true; /* about to be suspended, or responded to */
    ENSURE(ex->state == EXCHANGE_BODY || ex->state == EXCHANGE_DISCARD);
    if (*upload_len == 0 && ex->head.chunked) {
        list_remove(&c->mhd.chunked);
        (void)MHD_get_connection_values_n(c->mhd.connection, MHD_FOOTER_KIND, add_trailer,
                                          &ex->head.use);
        return http_on_whole(c, check_head_size(m, ex));
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

    (void)url; /* decoded; claimd uses the raw target */
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
    transport_flush(c);
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
    /* libmicrohttpd has sent a page of its own, without reading everything. */
    if (how == MHD_REQUEST_TERMINATED_WITH_ERROR &&
        (c->exchange == NULL || c->exchange->code == 0))
        c->linger = true;
    mhd_set_phase(m, c, CONN_WAITING);
    *ctx = NULL;
    if (c->exchange != NULL)
        c->mhd.ended_bytes +=
            c->exchange->head.use.head + c->exchange->head.content_length;
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
        if (c->kind == LISTEN_TLS) {
            const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);

            ENSURE(info != NULL); /* its daemon has TLS */
            c->mhd.tls = info->tls_session;
            transport_set(c);
        }
        /* Without memory to watch it, the connection only times out later. */
        (void)watch_socket(m, c, c->mhd.watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, 0);
        m->adding = NULL;
        return;
    }
    end_request(c, false); /* libmicrohttpd may not have called mhd_on_completed() */
    tls_end(m, c);
    remove_link(&c->mhd.ended);
    /*
     * close() would not end the events if a child of this process, which has not executed
     * its program yet, has the socket open, too.
     */
    (void)epoll_ctl(m->config.epoll_fd, EPOLL_CTL_DEL, c->fd, NULL);
    ENSURE(c->mhd.daemon->conns > 0);
    c->mhd.daemon->conns--;
    http_on_closed(c);
}

/* ------------------------------------------------------------------ built-in pages */

/*
 * The connection with a complete head for which libmicrohttpd has neither called
 * mhd_on_request() nor sent a response. There is never more than one. NULL if there is
 * none.
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

/* Connections to look at, because clients can have many that send nothing. */
enum { PARTS_MOST = 256 };

/*
 * True if libmicrohttpd can be reading a head or a trailer from it, because some pages
 * are for both. Most connections wait for their next request. libmicrohttpd has read
 * nothing from these since the end of the last one.
 */
static bool
can_have_part(const struct mhd *m, const struct conn *c)
{
    if (c->mhd.daemon != m->running || c->mhd.connection == NULL || c->mhd.suspended)
        return false;
    if (c->exchange != NULL)
        return c->exchange->code == 0 &&
               (c->exchange->state == EXCHANGE_HEAD || list_linked(&c->mhd.chunked));
    return conn_has_part(c);
}

/*
 * The only connection of the running daemon with a part of a head. waiting: or with a
 * part of a request line, for which there was no callback. NULL if there is none, or may
 * be more than one.
 */
static struct conn *
find_only_part(const struct mhd *m, bool waiting)
{
    static const enum conn_phase phases[] = {CONN_RECEIVING, CONN_WAITING};
    struct conn *only = NULL;
    int left = PARTS_MOST;

    /* A closing connection is in no list, and may still bring the rest of a head. */
    if (counter_read(&m->config.table->counts[CONN_CLOSING]) > 0)
        return NULL;
    for (size_t i = 0; i < (waiting ? 2U : 1U); i++) {
        const struct list *head = &m->config.table->phases[phases[i]];

        for (const struct list *at = head->next; at != head; at = at->next) {
            struct conn *c = container_of(at, struct conn, link);

            if (left-- == 0)
                return NULL;
            if (!can_have_part(m, c))
                continue;
            if (only != NULL)
                return NULL;
            only = c;
        }
    }
    return only;
}

/* The only connection in the middle of a chunked body. NULL if there is none or more than
 * one. */
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

/* The pages of libmicrohttpd name the part of the request that they are about. */
static bool
is_about_chunks(const char *page)
{
    return strstr(page, "chunk") != NULL || strstr(page, "footer") != NULL;
}

void
mhd_replace_page(struct mhd *m, unsigned code, const char *page)
{
    struct conn *c = find_only_head(m);
    enum refusal which = REFUSAL_BAD_HEAD;

    if (c == NULL)
        c = is_about_chunks(page)
                ? find_only_chunked(m)
                : find_only_part(m, code != MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE);
    if (c != NULL && c->exchange == NULL)
        http_on_target(c, "");
    if (c == NULL || c->exchange == NULL || c->exchange->code != 0)
        return;
    if (list_linked(&c->mhd.chunked))
        which = REFUSAL_CHUNKS;
    if (code == MHD_HTTP_CONTENT_TOO_LARGE)
        which = REFUSAL_BEYOND;
    else if (code == MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE)
        which = REFUSAL_HEADERS;
    else if (code == MHD_HTTP_URI_TOO_LONG)
        which = REFUSAL_TARGET;
    else if (code == MHD_HTTP_HTTP_VERSION_NOT_SUPPORTED)
        which = REFUSAL_VERSION;
    mhd_refuse_past(c->exchange, which);
    (void)shutdown(c->fd, SHUT_WR); /* discards the built-in page */
}
