#include "support/fake_redis.h"

#include "claimd/base/invariant.h"

#include <arpa/inet.h>
#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FAKE_WORD_CAP = 32 };

/* A line without its end; false: the other side has hung up. */
static bool
read_line(FILE *in, char *out, size_t size)
{
    size_t len;

    if (fgets(out, (int)size, in) == NULL)
        return false;
    len = strlen(out);
    if (len < 2)
        return false;
    out[len - 2] = '\0';
    return true;
}

/* Reads "*2\r\n$4\r\nPING..." as "PING ..."; long words are cut. `last` gets the last
 * word. */
static bool
read_command(FILE *in, char out[FAKE_LINE_CAP], char last[FAKE_WORD_CAP])
{
    char line[64];
    int words;

    if (!read_line(in, line, sizeof(line)) || line[0] != '*')
        return false;
    words = atoi(line + 1);
    out[0] = '\0';
    for (int i = 0; i < words; i++) {
        size_t size, used = strlen(out);
        char *word;

        if (!read_line(in, line, sizeof(line)) || line[0] != '$')
            return false;
        size = (size_t)atoi(line + 1);
        word = calloc(1, size + 3);
        if (word == NULL || fread(word, 1, size + 2, in) != size + 2) {
            free(word);
            return false;
        }
        word[size] = '\0';
        snprintf(out + used, FAKE_LINE_CAP - used, "%s%s", i == 0 ? "" : " ", word);
        snprintf(last, FAKE_WORD_CAP, "%s", word);
        free(word);
    }
    return true;
}

/* The response of the node (absent: none), and whether the node hangs up after it. */
static struct bytes
response_of(struct fake_redis *f, const char *command, bool *hangs_up)
{
    struct bytes bytes;
    const char *response = "-ERR the script of the test says something else\r\n";
    const struct fake_response *next;

    pthread_mutex_lock(&f->lock);
    if (f->request_count < FAKE_LINES)
        snprintf(f->requests[f->request_count++], FAKE_LINE_CAP, "%s", command);
    pthread_cond_broadcast(&f->moved);
    while (f->held)
        pthread_cond_wait(&f->moved, &f->lock);
    next = f->script;
    if (next != NULL && next->command != NULL &&
        strncmp(command, next->command, strlen(next->command)) == 0) {
        response = next->response;
        f->script++;
    }
    bytes = response == NULL             ? BYTES_NONE
            : strcmp(response, "@") == 0 ? f->bytes
                                         : bytes_str(response);
    *hangs_up = f->hangs_up && bytes.data == f->bytes.data;
    pthread_mutex_unlock(&f->lock);
    return bytes;
}

/* Sends a response to a command that ended with this word. */
static bool
send_response(int fd, struct bytes response, const char *command, const char *last)
{
    const bool is_raw = response.len > 0 && response.data[0] == '!';
    const bool is_error = response.len > 0 && response.data[0] == '-';
    char head[64] = "";
    size_t size;
    char *out;
    bool sent;

    if (strncmp(command, "FCALL", 5) == 0 && !is_raw && !is_error)
        snprintf(head, sizeof(head), "*2\r\n:%s\r\n", last);
    size = strlen(head) + response.len - is_raw;
    out = malloc(size + 1);
    if (out == NULL)
        return false;
    memcpy(out, head, strlen(head));
    memcpy(out + strlen(head), response.data + is_raw, response.len - is_raw);
    sent = send(fd, out, size, MSG_NOSIGNAL) >= 0;
    free(out);
    return sent;
}

/* One connection, whose descriptor stays until the end: others may want to shut it
 * down. */
static void *
serve(void *arg)
{
    const struct fake_connection *c = arg;
    FILE *in = fdopen(dup(c->fd), "r");
    char command[FAKE_LINE_CAP], last[FAKE_WORD_CAP] = "";

    while (in != NULL && read_command(in, command, last)) {
        bool hangs_up;
        const struct bytes response = response_of(c->redis, command, &hangs_up);

        if (!bytes_present(response) || !send_response(c->fd, response, command, last) ||
            hangs_up)
            break;
    }
    (void)shutdown(c->fd, SHUT_RDWR);
    if (in != NULL)
        (void)fclose(in);
    return NULL;
}

static void *
run(void *arg)
{
    struct fake_redis *f = arg;
    int fd;

    while ((fd = accept(f->listener, NULL, NULL)) >= 0) {
        struct fake_connection *c = &f->connections[f->connection_count];

        if (f->connection_count == FAKE_CONNECTIONS) {
            (void)close(fd);
            continue;
        }
        *c = (struct fake_connection){.redis = f, .fd = fd};
        pthread_mutex_lock(&f->lock); /* fake_redis_hang_up() misses no connection */
        if (pthread_create(&c->thread, NULL, serve, c) == 0)
            f->connection_count++;
        else
            (void)close(fd);
        pthread_mutex_unlock(&f->lock);
    }
    return NULL;
}

void
fake_redis_start(struct fake_redis *f)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);

    *f = (struct fake_redis){.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    ENSURE(bind(f->listener, (struct sockaddr *)&address, size) ==
           0); /* fuzz targets have no Check */
    ENSURE(listen(f->listener, 16) == 0);
    ENSURE(getsockname(f->listener, (struct sockaddr *)&address, &size) == 0);
    f->port = ntohs(address.sin_port);
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->moved, NULL);
    ENSURE(pthread_create(&f->thread, NULL, run, f) == 0);
}

void
fake_redis_play(struct fake_redis *f, const struct fake_response *script)
{
    pthread_mutex_lock(&f->lock);
    f->script = script;
    f->request_count = 0;
    pthread_mutex_unlock(&f->lock);
}

void
fake_redis_respond(struct fake_redis *f, struct bytes bytes, bool hangs_up)
{
    pthread_mutex_lock(&f->lock);
    f->bytes = bytes;
    f->hangs_up = hangs_up;
    pthread_mutex_unlock(&f->lock);
}

void
fake_redis_done(struct fake_redis *f)
{
    const char *missing;

    pthread_mutex_lock(&f->lock);
    missing = f->script == NULL ? NULL : f->script->command;
    pthread_mutex_unlock(&f->lock); /* a failed test jumps from here to its teardown */
    ck_assert_msg(missing == NULL, "did not receive: %s", missing);
}

void
fake_redis_await(struct fake_redis *f, int count)
{
    pthread_mutex_lock(&f->lock);
    while (f->request_count < count)
        pthread_cond_wait(&f->moved, &f->lock);
    pthread_mutex_unlock(&f->lock);
}

void
fake_redis_hold(struct fake_redis *f, bool held)
{
    pthread_mutex_lock(&f->lock);
    f->held = held;
    pthread_cond_broadcast(&f->moved);
    pthread_mutex_unlock(&f->lock);
}

void
fake_redis_hang_up(struct fake_redis *f)
{
    pthread_mutex_lock(&f->lock);
    for (int i = 0; i < f->connection_count; i++)
        (void)shutdown(f->connections[i].fd, SHUT_RDWR);
    pthread_mutex_unlock(&f->lock);
}

void
fake_redis_stop(struct fake_redis *f)
{
    fake_redis_hold(f, false);
    (void)shutdown(f->listener, SHUT_RDWR);
    (void)pthread_join(f->thread, NULL);
    fake_redis_hang_up(f);
    for (int i = 0; i < f->connection_count; i++) {
        (void)pthread_join(f->connections[i].thread, NULL);
        (void)close(f->connections[i].fd);
    }
    (void)close(f->listener);
    pthread_cond_destroy(&f->moved);
    pthread_mutex_destroy(&f->lock);
}
