#include "claimd/base/bytes.h"

#include <endian.h>

bool
bytes_equal_secret(struct bytes secret, struct bytes given)
{
    volatile unsigned char different = secret.len != given.len; /* no early exit */
    struct bytes known = secret.len > 0 ? secret : given;

    for (size_t i = 0; i < given.len; i++) {
        size_t at = i < known.len ? i : 0;

        different |= (unsigned char)(known.data[at] ^ given.data[i]);
    }
    return different == 0;
}

int
bytes_compare(struct bytes a, struct bytes b)
{
    size_t shorter = a.len < b.len ? a.len : b.len;
    int order = shorter == 0 ? 0 : memcmp(a.data, b.data, shorter);

    if (order != 0)
        return order;
    return a.len < b.len ? -1 : a.len > b.len;
}

static char
lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

bool
bytes_equal_nocase_long(struct bytes a, struct bytes b)
{
    for (size_t i = 0; i < a.len; i++)
        if (lower(a.data[i]) != lower(b.data[i]))
            return false;
    return true;
}

bool
bytes_contain(struct bytes whole, struct bytes part)
{
    if (part.len == 0)
        return true;
    return whole.len >= part.len &&
           memmem(whole.data, whole.len, part.data, part.len) != NULL;
}

static bool
is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

struct bytes
bytes_trim(struct bytes b)
{
    while (b.len > 0 && is_space(b.data[0])) {
        b.data++;
        b.len--;
    }
    while (b.len > 0 && is_space(b.data[b.len - 1]))
        b.len--;
    return b;
}

struct bytes
bytes_cut(struct bytes *rest, char mark)
{
    struct bytes piece = *rest;
    const char *at = rest->len == 0 ? NULL : memchr(rest->data, mark, rest->len);

    if (at == NULL) {
        *rest = BYTES_NONE;
        return piece;
    }
    piece.len = (size_t)(at - piece.data);
    rest->data = at + 1;
    rest->len -= piece.len + 1;
    return piece;
}

bool
bytes_to_u64(struct bytes b, uint64_t *out)
{
    uint64_t value = 0;

    if (b.len == 0)
        return false;
    for (size_t i = 0; i < b.len; i++) {
        unsigned digit = (unsigned)(unsigned char)b.data[i] - '0';

        if (digit > 9 || value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *out = value;
    return true;
}

bool
bytes_to_i64(struct bytes b, int64_t *out)
{
    bool negative = b.len > 0 && b.data[0] == '-';
    uint64_t magnitude;

    if (b.len > 0 && (b.data[0] == '-' || b.data[0] == '+')) {
        b.data++;
        b.len--;
    }
    if (!bytes_to_u64(b, &magnitude))
        return false;
    if (magnitude > (uint64_t)INT64_MAX + (negative ? 1 : 0))
        return false;
    if (negative)
        *out = magnitude == 0 ? 0 : -(int64_t)(magnitude - 1) - 1;
    else
        *out = (int64_t)magnitude;
    return true;
}

size_t
decimal_write(char out[DECIMAL_CAP], uint64_t value)
{
    char digits[DECIMAL_CAP];
    size_t first = sizeof(digits);

    do {
        digits[--first] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    memcpy(out, digits + first, sizeof(digits) - first);
    return sizeof(digits) - first;
}

/* Values of hexadecimal digits, plus one. 0: no digit. */
static const uint8_t hex_values[256] = {
    ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,
    ['6'] = 7,  ['7'] = 8,  ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12,
    ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16, ['A'] = 11, ['B'] = 12,
    ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
};

int
hex_value(char c)
{
    return hex_values[(unsigned char)c] - 1;
}

/*
 * Converts eight hexadecimal digits at a time, one per byte of a word, the first digit in
 * the highest byte. This returns the digits of values 0 .. 15; larger values, up to 31,
 * give other characters.
 */
static uint64_t
digits_of(uint64_t nibbles)
{
    uint64_t letter = (nibbles + EVERY_BYTE(6)) >> 4 & EVERY_BYTE(1);

    return nibbles + EVERY_BYTE('0') + letter * ('a' - '0' - 10);
}

void
hex_write_eight(char *out, uint32_t value)
{
    uint64_t nibbles = value;

    nibbles = (nibbles | nibbles << 16) & UINT64_C(0x0000ffff0000ffff);
    nibbles = (nibbles | nibbles << 8) & UINT64_C(0x00ff00ff00ff00ff);
    nibbles = (nibbles | nibbles << 4) & EVERY_BYTE(0x0f);
    nibbles = htobe64(digits_of(nibbles));
    memcpy(out, &nibbles, sizeof(nibbles));
}

/* fold: the bit that makes a letter lower case, to read upper case, too; else 0. */
static bool
read_eight(const char *digits, uint64_t fold, uint32_t *out)
{
    uint64_t word, letter, nibbles;

    memcpy(&word, digits, sizeof(word));
    word = be64toh(word);
    letter = word >> 6 & EVERY_BYTE(1);
    nibbles = (word & EVERY_BYTE(0x0f)) + letter * 9;
    /* A character that is no digit does not survive the round trip. */
    if ((nibbles & EVERY_BYTE(0xf0)) != 0 || digits_of(nibbles) != (word | letter * fold))
        return false;
    nibbles = (nibbles | nibbles >> 4) & UINT64_C(0x00ff00ff00ff00ff);
    nibbles = (nibbles | nibbles >> 8) & UINT64_C(0x0000ffff0000ffff);
    *out = (uint32_t)(nibbles | nibbles >> 16);
    return true;
}

bool
hex_read_eight_nocase(const char *digits, uint32_t *out)
{
    return read_eight(digits, 'a' - 'A', out);
}

bool
hex_read_eights(const char *digits, size_t count, uint32_t *out)
{
    for (size_t i = 0; i < count; i++)
        if (!read_eight(digits + 8 * i, 0, &out[i]))
            return false;
    return true;
}

void
hex_write(char *out, uint64_t value, unsigned digits)
{
    char text[16];

    hex_write_eight(text, (uint32_t)(value >> 32));
    hex_write_eight(text + 8, (uint32_t)value);
    memcpy(out, text + sizeof(text) - digits, digits);
}

bool
hex_read(struct bytes b, uint64_t *out)
{
    char text[16];
    const char *digits = text;
    uint32_t high, low;

    if (b.len == 0 || b.len > sizeof(text))
        return false;
    if (b.len == sizeof(text)) {
        digits = b.data;
    } else {
        memset(text, '0', sizeof(text));
        memcpy(text + sizeof(text) - b.len, b.data, b.len);
    }
    if (!read_eight(digits, 0, &high) || !read_eight(digits + 8, 0, &low))
        return false;
    *out = (uint64_t)high << 32 | low;
    return true;
}

size_t
uri_decode(char *to, struct bytes text, bool plus_is_space)
{
    size_t len = 0;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];

        if (c == '%' && text.len - i > 2 && hex_value(text.data[i + 1]) >= 0 &&
            hex_value(text.data[i + 2]) >= 0) {
            c = (char)(hex_value(text.data[i + 1]) * 16 + hex_value(text.data[i + 2]));
            i += 2;
        } else if (c == '+' && plus_is_space) {
            c = ' ';
        }
        to[len++] = c;
    }
    return len;
}

char *
hex_write_bytes(char *out, struct bytes b)
{
    for (size_t i = 0; i < b.len; i++, out += 2)
        hex_write(out, (uint8_t)b.data[i], 2);
    return out;
}

bool
hex_read_bytes(struct bytes digits, void *out, size_t len)
{
    uint8_t *to = out;
    uint64_t value;

    if (digits.len != 2 * len)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (!hex_read(bytes_of(digits.data + 2 * i, 2), &value))
            return false;
        to[i] = (uint8_t)value;
    }
    return true;
}
