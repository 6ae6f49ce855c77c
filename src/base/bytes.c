#include "claimd/base/bytes.h"

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

/* Values of hexadecimal digits, plus one: 0 is for everything else. */
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

void
hex_write(char *out, uint64_t value, unsigned digits)
{
    static const char digit[] = "0123456789abcdef";

    for (unsigned i = digits; i > 0; i--) {
        out[i - 1] = digit[value & 15];
        value >>= 4;
    }
}

bool
hex_read(struct bytes b, uint64_t *out)
{
    uint64_t value = 0;

    if (b.len == 0 || b.len > 16)
        return false;
    for (size_t i = 0; i < b.len; i++) {
        unsigned digit = hex_values[(unsigned char)b.data[i]];

        if (digit == 0 || (b.data[i] >= 'A' && b.data[i] <= 'F'))
            return false;
        value = value << 4 | (digit - 1);
    }
    *out = value;
    return true;
}
