/* claimd health: checks whether a server is ready, for containers without curl. */
#include "claimd/base/clock.h"
#include "claimd/http/listen.h"
#include "claimd/json/scan.h"
#include "main/command.h"
#include "main/option.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

/* ------------------------------------------------------------------ GET requests */

/* LINE_MOST: of the first line. RESPONSE_MOST: larger than any response of claimd. */
enum { HOST_CAP = 256, LINE_MOST = 255, PIECE = 16384, RESPONSE_MOST = 16 << 20 };

/* Sets the remaining time as the limit for connect, send and receive. False if none is left. */
static bool
set_time_limit(int fd, int64_t until_ns)
{
    int64_t left_us = (until_ns - clock_stopwatch_ns()) / 1000;
    const struct timeval left = {.tv_sec = left_us / 1000000,
                                 .tv_usec = left_us % 1000000};

    errno = ETIMEDOUT;
    return left_us > 0 &&
           setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &left, sizeof(left)) == 0 &&
           setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &left, sizeof(left)) == 0;
}

/* Returns a socket, owned, or -1 and errno. */
static int
connect_address(const struct sockaddr *address, socklen_t size, int64_t until_ns)
{
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0), error;

    if (fd < 0)
        return -1;
    if (set_time_limit(fd, until_ns) && connect(fd, address, size) == 0)
        return fd;
    error = errno;
    (void)close(fd);
    errno = error;
    return -1;
}

static int
connect_to(const char *address, int64_t until_ns)
{
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *all = NULL;
    const char *colon = strrchr(address, ':');
    size_t len = colon == NULL ? 0 : (size_t)(colon - address);
    char host[HOST_CAP];
    int fd = -1;

    if (strncmp(address, "unix:", 5) == 0) {
        errno = ENAMETOOLONG;
        if (strlen(address + 5) >= sizeof(local.sun_path))
            return -1;
        memcpy(local.sun_path, address + 5, strlen(address + 5) + 1);
        return connect_address((const struct sockaddr *)&local, sizeof(local), until_ns);
    }
    if (len > 1 && address[0] == '[' && address[len - 1] == ']') { /* "[::1]:80" */
        address++;
        len -= 2;
    }
    (void)snprintf(host, sizeof(host), "%.*s", (int)(len & 0xffff), address);
    errno = EINVAL;
    if (len == 0 || len >= HOST_CAP || getaddrinfo(host, colon + 1, &hints, &all) != 0)
        return -1;
    for (const struct addrinfo *one = all; one != NULL && fd < 0; one = one->ai_next)
        fd = connect_address(one->ai_addr, one->ai_addrlen, until_ns);
    freeaddrinfo(all);
    return fd;
}

/* Sends the request, and receives until the server closes or its first line is too long for HTTP. */
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
    while (out->len < RESPONSE_MOST && set_time_limit(fd, until_ns) &&
           (n = recv(fd, piece, sizeof(piece), 0)) > 0) {
        buf_add(out, piece, (size_t)n);
        if (out->len >= LINE_MOST && memchr(out->data, '\n', LINE_MOST) == NULL)
            return;
    }
}

int
http_get(const char *address, const char *target, int64_t until_ns, struct buf *body)
{
    static const char version[] = "HTTP/1.1 ", mark[] = "\r\n\r\n";
    int fd = connect_to(address, until_ns);
    const char *digits, *end;
    int status;

    if (fd < 0)
        return -1;
    http_exchange(fd, target, until_ns, body);
    (void)close(fd);
    if (body->len < sizeof(version) + 3 || memchr(body->data, '\n', body->len) == NULL ||
        memcmp(body->data, version, sizeof(version) - 1) != 0)
        return 0;
    digits = body->data + sizeof(version) - 1;
    if (strspn(digits, "0123456789") != 3)
        return 0;
    status = (digits[0] - '0') * 100 + (digits[1] - '0') * 10 + (digits[2] - '0');
    /* Remove the head. If it is incomplete, there is no body. */
    end = memmem(body->data, body->len, mark, sizeof(mark) - 1);
    body->len =
        end == NULL ? 0 : body->len - (size_t)(end - body->data) - (sizeof(mark) - 1);
    if (end != NULL)
        memmove(body->data, end + sizeof(mark) - 1, body->len);
    return status;
}

/* ------------------------------------------------------------------ command */

enum { PATIENCE_S = 5 };

/*
 * Finds the first address without TLS in the configuration of the server on this machine. `file` is of
 * --config, or NULL. Returns an exit status, after an error message unless it is COMMAND_GOOD.
 */
static int
find_address(const char *file, struct listen_list *list, const char **out)
{
    char *const argv[] = {(char *)(uintptr_t) "claimd", (char *)(uintptr_t) "--config",
                          (char *)(uintptr_t)file, NULL};
    const struct config_origin *origin;
    struct config_errors errors = {.to = NULL};
    enum config_action unused;
    struct config config;
    struct reason why;

    /* The command line of the server is unknown, so other options may seem to contradict each other. */
    (void)config_load(file == NULL ? 1 : 3, argv, environ, &config, &unused, &errors);
    origin = &config.origins[option_find(bytes_str("listen")) - options];
    if (origin->refused || listen_read(config.listen, list, &why) != ST_OK ||
        (errors.count > 0 && config.file[0] != '\0' && origin->source == CONFIG_DEFAULT))
        return command_fails(
            COMMAND_FAILED,
            "the configuration of the server has an error. Correct it, or "
            "name an ADDRESS. %s",
            errors.first);
    for (size_t i = 0; i < list->count; i++)
        if (list->entries[i].kind != LISTEN_TLS) {
            *out = list->entries[i].address;
            return COMMAND_GOOD;
        }
    return command_fails(
        COMMAND_FAILED, "all addresses of listen speak TLS, and the command speaks plain "
                        "HTTP. Add an address for it: metrics:127.0.0.1:9188");
}

/* Takes the address out of "http://HOST:PORT/" and "http://HOST:PORT/readyz". Returns an exit status. */
static int
read_address(const char *text, char out[LISTEN_ADDRESS_CAP])
{
    static const char scheme[] = "http://", tls[] = "https://";
    const size_t skipped =
        strncmp(text, scheme, sizeof(scheme) - 1) == 0 ? sizeof(scheme) - 1 : 0;
    const char *path = skipped == 0 ? NULL : strchr(text + skipped, '/');
    size_t len = path == NULL ? strlen(text + skipped) : (size_t)(path - text) - skipped;

    if (strncmp(text, tls, sizeof(tls) - 1) == 0)
        return command_misused(
            "health", "the command speaks plain HTTP, not TLS. Name an address of "
                      "the server without TLS, or add one to listen, such as "
                      "metrics:127.0.0.1:9188");
    if (path != NULL && strcmp(path, "/") != 0 && strcmp(path, "/readyz") != 0)
        return command_misused(
            "health",
            "the command requests /readyz, so the address must have no "
            "path, not \"%.100s\"",
            path);
    if (len >= LISTEN_ADDRESS_CAP)
        return command_fails(COMMAND_FAILED, "the address has more than %d characters",
                             LISTEN_ADDRESS_CAP - 1);
    (void)snprintf(out, LISTEN_ADDRESS_CAP, "%.*s", (int)len, text + skipped);
    return COMMAND_GOOD;
}

/* Requests /readyz of the server, and reports the result. Returns an exit status. */
static int
check_server(const char *address, struct mem *mem)
{
    const int64_t until_ns = clock_stopwatch_ns() + INT64_C(1000000000) * PATIENCE_S;
    struct json_scan_value description;
    struct bytes why = BYTES_NONE;
    struct buf body;
    int code, status = COMMAND_GOOD;

    buf_init(&body, mem);
    code = http_get(address, "/readyz", until_ns, &body);
    description = json_member(buf_view(&body), "description"); /* of an error */
    if (description.kind == SCAN_STRING)
        why = json_scan_inside(&description);
    if (code < 0)
        status = command_fails(COMMAND_FAILED, "%s does not respond: %s", address,
                               strerror(errno));
    else if (code == 0)
        status = command_fails(COMMAND_FAILED,
                               "%s does not respond to plain HTTP. If it is a TLS "
                               "address, name one without TLS",
                               address);
    else if (code < 200 || code >= 300)
        status = command_fails(COMMAND_FAILED, "%s is not ready. Its status is %d%s%.*s",
                               address, code, bytes_present(why) ? ": " : "",
                               (int)why.len, bytes_present(why) ? why.data : "");
    else
        (void)printf("%s is ready\n", address);
    buf_fini(&body);
    return status;
}

static int
run_health(const struct command_args *args)
{
    char given[LISTEN_ADDRESS_CAP];
    const char *address = given;
    struct listen_list list;
    int status;

    if (args->words[0] == NULL)
        status = find_address(args->values[0], &list, &address);
    else
        status = read_address(args->words[0], given);
    return status == COMMAND_GOOD ? check_server(address, args->mem) : status;
}

const struct command command_health = {
    .usages = {"health [--config FILE]", "health ADDRESS"},
    .about =
        "Requests /readyz of the claimd at ADDRESS, which is HOST:PORT, [IPv6]:PORT, "
        "http://HOST:PORT or unix:PATH. The default is the first address without TLS of "
        "the option listen, in FILE or in the environment (CLAIMD_CONFIG, "
        "CLAIMD_LISTEN). "
        "The command speaks plain HTTP, not TLS. If the server has only addresses with "
        "TLS, add metrics:127.0.0.1:9188 to listen. "
        "The time limit is 5 seconds. Use it in containers without curl.",
    .options = {{"--config", "FILE", "Configuration file of the server"}},
    .example = "claimd health 127.0.0.1:8888",
    .statuses = {"The server is ready.",
                 "The server is not ready, or it does not respond."},
    .most = 1,
    .needs = "an address",
    .run = run_health};
