/*
 * utf8: sequences of UTF-8 (RFC 3629: no overlong forms, no surrogates, nothing above
 * U+10FFFF).
 *
 *   Memory   none
 *   Threads  any
 */
#ifndef CLAIMD_BASE_UTF8_H
#define CLAIMD_BASE_UTF8_H

#include "claimd/base/buf.h"

static inline bool
utf8_is_tail(unsigned char c)
{
    return (c & 0xc0) == 0x80;
}

/* Checks the second byte, which depends on the first: the table of RFC 3629, section
 * 4. */
static inline bool
utf8_second_fits(unsigned char first, unsigned char second)
{
    switch (first) {
    case 0xe0:
        return second >= 0xa0 && second <= 0xbf;
    case 0xed:
        return second >= 0x80 && second <= 0x9f;
    case 0xf0:
        return second >= 0x90 && second <= 0xbf;
    case 0xf4:
        return second >= 0x80 && second <= 0x8f;
    default:
        return utf8_is_tail(second);
    }
}

/* The length of the sequence that begins with `first`; 0: none does. */
static inline unsigned
utf8_length(unsigned char first)
{
    if (first < 0x80)
        return 1;
    if (first >= 0xc2 && first <= 0xdf)
        return 2;
    if (first >= 0xe0 && first <= 0xef)
        return 3;
    if (first >= 0xf0 && first <= 0xf4)
        return 4;
    return 0;
}

/* Passes one sequence. Returns the address behind it; NULL: it is invalid. */
static inline const unsigned char *
utf8_pass(const unsigned char *at, const unsigned char *end)
{
    unsigned length = at < end ? utf8_length(*at) : 0;

    if (length == 0 || (size_t)(end - at) < length)
        return NULL;
    if (length > 1 && !utf8_second_fits(at[0], at[1]))
        return NULL;
    for (unsigned i = 2; i < length; i++)
        if (!utf8_is_tail(at[i]))
            return NULL;
    return at + length;
}

/*
 * The length of the first character in bytes, and its code point. 0: it is invalid, or
 * the text is empty.
 */
size_t utf8_next(struct bytes text, uint32_t *point);

/*
 * True for characters that a terminal does not show as themselves: C0, DEL, C1, marks and
 * overrides of the direction, separators of lines, and the byte order mark.
 */
bool utf8_is_control(uint32_t point);

/*
 * Appends a text in which nothing commands a terminal: control characters (also those
 * above U+0080) and those that change the direction of text become \n, \t, \r or \uXXXX,
 * and bytes that are not UTF-8 become \xXX.
 */
void utf8_escape(struct buf *out, struct bytes text);

/* The same for a JSON document, which remains the same document, in one line. */
void utf8_escape_json(struct buf *out, struct bytes document);

#endif
