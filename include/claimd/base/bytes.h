/*
 * bytes: a borrowed run of bytes, for texts from clients and files.
 *
 *   Ownership  a `struct bytes` never owns its bytes
 *   Encoding   any; may contain NULs, and need not end with one
 *   Absent     data == NULL (len is 0 then); empty but present: data != NULL, len == 0
 */
#ifndef CLAIMD_BASE_BYTES_H
#define CLAIMD_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct bytes {
    const char *data;
    size_t len;
};

/* A run over a string literal, usable in static initializers. */
#define BYTES_LIT(text)                                                                  \
    {                                                                                    \
        (text), sizeof(text) - 1                                                         \
    }
#define BYTES_NONE ((struct bytes){NULL, 0})

/* A word with this value in each of its bytes. */
#define EVERY_BYTE(b) (UINT64_C(0x0101010101010101) * (b))

static inline struct bytes
bytes_of(const char *data, size_t len)
{
    return (struct bytes){data, len};
}

/* The run over a NUL-terminated text, absent for NULL. */
static inline struct bytes
bytes_str(const char *text)
{
    return (struct bytes){text, text == NULL ? 0 : strlen(text)};
}

static inline bool
bytes_present(struct bytes b)
{
    return b.data != NULL;
}

static inline bool
bytes_equal(struct bytes a, struct bytes b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

/* Always inline, so that the length of a literal is a constant. */
__attribute__((always_inline)) static inline bool
bytes_equal_str(struct bytes a, const char *text)
{
    return bytes_equal(a, bytes_str(text));
}

/* bytes_equal() for secrets: always reads all of `given`, so its time depends on the
 * length of `given` only. */
bool bytes_equal_secret(struct bytes secret, struct bytes given);

/* Compares in byte order, a proper prefix first: <0, 0, >0 as memcmp. */
int bytes_compare(struct bytes a, struct bytes b);

/* The rare part of bytes_equal_nocase(): the lengths are equal. */
bool bytes_equal_nocase_long(struct bytes a, struct bytes b);

/* Compares without the case of ASCII letters. Always inline: a request compares names of
 * headers a hundred times, and most differ in length. */
__attribute__((always_inline)) static inline bool
bytes_equal_nocase(struct bytes a, struct bytes b)
{
    if (a.len != b.len || (a.len > 0 && ((a.data[0] ^ b.data[0]) & ~0x20) != 0))
        return false;
    /* Nearly all clients write header names as documented. */
    return a.len == 0 || memcmp(a.data, b.data, a.len) == 0 ||
           bytes_equal_nocase_long(a, b);
}

/* True if the text begins with the prefix. */
static inline bool
bytes_begin_with(struct bytes text, struct bytes prefix)
{
    return text.len >= prefix.len && bytes_equal(bytes_of(text.data, prefix.len), prefix);
}

/* True if part occurs in whole; the empty part always does. */
bool bytes_contain(struct bytes whole, struct bytes part);

/* Removes spaces, tabs, CR and LF at both ends. */
struct bytes bytes_trim(struct bytes b);

/* Removes and returns the text before the first `mark` of *rest. *rest continues behind
 * the mark, and is absent after the last piece. */
struct bytes bytes_cut(struct bytes *rest, char mark);

/* Copies a text to *to, which has space for it, and moves *to behind the copy. */
static inline struct bytes
bytes_copy_to(char **to, struct bytes text)
{
    char *at = *to;

    if (text.len > 0)
        memcpy(at, text.data, text.len);
    *to += text.len;
    return bytes_of(at, text.len);
}

/* Parses an optional sign and decimal digits. False, and *out does not change, if the
 * text is no such number or does not fit. */
bool bytes_to_i64(struct bytes b, int64_t *out);

/* The same without sign, for counters and markers. */
bool bytes_to_u64(struct bytes b, uint64_t *out);

/* Writes the decimal digits of value without a NUL. Returns their number. */
enum { DECIMAL_CAP = 20 };
size_t decimal_write(char out[DECIMAL_CAP], uint64_t value);

/* True for the characters that every part of a URI may contain (RFC 3986, 2.3). */
static inline bool
is_unreserved(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           c == '-' || c == '.' || c == '_' || c == '~';
}

/* Decodes percent-encoding to `to`, which has space for the text. A bad escape stays as
 * it is. Returns the length. */
size_t uri_decode(char *to, struct bytes text, bool plus_is_space);

/* The value of one hexadecimal digit, -1 for any other character. */
int hex_value(char c);

/* Eight hexadecimal digits, as fast as one. Writes lower case, reads both cases. False:
 * one is no digit, and *out does not change. */
void hex_write_eight(char *out, uint32_t value);
bool hex_read_eight_nocase(const char *digits, uint32_t *out);

/* Reads 8 * count lower-case digits. False: one is no such digit, and out[] is
 * undefined. */
bool hex_read_eights(const char *digits, size_t count, uint32_t *out);

/* Writes `digits` <= 16 lower-case hexadecimal digits of value, highest first, no NUL. */
void hex_write(char *out, uint64_t value, unsigned digits);

/* Reads b.len lower-case hexadecimal digits, 1 to 16. False: the text is something else,
 * and *out does not change. */
bool hex_read(struct bytes b, uint64_t *out);

/* Writes two lower-case hexadecimal digits for each byte, no NUL. Returns the end.
 * O(length). */
char *hex_write_bytes(char *out, struct bytes b);

/* Reads `len` bytes, of exactly 2 * len lower-case hexadecimal digits. False: *out is
 * undefined then. O(length). */
bool hex_read_bytes(struct bytes digits, void *out, size_t len);

#endif
