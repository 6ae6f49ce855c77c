#include "http/refusal.h"

#include "claimd/base/invariant.h"

#include <stdio.h>
#include <sys/socket.h>

struct row {
    int code;
    const char *reason;
    const char *retry_after;
    const char *document;
};

#define DOCUMENT(title, description)                                                     \
    "{\"title\": \"" title "\", \"description\": \"" description "\"}"

static const struct row rows[REFUSAL_COUNT] = {
    [REFUSAL_BUSY] = {503, "Service Unavailable", "1",
                      DOCUMENT("Service temporarily unavailable",
                               "The server has reached its maximum number of "
                               "connections. Try again later.")},
    [REFUSAL_NO_MEMORY] = {503, "Service Unavailable", "5",
                           DOCUMENT("Service temporarily unavailable",
                                    "The server is out of memory. Try again later.")},
    [REFUSAL_OVERDUE] = {503, "Service Unavailable", "5",
                         DOCUMENT("Service temporarily unavailable",
                                  "The server has too many long-running requests. This "
                                  "request had no effect. Try again later.")},
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
    [REFUSAL_HEADERS] = {431, "Request Header Fields Too Large", NULL,
                         DOCUMENT("Request header fields too large",
                                  "The request has more than max_headers headers and "
                                  "cookies, or they are larger than max_header_size.")},
    [REFUSAL_TOO_LARGE] = {400, "Bad Request", NULL,
                           DOCUMENT("Invalid API request",
                                    "The body is larger than the server allows.")},
};

int
refusal_code(enum refusal which)
{
    return rows[which].code;
}

struct bytes
refusal_document(enum refusal which)
{
    return bytes_str(rows[which].document);
}

const char *
refusal_retry_after(enum refusal which)
{
    return rows[which].retry_after;
}

void
refusal_send(int fd, enum refusal which, const char *id)
{
    const struct row *row = &rows[which];
    char text[1024];
    int len = snprintf(text, sizeof(text),
                       "HTTP/1.1 %d %s\r\n"
                       "Connection: close\r\n"
                       "Content-Type: application/json\r\n"
                       "Content-Length: %zu\r\n"
                       "X-Request-ID: %s\r\n"
                       "%s%s%s"
                       "\r\n%s",
                       row->code, row->reason, strlen(row->document), id,
                       row->retry_after == NULL ? "" : "Retry-After: ",
                       row->retry_after == NULL ? "" : row->retry_after,
                       row->retry_after == NULL ? "" : "\r\n", row->document);

    ENSURE(len > 0 && (size_t)len < sizeof(text));
    (void)send(fd, text, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT); /* see the contract */
}
