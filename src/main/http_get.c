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

/* RESPONSE_MOST: more than any response has. */
enum { HOST_CAP = 256, LINE_MOST = 255, PIECE = 16384, RESPONSE_MOST = 16 << 20 };

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
dial_address(const struct sockaddr *address, socklen_t size, int64_t until_ns)
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

/* Cuts "[::1]:80" in two, without the brackets. */
static bool
split_address(const char *address, char host[HOST_CAP], const char **port)
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
dial(const char *address, int64_t until_ns)
{
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *all = NULL;
    char host[HOST_CAP];
    const char *port;
    int fd = -1;

    if (strncmp(address, "unix:", 5) == 0) {
        errno = ENAMETOOLONG;
        if (strlen(address + 5) >= sizeof(local.sun_path))
            return -1;
        memcpy(local.sun_path, address + 5, strlen(address + 5) + 1);
        return dial_address((const struct sockaddr *)&local, sizeof(local), until_ns);
    }
    errno = EINVAL;
    if (!split_address(address, host, &port) ||
        getaddrinfo(host, port, &hints, &all) != 0)
        return -1;
    for (const struct addrinfo *one = all; one != NULL && fd < 0; one = one->ai_next)
        fd = dial_address(one->ai_addr, one->ai_addrlen, until_ns);
    freeaddrinfo(all);
    return fd;
}

/*
 * Sends the request, and receives until the server closes, or sends a first line that is too long for
 * HTTP.
 */
static void
http_exchange(int fd, const char *target, int64_t until_ns, struct buf *out)
{
    char request[4096], piece[PIECE];
    ssize_t n;
    int len = snprintf(request, sizeof(request),
                       "GET %s HTTP/1.1\r\n"
                       "Host: localhost\r\n"
                       "Connection: close\r\n"
                       "\r\n",
                       target);

    buf_reset(out, SIZE_MAX);
    if (len < 0 || (size_t)len >= sizeof(request) ||
        send(fd, request, (size_t)len, MSG_NOSIGNAL) != (ssize_t)len)
        return;
    while (out->len < RESPONSE_MOST && be_patient(fd, until_ns) &&
           (n = recv(fd, piece, sizeof(piece), 0)) > 0) {
        buf_add(out, piece, (size_t)n);
        if (out->len >= LINE_MOST && memchr(out->data, '\n', LINE_MOST) == NULL)
            return;
    }
}

/* The status in the first line of a response; 0: it is none. */
static int
read_status(struct bytes response)
{
    static const char version[] = "HTTP/1.1 ";
    struct bytes line = bytes_cut(&response, '\n');
    const char *digits = line.data + sizeof(version) - 1;

    if (!bytes_present(response) || line.len < sizeof(version) + 3 ||
        memcmp(line.data, version, sizeof(version) - 1) != 0 ||
        strspn(digits, "0123456789") != 3)
        return 0;
    return (digits[0] - '0') * 100 + (digits[1] - '0') * 10 + (digits[2] - '0');
}

/* Leaves the body only; nothing if the head is not whole. */
static void
cut_head(struct buf *response)
{
    static const char mark[] = "\r\n\r\n";
    const char *end = memmem(response->data, response->len, mark, sizeof(mark) - 1);

    if (end == NULL) {
        response->len = 0;
        return;
    }
    end += sizeof(mark) - 1;
    response->len -= (size_t)(end - response->data);
    memmove(response->data, end, response->len);
}

int
http_get(const char *address, const char *target, int64_t until_ns, struct buf *body)
{
    int fd = dial(address, until_ns), status = 0;

    if (fd < 0)
        return -1;
    http_exchange(fd, target, until_ns, body);
    (void)close(fd);
    if (body->len > 0)
        status = read_status(buf_view(body));
    if (status > 0)
        cut_head(body);
    return status;
}
