/*
 * Numbers of JSON are read to the nearest double, and written as Python writes them,
 * because checksums of bodies depend on that (docs/api.md 8.9). Declared in
 * claimd/json/string.h.
 */
#include "claimd/json/string.h"
#include "support/arena_fixture.h"

#include <math.h>

static void
writes(double value, const char *text)
{
    json_number_write(&f.out, value);
    expect_written(text);
}

/* How many bytes of the text are a number; 0 if it does not begin with one. */
static size_t
passes(const char *text, bool *integer)
{
    const unsigned char *at = (const unsigned char *)text;
    const unsigned char *behind = json_number_pass(at, at + strlen(text), integer);

    return behind == NULL ? 0 : (size_t)(behind - at);
}

ARENA_CASE("json_number");

START_TEST(a_number_ends_where_its_grammar_ends)
{
    bool integer;

    ck_assert_uint_eq(passes("12,", &integer), 2);
    ck_assert(integer);
    ck_assert_uint_eq(passes("-0]", &integer), 2);
    ck_assert(integer);
    ck_assert_uint_eq(passes("1.5e+3}", &integer), 6);
    ck_assert(!integer);
    ck_assert_uint_eq(passes("1e5", &integer), 3);
    ck_assert(!integer);
    ck_assert_uint_eq(passes("1.", &integer), 0);
    ck_assert_uint_eq(passes("-", &integer), 0);
    ck_assert_uint_eq(passes("01", &integer), 0);
    ck_assert_uint_eq(passes("", &integer), 0);
}

START_TEST(doubles_are_read_to_the_nearest)
{
    ck_assert(json_number_read(bytes_str("0.1")) == 0.1);
    ck_assert(json_number_read(bytes_str("-12.5e-1")) == -1.25);
    ck_assert(json_number_read(bytes_str("1e400")) == HUGE_VAL);
    ck_assert(json_number_read(bytes_str("1e-400")) == 0);
    ck_assert(signbit(json_number_read(bytes_str("-0.0"))));
    ck_assert(json_number_read(bytes_str("0.000001e6")) == 1);
    ck_assert(json_number_read(bytes_str("9007199254740993.0")) == 9007199254740992.0);
    ck_assert(json_number_read(bytes_str("9007199254740993.0000000001")) ==
              9007199254740994.0);
}

START_TEST(a_digit_behind_a_thousand_zeros_still_decides)
{
    char text[2000];

    memset(text, '0', sizeof(text));
    memcpy(text, "9007199254740993.", 17);
    ck_assert(json_number_read(bytes_of(text, sizeof(text))) == 9007199254740992.0);
    text[sizeof(text) - 1] = '1';
    ck_assert(json_number_read(bytes_of(text, sizeof(text))) == 9007199254740994.0);
}

START_TEST(doubles_are_written_as_python_writes_them)
{
    writes(0.0, "0.0");
    writes(-0.0, "-0.0");
    writes(1.0, "1.0");
    writes(-2.5, "-2.5");
    writes(0.1, "0.1");
    writes(0.1 + 0.2, "0.30000000000000004");
    writes(100.0, "100.0");
    writes(123456789.125, "123456789.125");
    writes(0.0001, "0.0001");
    writes(0.00001, "1e-05");
    writes(0.000012, "1.2e-05");
    writes(1e15, "1000000000000000.0");
    writes(9999999999999998.0, "9999999999999998.0");
    writes(1e16, "1e+16");
    writes(1.5e300, "1.5e+300");
    writes(1e22, "1e+22");
    writes(1e23, "1e+23");
}

START_TEST(the_ends_of_the_range_are_written_shortest)
{
    writes(5e-324, "5e-324");
    writes(2.2250738585072014e-308, "2.2250738585072014e-308");
    writes(2.225073858507201e-308, "2.225073858507201e-308");
    writes(1.7976931348623157e308, "1.7976931348623157e+308");
}

START_TEST(powers_of_two_take_the_next_decimal_when_the_nearest_misses)
{
    writes(ldexp(1, -44), "5.684341886080802e-14");
    writes(ldexp(1, 89), "6.189700196426902e+26");
    writes(ldexp(1, -1017), "7.120236347223045e-307");
}

START_TEST(written_numbers_read_back_equal)
{
    uint64_t bits = 88172645463325252ULL; /* xorshift, from its usual seed */

    for (int i = 0; i < 20000; i++) {
        double value;

        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        memcpy(&value, &bits, sizeof(value));
        if (!isfinite(value))
            continue;
        json_number_write(&f.out, value);
        ck_assert(json_number_read(buf_view(&f.out)) == value);
        buf_reset(&f.out, SIZE_MAX);
    }
}
