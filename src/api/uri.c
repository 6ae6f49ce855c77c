#include "api/uri.h"

static bool
is_tidy(char c)
{
    return c > ' ' && c < 0x7f && strchr("\"<>\\^`{|}", c) == NULL;
}

static size_t
untidy_count(struct bytes text)
{
    size_t count = 0;

    for (size_t i = 0; i < text.len; i++)
        count += !is_tidy(text.data[i]);
    return count;
}

enum status
uri_tidy(struct arena *arena, struct bytes text, struct bytes *out)
{
    size_t untidy = untidy_count(text);
    char *copy, *to;

    if (untidy == 0) {
        *out = text;
        return ST_OK;
    }
    to = copy = arena_alloc(arena, text.len + 2 * untidy + 1);
    if (copy == NULL)
        return ST_NO_MEMORY;
    for (size_t i = 0; i < text.len; i++) {
        if (is_tidy(text.data[i])) {
            *to++ = text.data[i];
            continue;
        }
        *to++ = '%';
        hex_write(to, (uint8_t)text.data[i], 2);
        to += 2;
    }
    *to = '\0';
    *out = bytes_of(copy, (size_t)(to - copy));
    return ST_OK;
}
