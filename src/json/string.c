#include "claimd/json/string.h"
#include "claimd/base/clock.h"

/* Compilers make one load of this. The first byte is the lowest. */
static uint64_t
load8(const unsigned char *at)
{
    uint64_t word = 0;

    for (unsigned i = 0; i < 8; i++)
        word |= (uint64_t)at[i] << (8 * i);
    return word;
}

/*
 * The high bit of each byte that is a control character, a quote, a backslash or not
 * ASCII. A borrow may set more bits, but only behind such a byte, so the lowest bit is
 * always right.
 */
static uint64_t
special_bits(uint64_t word)
{
    uint64_t control = word - EVERY_BYTE(0x20);
    uint64_t quote = (word ^ EVERY_BYTE('"')) - EVERY_BYTE(1);
    uint64_t backslash = (word ^ EVERY_BYTE('\\')) - EVERY_BYTE(1);

    return (control | quote | backslash | word) & EVERY_BYTE(0x80);
}

static bool
is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* The first byte from `at` on that is not a plain character, or `end`. */
static const unsigned char *
skip_plain(const unsigned char *at, const unsigned char *end)
{
    while (end - at >= 8) {
        uint64_t special = special_bits(load8(at));

        if (special != 0)
            return at + __builtin_ctzll(special) / 8;
        at += 8;
    }
    while (at < end && is_plain(*at))
        at++;
    return at;
}

/* The value of the four digits of a \u escape; -1: they are missing. */
static int32_t
four_digits(const unsigned char *at, const unsigned char *end)
{
    int32_t value = 0;

    if (end - at < 4)
        return -1;
    for (unsigned i = 0; i < 4; i++) {
        int digit = hex_value((char)at[i]);

        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

static bool
is_high_surrogate(int32_t unit)
{
    return unit >= 0xd800 && unit <= 0xdbff;
}

static bool
is_low_surrogate(int32_t unit)
{
    return unit >= 0xdc00 && unit <= 0xdfff;
}

/* `at` is behind "\u". */
static const unsigned char *
unicode_pass(const unsigned char *at, const unsigned char *end)
{
    int32_t unit = four_digits(at, end);

    if (unit < 0 || is_low_surrogate(unit))
        return NULL;
    at += 4;
    if (!is_high_surrogate(unit))
        return at;
    if (end - at < 2 || at[0] != '\\' || at[1] != 'u' ||
        !is_low_surrogate(four_digits(at + 2, end)))
        return NULL;
    return at + 6;
}

/* `at` is behind the backslash. */
static const unsigned char *
escape_pass(const unsigned char *at, const unsigned char *end)
{
    if (at == end)
        return NULL;
    switch (*at) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't':
        return at + 1;
    case 'u':
        return unicode_pass(at + 1, end);
    default:
        return NULL;
    }
}

const unsigned char *
json_string_pass(const unsigned char *at, const unsigned char *end, bool *escaped)
{
    while (at != NULL) {
        at = skip_plain(at, end);
        if (at == end || *at < 0x20)
            return NULL;
        if (*at == '"')
            return at + 1;
        if (*at == '\\') {
            *escaped = true;
            at = escape_pass(at + 1, end);
        } else {
            at = utf8_pass(at, end);
        }
    }
    return NULL;
}

/* Says why escape_pass() rejects an escape. */
static const char *
escape_fault(const unsigned char *at, const unsigned char *end)
{
    if (at == end)
        return "the string is not closed";
    if (*at != 'u')
        return "the escape is unknown";
    if (four_digits(at + 1, end) < 0)
        return "\\u must be followed by four hexadecimal digits";
    return "a surrogate must be half of a pair";
}

const unsigned char *
json_string_fault(const unsigned char *at, const unsigned char *end, const char **why)
{
    for (;;) {
        const unsigned char *behind = NULL;

        at = skip_plain(at, end);
        if (at < end && *at == '"')
            return NULL;
        if (at < end && *at >= 0x20)
            behind = *at == '\\' ? escape_pass(at + 1, end) : utf8_pass(at, end);
        if (behind == NULL)
            break;
        at = behind;
    }
    if (at == end)
        *why = "the string is not closed";
    else if (*at < 0x20)
        *why = "a control character in a string must be escaped";
    else
        *why = *at == '\\' ? escape_fault(at + 1, end) : "the string is not valid UTF-8";
    return at;
}

static uint32_t
take_code_point(struct bytes *rest, size_t length, uint32_t code_point)
{
    rest->data += length;
    rest->len -= length;
    return code_point;
}

static uint32_t
next_escape(struct bytes *rest)
{
    const unsigned char *at = (const unsigned char *)rest->data, *end = at + rest->len;
    int32_t unit = four_digits(at + 2, end), low;

    switch (rest->data[1]) {
    case 'b':
        return take_code_point(rest, 2, '\b');
    case 'f':
        return take_code_point(rest, 2, '\f');
    case 'n':
        return take_code_point(rest, 2, '\n');
    case 'r':
        return take_code_point(rest, 2, '\r');
    case 't':
        return take_code_point(rest, 2, '\t');
    case 'u':
        if (!is_high_surrogate(unit))
            return take_code_point(rest, 6, (uint32_t)unit);
        low = four_digits(at + 8, end);
        return take_code_point(
            rest, 12, (uint32_t)(0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00)));
    default:
        return take_code_point(rest, 2, (unsigned char)rest->data[1]);
    }
}

uint32_t
json_string_next(struct bytes *rest)
{
    const unsigned char *at = (const unsigned char *)rest->data;
    unsigned length;
    uint32_t code_point;

    if (*at == '\\')
        return next_escape(rest);
    length = utf8_length(*at);
    if (length <= 1)
        return take_code_point(rest, 1, *at);
    /* The first byte of a sequence of n carries 7 - n bits, each other one 6. */
    code_point = *at & (0x7fu >> length);
    for (unsigned i = 1; i < length; i++)
        code_point = code_point << 6 | (at[i] & 0x3fu);
    return take_code_point(rest, length, code_point);
}

unsigned
utf8_write(uint32_t code_point, char out[4])
{
    unsigned tails = code_point < 0x80      ? 0
                     : code_point < 0x800   ? 1
                     : code_point < 0x10000 ? 2
                                            : 3;
    static const unsigned char marks[4] = {0x00, 0xc0, 0xe0, 0xf0};

    for (unsigned i = tails; i > 0; i--) {
        out[i] = (char)(0x80 | (code_point & 0x3f));
        code_point >>= 6;
    }
    out[0] = (char)(marks[tails] | code_point);
    return tails + 1;
}

bool
json_string_equals(struct bytes inside, struct bytes text)
{
    while (inside.len > 0) {
        char utf8[4];
        unsigned length = utf8_write(json_string_next(&inside), utf8);

        if (text.len < length || memcmp(text.data, utf8, length) != 0)
            return false;
        text.data += length;
        text.len -= length;
    }
    return text.len == 0;
}

/* ------------------------------------------------------------------ writing */

static void
out_escape(struct buf *out, unsigned char c)
{
    static const char short_for[32] = {
        ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
    char escape[6] = {'\\', 'u'};

    if (c >= 0x20 || short_for[c] != 0) {
        escape[1] = c >= 0x20 ? (char)c : short_for[c];
        buf_add(out, escape, 2);
        return;
    }
    hex_write(escape + 2, c, 4);
    buf_add(out, escape, 6);
}

/* Writes one character that is not plain. Returns the address behind it. */
static const unsigned char *
out_special(struct buf *out, const unsigned char *at, const unsigned char *end)
{
    const unsigned char *behind;

    if (*at < 0x80) {
        out_escape(out, *at);
        return at + 1;
    }
    behind = utf8_pass(at, end);
    if (behind == NULL) {
        buf_str(out, "\xef\xbf\xbd"); /* U+FFFD */
        return at + 1;
    }
    buf_add(out, at, (size_t)(behind - at));
    return behind;
}

void
json_string_write(struct buf *out, struct bytes text)
{
    const unsigned char *at = (const unsigned char *)text.data;
    const unsigned char *end = text.len == 0 ? at : at + text.len;

    buf_byte(out, '"');
    while (at != end) {
        const unsigned char *start = at;

        while (at != end && is_plain(*at))
            at++;
        buf_add(out, start, (size_t)(at - start));
        if (at != end)
            at = out_special(out, at, end);
    }
    buf_byte(out, '"');
}

/* ------------------------------------------------------------------ members */

void
json_write_comma(struct buf *out)
{
    const char last = out->len > 0 ? out->data[out->len - 1] : '{';

    if (last != '{' && last != '[' && last != ':')
        buf_byte(out, ',');
}

void
json_write_name(struct buf *out, const char *name)
{
    json_write_comma(out);
    buf_byte(out, '"');
    buf_str(out, name);
    buf_str(out, "\":");
}

void
json_write_raw(struct buf *out, const char *name, struct bytes json)
{
    json_write_name(out, name);
    buf_bytes(out, json);
}

void
json_write_text(struct buf *out, const char *name, struct bytes text)
{
    if (!bytes_present(text))
        return;
    json_write_name(out, name);
    json_string_write(out, text);
}

void
json_write_text_or_null(struct buf *out, const char *name, struct bytes text)
{
    if (text.len > 0)
        json_write_text(out, name, text);
    else
        json_write_raw(out, name, bytes_str("null"));
}

void
json_write_i64(struct buf *out, const char *name, int64_t value)
{
    json_write_name(out, name);
    buf_i64(out, value);
}

void
json_write_u64(struct buf *out, const char *name, uint64_t value)
{
    json_write_name(out, name);
    buf_u64(out, value);
}

void
json_write_flag(struct buf *out, const char *name, bool flag)
{
    json_write_raw(out, name, bytes_str(flag ? "true" : "false"));
}

void
json_write_time(struct buf *out, const char *name, int64_t ms)
{
    char text[CLOCK_TEXT_CAP];

    clock_text(ms, text);
    json_write_text(out, name, bytes_str(text));
}

void
json_write_list(struct buf *out, const char *name, struct bytes list, char mark)
{
    json_write_name(out, name);
    buf_byte(out, '[');
    while (list.len > 0) {
        json_write_comma(out);
        json_string_write(out, bytes_cut(&list, mark));
    }
    buf_byte(out, ']');
}
