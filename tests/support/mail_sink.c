#include "support/mail_sink.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RECEIVED_MAX = 1 << 16 };

struct mail_sink {
    int fd, port;
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    size_t len;
    char received[RECEIVED_MAX];
};

static void
append_received(struct mail_sink *s, const char *line)
{
    size_t len = strlen(line);

    pthread_mutex_lock(&s->lock);
    if (s->len + len >= RECEIVED_MAX)
        abort();
    memcpy(s->received + s->len, line, len + 1);
    s->len += len;
    pthread_mutex_unlock(&s->lock);
}

static bool
starts(const char *line, const char *with)
{
    return strncasecmp(line, with, strlen(with)) == 0;
}

/* The reply to a line; NULL: none yet. */
static const char *
response(const char *line, bool *in_text)
{
    if (*in_text) {
        *in_text = strcmp(line, ".\r\n") != 0;
        return *in_text ? NULL : "250 taken\r\n";
    }
    if (starts(line, "RCPT TO:<no"))
        return "550 no server here\r\n";
    if (starts(line, "RCPT TO:<later"))
        return "450 not now\r\n";
    *in_text = starts(line, "DATA");
    return *in_text ? "354 go on\r\n" : "250 fine\r\n";
}

static void
talk(struct mail_sink *s, FILE *peer)
{
    bool in_text = false;
    char line[1024];

    if (send(fileno(peer), "220 sink\r\n", 10, MSG_NOSIGNAL) < 0)
        return;
    while (fgets(line, sizeof(line), peer) != NULL) {
        const char *said = response(line, &in_text);

        append_received(s, line);
        if (said != NULL && send(fileno(peer), said, strlen(said), MSG_NOSIGNAL) < 0)
            return;
    }
}

static void *
serve(void *arg)
{
    struct mail_sink *s = arg;
    int fd;

    while ((fd = accept(s->fd, NULL, NULL)) >= 0) {
        FILE *peer = fdopen(fd, "r");

        if (peer == NULL)
            abort();
        talk(s, peer);
        (void)fclose(peer);
    }
    return NULL;
}

struct mail_sink *
mail_sink_open(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    struct mail_sink *s = calloc(1, sizeof(*s));

    if (s == NULL)
        abort();
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s->fd < 0 || bind(s->fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(s->fd, 64) != 0 ||
        getsockname(s->fd, (struct sockaddr *)&address, &len) != 0)
        abort();
    s->port = ntohs(address.sin_port);
    pthread_mutex_init(&s->lock, NULL);
    if (pthread_create(&s->thread, NULL, serve, s) != 0)
        abort();
    return s;
}

void
mail_sink_close(struct mail_sink *s)
{
    (void)shutdown(s->fd, SHUT_RDWR);
    (void)pthread_join(s->thread, NULL);
    (void)close(s->fd);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

int
mail_sink_port(const struct mail_sink *s)
{
    return s->port;
}

const char *
mail_sink_received(struct mail_sink *s)
{
    const char *received;

    pthread_mutex_lock(&s->lock);
    received = s->received;
    pthread_mutex_unlock(&s->lock);
    return received;
}
