#include "api/wire/iso_time.h"

#include "claimd/base/clock.h"

#include <time.h>

/* From 1000-01-01T00:00:00 to 9999-12-31T23:59:59, in UTC: years of four digits. */
static const int64_t first_s = -INT64_C(30610224000), last_s = INT64_C(253402300799);

/* What is left of a text. */
struct reader {
    struct bytes rest;
    bool bad;
};

static bool
take(struct reader *r, char c)
{
    if (r->rest.len == 0 || *r->rest.data != c)
        return false;
    r->rest = bytes_of(r->rest.data + 1, r->rest.len - 1);
    return true;
}

static void
expect(struct reader *r, char c)
{
    if (!take(r, c))
        r->bad = true;
}

static bool
next_is_digit(const struct reader *r)
{
    return r->rest.len > 0 && *r->rest.data >= '0' && *r->rest.data <= '9';
}

/* Just so many digits, with a value from `least` to `most`. */
static int
number(struct reader *r, int digits, int least, int most)
{
    int value = 0;

    for (int i = 0; i < digits; i++) {
        if (!next_is_digit(r)) {
            r->bad = true;
            return least;
        }
        value = 10 * value + (*r->rest.data - '0');
        r->rest = bytes_of(r->rest.data + 1, r->rest.len - 1);
    }
    if (value < least || value > most)
        r->bad = true;
    return value;
}

static void
read_second(struct reader *r, struct tm *tm)
{
    tm->tm_sec = number(r, 2, 0, 59);
    if (!take(r, '.') && !take(r, ','))
        return;
    if (!next_is_digit(r))
        r->bad = true;
    while (next_is_digit(r))
        (void)number(r, 1, 0, 9);
}

/* Seconds that a clock there is ahead of UTC. */
static int
read_zone(struct reader *r)
{
    int sign, seconds;

    if (r->rest.len == 0 || take(r, 'Z') || take(r, 'z'))
        return 0;
    sign = take(r, '-') ? -1 : 1;
    if (sign > 0)
        expect(r, '+');
    seconds = number(r, 2, 0, 23) * 3600;
    if (take(r, ':') || r->rest.len > 0)
        seconds += number(r, 2, 0, 59) * 60;
    return sign * seconds;
}

bool
iso_time_read(struct bytes text, int64_t *out_ms)
{
    struct reader r = {.rest = text};
    struct tm tm = {0};
    int zone = 0, day;
    int64_t seconds;

    tm.tm_year = number(&r, 4, 1000, 9999) - 1900;
    expect(&r, '-');
    tm.tm_mon = number(&r, 2, 1, 12) - 1;
    expect(&r, '-');
    tm.tm_mday = number(&r, 2, 1, 31);
    if (r.rest.len > 0) {
        if (!take(&r, 'T') && !take(&r, 't'))
            expect(&r, ' ');
        tm.tm_hour = number(&r, 2, 0, 23);
        expect(&r, ':');
        tm.tm_min = number(&r, 2, 0, 59);
        if (take(&r, ':'))
            read_second(&r, &tm);
        zone = read_zone(&r);
    }
    if (r.bad || r.rest.len > 0)
        return false;
    day = tm.tm_mday;
    seconds = timegm(&tm); /* makes a day of the next month of one that is not there */
    if (tm.tm_mday != day || seconds - zone < first_s || seconds - zone > last_s)
        return false;
    *out_ms = (seconds - zone) * 1000;
    return true;
}

void
iso_time_write(int64_t ms, char out[ISO_TIME_CAP])
{
    char text[CLOCK_TEXT_CAP];

    clock_text(ms, text);
    memcpy(out, text, ISO_TIME_CAP - 1);
    out[ISO_TIME_CAP - 1] = '\0'; /* over the Z */
}
