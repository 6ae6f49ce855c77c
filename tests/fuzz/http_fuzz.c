/*
 * Raw bytes to the real front end: whatever a client sends, the server responds with HTTP
 * or not at all, never with a 500, and closes once the client has ended.
 *
 * Input: sections, written one after the other to a connection.
 */
#include "fuzz/fuzz.h"

#include "main/config.h"
#include "main/daemon.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    INPUT_MAX = 16384,    /* fits into the socket, so that neither side waits */
    INPUTS_A_SERVER = 500 /* then a new one, so that what was posted does not pile up */
};

/* A server in a thread, kept from input to input. */
struct served {
    struct daemon *daemon; /* NULL: not running */
    struct clock clock;
    pthread_t thread;
    char path[64];
    unsigned inputs;
};

static void *
serve(void *ctx)
{
    struct served *s = ctx;

    (void)daemon_serve(s->daemon);
    return NULL;
}

static void
served_open(struct served *s)
{
    struct config_errors errors = {.to = stderr};
    char listen[80];
    char *argv[] = {
        (char[]){"claimd"},      (char[]){"--listen"},   listen,
        (char[]){"--workers=1"}, (char[]){"--shards=1"}, (char[]){"--max-memory=64M"},
        (char[]){"--log-level"}, (char[]){"error"},      NULL};
    char *envp[] = {NULL};
    enum config_action action;
    struct config config;

    (void)snprintf(s->path, sizeof(s->path), "/tmp/claimd-fuzz.%ld", (long)getpid());
    (void)snprintf(listen, sizeof(listen), "unix:%s", s->path);
    fuzz_check(config_load(8, argv, envp, &config, &action, &errors) == ST_OK,
               "wrong options");
    clock_init_system(&s->clock);
    fuzz_check(daemon_open(&config, &s->clock, &s->daemon, &errors) == ST_OK,
               "no server");
    fuzz_check(pthread_create(&s->thread, NULL, serve, s) == 0, "no thread");
    s->inputs = 0;
}

static void
served_close(struct served *s)
{
    if (s->daemon == NULL)
        return;
    daemon_stop(s->daemon);
    (void)pthread_join(s->thread, NULL);
    daemon_close(s->daemon);
    s->daemon = NULL;
}

static int
connect_to(const struct served *s)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", s->path);
    fuzz_check(fd >= 0 &&
                   connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0,
               "cannot connect: %s", strerror(errno));
    return fd;
}

/* Sends what the server takes: it may have responded and closed already. */
static void
send_input(int fd, struct bytes input, struct buf *sent)
{
    while (bytes_present(input)) {
        struct bytes piece = fuzz_section(&input);

        while (piece.len > 0) {
            ssize_t n = send(fd, piece.data, piece.len, MSG_NOSIGNAL);

            if (n < 0)
                return;
            buf_add(sent, piece.data, (size_t)n);
            piece = bytes_of(piece.data + n, piece.len - (size_t)n);
        }
    }
    (void)shutdown(fd, SHUT_WR);
}

static void
receive_all(int fd, struct buf *out)
{
    char piece[4096];
    ssize_t n;

    while ((n = recv(fd, piece, sizeof(piece), 0)) > 0)
        buf_add(out, piece, (size_t)n);
}

/* One header block off *text; absent when it does not end. */
static struct bytes
take_head(struct bytes *text)
{
    const char *end = memmem(text->data, text->len, "\r\n\r\n", 4);
    struct bytes head = *text;

    if (end == NULL)
        return BYTES_NONE;
    head.len = (size_t)(end - text->data);
    *text = bytes_of(end + 4, text->len - head.len - 4);
    return head;
}

static size_t
content_length(struct bytes head)
{
    static const char name[] = "\r\nContent-Length: ";
    const char *at = memmem(head.data, head.len, name, sizeof(name) - 1);
    struct bytes rest, value;
    uint64_t length = 0;

    if (at == NULL)
        return 0;
    at += sizeof(name) - 1;
    rest = bytes_of(at, head.len - (size_t)(at - head.data));
    value = bytes_trim(bytes_cut(&rest, '\n'));
    fuzz_check(bytes_to_u64(value, &length), "Content-Length: %.*s", (int)value.len,
               value.data);
    return (size_t)length;
}

/* Responses stand one behind the other; the last one may have been cut off. */
static void
check_responses(struct bytes text, bool heads)
{
    while (text.len > 0) {
        struct bytes head = take_head(&text);
        size_t len;

        if (!bytes_present(head))
            return;
        fuzz_check(head.len > 12 && memcmp(head.data, "HTTP/1.", 7) == 0, "no HTTP: %.*s",
                   (int)head.len, head.data);
        fuzz_check(memcmp(head.data + 9, "500", 3) != 0 &&
                       memcmp(head.data + 9, "503", 3) != 0,
                   "%.*s", (int)head.len, head.data);
        if (heads) /* its responses have a length and no body: lost from here on */
            return;
        len = content_length(head);
        if (len > text.len)
            return;
        text = bytes_of(text.data + len, text.len - len);
    }
}

/* One for all inputs: starting one takes a while. */
static struct served served;

/* One connection from beginning to end. */
static void
converse(struct bytes input, struct mem *mem)
{
    struct buf sent, responses;
    int fd = connect_to(&served);

    buf_init(&sent, mem);
    buf_init(&responses, mem);
    send_input(fd, input, &sent);
    receive_all(fd, &responses);
    (void)close(fd);
    check_responses(buf_view(&responses),
                    bytes_contain(buf_view(&sent), bytes_str("HEAD")));
    buf_fini(&responses);
    buf_fini(&sent);
}

/* Takes the socket's file away. */
static void
close_at_exit(void)
{
    served_close(&served);
}

static void
have_server(void)
{
    static bool registered;

    if (!registered)
        registered = atexit(close_at_exit) == 0;
    if (served.daemon != NULL && served.inputs++ >= INPUTS_A_SERVER)
        served_close(&served);
    if (served.daemon == NULL)
        served_open(&served);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mem *mem;

    if (size > INPUT_MAX)
        return 0;
    have_server();
    mem = mem_new(0);
    fuzz_check(mem != NULL, "out of memory");
    converse(fuzz_input(data, size), mem);
    mem_destroy(mem);
    return 0;
}
