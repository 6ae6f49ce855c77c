#include "redis/shape.h"

#include "redis/message_head.h"

static const int64_t LUA_MOST = INT64_C(1) << 53;

bool
shape_integer(const redisReply *word, int64_t *out)
{
    if (word->type == REDIS_REPLY_STRING)
        return bytes_to_i64(bytes_of(word->str, (size_t)word->len), out);
    *out = word->integer;
    return word->type == REDIS_REPLY_INTEGER;
}

static bool
is_number(const redisReply *word, int64_t least, int64_t most)
{
    int64_t number;

    return shape_integer(word, &number) && number >= least && number <= most;
}

static bool
is_packed_claim(struct bytes text)
{
    int64_t started_ms, ends_ms;

    return text.len == SHAPE_CLAIM_SIZE && message_time_read(text, 0, &started_ms) &&
           message_time_read(text, sizeof(double), &ends_ms);
}

static bool
is_text(const redisReply *word, char kind)
{
    enum { ID_SIZE = 24 };
    struct message_head head;
    struct bytes text;

    if (word->type != REDIS_REPLY_STRING)
        return false;
    text = bytes_of(word->str, (size_t)word->len);
    switch (kind) {
    case 'k':
        return text.len == 0 || text.len == ID_SIZE;
    case 'h':
        return message_head_read(text, &head);
    case 'c':
        return text.len == 0 || is_packed_claim(text);
    default:
        return true;
    }
}

static bool
is_of_kind(const redisReply *word, char kind)
{
    switch (kind) {
    case 'i':
        return is_number(word, -LUA_MOST, LUA_MOST);
    case 'n':
        return is_number(word, 0, LUA_MOST);
    case '2':
        return is_number(word, 0, 2);
    default:
        return is_text(word, kind);
    }
}

/* Are the words from *at on of these kinds, up to a '|' or the end? *at moves behind them. */
static bool
read_words(const redisReply *r, size_t *at, const char *kinds)
{
    for (; *kinds != '\0' && *kinds != '|'; kinds++, ++*at)
        if (*at == r->elements || !is_of_kind(r->element[*at], *kinds))
            return false;
    return true;
}

/* The same of groups, up to the end, or up to an empty text if there is another kind of them. */
static bool
read_groups(const redisReply *r, size_t *at, const char *kinds, size_t most)
{
    const bool others = strchr(kinds, '|') != NULL;

    for (size_t i = 0; *at < r->elements; i++) {
        const redisReply *word = r->element[*at];

        if (others && word->type == REDIS_REPLY_STRING && word->len == 0)
            return true;
        if (i == most || *kinds == '\0' || !read_words(r, at, kinds))
            return false;
    }
    return true;
}

bool
shape_check(const redisReply *response, const struct shape *shape, size_t asked)
{
    const char *lead = shape->lead, *others = strchr(shape->group, '|');
    size_t at = 1;

    if (response == NULL || response->type != REDIS_REPLY_ARRAY ||
        response->elements == 0 || response->element[0]->type != REDIS_REPLY_INTEGER ||
        response->element[0]->integer < 0 ||
        response->element[0]->integer > ANSWER_SETTLE)
        return false;
    if (response->elements == 1 && response->element[0]->integer != ANSWER_OK)
        return true;
    while (read_words(response, &at, lead)) {
        lead = strchr(lead, '|');
        if (lead == NULL)
            return read_groups(response, &at, shape->group,
                               shape->most == SHAPE_ASKED ? asked : shape->most) &&
                   (at++ == response->elements ||
                    read_groups(response, &at, others + 1, SIZE_MAX));
        if (at == response->elements)
            return true;
        lead++;
    }
    return false;
}
