/*
 * number: checks, reads and writes the numbers of JSON texts. Declared in
 * claimd/json/string.h. strtod() and printf() use the decimal point of the locale. So
 * strtod() gets digits and an exponent without a point, and shortest_round() takes only
 * the digits of what printf() writes. scan.c calls json_number_pass() for each number.
 */
#include "claimd/json/string.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Digits that decide to which double a decimal is nearest: 767 are enough, even between
 * two doubles, if a further one says whether the rest is zero. */
#define DIGITS_MAX 800

/* A larger exponent is treated as infinite, so sums do not overflow. */
#define EXPONENT_MAX 1000000000L

/* Digits that distinguish any two doubles. */
#define SHORTEST_MAX 17

static bool
is_digit(const unsigned char *at, const unsigned char *end)
{
    return at < end && *at >= '0' && *at <= '9';
}

static const unsigned char *
skip_digits(const unsigned char *at, const unsigned char *end)
{
    while (is_digit(at, end))
        at++;
    return at;
}

/* Reads an exponent behind its `e`; NULL if it has no digits. */
static const unsigned char *
exponent_pass(const unsigned char *at, const unsigned char *end, long *exponent)
{
    bool negative = at < end && *at == '-';
    long value = 0;

    if (at < end && (*at == '-' || *at == '+'))
        at++;
    if (!is_digit(at, end))
        return NULL;
    for (; is_digit(at, end); at++)
        if (value < EXPONENT_MAX)
            value = value * 10 + (*at - '0');
    *exponent = negative ? -value : value;
    return at;
}

const unsigned char *
json_number_pass(const unsigned char *at, const unsigned char *end, bool *integer)
{
    const unsigned char *start = at, *first;
    long exponent = 0, digits;
    int64_t ignored;

    if (at < end && *at == '-')
        at++;
    first = at;
    at = skip_digits(at, end);
    if (at == first || (*first == '0' && at - first > 1))
        return NULL;
    digits = (long)(at - first);

    *integer = at == end || (*at != '.' && *at != 'e' && *at != 'E');
    if (*integer) { /* any 18 digits and a sign fit */
        struct bytes text = bytes_of((const char *)start, (size_t)(at - start));

        return text.len <= 18 || bytes_to_i64(text, &ignored) ? at : NULL;
    }
    if (*at == '.') {
        if (!is_digit(++at, end))
            return NULL;
        at = skip_digits(at, end);
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        at = exponent_pass(at + 1, end, &exponent);
        if (at == NULL)
            return NULL;
    }
    /* The value is below ten to the power of (digits before the point + exponent). */
    if (digits + exponent <= 308)
        return at;
    return isinf(json_number_read(bytes_of((const char *)start, (size_t)(at - start))))
               ? NULL
               : at;
}

const char *
json_number_fault(const unsigned char *at, const unsigned char *end)
{
    const unsigned char *first;
    long ignored;

    if (at < end && *at == '-')
        at++;
    first = at;
    at = skip_digits(at, end);
    if (at == first)
        return "a minus sign must be followed by digits";
    if (*first == '0' && at - first > 1)
        return "a number must not begin with 0";
    if (at == end || (*at != '.' && *at != 'e' && *at != 'E'))
        return "an integer must be between -2^63 and 2^63-1";
    if (*at == '.') {
        if (!is_digit(++at, end))
            return "a decimal point must be followed by digits";
        at = skip_digits(at, end);
    }
    if (at < end && (*at == 'e' || *at == 'E') &&
        exponent_pass(at + 1, end, &ignored) == NULL)
        return "an exponent must have digits";
    return "the number is too large for a double";
}

/* A decimal as digits without point and leading zeros: digits * 10^exponent. */
struct decimal {
    char digits[DIGITS_MAX + 1]; /* the last one says that more digits follow */
    size_t count;
    long exponent;
};

static void
decimal_digit(struct decimal *d, char digit, bool fraction)
{
    if (d->count == 0 && digit == '0') {
        d->exponent -= fraction;
    } else if (d->count < DIGITS_MAX) {
        d->digits[d->count++] = digit;
        d->exponent -= fraction;
    } else {
        if (digit != '0' && d->count == DIGITS_MAX)
            d->digits[d->count] = '1';
        d->exponent += !fraction;
    }
}

static void
decimal_read(struct decimal *d, const unsigned char *at, const unsigned char *end)
{
    bool fraction = false;
    long exponent = 0;

    d->count = 0;
    d->exponent = 0;
    d->digits[DIGITS_MAX] = '0';
    for (; at < end && *at != 'e' && *at != 'E'; at++) {
        if (*at == '.')
            fraction = true;
        else
            decimal_digit(d, (char)*at, fraction);
    }
    if (at < end)
        (void)exponent_pass(at + 1, end, &exponent); /* it was checked before */
    d->exponent += exponent;
    if (d->count == DIGITS_MAX) {
        d->count++;
        d->exponent--;
    }
}

/* Integers of 15 digits and these powers are exact doubles, so one operation rounds like
 * strtod(). */
static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

enum { EXACT_DIGITS = 15, EXACT_POWER = sizeof(powers) / sizeof(powers[0]) - 1 };

static double
read_exact(const struct decimal *d)
{
    double value = 0;

    for (size_t i = 0; i < d->count; i++)
        value = value * 10 + (d->digits[i] - '0');
    return d->exponent < 0 ? value / powers[-d->exponent] : value * powers[d->exponent];
}

double
json_number_read(struct bytes text)
{
    const unsigned char *at = (const unsigned char *)text.data;
    const unsigned char *end = at + text.len;
    bool negative = at < end && *at == '-';
    char plain[DIGITS_MAX + 32];
    struct decimal d;
    double value;

    decimal_read(&d, at + negative, end);
    if (d.count == 0)
        return negative ? -0.0 : 0.0;
    if (d.count <= EXACT_DIGITS && labs(d.exponent) <= EXACT_POWER) {
        value = read_exact(&d);
        return negative ? -value : value;
    }
    /* A text without a point reads the same in every locale. */
    (void)snprintf(plain, sizeof(plain), "%.*se%ld", (int)d.count, d.digits, d.exponent);
    value = strtod(plain, NULL);
    return negative ? -value : value;
}

/* The digits of a positive double, and the place of its point: 0.d1d2d3... * 10^point. */
struct shortest {
    char digits[SHORTEST_MAX + 1];
    int count;
    int point;
};

static bool
reads_back(const struct shortest *s, double value)
{
    char text[SHORTEST_MAX + 32];

    (void)snprintf(text, sizeof(text), "%.*se%d", s->count, s->digits,
                   s->point - s->count);
    return strtod(text, NULL) == value;
}

/* The decimal of `count` digits nearest to value. */
static void
shortest_round(struct shortest *s, double value, int count)
{
    char text[SHORTEST_MAX + 32];
    const char *exponent;

    (void)snprintf(text, sizeof(text), "%.*e", count - 1, value);
    s->count = 0;
    for (const char *at = text; *at != 'e'; at++)
        if (*at >= '0' && *at <= '9')
            s->digits[s->count++] = *at;
    exponent = strchr(text, 'e') + 1;
    s->point = (int)strtol(exponent, NULL, 10) + 1;
}

/* The next larger decimal of as many digits. */
static void
shortest_increment(struct shortest *s)
{
    int at = s->count - 1;

    while (at >= 0 && s->digits[at] == '9')
        s->digits[at--] = '0';
    if (at >= 0) {
        s->digits[at]++;
    } else {
        s->digits[0] = '1';
        s->point++;
    }
}

/*
 * Finds the fewest digits that read back as the same double. It starts with 15, because
 * those always survive a double (trailing zeros are removed later). Subnormal numbers
 * have fewer digits, and start with one. At a power of two the doubles below are denser
 * than those above, so the nearest decimal may fail while the next one up succeeds.
 */
static void
shortest_find(struct shortest *s, double value)
{
    int count = value < 1e-290 ? 1 : 15;

    for (; count < SHORTEST_MAX; count++) {
        shortest_round(s, value, count);
        if (reads_back(s, value))
            break;
        shortest_increment(s);
        if (reads_back(s, value))
            break;
    }
    if (count == SHORTEST_MAX)
        shortest_round(s, value, count);
    while (s->count > 1 && s->digits[s->count - 1] == '0')
        s->count--;
}

static void
zeros(struct buf *out, int count)
{
    while (count-- > 0)
        buf_byte(out, '0');
}

static void
write_fixed(struct buf *out, const struct shortest *s)
{
    int whole = s->point < s->count ? s->point : s->count;

    if (s->point <= 0) {
        buf_str(out, "0.");
        zeros(out, -s->point);
        buf_add(out, s->digits, (size_t)s->count);
        return;
    }
    buf_add(out, s->digits, (size_t)whole);
    zeros(out, s->point - whole);
    buf_byte(out, '.');
    if (whole < s->count)
        buf_add(out, s->digits + whole, (size_t)(s->count - whole));
    else
        buf_byte(out, '0');
}

void
json_number_write(struct buf *out, double value)
{
    struct shortest s = {"0", 1, 1};

    if (signbit(value))
        buf_byte(out, '-');
    if (value != 0)
        shortest_find(&s, fabs(value));
    if (s.point > -4 && s.point <= 16) {
        write_fixed(out, &s);
        return;
    }
    buf_byte(out, s.digits[0]);
    if (s.count > 1) {
        buf_byte(out, '.');
        buf_add(out, s.digits + 1, (size_t)(s.count - 1));
    }
    buf_printf(out, "e%+03d", s.point - 1);
}
