/*
 * Runs of bytes: comparing, trimming, cutting, and reading of numbers within bounds. The
 * comparison of secrets must read a wrong one to its end too, which a child proves with a
 * page that it may not read. Read claimd/base/bytes.h next.
 */
#include "claimd/base/bytes.h"

#include "support/check_main.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

START_TEST(absent_and_empty_are_two_things)
{
    struct bytes rest = BYTES_NONE;

    ck_assert(!bytes_present(BYTES_NONE));
    ck_assert(!bytes_present(bytes_str(NULL)));
    ck_assert(bytes_present(bytes_str("")));
    ck_assert(bytes_equal(BYTES_NONE, bytes_str(""))); /* but no bytes are no bytes */
    ck_assert(!bytes_present(bytes_cut(&rest, ',')));
}

START_TEST(runs_compare_in_byte_order_with_prefixes_first)
{
    ck_assert_int_eq(bytes_compare(bytes_str("a"), bytes_str("a")), 0);
    ck_assert_int_lt(bytes_compare(bytes_str("a"), bytes_str("aa")), 0);
    ck_assert_int_gt(bytes_compare(bytes_str("b"), bytes_str("aa")), 0);
    ck_assert_int_gt(bytes_compare(bytes_str("\xff"), bytes_str("a")), 0); /* unsigned */
    ck_assert_int_lt(bytes_compare(BYTES_NONE, bytes_str("a")), 0);
    ck_assert_int_lt(bytes_compare(bytes_of("a\0a", 3), bytes_of("a\0b", 3)), 0);
}

START_TEST(nul_bytes_are_like_all_others)
{
    ck_assert(bytes_equal(bytes_of("a\0b", 3), bytes_of("a\0b", 3)));
    ck_assert(!bytes_equal(bytes_of("a\0b", 3), bytes_of("a\0c", 3)));
    ck_assert(!bytes_equal_str(bytes_of("a\0", 2), "a"));
    ck_assert(bytes_contain(bytes_of("a\0bc", 4), bytes_of("\0b", 2)));
}

START_TEST(only_ascii_letters_lose_their_case)
{
    ck_assert(bytes_equal_nocase(bytes_str("Client-ID"), bytes_str("cLIENT-id")));
    ck_assert(!bytes_equal_nocase(bytes_str("a"), bytes_str("ab")));
    ck_assert(!bytes_equal_nocase(bytes_str("["), bytes_str("{"))); /* 32 apart too */
    ck_assert(!bytes_equal_nocase(bytes_str("@"), bytes_str("`")));
}

START_TEST(a_secret_is_equal_to_itself_only)
{
    struct bytes secret = bytes_of("Pass\0word", 9);

    ck_assert(bytes_equal_secret(secret, secret));
    ck_assert(bytes_equal_secret(bytes_str(""), BYTES_NONE));
    ck_assert(!bytes_equal_secret(bytes_str(""), secret));
    ck_assert(!bytes_equal_secret(bytes_str("aa"), bytes_str("a")));
    ck_assert(!bytes_equal_secret(bytes_str("a"), bytes_str("aa")));
    for (size_t i = 0; i < secret.len; i++) {
        char other[9];

        memcpy(other, secret.data, sizeof(other));
        other[i] ^= 'a' ^ 'A';
        ck_assert(!bytes_equal_secret(secret, bytes_of(other, sizeof(other))));
        ck_assert(!bytes_equal_secret(secret, bytes_of(secret.data, i)));
        ck_assert(!bytes_equal_secret(bytes_of(secret.data, i), secret));
    }
}

enum { HAS_READ_ON = 42 };

static void
has_read_on(int number)
{
    (void)number;
    _exit(HAS_READ_ON);
}

/* Runs in the child. It gets a signal if the comparison reads the text to its end. */
_Noreturn static void
compare_up_to_the_edge(char *page, size_t size)
{
    struct bytes given = bytes_of(page + size - 1, 2), secret = bytes_str("xy");

    page[size - 1] = 'a'; /* the first byte is wrong; the second cannot be read */
    if (mprotect(page + size, size, PROT_NONE) != 0 ||
        signal(SIGSEGV, has_read_on) == SIG_ERR)
        _exit(EXIT_FAILURE);
    _exit(bytes_equal_secret(secret, given) ? EXIT_FAILURE : EXIT_SUCCESS);
}

START_TEST(a_wrong_secret_is_read_to_its_end_too)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    char *page =
        mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int status;
    pid_t child;

    ck_assert_ptr_ne(page, MAP_FAILED);
    child = fork();
    if (child == 0)
        compare_up_to_the_edge(page, size);
    ck_assert_int_gt(child, 0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), HAS_READ_ON);
    ck_assert_int_eq(munmap(page, 2 * size), 0);
}

START_TEST(a_part_is_found_anywhere)
{
    ck_assert(bytes_contain(bytes_str("queue"), bytes_str("que")));
    ck_assert(bytes_contain(bytes_str("queue"), bytes_str("eue")));
    ck_assert(bytes_contain(bytes_str("queue"), bytes_str("")));
    ck_assert(bytes_contain(BYTES_NONE, BYTES_NONE));
    ck_assert(!bytes_contain(bytes_str("queue"), bytes_str("queues")));
    ck_assert(!bytes_contain(BYTES_NONE, bytes_str("q")));
}

START_TEST(trimming_takes_white_space_off_both_ends_only)
{
    ck_assert(bytes_equal_str(bytes_trim(bytes_str(" \t\r\na b\n ")), "a b"));
    ck_assert_uint_eq(bytes_trim(bytes_str(" \n ")).len, 0);
    ck_assert(bytes_equal_str(bytes_trim(bytes_str("\va")), "\va"));
}

START_TEST(cutting_returns_each_piece_and_the_empty_ones)
{
    struct bytes rest = bytes_str(",a,,bc,");
    static const char *const pieces[] = {"", "a", "", "bc", ""};

    for (size_t i = 0; i < 5; i++) {
        ck_assert(bytes_present(rest));
        ck_assert(bytes_equal_str(bytes_cut(&rest, ','), pieces[i]));
    }
    ck_assert(!bytes_present(rest));
}

START_TEST(numbers_are_parsed_up_to_their_bounds)
{
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {
        {"0", 0},
        {"-0", 0},
        {"+7", 7},
        {"007", 7},
        {"9223372036854775807", INT64_MAX},
        {"-9223372036854775808", INT64_MIN},
    };
    uint64_t u = 0;
    int64_t i = 0;

    for (size_t n = 0; n < sizeof(good) / sizeof(good[0]); n++) {
        ck_assert(bytes_to_i64(bytes_str(good[n].text), &i));
        ck_assert_int_eq(i, good[n].value);
    }
    ck_assert(bytes_to_u64(bytes_str("18446744073709551615"), &u));
    ck_assert_uint_eq(u, UINT64_MAX);
}

START_TEST(an_invalid_number_leaves_the_result_unchanged)
{
    static const char *const bad[] = {"",
                                      "-",
                                      "+",
                                      "--1",
                                      "+-1",
                                      " 1",
                                      "1 ",
                                      "1.0",
                                      "0x1",
                                      "1e3",
                                      "a",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "99999999999999999999999"};
    uint64_t u = 42;
    int64_t i = 42;

    for (size_t n = 0; n < sizeof(bad) / sizeof(bad[0]); n++) {
        ck_assert_msg(!bytes_to_i64(bytes_str(bad[n]), &i), "taken: '%s'", bad[n]);
        ck_assert_int_eq(i, 42);
    }
    ck_assert(!bytes_to_u64(bytes_str("18446744073709551616"), &u));
    ck_assert(!bytes_to_u64(bytes_str("18446744073709551620"), &u));
    ck_assert(!bytes_to_u64(bytes_str("-1"), &u));
    ck_assert(!bytes_to_u64(bytes_str("+1"), &u));
    ck_assert(!bytes_to_u64(bytes_of("1\0", 2), &u));
    ck_assert(!bytes_to_u64(BYTES_NONE, &u));
    ck_assert_uint_eq(u, 42);
}

START_TEST(hexadecimal_is_written_and_read_back)
{
    char text[16];
    uint64_t value = 0;

    hex_write(text, 0x0123456789abcdefULL, 16);
    ck_assert(bytes_equal_str(bytes_of(text, 16), "0123456789abcdef"));
    ck_assert(hex_read(bytes_of(text, 16), &value));
    ck_assert_uint_eq(value, 0x0123456789abcdefULL);
    hex_write(text, 0xabc, 2); /* the low digits */
    ck_assert(bytes_equal_str(bytes_of(text, 2), "bc"));
}

START_TEST(eight_digits_are_read_in_either_case_and_nothing_else)
{
    uint32_t value = 0;

    ck_assert(hex_read_eight_nocase("09afAF5c", &value));
    ck_assert_uint_eq(value, 0x09afaf5cu);
    for (int c = 0; c < 256; c++)
        for (size_t place = 0; place < 8; place++) {
            char text[9] = "11111111";
            int digit = hex_value((char)c);

            text[place] = (char)c;
            ck_assert_int_eq(hex_read_eight_nocase(text, &value), digit >= 0);
            if (digit >= 0)
                ck_assert_uint_eq(value >> (28 - 4 * place) & 15, (unsigned)digit);
        }
}

START_TEST(only_lower_case_hexadecimal_is_read)
{
    uint64_t value = 42;

    ck_assert(!hex_read(bytes_str(""), &value));
    for (int c = 0; c < 256; c++) {
        char text[2] = {(char)c, '1'};
        bool is_digit = hex_value((char)c) >= 0 && (c < 'A' || c > 'F');
        uint64_t read = 0;

        ck_assert_int_eq(hex_read(bytes_of(text, 2), &read), is_digit);
        ck_assert_uint_eq(read, is_digit ? 16 * (unsigned)hex_value((char)c) + 1 : 0);
    }
    ck_assert(!hex_read(bytes_str("A"), &value));
    ck_assert(!hex_read(bytes_str("g"), &value));
    ck_assert(!hex_read(bytes_str("-1"), &value));
    ck_assert(!hex_read(bytes_str("00000000000000000"), &value)); /* 17 digits */
    ck_assert_uint_eq(value, 42);
    ck_assert_int_eq(hex_value('F'), 15);
    ck_assert_int_eq(hex_value('/'), -1);
    ck_assert_int_eq(hex_value(':'), -1);
}
