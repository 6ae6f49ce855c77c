/* claimd health: is a server ready? For containers without curl. */
#include "claimd/base/clock.h"
#include "claimd/http/listen.h"
#include "main/command.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { PATIENCE_S = 5, HOST_CAP = 256, ANSWER_CAP = 256 };

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

/* The status of the answer; 0: there is none. */
static int
ask(int fd, int64_t until_ns)
{
    static const char request[] = "GET /readyz HTTP/1.1\r\n"
                                  "Host: localhost\r\n"
                                  "Connection: close\r\n"
                                  "\r\n";
    char answer[ANSWER_CAP] = "";
    size_t len = 0;
    ssize_t n;

    if (send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) !=
        (ssize_t)sizeof(request) - 1)
        return 0;
    while (len < sizeof(answer) - 1 && strchr(answer, '\n') == NULL &&
           be_patient(fd, until_ns) &&
           (n = recv(fd, answer + len, sizeof(answer) - 1 - len, 0)) > 0) {
        len += (size_t)n;
        answer[len] = '\0';
    }
    return strchr(answer, '\n') == NULL ? 0 : read_status(answer);
}

/* The first address of CLAIMD_LISTEN without TLS, or what the server has without it. */
static const char *
own_address(struct listen_list *list)
{
    const char *listen = getenv("CLAIMD_LISTEN");
    char unheard[256];

    if (listen == NULL)
        return "127.0.0.1:8888";
    if (!listen_read(listen, list, unheard, sizeof(unheard)))
        return listen;
    for (size_t i = 0; i < list->count; i++)
        if (list->entries[i].kind != LISTEN_TLS)
            return list->entries[i].address;
    return list->entries[0].address;
}

static int
run(const struct command_words *words)
{
    struct listen_list list;
    const char *address = words->places[0];
    const int64_t until_ns = clock_stopwatch_ns() + INT64_C(1000000000) * PATIENCE_S;
    int fd, status;

    if (address == NULL)
        address = own_address(&list);
    fd = strncmp(address, "unix:", 5) == 0 ? dial_unix(address + 5, until_ns)
                                           : dial_host(address, until_ns);
    if (fd < 0)
        return command_fails(COMMAND_FAILED, "%s does not answer: %s", address,
                             strerror(errno));
    status = ask(fd, until_ns);
    (void)close(fd);
    if (status == 0)
        return command_fails(COMMAND_FAILED, "%s does not answer", address);
    if (status < 200 || status >= 300)
        return command_fails(COMMAND_FAILED, "%s is not ready: %d", address, status);
    (void)printf("%s is ready\n", address);
    return COMMAND_GOOD;
}

const struct command command_health = {
    .name = "health",
    .call = "health [ADDRESS]",
    .summary = "is a server ready?",
    .usages = {"health [ADDRESS]"},
    .about =
        "Asks the claimd at ADDRESS (ADDRESS:PORT, [IPv6]:PORT or unix:PATH; else at "
        "the first of CLAIMD_LISTEN without TLS, else at 127.0.0.1:8888) for /readyz, "
        "within 5 s. For containers "
        "without curl.",
    .ends = {"it is ready", "it is not, or does not answer", "wrong arguments"},
    .places = 1,
    .needs = "an address",
    .run = run};
