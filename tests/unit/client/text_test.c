/*
 * Texts of a server must not control the terminal of the operator, and columns are
 * counted in characters. Also times as people read and write them. Read src/client/text.h
 * next.
 */
#include "client/text.h"

#include "support/check_main.h"

#include "claimd/base/utf8.h"

#include <locale.h>

static void
check_escaped(const char *text, size_t len, const char *expected)
{
    struct mem *mem = mem_new(0);
    struct buf out;

    buf_init(&out, mem);
    utf8_escape(&out, bytes_of(text, len));
    buf_byte(&out, '\0');
    ck_assert_str_eq(out.data, expected);
    buf_fini(&out);
    mem_destroy(mem);
}

START_TEST(text_that_commands_a_terminal_is_escaped)
{
    check_escaped("plain é 漢", 12, "plain é 漢");
    check_escaped("\x1b[31m", 5, "\\u001b[31m");
    check_escaped("a\0b", 3, "a\\u0000b");
    check_escaped("\n\r\t\x7f", 4, "\\n\\r\\t\\u007f");
    check_escaped("\xc2\x9b"
                  "1m",
                  4, "\\u009b1m");                       /* CSI in C1 */
    check_escaped("\xe2\x80\xae", 3, "\\u202e");         /* right-to-left override */
    check_escaped("\xef\xbb\xbf", 3, "\\ufeff");         /* byte order mark */
    check_escaped("\xff\xc3", 2, "\\xff\\xc3");          /* not UTF-8 */
    check_escaped("\xed\xa0\x80", 3, "\\xed\\xa0\\x80"); /* a surrogate */
}

START_TEST(an_escaped_document_remains_the_same_document)
{
    struct mem *mem = mem_new(0);
    struct buf out;

    buf_init(&out, mem);
    utf8_escape_json(&out, bytes_str("{\n\t\"a\": \"\xc2\x9b\\n\x7f\"}"));
    buf_byte(&out, '\0');
    ck_assert_str_eq(out.data, "{  \"a\": \"\\u009b\\n\\u007f\"}");
    buf_fini(&out);
    mem_destroy(mem);
}

static void
check_fit(const char *text, size_t width, bool right, const char *expected)
{
    struct mem *mem = mem_new(0);
    struct buf out;

    buf_init(&out, mem);
    text_fit(&out, bytes_str(text), width, right);
    buf_byte(&out, '\0');
    ck_assert_str_eq(out.data, expected);
    buf_fini(&out);
    mem_destroy(mem);
}

START_TEST(text_is_cut_and_filled_to_columns_not_bytes)
{
    ck_assert_ptr_nonnull(setlocale(LC_CTYPE, "C.UTF-8"));
    ck_assert_uint_eq(text_width(bytes_str("é漢")), 3);
    ck_assert_uint_eq(text_width(bytes_str("e\xcc\x81")), 1); /* a combining accent */
    check_fit("abc", 5, false, "abc  ");
    check_fit("abc", 5, true, "  abc");
    check_fit("abcdef", 4, false, "abc…");
    check_fit("漢漢漢", 4, false, "漢… ");
    check_fit("漢漢漢", 5, false, "漢漢…");
    check_fit("漢", 1, false, "…");
    check_fit("abc", 0, false, "");
}

START_TEST(a_sparkline_goes_from_a_space_for_zero_to_a_block_for_the_largest_value)
{
    static const int64_t values[] = {0, 1, 500, 999, 1000, -1};
    struct mem *mem = mem_new(0);
    struct buf out;

    buf_init(&out, mem);
    sparkline_write(&out, values, 6);
    sparkline_write(&out, values, 1);
    sparkline_write(&out, values, 0);
    buf_byte(&out, '\0');
    ck_assert_str_eq(out.data, " ▁▄▇█  ");
    buf_fini(&out);
    mem_destroy(mem);
}

START_TEST(times_are_written_with_two_units)
{
    static const struct {
        int64_t seconds;
        const char *text;
    } cases[] = {{-1, "0s"},      {0, "0s"},        {59, "59s"},
                 {60, "1m00s"},   {187, "3m07s"},   {3600, "1h00m"},
                 {7500, "2h05m"}, {86400, "1d00h"}, {352800, "4d02h"}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct mem *mem = mem_new(0);
        struct buf out;

        buf_init(&out, mem);
        duration_write(&out, cases[i].seconds);
        buf_byte(&out, '\0');
        ck_assert_str_eq(out.data, cases[i].text);
        buf_fini(&out);
        mem_destroy(mem);
    }
}

START_TEST(times_are_read_with_one_unit)
{
    static const char *const bad[] = {
        "", "s", "-1", "1.5", "1 s", "1w", "5s5", "x", "99999999999999999d"};
    int64_t s = 0;

    ck_assert(duration_read(bytes_str("90"), 0, 1000, &s) && s == 90);
    ck_assert(duration_read(bytes_str("90s"), 0, 1000, &s) && s == 90);
    ck_assert(duration_read(bytes_str("2m"), 0, 1000, &s) && s == 120);
    ck_assert(duration_read(bytes_str("1h"), 0, 10000, &s) && s == 3600);
    ck_assert(duration_read(bytes_str("2d"), 0, 1000000, &s) && s == 172800);
    ck_assert(!duration_read(bytes_str("2d"), 0, 1000, &s));
    ck_assert(!duration_read(bytes_str("0"), 1, 1000, &s));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(!duration_read(bytes_str(bad[i]), 0, INT64_MAX, &s), "%s", bad[i]);
}
