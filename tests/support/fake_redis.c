#include "support/fake_redis.h"

#include <arpa/inet.h>
#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

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

/* Reads "*2\r\n$4\r\nPING..." as "PING ..."; long words are cut. */
static bool
read_command(FILE *in, char out[FAKE_LINE_CAP])
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
        free(word);
    }
    return true;
}

/* What it is to be answered; NULL: nothing. */
static const char *
answer_of(struct fake_redis *f, const char *command)
{
    const struct fake_answer *next;
    const char *answer = "-ERR the script of the test says something else\r\n";

    pthread_mutex_lock(&f->lock);
    if (f->asked_count < FAKE_LINES)
        snprintf(f->asked[f->asked_count++], FAKE_LINE_CAP, "%s", command);
    next = f->script;
    if (next != NULL && next->command != NULL &&
        strncmp(command, next->command, strlen(next->command)) == 0) {
        answer = next->answer;
        f->script++;
    }
    pthread_mutex_unlock(&f->lock);
    return answer;
}

static void
serve(struct fake_redis *f, int fd)
{
    FILE *in = fdopen(fd, "r+");
    char command[FAKE_LINE_CAP];

    while (in != NULL && read_command(in, command)) {
        const char *answer = answer_of(f, command);

        if (answer == NULL || send(fd, answer, strlen(answer), MSG_NOSIGNAL) < 0)
            break;
    }
    if (in != NULL)
        (void)fclose(in);
}

/* One connection after the other. */
static void *
run(void *arg)
{
    struct fake_redis *f = arg;
    int fd;

    while ((fd = accept(f->listener, NULL, NULL)) >= 0)
        serve(f, fd);
    return NULL;
}

void
fake_redis_start(struct fake_redis *f)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);

    *f = (struct fake_redis){.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    ck_assert_int_eq(bind(f->listener, (struct sockaddr *)&address, size), 0);
    ck_assert_int_eq(listen(f->listener, 16), 0);
    ck_assert_int_eq(getsockname(f->listener, (struct sockaddr *)&address, &size), 0);
    f->port = ntohs(address.sin_port);
    pthread_mutex_init(&f->lock, NULL);
    ck_assert_int_eq(pthread_create(&f->thread, NULL, run, f), 0);
}

void
fake_redis_play(struct fake_redis *f, const struct fake_answer *script)
{
    pthread_mutex_lock(&f->lock);
    f->script = script;
    f->asked_count = 0;
    pthread_mutex_unlock(&f->lock);
}

void
fake_redis_done(struct fake_redis *f)
{
    pthread_mutex_lock(&f->lock);
    ck_assert_msg(f->script == NULL || f->script->command == NULL, "was not asked: %s",
                  f->script == NULL ? "" : f->script->command);
    pthread_mutex_unlock(&f->lock);
}

void
fake_redis_stop(struct fake_redis *f)
{
    (void)shutdown(f->listener, SHUT_RDWR);
    (void)pthread_join(f->thread, NULL);
    (void)close(f->listener);
    pthread_mutex_destroy(&f->lock);
}
