#include "http/mhd/internal.h"

/*
 * libmicrohttpd is lenient: it cuts texts at NUL bytes, joins folded lines wrongly, takes the first
 * of several Content-Lengths and prefers Transfer-Encoding to them. claimd refuses what two parsers
 * could read differently. So nothing is smuggled past a proxy, and nothing is stored that was not
 * sent.
 */

/* ------------------------------------------------------------------ space for the response */

/*
 * A connection of libmicrohttpd has one block of memory. From its beginning grow the head of the
 * request and what the client has sent behind it, from its end a record for each header and cookie.
 * The head of the response has to fit in between. If it does not, libmicrohttpd closes the
 * connection without a word.
 *
 *     | head | sent behind it |      free      | copy of cookies | records |
 *
 * So the block is large enough for a request at its limits. A request that still leaves too little
 * (by its cookies) is refused before anything is executed.
 */

/*
 * Of libmicrohttpd 0.9.75: the size of a record; how much a read buffer that is full and must
 * grow may overshoot the head; its least alignment.
 */
enum { RECORD = 64, OVERSHOOT = 256, ALIGNMENT = 16 };

/*
 * The parts of a response's head besides the API's headers: status line, date, length,
 * request id, connection, and the empty line; 190 bytes at most.
 */
enum { FRAME = 256 };

enum { RESPONSE = RESPONSE_HEAD_MAX + FRAME };

size_t
head_space_block(size_t max_head, size_t max_lines)
{
    size_t behind = max_lines * RECORD + RESPONSE;
    size_t whole = max_head + OVERSHOOT + behind;

    /* The read buffer begins with half of the block, which may be full of what comes next. */
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

static const struct bytes name_length = BYTES_LIT("Content-Length");
static const struct bytes name_encoding = BYTES_LIT("Transfer-Encoding");
static const struct bytes name_expect = BYTES_LIT("Expect");
static const struct bytes name_cookie = BYTES_LIT("Cookie");
static const struct bytes value_chunked = BYTES_LIT("chunked");
static const struct bytes value_continue = BYTES_LIT("100-continue");

/* One pass over the headers. */
struct pass {
    struct request *req;
    struct head *head;
    const char *end; /* of the text before the header that comes next, without CR LF */
    size_t lengths, encodings;
    enum status st;
};

/*
 * libmicrohttpd writes one or two NULs over a line's end, so the next text begins one or
 * two bytes behind the last; otherwise something in between was cut off at a NUL of the
 * client's, or moved because it was folded.
 */
static bool
follows(const char *end, const char *next)
{
    return next == end + 1 || next == end + 2;
}

static void
take_api_header(struct pass *p, enum api_header which, struct bytes value)
{
    struct bytes *slot = &p->req->headers[which];

    if (bytes_present(*slot) && which == API_HEADER_HOST) {
        p->st = ST_BAD_VALUE; /* two parsers may take different ones */
        return;
    }
    if (bytes_present(*slot)) {
        size_t len = slot->len + 1 + value.len;
        char *joined = arena_alloc(p->req->arena, len);

        if (joined == NULL) {
            p->st = ST_NO_MEMORY;
            return;
        }
        memcpy(joined, slot->data, slot->len);
        joined[slot->len] = ',';
        memcpy(joined + slot->len + 1, value.data, value.len);
        value = bytes_of(joined, len);
    }
    *slot = value;
}

static void
take_framing_header(struct pass *p, struct bytes name, struct bytes value)
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
        p->head->use.cookies = value.len; /* libmicrohttpd looks at the first one only */
    }
}

/*
 * Which header of the API has this name; API_HEADER_COUNT: none. Most names mean nothing to the
 * API, so each comparison begins with a length that is a constant.
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
take_header(void *ctx, enum MHD_ValueKind kind, const char *key, size_t key_len,
            const char *text, size_t text_len)
{
    struct pass *p = ctx;
    struct bytes name = bytes_of(key, key_len);
    struct bytes value = bytes_trim(bytes_of(text, text_len));
    enum api_header which = find_api_header(name);

    (void)kind; /* only headers were asked for */
    p->head->use.records++;
    if (!follows(p->end, key) || key_len == 0 || key[key_len - 1] == ' ' ||
        key[key_len - 1] == '\t')
        p->st = ST_BAD_VALUE;
    p->end = text + text_len;
    if (which != API_HEADER_COUNT)
        take_api_header(p, which, value);
    else
        take_framing_header(p, name, value);
    return p->st == ST_OK ? MHD_YES : MHD_NO;
}

/* Is the head within the limits, and does it leave space for that of the response? */
static enum refusal
judge_size(const struct mhd *m, const struct exchange *ex)
{
    const struct server_config *server = m->config.server;
    const struct head_use *use = &ex->head.use;

    if (ex->raw_target.len > server->max_header_bytes)
        return REFUSAL_TARGET;
    if (use->head > server->max_header_bytes || use->records > server->max_headers ||
        !head_space_suffices(m->block, use))
        return REFUSAL_HEADERS;
    return REFUSAL_NONE;
}

enum refusal
mhd_head_read(const struct mhd *m, struct exchange *ex, const char *method,
              const char *version)
{
    struct MHD_Connection *connection = ex->conn->mhd.connection;
    const struct bytes target = ex->raw_target;
    struct pass p = {
        .req = &ex->request, .head = &ex->head, .end = version + strlen(version)};
    size_t size =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE)
            ->header_size;
    const char *end = method + size;

    ex->head = (struct head){.use = {.head = size}, .end = end};
    if (!follows(method + strlen(method), target.data) ||
        version != target.data + target.len + 1)
        return REFUSAL_BAD_HEAD;
    (void)MHD_get_connection_values_n(connection, MHD_HEADER_KIND, take_header, &p);
    if (p.st != ST_OK)
        return p.st == ST_NO_MEMORY ? REFUSAL_NO_MEMORY : REFUSAL_BAD_HEAD;
    if (ex->head.use.cookies > 0) {
        int count = MHD_get_connection_values(connection, MHD_COOKIE_KIND, NULL, NULL);

        ex->head.use.records += count < 0 ? 0 : (size_t)count;
    }
    /*
     * Lines end where libmicrohttpd has put NULs; a CR that is left stands alone somewhere, and
     * others may take it for the end of a line. HTTP/1.1 requires a Host.
     */
    if (end - p.end < 2 || end - p.end > 4 || memchr(method, '\r', size) != NULL ||
        (!bytes_present(ex->request.headers[API_HEADER_HOST]) &&
         strcmp(version, "HTTP/1.1") == 0))
        return REFUSAL_BAD_HEAD;
    if (p.lengths > 1 || p.encodings > 1 || (p.lengths > 0 && p.encodings > 0))
        return REFUSAL_BAD_HEAD;
    return judge_size(m, ex);
}

static enum MHD_Result
add_trailer(void *ctx, enum MHD_ValueKind kind, const char *key, size_t key_len,
            const char *text, size_t text_len)
{
    struct head_use *use = ctx;

    (void)kind, (void)key, (void)text; /* claimd uses none of them */
    use->records++;
    use->head += key_len + text_len + 4;
    return MHD_YES;
}

enum refusal
mhd_head_add_trailers(const struct mhd *m, struct exchange *ex)
{
    (void)MHD_get_connection_values_n(ex->conn->mhd.connection, MHD_FOOTER_KIND,
                                      add_trailer, &ex->head.use);
    return judge_size(m, ex);
}
