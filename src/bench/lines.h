/*
 * lines: cutting CRLF lines off an answer, for the text protocols.
 */
#ifndef BENCH_LINES_H
#define BENCH_LINES_H

#include "claimd/base/bytes.h"

/*
 * Cuts the line before the first LF off *rest, without its CRLF. False if no whole line
 * is there; *rest is left alone then.
 */
static inline bool
line_cut(struct bytes *rest, struct bytes *line)
{
    const char *stop = rest->len == 0 ? NULL : memchr(rest->data, '\n', rest->len);
    size_t len;

    if (stop == NULL)
        return false;
    len = (size_t)(stop - rest->data);
    *line = bytes_of(rest->data, len > 0 && rest->data[len - 1] == '\r' ? len - 1 : len);
    *rest = bytes_of(stop + 1, rest->len - len - 1);
    return true;
}

/* Cuts a block of len bytes and its CRLF off *rest; false if it is not there yet. */
static inline bool
block_cut(struct bytes *rest, size_t len, struct bytes *block)
{
    if (rest->len < len || rest->len - len < 2)
        return false;
    *block = bytes_of(rest->data, len);
    *rest = bytes_of(rest->data + len + 2, rest->len - len - 2);
    return true;
}

static inline bool
line_starts(struct bytes line, const char *text)
{
    size_t len = strlen(text);

    return line.len >= len && memcmp(line.data, text, len) == 0;
}

#endif
