#include "redis/link.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>

void
link_name(const struct link_address *address, char out[LINK_NAME_CAP])
{
    if (address->port == 0)
        (void)snprintf(out, LINK_NAME_CAP, "%s", address->host);
    else
        (void)snprintf(out, LINK_NAME_CAP, "%s:%u", address->host, address->port);
}

static struct timeval
interval(int64_t ms)
{
    return (struct timeval){.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
}

static redisContext *
dial(const struct link_config *config, const struct link_address *to)
{
    const struct timeval limit = interval(config->connect_ms);
    redisContext *c = to->port == 0 ? config->library->connect_unix(to->host, limit)
                                    : config->library->connect(to->host, to->port, limit);

    if (c != NULL)
        hiredis_library_limit(config->library, c);
    return c;
}

enum status
link_say(struct link *l, const struct bytes *words, size_t count, redisReply **out,
         struct reason *why)
{
    enum status st = link_add(l, words, count, NULL, BYTES_NONE);

    if (st != ST_OK)
        return st;
    *out = link_answer(l, why);
    if (*out == NULL)
        return ST_UNAVAILABLE;
    if ((*out)->type != REDIS_REPLY_ERROR)
        return ST_OK;
    st = reason_give(why, ST_UNAVAILABLE, "%s", (*out)->str);
    link_free(l, *out);
    *out = NULL;
    return st;
}

static enum status
log_in(struct link *l, const struct link_config *config, struct reason *why)
{
    struct bytes words[3] = {BYTES_LIT("AUTH")};
    redisReply *answer = NULL;
    size_t count = 1;
    enum status st;

    if (config->password[0] == '\0')
        return ST_OK;
    if (config->user[0] != '\0')
        words[count++] = bytes_str(config->user);
    words[count++] = bytes_str(config->password);
    st = link_say(l, words, count, &answer, why);
    link_free(l, answer);
    return st;
}

enum status
link_open(struct link *l, const struct link_config *config, const struct link_address *to,
          struct reason *why)
{
    struct reason what;
    char name[LINK_NAME_CAP];
    enum status st;

    reason_init(&what);
    *l = (struct link){.library = config->library, .context = dial(config, to)};
    if (l->context == NULL)
        return ST_NO_MEMORY;
    if (l->context->err != 0)
        st = reason_give(&what, ST_UNAVAILABLE, "%s", l->context->errstr);
    else if (config->library->set_timeout(l->context, interval(config->answer_ms)) !=
             REDIS_OK)
        st = reason_give(&what, ST_UNAVAILABLE, "%s", l->context->errstr);
    else
        st = log_in(l, config, &what);
    if (st == ST_OK)
        return ST_OK;
    link_close(l);
    link_name(to, name);
    return reason_give(why, st, "%s: %.100s", name, what.text);
}

void
link_limit(struct link *l, int64_t answer_ms)
{
    (void)l->library->set_timeout(l->context,
                                  interval(answer_ms)); /* or it stays as it was */
}

void
link_close(struct link *l)
{
    if (l->context != NULL)
        l->library->free(l->context);
    l->context = NULL;
}

bool
link_is_fresh(const struct link *l)
{
    char byte;
    ssize_t n;

    if (l->context == NULL || l->context->err != 0)
        return false;
    n = recv(l->context->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

static bool
append(struct link *l, const char *data, size_t len)
{
    return l->library->append(l->context, data, len) == REDIS_OK;
}

static bool
append_head(struct link *l, char mark, size_t number)
{
    char head[32];
    int len = snprintf(head, sizeof(head), "%c%zu\r\n", mark, number);

    return append(l, head, (size_t)len);
}

static bool
append_word(struct link *l, struct bytes word)
{
    return append_head(l, '$', word.len) && append(l, word.data, word.len) &&
           append(l, "\r\n", 2);
}

enum status
link_add(struct link *l, const struct bytes *words, size_t count,
         const struct command *rest, struct bytes last)
{
    bool good = append_head(
        l, '*', count + (rest == NULL ? 0 : rest->count) + (bytes_present(last) ? 1 : 0));

    for (size_t i = 0; good && i < count; i++)
        good = append_word(l, words[i]);
    if (good && rest != NULL)
        good = !rest->words.failed && append(l, rest->words.data, rest->words.len);
    if (good && bytes_present(last))
        good = append_word(l, last);
    return good ? ST_OK : ST_NO_MEMORY;
}

void
link_fail(struct link *l, const char *what)
{
    l->context->err = REDIS_ERR_PROTOCOL;
    (void)snprintf(l->context->errstr, sizeof(l->context->errstr), "%s", what);
}

bool
link_is_drained(const struct link *l)
{
    return l->context->reader->pos == l->context->reader->len;
}

redisReply *
link_answer(struct link *l, struct reason *why)
{
    void *answer = NULL;

    if (l->library->get_reply(l->context, &answer) == REDIS_OK && answer != NULL) {
        if (link_is_drained(l))
            return answer;
        link_free(l, answer);
        link_fail(l, LINK_SURPLUS);
    }
    l->timed_out = l->context->err == REDIS_ERR_IO && errno == EAGAIN;
    (void)reason_give(why, ST_UNAVAILABLE, "%s",
                      l->timed_out ? "Redis does not respond" : l->context->errstr);
    return NULL;
}

void
link_free(const struct link *l, redisReply *reply)
{
    if (reply != NULL)
        l->library->free_reply(reply);
}

bool
link_push(struct link *l, bool *all)
{
    int done = 0;

    if (l->library->write(l->context, &done) != REDIS_OK)
        return false;
    *all = done != 0;
    return true;
}

bool
link_flush(struct link *l)
{
    bool all = false;

    while (!all)
        if (!link_push(l, &all))
            return false;
    return true;
}

bool
link_fill(struct link *l, bool *more)
{
    enum { PIECE = 16 << 10 }; /* hiredis reads no more at a time */
    const size_t before = l->context->reader->len;

    if (l->library->read(l->context) != REDIS_OK)
        return false;
    *more = l->context->reader->len - before == PIECE;
    return true;
}

redisReply *
link_parsed(struct link *l)
{
    void *reply = NULL;

    return l->library->get_parsed(l->context, &reply) == REDIS_OK ? reply : NULL;
}
