#include "schedule/posix_tz.h"

#include "claimd/schedule/calendar.h"

/* ------------------------------------------------------------------ reading */

/* Each of these removes what it reads from the front of *text. False: it is not there. */

static bool
read_mark(struct bytes *text, char mark)
{
    if (text->len == 0 || text->data[0] != mark)
        return false;
    *text = bytes_of(text->data + 1, text->len - 1);
    return true;
}

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool
is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool
read_number(struct bytes *text, int least, int most, int *out)
{
    enum { DIGITS_MOST = 3 };
    size_t digits = 0;
    int value = 0;

    while (digits < text->len && digits <= DIGITS_MOST && is_digit(text->data[digits]))
        value = 10 * value + (text->data[digits++] - '0');
    if (digits == 0 || digits > DIGITS_MOST || value < least || value > most)
        return false;
    *text = bytes_of(text->data + digits, text->len - digits);
    *out = value;
    return true;
}

/* A name of three or more letters, or in <> also with digits and signs. */
static bool
read_name(struct bytes *text)
{
    enum { NAME_LEAST = 3 };
    const bool quoted = read_mark(text, '<');
    size_t len = 0;

    while (len < text->len) {
        const char c = text->data[len];

        if (!is_letter(c) && !(quoted && (is_digit(c) || c == '+' || c == '-')))
            break;
        len++;
    }
    *text = bytes_of(text->data + len, text->len - len);
    return len >= NAME_LEAST && (!quoted || read_mark(text, '>'));
}

/* [+-]hh[:mm[:ss]], in seconds. */
static bool
read_time(struct bytes *text, int hours_most, int64_t *out)
{
    const bool negative = read_mark(text, '-');
    int hours, minutes = 0, seconds = 0;

    if (!negative)
        (void)read_mark(text, '+'); /* may be absent */
    if (!read_number(text, 0, hours_most, &hours))
        return false;
    if (read_mark(text, ':')) {
        if (!read_number(text, 0, 59, &minutes))
            return false;
        if (read_mark(text, ':') && !read_number(text, 0, 59, &seconds))
            return false;
    }
    *out = hours * SECONDS_OF_HOUR + minutes * SECONDS_OF_MINUTE + seconds;
    if (negative)
        *out = -*out;
    return true;
}

/* A name and its offset, which is positive west of Greenwich. `usual`: without offset. */
static bool
read_offset(struct bytes *text, const int64_t *usual, int64_t *out)
{
    int64_t west;

    if (!read_name(text))
        return false;
    if (usual != NULL && (text->len == 0 || text->data[0] == ',')) {
        *out = *usual;
        return true;
    }
    if (!read_time(text, 24, &west))
        return false;
    *out = -west;
    return true;
}

static bool
read_day(struct bytes *text, struct posix_tz_change *out)
{
    if (read_mark(text, 'M')) {
        out->form = CHANGE_WEEKDAY;
        return read_number(text, 1, 12, &out->month) && read_mark(text, '.') &&
               read_number(text, 1, 5, &out->week) && read_mark(text, '.') &&
               read_number(text, 0, 6, &out->day);
    }
    if (read_mark(text, 'J')) {
        out->form = CHANGE_DAY_NO_29;
        return read_number(text, 1, 365, &out->day);
    }
    out->form = CHANGE_DAY;
    return read_number(text, 0, 365, &out->day);
}

static bool
read_change(struct bytes *text, struct posix_tz_change *out)
{
    enum { USUAL_HOUR = 2, HOURS_MOST = 167 };

    out->second = USUAL_HOUR * SECONDS_OF_HOUR;
    if (!read_mark(text, ',') || !read_day(text, out))
        return false;
    return !read_mark(text, '/') || read_time(text, HOURS_MOST, &out->second);
}

bool
posix_tz_parse(struct bytes text, struct posix_tz *out)
{
    struct posix_tz tz = {.standard = 0};
    int64_t usual;

    if (!read_offset(&text, NULL, &tz.standard))
        return false;
    tz.daylight = tz.standard;
    if (text.len > 0) {
        usual = tz.standard + SECONDS_OF_HOUR;
        tz.changes = true;
        if (!read_offset(&text, &usual, &tz.daylight) ||
            !read_change(&text, &tz.to_daylight) || !read_change(&text, &tz.to_standard))
            return false;
    }
    if (text.len > 0)
        return false;
    *out = tz;
    return true;
}

/* ------------------------------------------------------------------ spans */

static int64_t
change_day(const struct posix_tz_change *change, int64_t year)
{
    const int64_t first =
        calendar_day(year, change->form == CHANGE_WEEKDAY ? change->month : 1, 1);
    int64_t day;

    if (change->form == CHANGE_DAY)
        return first + change->day;
    if (change->form == CHANGE_DAY_NO_29)
        return first + change->day - 1 +
               (calendar_month_days(year, 2) == 29 && change->day >= 60);
    day = (change->day - calendar_weekday(first) + 7) % 7 + 7 * (change->week - 1);
    if (day >= calendar_month_days(year, change->month))
        day -= 7; /* the last one is the fourth */
    return first + day;
}

/* The UTC second of a change in a year. The wall clock has the offset `before` then. */
static int64_t
change_moment(const struct posix_tz_change *change, int64_t year, int64_t before)
{
    return change_day(change, year) * SECONDS_OF_DAY + change->second - before;
}

/* Shortens *span, which contains `utc`, to the side of a change on which `utc` is. */
static void
span_cut(struct zone_span *span, int64_t utc, int64_t change, int64_t offset)
{
    if (change <= utc && change >= span->begin) {
        span->begin = change;
        span->offset = offset;
    } else if (change > utc && change < span->end) {
        span->end = change;
    }
}

struct zone_span
posix_tz_span(const struct posix_tz *tz, int64_t utc)
{
    struct zone_span span = {INT64_MIN, INT64_MAX, tz->standard};
    int64_t year;

    if (!tz->changes)
        return span;
    /* A change can be a week from its day, and so in another year. */
    year = calendar_date(calendar_wall_day(utc)).year;
    for (int64_t y = year - 2; y <= year + 2; y++) {
        /* Daylight time may last all year: it ends as it begins, and then the beginning
         * counts (RFC 9636, 3.3.1). So that one comes last. */
        span_cut(&span, utc, change_moment(&tz->to_standard, y, tz->daylight),
                 tz->standard);
    }
    for (int64_t y = year - 2; y <= year + 2; y++)
        span_cut(&span, utc, change_moment(&tz->to_daylight, y, tz->standard),
                 tz->daylight);
    return span;
}
