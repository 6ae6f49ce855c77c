#include "main/http_get.h"

#include "claimd/base/clock.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { HOST_CAP = 256, LINE_CAP = 256, PIECE = 16384 };

/* More than any answer that is asked for. */
enum { ANSWER_MOST = 16 << 20 };

/* ------------------------------------------------------------------ dialling */

/* The socket waits as long as there is time, for connecting, too. False: there is none. */
static bool
be_patient(int fd, int64_t until_ns)
{
    int64_t left_us = (until_ns - clock_stopwatch_ns()) / 1000;
    const struct timeval left = {.tv_sec = left_us / 1000000,
                                 .tv_usec = left_us % 1000000};

    errno = ETIMEDOUT;
    return left_us > 0 &&
           setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &left, sizeof(left)) == 0 &&
           setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &left, sizeof(left)) == 0;
}

/* -1: errno says why not. */
static int
dial(const struct sockaddr *address, socklen_t size, int64_t until_ns)
{
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0), error;

    if (fd < 0)
        return -1;
    if (be_patient(fd, until_ns) && connect(fd, address, size) == 0)
        return fd;
    error = errno;
    (void)close(fd);
    errno = error;
    return -1;
}

static int
dial_unix(const char *path, int64_t until_ns)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (strlen(path) >= sizeof(address.sun_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    return dial((const struct sockaddr *)&address, sizeof(address), until_ns);
}

/* Cuts "[::1]:80" in two, without the brackets. */
static bool
split(const char *address, char host[HOST_CAP], const char **port)
{
    const char *colon = strrchr(address, ':');
    size_t len = colon == NULL ? 0 : (size_t)(colon - address);

    if (len > 1 && address[0] == '[' && address[len - 1] == ']') {
        address++;
        len -= 2;
    }
    if (len == 0 || len >= HOST_CAP)
        return false;
    memcpy(host, address, len);
    host[len] = '\0';
    *port = colon + 1;
    return true;
}

static int
dial_host(const char *address, int64_t until_ns)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *all = NULL;
    char host[HOST_CAP];
    const char *port;
    int fd = -1;

    errno = EINVAL;
    if (!split(address, host, &port) || getaddrinfo(host, port, &hints, &all) != 0)
        return -1;
    for (const struct addrinfo *one = all; one != NULL && fd < 0; one = one->ai_next)
        fd = dial(one->ai_addr, one->ai_addrlen, until_ns);
    freeaddrinfo(all);
    return fd;
}

int
http_dial(const char *address, int64_t until_ns)
{
    return strncmp(address, "unix:", 5) == 0 ? dial_unix(address + 5, until_ns)
                                             : dial_host(address, until_ns);
}

/* ------------------------------------------------------------------ asking */

/* Of the first line of an answer; 0: it is none. */
static int
read_status(const char *line)
{
    static const char version[] = "HTTP/1.1 ";
    const char *digits = line + sizeof(version) - 1;

    if (strncmp(line, version, sizeof(version) - 1) != 0 ||
        strspn(digits, "0123456789") != 3)
        return 0;
    return (digits[0] - '0') * 100 + (digits[1] - '0') * 10 + (digits[2] - '0');
}

static bool
send_request(int fd, const char *target)
{
    char request[4096];
    int len = snprintf(request, sizeof(request),
                       "GET %s HTTP/1.1\r\n"
                       "Host: localhost\r\n"
                       "Connection: close\r\n"
                       "\r\n",
                       target);

    return len > 0 && (size_t)len < sizeof(request) &&
           send(fd, request, (size_t)len, MSG_NOSIGNAL) == (ssize_t)len;
}

/* The first line of the answer, and perhaps more; its length. */
static size_t
receive_line(int fd, int64_t until_ns, char answer[LINE_CAP])
{
    size_t len = 0;
    ssize_t n;

    answer[0] = '\0';
    while (len < LINE_CAP - 1 && strchr(answer, '\n') == NULL &&
           be_patient(fd, until_ns) &&
           (n = recv(fd, answer + len, LINE_CAP - 1 - len, 0)) > 0) {
        len += (size_t)n;
        answer[len] = '\0';
    }
    return len;
}

/* The rest of the answer, without its head. */
static void
receive_body(int fd, int64_t until_ns, struct buf *out)
{
    static const char mark[] = "\r\n\r\n";
    char piece[PIECE];
    const char *end;
    ssize_t n;

    while (out->len < ANSWER_MOST && be_patient(fd, until_ns) &&
           (n = recv(fd, piece, sizeof(piece), 0)) > 0)
        buf_add(out, piece, (size_t)n);
    end = out->data == NULL ? NULL : memmem(out->data, out->len, mark, sizeof(mark) - 1);
    if (end == NULL) {
        out->len = 0;
        return;
    }
    end += sizeof(mark) - 1;
    out->len -= (size_t)(end - out->data);
    memmove(out->data, end, out->len);
}

int
http_get(int fd, const char *target, int64_t until_ns, struct buf *body)
{
    char answer[LINE_CAP];
    size_t len;

    if (!send_request(fd, target))
        return 0;
    len = receive_line(fd, until_ns, answer);
    if (strchr(answer, '\n') == NULL)
        return 0;
    if (body != NULL) {
        buf_reset(body, SIZE_MAX);
        buf_add(body, answer, len);
        receive_body(fd, until_ns, body);
    }
    return read_status(answer);
}
