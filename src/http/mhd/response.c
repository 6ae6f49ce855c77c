/*
 * response: queues responses with libmicrohttpd, and writes the refusals of the front
 * end, through libmicrohttpd or past it straight to the socket. Declared in mhd.h and
 * internal.h. libmicrohttpd copies each header of a response. So add_block() makes it
 * allocate one header, in which claimd writes all of them. mhd_make_empty() prepares the
 * response without a body, which all requests share.
 */
#include "claimd/base/invariant.h"
#include "http/mhd/internal.h"

#include <stdio.h>
#include <strings.h>

/* libmicrohttpd does not write to the body, but its parameter is not const. */
static struct MHD_Response *
borrow_body(struct bytes body)
{
    return MHD_create_response_from_buffer(body.len, (void *)(uintptr_t)body.data,
                                           MHD_RESPMEM_PERSISTENT);
}

static bool
add_header(struct MHD_Response *mr, const char *name, const char *value)
{
    return MHD_add_response_header(mr, name, value) == MHD_YES;
}

static bool
bodiless(int code)
{
    return code == MHD_HTTP_NO_CONTENT || code == MHD_HTTP_NOT_MODIFIED;
}

/*
 * Every response has these headers. Responses contain messages, so no browser or proxy
 * may keep them, unless the API says so. A browser must not take a body for a script or a
 * page.
 */
static const char name_id[] = "X-Request-ID", name_cache[] = "Cache-Control";
static const char name_openstack[] = "X-OpenStack-Request-Id";
static const char again[] = "\r\nX-OpenStack-Request-Id: "; /* with the same value */
static const char date_name[] = "\r\nDate: ";
static const char no_store[] = "\r\nCache-Control: no-store";
static const char no_sniff[] = "\r\nX-Content-Type-Options: nosniff";

/* The value of X-Request-ID, and behind it all other headers but "Connection". */
enum {
    ID = REQUEST_ID_CAP - 1,
    START = 2 * ID + sizeof(again) - 1 + sizeof(date_name) - 1 + CLOCK_HTTP_CAP - 1
};
_Static_assert(START + RESPONSE_HEAD_MAX + sizeof(no_store) + sizeof(no_sniff) <=
                   HEADERS_CAP,
               "the filler is too short");

/* For MHD_get_response_headers(). libmicrohttpd has allocated the value, which is not
 * constant. */
static enum MHD_Result
keep_value(void *ctx, enum MHD_ValueKind kind, const char *name, const char *value)
{
    char **out = ctx;

    (void)kind, (void)name;
    *out = (char *)(uintptr_t)value;
    return MHD_NO;
}

/*
 * Adds X-Request-ID with a value of this length, and returns the place of the value.
 * libmicrohttpd copies a name and a value for each header, which takes more time than all
 * else here. So claimd lets it allocate one value, and writes all headers there, with the
 * ends of their lines. mr must have no header yet. NULL without memory.
 */
static char *
add_block(const struct mhd *m, struct MHD_Response *mr, size_t len)
{
    char *at = NULL;

    ENSURE(len < HEADERS_CAP);
    if (!add_header(mr, name_id, m->filler + HEADERS_CAP - 1 - len))
        return NULL;
    (void)MHD_get_response_headers(mr, keep_value, &at);
    return at;
}

/* A header could end here, and another one begin. */
static bool
has_line_break(struct bytes value)
{
    return memchr(value.data, '\r', value.len) != NULL ||
           memchr(value.data, '\n', value.len) != NULL;
}

static char *
write_bytes(char *at, struct bytes text)
{
    memcpy(at, text.data, text.len);
    return at + text.len;
}

/*
 * The present date for the header Date. libmicrohttpd would make it anew for each
 * response. (Its built-in pages have none.)
 */
static struct bytes
current_date(struct mhd *m)
{
    const int64_t now_s = clock_wall_ms(m->config.real) / 1000;

    if (m->date[0] == '\0' || now_s != m->date_s) {
        clock_http_text(now_s * 1000, m->date);
        m->date_s = now_s;
    }
    return bytes_of(m->date, CLOCK_HTTP_CAP - 1);
}

/* Writes START bytes, the request ids and the date, and returns the place behind. */
static char *
write_start(struct mhd *m, char *at, const char *id)
{
    at = write_bytes(at, bytes_of(id, ID));
    at = write_bytes(at, bytes_of(again, sizeof(again) - 1));
    at = write_bytes(at, bytes_of(id, ID));
    at = write_bytes(at, bytes_of(date_name, sizeof(date_name) - 1));
    return write_bytes(at, current_date(m));
}

/* False without memory, or if a value has a line break. */
static bool
add_headers(struct mhd *m, struct MHD_Response *mr, const struct response *res,
            const char *id)
{
    struct bytes cache = bytes_of(no_store, sizeof(no_store) - 1);
    const struct bytes sniff = bytes_of(no_sniff, sizeof(no_sniff) - 1);
    struct bytes names[RESPONSE_HEADERS_MAX], values[RESPONSE_HEADERS_MAX];
    size_t count = 0, len = START + sniff.len;
    char *at;

    for (const struct response_header *h = res->headers;
         h < res->headers + res->header_count; h++) {
        if (bodiless(res->code) && strcasecmp(h->name, "Content-Type") == 0)
            continue;
        if (strcmp(h->name, name_cache) == 0)
            cache.len = 0;
        names[count] = bytes_str(h->name);
        values[count] = bytes_str(h->value);
        if (has_line_break(values[count]))
            return false;
        len += names[count].len + values[count].len + 4;
        count++;
    }
    at = add_block(m, mr, len + cache.len);
    if (at == NULL)
        return false;
    at = write_start(m, at, id);
    for (size_t i = 0; i < count; i++) {
        at = write_bytes(at, bytes_of("\r\n", 2));
        at = write_bytes(at, names[i]);
        at = write_bytes(at, bytes_of(": ", 2));
        at = write_bytes(at, values[i]);
    }
    (void)write_bytes(write_bytes(at, cache), sniff);
    return true;
}

static bool
queue_response(struct exchange *ex, struct MHD_Response *mr, int code, size_t len)
{
    ENSURE(ex->state != EXCHANGE_RESPONDED && !ex->conn->mhd.suspended);
    if (MHD_queue_response(ex->conn->mhd.connection, (unsigned)code, mr) == MHD_NO)
        return false;
    ex->state = EXCHANGE_RESPONDED;
    ex->code = code;
    ex->sent = len;
    return true;
}

/* Queues mr and drops the reference to it. */
static bool
queue_once(struct exchange *ex, struct MHD_Response *mr, int code, size_t len)
{
    bool ok = queue_response(ex, mr, code, len);

    MHD_destroy_response(mr);
    return ok;
}

bool
mhd_make_empty(struct mhd *m)
{
    static const char id[REQUEST_ID_CAP] = "req-00000000-0000-0000-0000-000000000000";
    static const struct response none = {.code = MHD_HTTP_NO_CONTENT};

    memset(m->filler, 'x', HEADERS_CAP - 1);
    m->empty = borrow_body(bytes_str(""));
    if (m->empty == NULL || !add_headers(m, m->empty, &none, id))
        return false;
    (void)MHD_get_response_headers(m->empty, keep_value, &m->empty_start);
    return true;
}

/*
 * Queues the response that all requests share. Only request id and date differ, and have
 * always the same length. libmicrohttpd copies the head when the callback that queues the
 * response returns, before it calls another one. So id and date may change with each
 * request.
 */
static bool
queue_empty(struct exchange *ex)
{
    struct mhd *m = mhd_of(ex->conn);

    (void)write_start(m, m->empty_start, ex->id);
    return queue_response(ex, m->empty, ex->response.code, 0);
}

/* For MHD_create_response_from_callback(). */
static ssize_t
read_piece(void *cls, uint64_t at, char *out, size_t cap)
{
    struct exchange *ex = cls;
    ssize_t n = ex->conn->mhd.pieces.read(ex, at, out, cap);

    mhd_of(ex->conn)->called = true;
    if (n == PIECES_END)
        return MHD_CONTENT_READER_END_OF_STREAM;
    return n < 0 ? MHD_CONTENT_READER_END_WITH_ERROR : n;
}

bool
mhd_respond(struct exchange *ex, bool closing, const struct mhd_pieces *pieces)
{
    const struct response *res = &ex->response;
    struct bytes body = bodiless(res->code) ? bytes_str("") : buf_view(&res->body);
    struct MHD_Response *mr;

    if (res->code == MHD_HTTP_NO_CONTENT && res->header_count == 0 && !closing)
        return queue_empty(ex);
    if (pieces != NULL)
        ex->conn->mhd.pieces = *pieces;
    mr = pieces == NULL ? borrow_body(body)
                        : MHD_create_response_from_callback(
                              pieces->endless ? MHD_SIZE_UNKNOWN : body.len, pieces->most,
                              read_piece, ex, NULL);
    if (mr == NULL)
        return false;
    if (!add_headers(mhd_of(ex->conn), mr, res, ex->id) ||
        (closing && !add_header(mr, "Connection", "close"))) {
        MHD_destroy_response(mr);
        return false;
    }
    if (pieces == NULL && body.len > 0 && ex->request.method != METHOD_HEAD)
        transport_hold_head(ex->conn);
    return queue_once(ex, mr, res->code,
                      ex->request.method == METHOD_HEAD ? 0 : body.len);
}

/* ------------------------------------------------------------------ refusals */

struct refusal_row {
    int code;
    const char *reason;
    const char *retry_after;
    const char *document;
};

#define DOCUMENT(title, description)                                                     \
    "{\"title\": \"" title "\", \"description\": \"" description "\"}"

static const struct refusal_row rows[REFUSAL_COUNT] = {
    [REFUSAL_BUSY] = {503, "Service Unavailable", "1",
                      DOCUMENT("Service temporarily unavailable",
                               "The server has reached its maximum number of "
                               "connections. Try again in 1 second.")},
    [REFUSAL_NO_MEMORY] = {503, "Service Unavailable", "5",
                           DOCUMENT(
                               "Service temporarily unavailable",
                               "The server is out of memory. Try again in 5 seconds.")},
    [REFUSAL_OVERDUE] = {503, "Service Unavailable", "5",
                         DOCUMENT("Service temporarily unavailable",
                                  "The server has too many long-running requests. This "
                                  "request had no effect. Try again in 5 seconds.")},
    [REFUSAL_SLOW] = {408, "Request Timeout", NULL,
                      DOCUMENT("Request timeout",
                               "The request was incomplete when its time limit ended.")},
    [REFUSAL_BAD_HEAD] =
        {400, "Bad Request", NULL,
         DOCUMENT(
             "Invalid API request",
             "The request line or a header is malformed, contradictory or duplicated.")},
    [REFUSAL_CHUNKS] = {400, "Bad Request", NULL,
                        DOCUMENT(
                            "Invalid API request",
                            "A chunk of the body is malformed. Its size must be a short "
                            "line of hexadecimal digits that ends with CR LF.")},
    [REFUSAL_BEYOND] = {413, "Content Too Large", NULL,
                        DOCUMENT("Invalid API request",
                                 "The length of the body exceeds 64 bits.")},
    [REFUSAL_TARGET] = {414, "URI Too Long", NULL,
                        DOCUMENT("Request target too long",
                                 "The request line is longer than max_header_size.")},
    [REFUSAL_VERSION] = {505, "HTTP Version Not Supported", NULL,
                         DOCUMENT("HTTP version not supported",
                                  "The version of HTTP must be 1.0 or 1.1.")},
    [REFUSAL_HEADERS] = {431, "Request Header Fields Too Large", NULL,
                         DOCUMENT("Request header fields too large",
                                  "The request has more than max_headers headers and "
                                  "cookies, or they are larger than max_header_size. "
                                  "Send a head above 4 KB on a new connection.")},
    [REFUSAL_TOO_LARGE] = {400, "Bad Request", NULL,
                           DOCUMENT("Invalid API request",
                                    "The body is larger than the server allows.")},
};

struct MHD_Response *
mhd_make_refusal(enum refusal which, bool closing, const char *id)
{
    const struct refusal_row *row = &rows[which];
    struct MHD_Response *mr = borrow_body(bytes_str(row->document));

    if (mr == NULL)
        return NULL;
    if (!add_header(mr, "Content-Type", "application/json") ||
        !add_header(mr, name_cache, "no-store") ||
        !add_header(mr, "X-Content-Type-Options", "nosniff") ||
        (row->retry_after != NULL && !add_header(mr, "Retry-After", row->retry_after)) ||
        (closing && !add_header(mr, "Connection", "close")) ||
        (id != NULL &&
         (!add_header(mr, name_id, id) || !add_header(mr, name_openstack, id)))) {
        MHD_destroy_response(mr);
        return NULL;
    }
    return mr;
}

/* The whole response of a refusal. Returns its length. */
static size_t
format_refusal(enum refusal which, const char *id, const struct clock *real, char *out,
               size_t cap)
{
    const struct refusal_row *row = &rows[which];
    char date[CLOCK_HTTP_CAP];
    int len;

    clock_http_text(clock_wall_ms(real), date);
    len = snprintf(out, cap,
                   "HTTP/1.1 %d %s\r\n"
                   "Connection: close\r\n"
                   "Content-Type: application/json\r\n"
                   "Content-Length: %zu\r\n"
                   "X-Request-ID: %s%s%s%s%s%s%s\r\n"
                   "%s%s%s"
                   "\r\n%s",
                   row->code, row->reason, strlen(row->document), id, again, id,
                   date_name, date, no_store, no_sniff,
                   row->retry_after == NULL ? "" : "Retry-After: ",
                   row->retry_after == NULL ? "" : row->retry_after,
                   row->retry_after == NULL ? "" : "\r\n", row->document);
    ENSURE(len > 0 && (size_t)len < cap);
    return (size_t)len;
}

enum { REFUSAL_CAP = 1024 };

void
mhd_refuse_past(struct exchange *ex, enum refusal which)
{
    const struct clock *real = mhd_of(ex->conn)->config.real;
    gnutls_session_t tls = ex->conn->mhd.tls;
    char text[REFUSAL_CAP];

    ENSURE(which > REFUSAL_NONE && which < REFUSAL_COUNT);
    if (tls == NULL) {
        mhd_refuse_socket(ex->conn->fd, which, ex->id, real);
    } else { /* the socket has space, because no response is under way */
        (void)gnutls_record_send(tls, text,
                                 format_refusal(which, ex->id, real, text, sizeof(text)));
        (void)gnutls_bye(tls, GNUTLS_SHUT_WR);
    }
    ex->code = rows[which].code;
    ex->sent = strlen(rows[which].document);
    ex->conn->linger = true;
}

/*
 * In the middle of a body libmicrohttpd accepts no response, and after a bad head its
 * memory may lack space for one. So the document goes past libmicrohttpd.
 */
bool
mhd_refuse(struct mhd *m, struct conn *c, enum refusal which, bool closing)
{
    struct exchange *ex = c->exchange;
    struct MHD_Response *mr;

    if (ex != NULL && (c->mhd.in_body || which != REFUSAL_NO_MEMORY)) {
        mhd_refuse_past(ex, which);
        return false;
    }
    mr = ex == NULL ? NULL : mhd_make_refusal(which, closing, ex->id);
    if (mr != NULL && queue_once(ex, mr, rows[which].code, strlen(rows[which].document)))
        return true;
    if (ex != NULL)
        ex->code = rows[REFUSAL_NO_MEMORY].code;
    return MHD_queue_response(c->mhd.connection, MHD_HTTP_SERVICE_UNAVAILABLE,
                              m->no_memory) == MHD_YES;
}

void
mhd_refuse_socket(int fd, enum refusal which, const char *id, const struct clock *real)
{
    char text[REFUSAL_CAP];
    size_t len = format_refusal(which, id, real, text, sizeof(text));

    (void)send(fd, text, len, MSG_NOSIGNAL | MSG_DONTWAIT); /* see mhd.h */
}
