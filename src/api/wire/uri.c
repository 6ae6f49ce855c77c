#include "api/wire/uri.h"

static bool
is_tidy(char c)
{
    return c > ' ' && c < 0x7f && strchr("\"<>\\^`{|}", c) == NULL;
}

/* RFC 3986, 2.3. */
static bool
is_unreserved(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           c == '-' || c == '.' || c == '_' || c == '~';
}

typedef bool keep_fn(char c);

static size_t
count_others(struct bytes text, keep_fn *keeps)
{
    size_t count = 0;

    for (size_t i = 0; i < text.len; i++)
        count += !keeps(text.data[i]);
    return count;
}

/* A copy in which the bytes that are not kept are percent-encoded, with a NUL. */
static enum status
encode(struct arena *arena, struct bytes text, keep_fn *keeps, size_t others,
       struct bytes *out)
{
    char *copy = arena_alloc(arena, text.len + 2 * others + 1), *to = copy;

    if (copy == NULL)
        return ST_NO_MEMORY;
    for (size_t i = 0; i < text.len; i++) {
        if (keeps(text.data[i])) {
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

enum status
uri_tidy(struct arena *arena, struct bytes text, struct bytes *out)
{
    size_t untidy = count_others(text, is_tidy);

    if (untidy > 0)
        return encode(arena, text, is_tidy, untidy, out);
    *out = text;
    return ST_OK;
}

enum status
uri_segment(struct arena *arena, struct bytes text, struct bytes *out)
{
    return encode(arena, text, is_unreserved, count_others(text, is_unreserved), out);
}

void
uri_write(struct buf *out, struct bytes text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        char escape[3] = {'%', "0123456789ABCDEF"[c >> 4], "0123456789ABCDEF"[c & 15]};

        if (is_unreserved(text.data[i]))
            buf_byte(out, text.data[i]);
        else
            buf_add(out, escape, sizeof(escape));
    }
}

/* ------------------------------------------------------------------ the next page */

void
next_page_begin(struct next_page *next, struct buf *out, struct bytes path)
{
    *next = (struct next_page){out, '?'};
    buf_str(out, ",\"links\":[{\"rel\":\"next\",\"href\":\"");
    buf_bytes(out, path);
}

static void
parameter(struct next_page *next, struct bytes name)
{
    buf_byte(next->out, next->mark);
    uri_write(next->out, name);
    buf_byte(next->out, '=');
    next->mark = '&';
}

void
next_page_number(struct next_page *next, const char *name, uint64_t value)
{
    parameter(next, bytes_str(name));
    buf_u64(next->out, value);
}

void
next_page_bool(struct next_page *next, const char *name, bool value)
{
    parameter(next, bytes_str(name));
    buf_str(next->out, value ? "true" : "false");
}

void
next_page_text(struct next_page *next, struct bytes name, struct bytes value)
{
    parameter(next, name);
    uri_write(next->out, value);
}

void
next_page_end(struct next_page *next)
{
    buf_str(next->out, "\"}]");
}

void
next_page_none(struct buf *out)
{
    buf_str(out, ",\"links\":[]");
}
