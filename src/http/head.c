#include "http/head.h"

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

/*
 * Lines end where libmicrohttpd has put NULs; a CR that is left stands alone somewhere, and
 * others may take it for the end of a line.
 */
static bool
has_bare_cr(const char *begin, size_t len)
{
    return memchr(begin, '\r', len) != NULL;
}

/* HTTP/1.1 wants to know which host is meant. */
static bool
lacks_host(const struct request *req, const char *version)
{
    return !bytes_present(req->headers[API_HEADER_HOST]) &&
           strcmp(version, "HTTP/1.1") == 0;
}

static size_t
count_values(struct MHD_Connection *mhd, enum MHD_ValueKind kind)
{
    int count = MHD_get_connection_values(mhd, kind, NULL, NULL);

    return count < 0 ? 0 : (size_t)count;
}

enum status
head_read(struct MHD_Connection *mhd, struct bytes target, const char *method,
          const char *version, struct request *req, struct head *out)
{
    struct pass p = {.req = req, .head = out, .end = version + strlen(version)};
    size_t size = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE)
                      ->header_size;
    const char *end = method + size;

    *out = (struct head){.use = {.head = size}, .end = end};
    if (!follows(method + strlen(method), target.data) ||
        version != target.data + target.len + 1)
        return ST_BAD_VALUE;
    (void)MHD_get_connection_values_n(mhd, MHD_HEADER_KIND, take_header, &p);
    if (p.st != ST_OK)
        return p.st;
    if (out->use.cookies > 0)
        out->use.records += count_values(mhd, MHD_COOKIE_KIND);
    if (end - p.end < 2 || end - p.end > 4 || has_bare_cr(method, size) ||
        lacks_host(req, version))
        return ST_BAD_VALUE;
    if (p.lengths > 1 || p.encodings > 1 || (p.lengths > 0 && p.encodings > 0))
        return ST_BAD_VALUE;
    return ST_OK;
}

static enum MHD_Result
add_trailer(void *ctx, enum MHD_ValueKind kind, const char *key, size_t key_len,
            const char *text, size_t text_len)
{
    struct room_use *use = ctx;

    (void)kind, (void)key, (void)text; /* they mean nothing to anybody here */
    use->records++;
    use->head += key_len + text_len + 4;
    return MHD_YES;
}

void
head_add_trailers(struct MHD_Connection *mhd, struct head *head)
{
    (void)MHD_get_connection_values_n(mhd, MHD_FOOTER_KIND, add_trailer, &head->use);
}

void
head_split_target(struct bytes target, struct bytes *path, struct bytes *query)
{
    struct bytes rest = target;

    *path = bytes_cut(&rest, '?');
    *query = rest;
    if (path->len > 0 && path->data[0] != '/') {
        const char *scheme = memmem(path->data, path->len, "://", 3);
        size_t skip;

        if (scheme == NULL)
            return;
        skip = (size_t)(scheme - path->data) + 3;
        while (skip < path->len && path->data[skip] != '/')
            skip++;
        *path = skip == path->len ? bytes_str("/")
                                  : bytes_of(path->data + skip, path->len - skip);
    }
}
