/* cron_parse: reads cron expressions, and says of those it refuses what to write. */
#include "claimd/base/nearest.h"
#include "claimd/base/plural.h"
#include "claimd/schedule/cron.h"

#include <stdio.h>

enum { FIELDS = 5 };

/* A field: its name, its values, and names of values from the first one on. */
struct cron_field {
    const char *name, *allowed;
    int least, most, every_most; /* "*" is least to every_most */
    int names;
    const char *const *value_names;
};

static const char *const month_names[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                          "jul", "aug", "sep", "oct", "nov", "dec"};
static const char *const weekday_names[] = {"sun", "mon", "tue", "wed",
                                            "thu", "fri", "sat"};

enum { MINUTE, HOUR, DAY, MONTH, WEEKDAY };

static const struct cron_field fields[FIELDS] = {
    [MINUTE] = {"minute", "0 to 59", 0, 59, 59, 0, NULL},
    [HOUR] = {"hour", "0 to 23", 0, 23, 23, 0, NULL},
    [DAY] = {"day of month", "1 to 31", 1, 31, 31, 0, NULL},
    [MONTH] = {"month", "1 to 12, or jan to dec", 1, 12, 12, 12, month_names},
    [WEEKDAY] = {"weekday", "0 to 7, or sun to sat", 0, 7, 6, 7, weekday_names},
};

/* ------------------------------------------------------------------ values */

/* The characters of other schedulers, such as L, 15W, LW, FRI#2 and ?. */
static bool
is_of_others(struct bytes text)
{
    size_t digits = 0;

    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] == '#' || text.data[i] == '?')
            return true;
    }
    while (digits < text.len && text.data[digits] >= '0' && text.data[digits] <= '9')
        digits++;
    text = bytes_of(text.data + digits, text.len - digits);
    return bytes_equal_nocase(text, bytes_str("l")) ||
           bytes_equal_nocase(text, bytes_str("w")) ||
           bytes_equal_nocase(text, bytes_str("lw"));
}

static enum status
refuse_value(const struct cron_field *field, struct bytes text, struct reason *why)
{
    if (bytes_equal_str(text, "?"))
        return reason_give(why, ST_BAD_VALUE,
                           "cron expression: %s is ?, which is not supported. Write *",
                           field->name);
    if (is_of_others(text))
        return reason_give(why, ST_BAD_VALUE,
                           "cron expression: %s is %s. L, W, # and ? are not supported. "
                           "Write a list of values",
                           field->name, received(text).text);
    return reason_give(why, ST_BAD_VALUE,
                       "cron expression: %s is %s. The allowed range is %s", field->name,
                       received(text).text, field->allowed);
}

/* Digits only, without sign. */
static bool
read_digits(struct bytes text, int64_t *out)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
    }
    return bytes_to_i64(text, out);
}

static enum status
read_value(const struct cron_field *field, struct bytes text, int *out,
           struct reason *why)
{
    int64_t value;

    for (int i = 0; i < field->names; i++) {
        if (bytes_equal_nocase(text, bytes_str(field->value_names[i]))) {
            *out = field->least + i;
            return ST_OK;
        }
    }
    if (!read_digits(text, &value) || value < field->least || value > field->most)
        return refuse_value(field, text, why);
    *out = (int)value;
    return ST_OK;
}

/* ------------------------------------------------------------------ entries */

struct range {
    int low, high, step;
};

struct range_text {
    char text[32];
};

/* 7 is Sunday, the first day. */
static int
field_value(const struct cron_field *field, int value)
{
    return value > field->every_most ? field->least : value;
}

static struct range_text
range_text(int low, int high)
{
    struct range_text out;

    (void)snprintf(out.text, sizeof(out.text), low == high ? "%d" : "%d-%d", low, high);
    return out;
}

/* Suggests the list that a range over the end of the field is to mean. */
static enum status
refuse_reversed(const struct cron_field *field, struct bytes text, struct range r,
                struct reason *why)
{
    const bool all = r.low > field->every_most; /* 7-2 */

    return reason_give(why, ST_BAD_VALUE,
                       "cron expression: %s is %s, a range that ends before it begins. "
                       "Write %s%s%s",
                       field->name, received(text).text,
                       all ? "" : range_text(r.low, field->every_most).text,
                       all ? "" : ",", range_text(field->least, r.high).text);
}

static enum status
read_step(const struct cron_field *field, struct bytes text, struct range *r,
          struct reason *why)
{
    const int most = r->high > r->low ? r->high - r->low : 1;
    int64_t step;

    if (!read_digits(text, &step) || step < 1 || step > most)
        return reason_give(why, ST_BAD_VALUE,
                           "cron expression: %s has the step \"%s\". The allowed range "
                           "for %d to %d is 1 to %d",
                           field->name, received(text).text, r->low, r->high, most);
    r->step = (int)step;
    return ST_OK;
}

/* Reads "*", a value or a range. `step` is what follows it, or absent. */
static enum status
read_range(const struct cron_field *field, struct bytes text, struct bytes step,
           struct range *r, struct reason *why)
{
    struct bytes high = text, low = bytes_cut(&high, '-');
    const bool is_range = low.len > 0 && high.len > 0;
    enum status st;

    *r = (struct range){field->least, field->every_most, 1};
    if (bytes_equal_str(text, "*"))
        return ST_OK;
    st = read_value(field, is_range ? low : text, &r->low, why);
    if (st == ST_OK && !is_range && bytes_present(step))
        return reason_give(why, ST_BAD_VALUE,
                           "cron expression: %s is %s/%s. A step needs a range. Write "
                           "%s/%s",
                           field->name, received(text).text, received(step).text,
                           range_text(field_value(field, r->low), field->every_most).text,
                           received(step).text);
    r->high = r->low;
    if (st == ST_OK && is_range)
        st = read_value(field, high, &r->high, why);
    if (st == ST_OK && r->high < r->low)
        return refuse_reversed(field, text, *r, why);
    return st;
}

/* Adds one entry of a list to the set. */
static enum status
read_entry(const struct cron_field *field, struct bytes text, uint64_t *set,
           struct reason *why)
{
    struct bytes step = text, base = bytes_cut(&step, '/');
    struct range r;
    enum status st;

    if (base.len == 0)
        return reason_give(why, ST_BAD_VALUE,
                           "cron expression: %s has an empty entry. Remove it, or write "
                           "* for all values",
                           field->name);
    st = read_range(field, base, step, &r, why);
    if (st == ST_OK && bytes_present(step))
        st = read_step(field, step, &r, why);
    if (st != ST_OK)
        return st;
    for (int value = r.low; value <= r.high; value += r.step)
        *set |= UINT64_C(1) << field_value(field, value);
    return ST_OK;
}

static enum status
read_field(const struct cron_field *field, struct bytes text, uint64_t *set,
           struct reason *why)
{
    enum status st = ST_OK;

    *set = 0;
    while (st == ST_OK && bytes_present(text))
        st = read_entry(field, bytes_cut(&text, ','), set, why);
    return st;
}

/* ------------------------------------------------------------------ days */

static bool
has_star(struct bytes text)
{
    return bytes_contain(text, bytes_str("*"));
}

/* True if one day field has a part such as *\/2 and the other is restricted. */
static enum status
check_day_fields(const struct bytes texts[FIELDS], const struct cron *cron,
                 struct reason *why)
{
    const bool day = !cron->any_day && has_star(texts[DAY]);

    if (cron->any_day || cron->any_weekday || !(day || has_star(texts[WEEKDAY])))
        return ST_OK;
    return reason_give(
        why, ST_BAD_VALUE,
        "cron expression: %s is %s and %s is restricted, too. Schedulers "
        "disagree about it. Write %s as a list of values, or as *",
        fields[day ? DAY : WEEKDAY].name, received(texts[day ? DAY : WEEKDAY]).text,
        fields[day ? WEEKDAY : DAY].name, fields[day ? DAY : WEEKDAY].name);
}

/* Refuses days that none of the months has. */
static enum status
check_dates(const struct bytes texts[FIELDS], const struct cron *cron, struct reason *why)
{
    enum { LEAP_YEAR = 2000 };

    if (!cron->any_weekday)
        return ST_OK; /* the weekday alone makes a day match, or all days of month do */
    for (int month = 1; month <= 12; month++) {
        const int days = calendar_month_days(LEAP_YEAR, month);

        if ((cron->months >> month & 1) != 0 &&
            (cron->days & ((UINT64_C(2) << days) - 1)) != 0)
            return ST_OK;
    }
    return reason_give(why, ST_BAD_VALUE,
                       "cron expression: day of month is %s and month is %s. There is no "
                       "such date. Write a day that one of the months has",
                       received(texts[DAY]).text, received(texts[MONTH]).text);
}

/* ------------------------------------------------------------------ whole texts */

static bool
is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Splits a text at blanks into at most `most` fields. Returns how many there are. */
static size_t
split(struct bytes text, struct bytes *parts, size_t most)
{
    size_t count = 0, at = 0;

    while (at < text.len) {
        const size_t begin = at;

        while (at < text.len && !is_blank(text.data[at]))
            at++;
        if (at > begin && count++ < most)
            parts[count - 1] = bytes_of(text.data + begin, at - begin);
        at += at < text.len;
    }
    return count;
}

static enum status
refuse_count(struct bytes text, size_t count, struct bytes first, struct reason *why)
{
    const char *remedy = "";

    if (count == 0)
        return reason_give(why, ST_BAD_VALUE,
                           "cron expression is empty. Write five fields, such as "
                           "30 2 * * mon-fri");
    if (bytes_contain(first, bytes_str("=")))
        remedy = ". Give the time zone outside the expression";
    else if (count > FIELDS)
        remedy = ". Seconds and years are not supported. Remove them";
    return reason_give(why, ST_BAD_VALUE,
                       "cron expression \"%s\" has %zu field%s. It needs five: minute, "
                       "hour, day of month, month and weekday%s",
                       received(text).text, count, plural_s(count), remedy);
}

/* Replaces a macro by the expression that it stands for. */
static enum status
read_macro(struct bytes *text, struct reason *why)
{
    static const char *const macros[][2] = {
        {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"},
        {"@weekly", "0 0 * * 0"}, {"@daily", "0 0 * * *"},    {"@midnight", "0 0 * * *"},
        {"@hourly", "0 * * * *"},
    };
    struct nearest nearest = nearest_begin(*text);

    for (size_t i = 0; i < sizeof(macros) / sizeof(macros[0]); i++) {
        if (bytes_equal_nocase(*text, bytes_str(macros[i][0]))) {
            *text = bytes_str(macros[i][1]);
            return ST_OK;
        }
        nearest_offer(&nearest, macros[i][0]);
    }
    if (bytes_equal_nocase(*text, bytes_str("@reboot")))
        return reason_give(why, ST_BAD_VALUE,
                           "cron expression: @reboot is not supported. A schedule has "
                           "times, such as @daily");
    if (bytes_begin_with(*text, bytes_str("@every")))
        return reason_give(why, ST_BAD_VALUE,
                           "cron expression: @every is not supported. Use \"every\" with "
                           "a number of seconds");
    return reason_give(why, ST_BAD_VALUE, "cron expression: %s is unknown. Write %s",
                       received(*text).text,
                       nearest.found == NULL
                           ? "five fields, or one of @yearly, @monthly, "
                             "@weekly, @daily and @hourly"
                           : nearest.found);
}

static enum status
check_text(struct bytes text, struct reason *why)
{
    if (text.len > CRON_TEXT_MOST)
        return reason_give(why, ST_BAD_VALUE,
                           "cron expression is %zu characters long. The maximum is %d",
                           text.len, CRON_TEXT_MOST);
    for (size_t i = 0; i < text.len; i++) {
        const unsigned char c = (unsigned char)text.data[i];

        if (c != '\t' && (c < ' ' || c >= 0x7f))
            return reason_give(why, ST_BAD_VALUE,
                               "cron expression has the byte %u at position %zu. Only "
                               "ASCII characters, spaces and tabs are allowed",
                               c, i + 1);
    }
    return ST_OK;
}

static enum status
read_fields(const struct bytes texts[FIELDS], struct cron *out, struct reason *why)
{
    uint64_t sets[FIELDS];
    enum status st = ST_OK;

    for (size_t i = 0; i < FIELDS && st == ST_OK; i++)
        st = read_field(&fields[i], texts[i], &sets[i], why);
    if (st != ST_OK)
        return st;
    *out = (struct cron){.minutes = sets[MINUTE],
                         .hours = (uint32_t)sets[HOUR],
                         .days = (uint32_t)sets[DAY],
                         .months = (uint16_t)sets[MONTH],
                         .weekdays = (uint8_t)sets[WEEKDAY],
                         .any_day = bytes_equal_str(texts[DAY], "*"),
                         .any_weekday = bytes_equal_str(texts[WEEKDAY], "*")};
    return ST_OK;
}

enum status
cron_parse(struct bytes text, struct cron *out, struct reason *why)
{
    struct bytes texts[FIELDS];
    struct cron cron;
    size_t count;
    enum status st = check_text(text, why);

    if (st != ST_OK)
        return st;
    text = bytes_trim(text);
    if (text.len > 0 && text.data[0] == '@') {
        st = read_macro(&text, why);
        if (st != ST_OK)
            return st;
    }
    count = split(text, texts, FIELDS);
    if (count != FIELDS)
        return refuse_count(text, count, count > 0 ? texts[0] : text, why);
    st = read_fields(texts, &cron, why);
    if (st == ST_OK)
        st = check_day_fields(texts, &cron, why);
    if (st == ST_OK)
        st = check_dates(texts, &cron, why);
    if (st == ST_OK)
        *out = cron;
    return st;
}
