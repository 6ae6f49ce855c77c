/*
 * arrival: waits for the first bytes of a connection, refuses a malformed head, and
 * chooses how much memory the connection gets. Declared in internal.h.
 *
 * libmicrohttpd gives a connection one block of memory for its whole life, and clears
 * all of it for each request. A block for the largest head would make each connection
 * larger and each request slower. So claimd looks at the first bytes of a connection
 * before libmicrohttpd gets it:
 *
 *     accepted --> waits for bytes --> small block:  programs that use the API
 *                                  --> large block:  browsers, proxies in front of them,
 *                                                    and large heads
 *
 * A browser stays a browser for the life of its connection, and sends cookies of all
 * programs on the host. With TLS only the ClientHello can be seen. A connection with a
 * small block whose later request has a large head is refused and closed (431). The next
 * connection of this client begins with the large head. A connection without a byte has
 * no block at all.
 *
 * libmicrohttpd does not tell which connection a malformed request line is from, and
 * closes some without a response. Most malformed heads are the first of a connection, so
 * claimd refuses them here.
 */
#include "claimd/base/invariant.h"
#include "http/mhd/internal.h"

#include <ctype.h>
#include <errno.h>
#include <strings.h>
#include <sys/epoll.h>
#include <unistd.h>

/* FIRST_MOST: bytes to look at. FIRST_PART: the head goes on behind so many bytes, so it
 * is large. */
enum { FIRST_MOST = 4096, FIRST_PART = 1024 };

/* ------------------------------------------------------------------ HTTP */

/* Headers that browsers and proxies send. A prefix is enough. */
static const char *const marks[] = {"cookie:",      "sec-", "user-agent: mozilla/",
                                    "x-forwarded-", "via:", "forwarded:",
                                    "x-real-ip:"};

static bool
is_mark(struct bytes line)
{
    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
        size_t len = strlen(marks[i]);

        if (line.len >= len && strncasecmp(line.data, marks[i], len) == 0)
            return true;
    }
    return false;
}

bool
arrival_wants_large(struct bytes first)
{
    const char *end = memmem(first.data, first.len, "\r\n\r\n", 4);
    struct bytes rest = first;
    size_t lines = 0;

    if (end == NULL && first.len >= FIRST_PART)
        return true;
    if (end != NULL)
        rest.len = (size_t)(end - first.data);
    if (rest.len > SMALL_HEAD / 2)
        return true;
    while (bytes_present(rest)) {
        if (is_mark(bytes_cut(&rest, '\n')) || ++lines > SMALL_LINES / 2)
            return true;
    }
    return false;
}

/* ------------------------------------------------------------------ syntax */

/* Cuts off a line with its end. False if the line is incomplete: *line is the rest. */
static bool
cut_line(struct bytes *rest, struct bytes *line)
{
    const char *end = memchr(rest->data, '\n', rest->len);

    *line = *rest;
    if (end == NULL)
        return false;
    line->len = (size_t)(end - line->data) + 1;
    *rest = bytes_of(end + 1, rest->len - line->len);
    return true;
}

/* Removes CR LF. False if the line ends otherwise, or has a NUL or CR before. */
static bool
trim_line_end(struct bytes *line)
{
    if (line->len < 2 || line->data[line->len - 2] != '\r')
        return false;
    line->len -= 2;
    return memchr(line->data, '\r', line->len) == NULL &&
           memchr(line->data, '\0', line->len) == NULL;
}

/* True if the text has no blanks or control characters. */
static bool
is_one_word(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.data[i] <= ' ')
            return false;
    return true;
}

static enum refusal
check_version(struct bytes version)
{
    static const struct bytes name = BYTES_LIT("HTTP/");
    const char *number;

    if (version.len != name.len + 3 ||
        !bytes_equal(bytes_of(version.data, name.len), name))
        return REFUSAL_BAD_HEAD;
    number = version.data + name.len;
    if (!isdigit((unsigned char)number[0]) || number[1] != '.' ||
        !isdigit((unsigned char)number[2]))
        return REFUSAL_BAD_HEAD;
    return number[0] == '1' ? REFUSAL_NONE : REFUSAL_VERSION;
}

static enum refusal
check_request_line(struct bytes line)
{
    struct bytes method, target;

    if (!trim_line_end(&line))
        return REFUSAL_BAD_HEAD;
    method = bytes_cut(&line, ' ');
    target = bytes_cut(&line, ' ');
    if (method.len == 0 || target.len == 0 || !is_one_word(method) ||
        !is_one_word(target))
        return REFUSAL_BAD_HEAD;
    return check_version(line);
}

static bool
is_header(struct bytes line)
{
    struct bytes name;

    if (!trim_line_end(&line) || memchr(line.data, ':', line.len) == NULL)
        return false;
    name = bytes_cut(&line, ':');
    return name.len > 0 && is_one_word(name);
}

enum refusal
arrival_check(struct bytes first)
{
    static const struct bytes empty = BYTES_LIT("\r\n");
    struct bytes rest = first, line;
    enum refusal wrong;

    /* One empty line may come before a request (RFC 9112, section 2.2). */
    if (rest.len >= empty.len && bytes_equal(bytes_of(rest.data, empty.len), empty))
        rest = bytes_of(rest.data + empty.len, rest.len - empty.len);
    if (!cut_line(&rest, &line))
        return REFUSAL_NONE;
    wrong = check_request_line(line);
    while (wrong == REFUSAL_NONE && cut_line(&rest, &line) && !bytes_equal(line, empty))
        if (!is_header(line))
            wrong = REFUSAL_BAD_HEAD;
    return wrong;
}

/* ------------------------------------------------------------------ TLS */

/* Cuts `size` bytes off. Fewer if there are not as many. */
static struct bytes
cut_bytes(struct bytes *rest, size_t size)
{
    struct bytes part = bytes_of(rest->data, size < rest->len ? size : rest->len);

    *rest = bytes_of(rest->data + part.len, rest->len - part.len);
    return part;
}

/* Cuts off a number of so many bytes. 0 if they are not there. */
static size_t
cut_number(struct bytes *rest, size_t size)
{
    struct bytes part = cut_bytes(rest, size);
    size_t number = 0;

    for (size_t i = 0; i < part.len; i++)
        number = number << 8 | (unsigned char)part.data[i];
    return part.len == size ? number : 0;
}

/* A number that Chromium and Safari put in each of their lists (RFC 8701). */
static bool
is_grease(size_t number)
{
    return (number & 0x0f0f) == 0x0a0a && number >> 8 == (number & 0xff);
}

/* Extensions that only browsers send: delegated credentials (Firefox), encrypted
 * ClientHello. */
enum { DELEGATED_CREDENTIALS = 34, ENCRYPTED_HELLO = 0xfe0d };

enum { RECORD_HEADER = 5, HELLO_HEADER = 4, VERSION_AND_RANDOM = 34 };

bool
arrival_is_browser(struct bytes hello)
{
    struct bytes rest = hello, list;
    size_t whole;

    (void)cut_number(&rest, RECORD_HEADER - 2);
    whole = cut_number(&rest, 2);
    /* The rest of a large ClientHello may come with the next packet, and be the part that
     * tells. */
    if (whole > rest.len)
        return hello.len >= FIRST_PART;
    (void)cut_bytes(&rest, HELLO_HEADER + VERSION_AND_RANDOM);
    (void)cut_bytes(&rest, cut_number(&rest, 1)); /* the session */
    list = cut_bytes(&rest, cut_number(&rest, 2));
    while (list.len > 0)
        if (is_grease(cut_number(&list, 2)))
            return true;
    (void)cut_bytes(&rest, cut_number(&rest, 1)); /* compression */
    list = cut_bytes(&rest, cut_number(&rest, 2));
    while (list.len > 0) {
        size_t type = cut_number(&list, 2);

        if (is_grease(type) || type == DELEGATED_CREDENTIALS || type == ENCRYPTED_HELLO)
            return true;
        (void)cut_bytes(&list, cut_number(&list, 2));
    }
    return false;
}

/* ------------------------------------------------------------------ connections */

void
arrival_close(struct mhd *m, struct conn *c)
{
    ENSURE(c->mhd.connection == NULL);
    if (c->mhd.watched)
        (void)epoll_ctl(m->config.epoll_fd, EPOLL_CTL_DEL, c->fd, NULL);
    mhd_set_phase(m, c, CONN_CLOSING);
    (void)close(c->fd);
    http_on_closed(c);
}

/* Responds and closes, and frees the connection. */
static void
arrival_refuse(struct mhd *m, struct conn *c, enum refusal which)
{
    const int fd = c->fd;

    http_on_target(c, "");
    if (c->exchange == NULL) { /* there is no memory */
        arrival_close(m, c);
        return;
    }
    mhd_set_phase(m, c, CONN_RESPONDING);
    mhd_refuse_past(c->exchange, which);
    http_on_ended(c, false);
    if (c->mhd.watched)
        (void)epoll_ctl(m->config.epoll_fd, EPOLL_CTL_DEL, fd, NULL);
    http_on_closed(c);
    (void)close(fd);
}

void
arrival_look(struct mhd *m, struct conn *c)
{
    char data[FIRST_MOST];
    ssize_t n = recv(c->fd, data, sizeof(data), MSG_PEEK | MSG_DONTWAIT);
    struct bytes first = bytes_of(data, n > 0 ? (size_t)n : 0);
    const bool tls = c->kind == LISTEN_TLS;
    enum refusal wrong = n > 0 && !tls ? arrival_check(first) : REFUSAL_NONE;

    if (wrong != REFUSAL_NONE) {
        arrival_refuse(m, c, wrong);
        return;
    }
    if (n > 0) {
        mhd_admit(m, c, tls ? arrival_is_browser(first) : arrival_wants_large(first));
        return;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR) &&
        watch_socket(m, c, c->mhd.watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, EPOLLIN)) {
        c->mhd.watched = true;
        return;
    }
    arrival_close(m, c); /* the client has gone, or there is no memory */
}
