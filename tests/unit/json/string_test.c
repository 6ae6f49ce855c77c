/*
 * Strings of JSON: each code point survives reading and writing, and two spellings of one
 * string are equal. Read claimd/json/string.h next.
 */
#include "claimd/json/string.h"
#include "support/check_main.h"

/* The code points inside a string, up to eight. */
static size_t
code_points(const char *inside, uint32_t out[8])
{
    struct bytes rest = bytes_str(inside);
    size_t count = 0;

    while (rest.len > 0 && count < 8)
        out[count++] = json_string_next(&rest);
    ck_assert_uint_eq(rest.len, 0);
    return count;
}

START_TEST(characters_come_out_whatever_way_they_were_written)
{
    uint32_t c[8];

    ck_assert_uint_eq(code_points("a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", c), 4);
    ck_assert(c[0] == 'a' && c[1] == 0xe9 && c[2] == 0x20ac && c[3] == 0x1f600);
    ck_assert_uint_eq(code_points("\\u0061\\u00E9\\u20ac\\ud83d\\uDE00", c), 4);
    ck_assert(c[0] == 'a' && c[1] == 0xe9 && c[2] == 0x20ac && c[3] == 0x1f600);
    ck_assert_uint_eq(code_points("\\\"\\\\\\/\\b\\f\\n\\r\\t", c), 8);
    ck_assert(c[0] == '"' && c[1] == '\\' && c[2] == '/' && c[3] == '\b' &&
              c[4] == '\f' && c[5] == '\n' && c[6] == '\r' && c[7] == '\t');
}

/* Written, checked, cut short and read again: is c still c? Surrogates must not pass. */
static bool
survives(uint32_t c)
{
    char utf8[4];
    const unsigned char *at = (const unsigned char *)utf8;
    unsigned length = utf8_write(c, utf8);
    struct bytes rest = bytes_of(utf8, length);

    if (c >= 0xd800 && c < 0xe000)
        return utf8_pass(at, at + length) == NULL;
    return utf8_pass(at, at + length) == at + length &&
           utf8_pass(at, at + length - 1) == NULL &&
           (c == '\\' || json_string_next(&rest) == c);
}

START_TEST(every_code_point_survives_utf8)
{
    for (uint32_t c = 0; c < 0x110000; c++)
        if (!survives(c))
            ck_abort_msg("U+%04X", (unsigned)c);
}

START_TEST(strings_are_compared_with_their_escapes_undone)
{
    ck_assert(json_string_equals(bytes_str("t\\u0065xt"), bytes_str("text")));
    ck_assert(json_string_equals(bytes_str("\\u00e9"), bytes_str("\xc3\xa9")));
    ck_assert(json_string_equals(bytes_str("\\u0000"), bytes_of("\0", 1)));
    ck_assert(json_string_equals(bytes_str(""), BYTES_NONE));
    ck_assert(!json_string_equals(bytes_str("text"), bytes_str("tex")));
    ck_assert(!json_string_equals(bytes_str("tex"), bytes_str("text")));
    ck_assert(!json_string_equals(bytes_str("text"), bytes_str("t\\u0065xt")));
}
